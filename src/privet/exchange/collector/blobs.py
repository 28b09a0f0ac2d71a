"""Blobs: released records as files, named by what they hold; on disk, or in any store that fsspec
knows (`s3://bucket/prefix`).

A blob's name is SHA-256 of its bytes and of a salt of its own, so no two attempts share one, and
deleting one deletes nobody else's. It is written before its row and deleted after it: a row always
has its blob, and a blob without a row is an orphan, which is set aside for a while before it is
deleted.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from privet.core.errors import PrivetError, first_line, missing_extra
from privet.core.files import sync_folder

# Where the parts of releases lie among the blobs, and blobs without a row.
PARTS = "parts"
QUARANTINE = "quarantine"
# The file that says which database the blobs belong to.
IDENTITY = "identity"
# Bytes of a blob that are read at a time.
CHUNK_BYTES = 256 * 1024
# What is written to see whether anything can be.
PROBE = ".probe"
# Other files than blobs are left alone.
NAME = re.compile("[0-9a-f]{64}")
# Blobs deleted at once in a store elsewhere.
THREADS = 16


class Blob(NamedTuple):
    """The place of a blob: its campaign, or `PARTS`, and its name."""

    campaign: str
    name: str


class Mark(NamedTuple):
    """What says to whom blobs belong: the identity of their database, and a name of their own
    (None in marks of earlier versions)."""

    database: str
    place: str | None


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

    Parameters:
        address: A folder, or such as `s3://bucket/prefix`.
    """

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

    def stream(self, blob: Blob) -> tuple[int, Iterator[bytes]]:
        """Its size, and its bytes a few at a time; Missing where there is none."""
        try:
            size = int(self.system.size(self._path(*blob)))
            file = self.system.open(self._path(*blob), "rb")
        except FileNotFoundError:
            raise Missing(blob.name) from None

        def chunks() -> Iterator[bytes]:
            with file:
                while chunk := file.read(CHUNK_BYTES):
                    yield chunk

        return size, chunks()

    def delete(self, blobs: Sequence[Blob]) -> None:
        """Remove them, durably; those that are gone already are no error."""

        self._remove([self._path(*blob) for blob in blobs])

    def _remove(self, paths: Sequence[str]) -> None:
        def one(path: str) -> None:
            with suppress(FileNotFoundError):
                self.system.rm_file(path)

        list(self._pool.map(one, paths))

    def exists(self, blob: Blob) -> bool:
        self.system.invalidate_cache()
        return bool(self.system.exists(self._path(*blob)))

    def all(self) -> Iterator[tuple[Blob, float]]:
        """Every blob, and when it was written, in seconds since 1970."""
        for folder in self.folders():
            for name, written in self.names(folder):
                yield Blob(folder, name), written

    def folders(self, aside: bool = False) -> list[str]:
        """The campaigns that have blobs, and `PARTS`.

        Parameters:
            aside: Of the blobs that were set aside.
        """
        self.system.invalidate_cache()
        root = self._path(QUARANTINE) if aside else self.root
        try:
            entries = self.system.ls(root, detail=True)
        except FileNotFoundError:
            return []
        names = [one["name"].rpartition("/")[2] for one in entries if one["type"] == "directory"]
        return sorted(name for name in names if name != QUARANTINE)

    def names(self, folder: str, aside: bool = False) -> Iterator[tuple[str, float]]:
        """Blobs of a campaign, and when they were written or set aside."""
        try:
            entries = self.system.ls(self._folder(folder, aside), detail=True)
        except FileNotFoundError:
            return
        for about in entries:
            times = (about.get(key) for key in ("LastModified", "created", "mtime"))
            written: Any = next(filter(None, times), time.time())
            seconds = written.timestamp() if hasattr(written, "timestamp") else float(written)
            if NAME.fullmatch(name := about["name"].rpartition("/")[2]):
                yield name, seconds

    def set_aside(self, blobs: Sequence[Blob]) -> None:
        """Move blobs to the quarantine; those that are gone are no error."""
        self._move(blobs, False)

    def put_back(self, blobs: Sequence[Blob]) -> None:
        """Move blobs from the quarantine back to where they were."""
        self._move(blobs, True)

    def purge(self, blobs: Sequence[Blob]) -> None:
        """Delete blobs in the quarantine."""
        self._remove([self._path(QUARANTINE, *blob) for blob in blobs])

    def _move(self, blobs: Sequence[Blob], back: bool) -> None:
        def one(blob: Blob) -> None:
            with suppress(FileNotFoundError):
                here, aside = self._path(*blob), self._path(QUARANTINE, *blob)
                self.system.mv(aside if back else here, here if back else aside)

        list(self._pool.map(one, blobs))

    def is_ready(self) -> bool:
        """Whether it can be written to: by writing."""
        try:
            self.system.pipe_file(self._path(PROBE), b"1")
        except Exception:  # whatever the store's own client raises
            return False
        return True

    def mark(self) -> Mark | None:
        """To whom these blobs belong; None where they are not marked."""
        try:
            words = bytes(self.system.cat_file(self._path(IDENTITY))).decode("ascii").split()
        except FileNotFoundError:
            return None
        return Mark(words[0], words[1] if len(words) > 1 else None) if words else None

    def identify(self, mark: Mark) -> None:
        """Write the mark beside the blobs, durably."""
        self.system.pipe_file(self._path(IDENTITY), " ".join(filter(None, mark)).encode("ascii"))

    def close(self) -> None:
        """Let another server use the place."""
        self._pool.shutdown()

    def _path(self, *names: str) -> str:
        return "/".join((self.root, *names))

    def _folder(self, name: str, aside: bool) -> str:
        return self._path(QUARANTINE, name) if aside else self._path(name)


class Disk(Blobs):
    """Files under one folder, which one server uses at a time.

    Parameters:
        folder: Made where it is not there.
        reserve: Bytes to leave free on the disk.
    """

    def __init__(self, folder: Path, reserve: int = 0) -> None:
        super().__init__(str(folder))
        self.folder, self.reserve = folder, reserve
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if folder.stat().st_mode & 0o077:
                folder.chmod(0o700)
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
            (self.folder / blob.campaign).mkdir(exist_ok=True, mode=0o700)
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

    def exists(self, blob: Blob) -> bool:
        return self.folder.joinpath(*blob).is_file()

    def names(self, folder: str, aside: bool = False) -> Iterator[tuple[str, float]]:
        # fsspec would list all at once, and stop where a file is renamed or deleted meanwhile.
        try:
            files = os.scandir(self._folder(folder, aside))
        except FileNotFoundError:
            return
        with files:
            for file in files:
                if NAME.fullmatch(file.name):
                    with suppress(FileNotFoundError):
                        yield file.name, file.stat().st_mtime

    def _move(self, blobs: Sequence[Blob], back: bool) -> None:
        for campaign in sorted({blob.campaign for blob in blobs}):
            here, aside = self.folder / campaign, self.folder / QUARANTINE / campaign
            source, target = (aside, here) if back else (here, aside)
            target.mkdir(parents=True, exist_ok=True, mode=0o700)
            for blob in blobs:
                if blob.campaign == campaign:
                    with suppress(FileNotFoundError):
                        os.utime(source / blob.name)  # since when it is there
                        (source / blob.name).rename(target / blob.name)
            for folder in (target, target.parent, source):
                sync_folder(folder)

    def is_ready(self) -> bool:
        try:
            _write_file(self.folder / PROBE, b"1")
            return self._free() > self.reserve
        except OSError:
            return False

    def identify(self, mark: Mark) -> None:
        _write_file(self.folder / IDENTITY, " ".join(filter(None, mark)).encode("ascii"))
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
