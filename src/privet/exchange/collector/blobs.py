"""Blobs: released records as files, named by what they hold; on disk, or in any store that fsspec
knows (`s3://bucket/prefix`).

A blob's name is SHA-256 of its bytes and of a salt of its own, so no two attempts share one, and
deleting one deletes nobody else's. It is written before its row and deleted after it: a row always
has its blob, and a blob without a row is an orphan that the sweep removes.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from privet.core.errors import PrivetError, first_line, missing_extra
from privet.core.files import sync_folder

# Where the parts of releases lie among the blobs.
PARTS = "parts"
# The file that says which database the blobs belong to.
IDENTITY = "identity"
# Blobs deleted at once in a store elsewhere.
THREADS = 16


class Blob(NamedTuple):
    """The place of a blob: its campaign, or `PARTS`, and its name."""

    campaign: str
    name: str


class Full(Exception):
    """There is no room left."""


class Missing(Exception):
    """There is no such blob, or it is not what its name says."""


def blob_name(content: bytes) -> str:
    """A new name for these bytes."""
    return hashlib.sha256(os.urandom(32) + content).hexdigest()


class Blobs:
    """Blobs in a store that fsspec knows, with the identity of the database that they belong to.

    Attributes:
        address: Where the blobs lie, for people to read.
        grace: Seconds for which an orphan is left alone when a server starts: another server may
            be about to write its row.

    Parameters:
        address: A folder, or such as `s3://bucket/prefix`.
    """

    grace = 3600.0

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        try:
            import fsspec  # type: ignore[import-untyped]

            self.system: Any = fsspec.filesystem("file")
            self.root = str(Path(address).resolve())
            if "://" in address:
                self.system, self.root = fsspec.core.url_to_fs(self.address)
        except ImportError as error:
            raise missing_extra(
                str(error.name), "exchange", f"Keeping records in {address}"
            ) from None
        except Exception as error:  # whatever the store's own client raises
            raise PrivetError(
                f"{address} cannot be used for records ({first_line(error)})."
            ) from None
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="blob")

    def write(self, blob: Blob, content: bytes) -> None:
        """Write one; it is durable once `sync` was called too. Full where there is no room. Many
        threads may write at once."""
        self.system.pipe_file(self._path(*blob), content)

    def sync(self, blobs: Sequence[Blob]) -> None:
        """Make the names of written blobs durable, where that takes something more."""
        return

    def put(self, blob: Blob, content: bytes) -> None:
        """Write one, durably."""
        self.write(blob, content)
        self.sync([blob])

    def get(self, blob: Blob) -> bytes:
        """Missing where there is none."""
        try:
            return bytes(self.system.cat_file(self._path(*blob)))
        except FileNotFoundError:
            raise Missing(blob.name) from None

    def delete(self, blobs: Sequence[Blob]) -> None:
        """Remove them, durably; those that are gone already are no error."""

        def one(blob: Blob) -> None:
            with suppress(FileNotFoundError):
                self.system.rm_file(self._path(*blob))

        list(self._pool.map(one, blobs))

    def all(self) -> Iterator[tuple[Blob, float]]:
        """Every blob, and when it was written, in seconds since 1970."""
        self.system.invalidate_cache()
        try:
            files: dict[str, dict[str, Any]] = self.system.find(self.root, detail=True)
        except FileNotFoundError:
            return
        for path, about in files.items():
            folder, _, name = path.rpartition("/")
            if folder == self.root.rstrip("/"):  # the identity is no blob
                continue
            times = (about.get(key) for key in ("LastModified", "created", "mtime"))
            written: Any = next(filter(None, times), time.time())
            seconds = written.timestamp() if hasattr(written, "timestamp") else float(written)
            yield Blob(folder.rpartition("/")[2], name), seconds

    def is_ready(self) -> bool:
        """Whether it can be written to."""
        try:
            self.system.invalidate_cache()
            self.system.exists(self.root)
        except Exception:  # whatever the store's own client raises
            return False
        return True

    def identity(self) -> str | None:
        """The identity of the database that these blobs belong to; None where none is written."""
        try:
            return bytes(self.system.cat_file(self._path(IDENTITY))).decode("ascii").strip()
        except FileNotFoundError:
            return None

    def identify(self, identity: str) -> None:
        """Write the identity of their database beside the blobs, durably."""
        self.system.pipe_file(self._path(IDENTITY), identity.encode("ascii"))

    def close(self) -> None:
        """Let another server use the place."""
        self._pool.shutdown()

    def _path(self, *names: str) -> str:
        return "/".join((self.root, *names))


class Disk(Blobs):
    """Files under one folder, which one server uses at a time.

    Parameters:
        folder: Made where it is not there.
        reserve: Bytes to leave free on the disk.
    """

    grace = 0.0

    def __init__(self, folder: Path, reserve: int = 0) -> None:
        super().__init__(str(folder))
        self.folder, self.reserve = folder, reserve
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PrivetError(
                f"Another server uses {folder}: stop it first, or choose another folder."
            ) from None
        except OSError as error:
            raise PrivetError(f"Cannot use {folder} for records: {error.strerror}.") from None
        for unfinished in folder.glob("*/.*"):
            unfinished.unlink(missing_ok=True)
        self._folders: set[str] = set()

    def write(self, blob: Blob, content: bytes) -> None:
        if self.reserve and self._free() < self.reserve:
            raise Full("less room is left than is kept in reserve")
        if blob.campaign not in self._folders:
            (self.folder / blob.campaign).mkdir(exist_ok=True)
            sync_folder(self.folder)
            self._folders.add(blob.campaign)
        try:
            _write_file(self.folder.joinpath(*blob), content)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            raise (Full(str(error)) if full else error) from None

    def sync(self, blobs: Sequence[Blob]) -> None:
        for campaign in {blob.campaign for blob in blobs}:
            sync_folder(self.folder / campaign)

    def delete(self, blobs: Sequence[Blob]) -> None:
        super().delete(blobs)
        self.sync([blob for blob in blobs if (self.folder / blob.campaign).is_dir()])

    def all(self) -> Iterator[tuple[Blob, float]]:
        # fsspec would stop where a file is renamed or deleted meanwhile.
        for folder in filter(os.DirEntry.is_dir, os.scandir(self.folder)):
            for file in os.scandir(folder):
                if not file.name.startswith("."):
                    with suppress(FileNotFoundError):
                        yield Blob(folder.name, file.name), file.stat().st_mtime

    def is_ready(self) -> bool:
        try:
            return os.access(self.folder, os.W_OK) and self._free() > self.reserve
        except OSError:
            return False

    def identify(self, identity: str) -> None:
        _write_file(self.folder / IDENTITY, identity.encode("ascii"))
        sync_folder(self.folder)

    def close(self) -> None:
        super().close()
        os.close(self._lock)

    def _free(self) -> int:
        room = os.statvfs(self.folder)
        return room.f_bavail * room.f_frsize


def open_blobs(address: str, reserve: int = 0) -> Blobs:
    """`address` is a folder, or has `://` in it."""
    return Blobs(address) if "://" in address else Disk(Path(address), reserve)


def _write_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; its name is durable once its folder is synced."""
    temporary = path.with_name(f".{path.name}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
