"""Folders and files on this machine or in an object store: whatever address fsspec knows, such as
`s3://bucket/folder`.

A file appears whole or not at all: on this machine by renaming, in an object store because that is
how an object is put. fsspec is imported only where an address has `://` in it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from privet.core.errors import PrivetError, first_line, missing_extra
from privet.core.files import replacing, sync_folder, writable_folder, write_bytes

# Bytes that are read at a time.
BLOCK = 1 << 20


def is_address(text: str | Path) -> bool:
    """Whether this names something in a store, and not a path of this machine.

    >>> is_address("s3://bucket/people.parquet"), is_address("people.parquet")
    (True, False)
    """
    return isinstance(text, str) and "://" in text and not text.startswith("file://")


def local_path(text: str | Path) -> Path:
    """The path that a text without a store's address means."""
    return Path(str(text).removeprefix("file://")).expanduser()


@lru_cache(maxsize=16)
def _system(protocol: str) -> Any:
    """The file system of addresses that begin with these letters."""
    try:
        import fsspec  # type: ignore[import-untyped]

        return fsspec.filesystem(protocol)
    except ImportError as error:
        name = str(error.name or "fsspec")
        raise missing_extra(name, "stores", f"An address with {protocol}://") from None
    except Exception as error:  # whatever the store's own client raises
        raise PrivetError(f"{protocol}:// cannot be used ({first_line(error)}).") from None


def _parts(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    protocol, _, path = address.partition("://")
    return _system(protocol), path.rstrip("/")


@contextmanager
def _said(address: str) -> Iterator[None]:
    """Errors of a store as one sentence; a file that is not there stays FileNotFoundError."""
    try:
        yield
    except (PrivetError, FileNotFoundError):
        raise
    except Exception as error:  # whatever the store's own client raises
        raise PrivetError(f"{address} cannot be used ({first_line(error)}).") from None


@dataclass(frozen=True)
class StoredFile:
    """A file in a store, for readers that take a path or an open file.

    Parameters:
        address: Such as `s3://bucket/people.parquet`.

    >>> StoredFile("s3://bucket/people.parquet").name
    'people.parquet'
    """

    address: str

    def __str__(self) -> str:
        return self.address

    @property
    def name(self) -> str:
        return self.address.rpartition("/")[2]

    def open(self) -> Any:
        """The file, to be read from any place in it."""
        system, path = _parts(self.address)
        with _said(self.address):
            try:
                return system.open(path, "rb")
            except FileNotFoundError:
                raise PrivetError(f"There is no {self.address}.") from None

    def version(self) -> str:
        """Words that change when the file does: its size and what the store says of it."""
        system, path = _parts(self.address)
        with _said(self.address):
            about = system.info(path)
        keys = ("ETag", "etag", "md5", "LastModified", "mtime", "created")
        said = next((about[key] for key in keys if about.get(key) is not None), "")
        return f"{about.get('size')} {said}"


# A file that is read.
AnyFile = Path | StoredFile


def opened(file: AnyFile) -> Any:
    """What readers of parquet take: a path, or an open file of a store."""
    return file if isinstance(file, Path) else file.open()


def version_of(file: AnyFile) -> str:
    """Words that change when a file does."""
    if isinstance(file, StoredFile):
        return file.version()
    try:
        about = file.stat()
    except FileNotFoundError:
        return "gone"
    return f"{about.st_size} {about.st_mtime_ns}"


class Store:
    """A folder to read from and to write to, on this machine or elsewhere. It holds its address
    only, so it travels to other machines.

    Parameters:
        address: A path, or such as `s3://bucket/folder`.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     store.write("a.txt", b"here")
    ...     store.read("a.txt"), store.names()
    (b'here', ['a.txt'])
    """

    def __init__(self, address: str | Path) -> None:
        self.folder = None if is_address(address) else local_path(address)
        self.address = str(address).rstrip("/") if self.folder is None else str(self.folder)

    def __reduce__(self) -> tuple[type[Store], tuple[str]]:
        return Store, (self.address,)

    def file(self, name: str) -> AnyFile:
        """One of its files."""
        if self.folder is not None:
            return self.folder / name
        return StoredFile(f"{self.address}/{name}")

    def prepare(self) -> Any:
        """Check that it can be written to, before any long work; gives what undoes it."""
        if self.folder is not None:
            return writable_folder(self.folder)
        system, path = _parts(self.address)
        with _said(self.address):
            with suppress(FileNotFoundError):
                system.ls(path.partition("/")[0], refresh=True)
                return lambda: None
            raise PrivetError(f"There is no store for {self.address}: make it first.")

    def names(self) -> list[str]:
        """The files that are directly in it, without hidden ones."""
        if self.folder is not None:
            found = self.folder.iterdir() if self.folder.is_dir() else iter(())
            names = [path.name for path in found if path.is_file()]
        else:
            system, path = _parts(self.address)
            with _said(self.address):
                system.invalidate_cache()
                listed = system.find(path, maxdepth=1)
                names = [one.rpartition("/")[2] for one in listed]
        return sorted(name for name in names if not name.startswith("."))

    def has(self, name: str) -> bool:
        """Whether a file is in it."""
        if self.folder is not None:
            return (self.folder / name).is_file()
        system, path = _parts(f"{self.address}/{name}")
        with _said(self.address):
            system.invalidate_cache()
            return bool(system.exists(path))

    def read(self, name: str, most: int = 1 << 30) -> bytes:
        """A small file; FileNotFoundError where it is not there, PrivetError where it has more than
        `most` bytes."""
        if self.folder is not None:
            with (self.folder / name).open("rb") as file:
                content = file.read(most + 1)
        else:
            system, path = _parts(f"{self.address}/{name}")
            with _said(self.address):
                system.invalidate_cache()
                content = bytes(system.cat_file(path, start=0, end=most + 1))
        if len(content) > most:
            raise PrivetError(f"{name} in {self.address} has more than {most:,} bytes.")
        return content

    def blocks(self, name: str) -> Iterator[bytes]:
        """The bytes of a file, a few at a time; FileNotFoundError where it is not there."""
        if self.folder is not None:
            with (self.folder / name).open("rb") as file:
                while block := file.read(BLOCK):
                    yield block
            return
        system, path = _parts(f"{self.address}/{name}")
        with _said(self.address):
            system.invalidate_cache()
            with system.open(path, "rb") as file:
                while block := file.read(BLOCK):
                    yield bytes(block)

    def write(self, name: str, content: bytes) -> None:
        """Write a small file, whole."""
        if self.folder is not None:
            write_bytes(self.folder / name, content)
            return
        system, path = _parts(f"{self.address}/{name}")
        with _said(self.address):
            system.pipe_file(path, content)

    @contextmanager
    def replacing(self, name: str) -> Iterator[Path]:
        """A temporary file of this machine that becomes the file `name` if the block ends well."""
        if self.folder is not None:
            with replacing(self.folder / name) as temporary:
                yield temporary
            return
        system, path = _parts(f"{self.address}/{name}")
        with tempfile.TemporaryDirectory(prefix="privet-part-") as room:
            temporary = Path(room) / name
            yield temporary
            with _said(self.address):
                system.put_file(str(temporary), path)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        if self.folder is not None:
            (self.folder / name).unlink(missing_ok=True)
            sync_folder(self.folder)
            return
        system, path = _parts(f"{self.address}/{name}")
        with _said(self.address), suppress(FileNotFoundError):
            system.rm_file(path)


def matching(pattern: str) -> list[str]:
    """The addresses of a store's files that a pattern such as `s3://bucket/parts/*.parquet`
    stands for, sorted."""
    protocol = pattern.partition("://")[0]
    system, path = _parts(pattern)
    with _said(pattern):
        system.invalidate_cache()
        return sorted(f"{protocol}://{one}" for one in system.glob(path))
