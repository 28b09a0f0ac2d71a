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
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from privet.core.errors import PrivetError, missing_extra

IDENTITY = "identity"
"""The file that says which database the blobs belong to."""
THREADS = 16
"""Blobs deleted at once in a store elsewhere."""
YOUNG = 3600.0
"""Seconds for which the sweep leaves an orphan alone where another server may be about to write its
row."""


class Blob(NamedTuple):
    campaign: str
    name: str


class Full(Exception):
    """There is no room left."""


class Missing(Exception):
    """There is no such blob, or it is not what its name says."""


def blob_name(content: bytes) -> str:
    """A new name for these bytes."""
    return hashlib.sha256(os.urandom(32) + content).hexdigest()


class Blobs(ABC):
    @abstractmethod
    def write(self, blob: Blob, content: bytes) -> None:
        """Write one; it is durable once `sync` was called too. Full where there is no room. Many
        threads may write at once."""

    def sync(self, blobs: Sequence[Blob]) -> None:
        """Make the names of written blobs durable, where that takes something more."""
        return

    def put(self, blob: Blob, content: bytes) -> None:
        """Write one, durably."""
        self.write(blob, content)
        self.sync([blob])

    @abstractmethod
    def get(self, blob: Blob) -> bytes: ...

    @abstractmethod
    def delete(self, blobs: Sequence[Blob]) -> None:
        """Remove them, durably; those that are gone already are no error."""

    @abstractmethod
    def all(self) -> Iterator[tuple[Blob, float]]:
        """Every blob, and when it was written, in seconds since 1970."""

    @abstractmethod
    def ready(self) -> bool:
        """Whether it can be written to."""

    @abstractmethod
    def identity(self) -> str | None:
        """The identity of the database that these blobs belong to; None where none is written."""

    @abstractmethod
    def identify(self, identity: str) -> None:
        """Write the identity of their database beside the blobs, durably."""

    def close(self) -> None:
        return None

    where: str
    """Where the blobs lie, for people to read."""
    young: float = 0.0
    """Seconds for which an orphan is left alone at start."""


class Disk(Blobs):
    """Files under one folder, which one server uses at a time."""

    def __init__(self, folder: Path, reserve: int = 0) -> None:
        self.folder, self.reserve, self.where = folder, reserve, str(folder)
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
        for left in folder.glob("*/.*"):
            left.unlink(missing_ok=True)
        self._known: set[str] = set()

    def write(self, blob: Blob, content: bytes) -> None:
        if self.reserve and self._free() < self.reserve:
            raise Full("less room is left than is kept in reserve")
        if blob.campaign not in self._known:
            self._folder(blob.campaign)
        try:
            _write_file(self._path(blob), content)
        except OSError as error:
            raise (
                Full(str(error))
                if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
                else error
            ) from None

    def sync(self, blobs: Sequence[Blob]) -> None:
        for campaign in {blob.campaign for blob in blobs}:
            _sync(self.folder / campaign)

    def get(self, blob: Blob) -> bytes:
        try:
            return self._path(blob).read_bytes()
        except FileNotFoundError:
            raise Missing(blob.name) from None

    def delete(self, blobs: Sequence[Blob]) -> None:
        for blob in blobs:
            self._path(blob).unlink(missing_ok=True)
        for campaign in {blob.campaign for blob in blobs}:
            if (self.folder / campaign).is_dir():
                _sync(self.folder / campaign)

    def all(self) -> Iterator[tuple[Blob, float]]:
        for folder in os.scandir(self.folder):
            if folder.is_dir():
                for file in os.scandir(folder):
                    if not file.name.startswith("."):
                        with suppress(FileNotFoundError):
                            yield Blob(folder.name, file.name), file.stat().st_mtime

    def ready(self) -> bool:
        try:
            return os.access(self.folder, os.W_OK) and self._free() > self.reserve
        except OSError:
            return False

    def identity(self) -> str | None:
        try:
            return (self.folder / IDENTITY).read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return None

    def identify(self, identity: str) -> None:
        _write_file(self.folder / IDENTITY, identity.encode("ascii"))
        _sync(self.folder)

    def close(self) -> None:
        os.close(self._lock)

    def _path(self, blob: Blob) -> Path:
        return self.folder / blob.campaign / blob.name

    def _folder(self, campaign: str) -> None:
        (self.folder / campaign).mkdir(exist_ok=True)
        _sync(self.folder)
        self._known.add(campaign)

    def _free(self) -> int:
        room = os.statvfs(self.folder)
        return room.f_bavail * room.f_frsize


class Remote(Blobs):
    """Objects in a store that fsspec knows. A put is durable when the store has answered."""

    young = YOUNG

    def __init__(self, url: str) -> None:
        try:
            import fsspec  # type: ignore[import-untyped]

            self.where = url
            self.system, self.root = fsspec.core.url_to_fs(url)
        except ImportError as error:
            raise missing_extra(str(error.name), "exchange", f"Keeping records in {url}") from None
        except Exception as error:  # whatever the store's own client raises
            raise PrivetError(f"{url} cannot be used for records ({_line(error)}).") from None
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="blob")

    def write(self, blob: Blob, content: bytes) -> None:
        self.system.pipe_file(self._path(blob), content)

    def get(self, blob: Blob) -> bytes:
        try:
            return bytes(self.system.cat_file(self._path(blob)))
        except FileNotFoundError:
            raise Missing(blob.name) from None

    def delete(self, blobs: Sequence[Blob]) -> None:
        def one(blob: Blob) -> None:
            with suppress(FileNotFoundError):
                self.system.rm_file(self._path(blob))

        list(self._pool.map(one, blobs))

    def all(self) -> Iterator[tuple[Blob, float]]:
        self.system.invalidate_cache()
        try:
            found: dict[str, dict[str, Any]] = self.system.find(self.root, detail=True)
        except FileNotFoundError:
            return
        for path, about in found.items():
            campaign, _, name = path.rpartition("/")
            if campaign == self.root.rstrip("/"):  # the identity is no blob
                continue
            at: Any = (
                about.get("LastModified")
                or about.get("created")
                or about.get("mtime")
                or time.time()
            )
            yield (
                Blob(campaign.rpartition("/")[2], name),
                at.timestamp() if hasattr(at, "timestamp") else float(at),
            )

    def ready(self) -> bool:
        try:
            self.system.invalidate_cache()
            self.system.exists(self.root)
        except Exception:  # whatever the store's own client raises
            return False
        return True

    def identity(self) -> str | None:
        try:
            return bytes(self.system.cat_file(f"{self.root}/{IDENTITY}")).decode("ascii").strip()
        except FileNotFoundError:
            return None

    def identify(self, identity: str) -> None:
        self.system.pipe_file(f"{self.root}/{IDENTITY}", identity.encode("ascii"))

    def close(self) -> None:
        self._pool.shutdown()

    def _path(self, blob: Blob) -> str:
        return f"{self.root}/{blob.campaign}/{blob.name}"


def open_blobs(where: str, reserve: int = 0) -> Blobs:
    """`where` is a folder, or an address with `://`."""
    return Remote(where.rstrip("/")) if "://" in where else Disk(Path(where), reserve)


def _write_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; its name is durable once its folder is synced."""
    temporary = path.with_name(f".{path.name}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            _write_all(handle, content)
            os.fsync(handle)
        finally:
            os.close(handle)
        temporary.rename(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def _write_all(handle: int, content: bytes) -> None:
    """One write may take less than all of it, where the room ends or a signal comes."""
    view = memoryview(content)
    while view:
        view = view[os.write(handle, view) :]


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
