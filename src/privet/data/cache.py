"""What was expensive to make, kept by the content it was made from.

An array is found again by a key over the *bytes* of its sources, so a copy of a folder finds it and
an edited picture does not. Hashing gigabytes on every start would cost as much as it saves: the
digest of files is remembered under their paths, sizes and times of change.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from privet.core.errors import PrivetError
from privet.core.files import replacing, write_text
from privet.core.parallel_map import cores, in_order
from privet.core.progress import bar
from privet.data.dataset import Array

# Seconds a file must have been left alone before its time of change is trusted to show the next
# change.
_SETTLED = 2.0
# Files whose bytes are hashed as one.
_TOGETHER = 64
# Bytes of a file that is read in one step.
_SMALL = 1 << 16
# Seconds without a write after which a temporary file is what a killed run left behind.
_ABANDONED = 3600.0


def cache_folder() -> Path:
    """$PRIVET_CACHE, or ~/.cache/privet."""
    folder = Path(os.environ.get("PRIVET_CACHE") or Path.home() / ".cache" / "privet")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PrivetError(
            f"Cannot make the cache folder {folder}: {error.strerror}; set PRIVET_CACHE to another."
        ) from None
    return folder


def digest(*words: object) -> str:
    """SHA-256 over words, each with its length, so that no two lists of words run into each
    other."""
    sha = hashlib.sha256()
    for word in words:
        content = word if isinstance(word, bytes) else str(word).encode()
        sha.update(len(content).to_bytes(8, "little") + content)
    return sha.hexdigest()


def content_of(paths: Sequence[str | Path], progress: bool = False) -> str:
    """SHA-256 that stands for the bytes of the files, in order; read only if one of them has
    changed since it was last asked."""
    try:
        # So many names that making a Path of each would take longer than asking the disk.
        here, states = Path.cwd(), [(p, os.stat(p)) for p in paths]  # noqa: PTH116
        places = ((os.path.join(here, path), state) for path, state in states)  # noqa: PTH118
        stamp = digest(
            "".join(f"{path}\0{state.st_size}\0{state.st_mtime_ns}\0" for path, state in places)
        )
        remembered = cache_folder() / f"{stamp}.digest"
        with contextlib.suppress(OSError):
            if len(known := remembered.read_text("ascii").strip()) == 64:
                return known
        settled = time.time() - max((state.st_mtime for _, state in states), default=0.0) > _SETTLED
        content = _hash(paths, progress)
    except OSError as error:
        raise PrivetError(
            f"Cannot read {error.filename} ({error.strerror}): add it or take it out of the list."
        ) from None
    if settled:
        with contextlib.suppress(OSError):
            write_text(remembered, content)
    return content


def _hash(paths: Sequence[str | Path], progress: bool) -> str:
    """Of one file, of its length and bytes; of more, of the digests of 64 at a time, which every
    core works on."""
    if len(paths) <= _TOGETHER:
        return _hash_some(paths)
    sha = hashlib.sha256()
    groups = [paths[start : start + _TOGETHER] for start in range(0, len(paths), _TOGETHER)]
    with bar("Looking for changes", len(paths), progress and len(paths) > 10_000) as tick:
        for done, found in enumerate(in_order(_hash_some, groups, cores(), 2 * cores()), 1):
            sha.update(found.encode())
            tick(min(done * _TOGETHER, len(paths)))
    return sha.hexdigest()


def _hash_some(paths: Sequence[str | Path]) -> str:
    sha, block = hashlib.sha256(), memoryview(bytearray(1 << 20))
    for path in paths:
        if (content := read_small(path)) is not None:
            sha.update(len(content).to_bytes(8, "little") + content)
            continue
        with io.FileIO(path) as file:
            sha.update(os.fstat(file.fileno()).st_size.to_bytes(8, "little"))
            while size := file.readinto(block):
                sha.update(block[:size])
    return sha.hexdigest()


def read_small(path: str | Path) -> bytes | None:
    """A small file in one step: at each, a thread lets go of the interpreter's lock and may wait
    for it. None if that was not all of it."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        content = os.read(handle, _SMALL)
        return content if len(content) == os.fstat(handle).st_size else None
    finally:
        os.close(handle)


def find_array(key: str, n: int, dtype: Any = np.uint8) -> Array | None:
    """The array kept under `key`, mapped into memory, or None if there is none that can be
    believed."""
    try:
        found: Array = np.load(cache_folder() / f"{key}.npy", mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError):
        return None
    return found if len(found) == n and found.dtype == dtype else None


@contextmanager
def keep_array(key: str, shape: tuple[int, ...], dtype: Any = np.uint8) -> Iterator[BinaryIO]:
    """A file to write the bytes of an array of `shape` to; it appears under `key` only when the
    block has ended well."""
    kind = np.dtype(dtype)
    folder, needed = cache_folder(), int(np.prod(shape)) * kind.itemsize
    _remove_abandoned(folder)
    if (free := shutil.disk_usage(folder).free) < needed:
        room = f"{free / 1e9:.1f} GB free and the data needs {needed / 1e9:.1f}"
        raise PrivetError(f"{folder} has {room}: make room or set PRIVET_CACHE to another folder.")
    try:
        with replacing(folder / f"{key}.npy") as temporary, temporary.open("wb") as file:
            np.lib.format.write_array_header_1_0(
                file, {"descr": kind.str, "fortran_order": False, "shape": shape}
            )
            start = file.tell()
            file.flush()
            yield file
            file.flush()
            if (size := os.fstat(file.fileno()).st_size) != start + needed:
                raise RuntimeError(f"{size - start} bytes were written for an array of {needed}")
    except OSError as error:
        raise PrivetError(
            f"Cannot write to the cache folder {folder}: {error.strerror}; set PRIVET_CACHE to"
            " another."
        ) from None


def write_at(file: BinaryIO, array: Array, place: int) -> None:
    """All bytes of a contiguous array, so far into the file. Threads may do so at the same time."""
    rest = array.data.cast("B")
    while rest:
        size = os.pwrite(file.fileno(), rest, place)
        rest, place = rest[size:], place + size


def send_on(file: BinaryIO, place: int, size: int) -> int:
    """Have bytes that were written brought to disk while others are made, so that the sync at the
    end waits for few; gives where they end.

    Linux starts to write pages out when it is told that they are not needed; those on their way
    stay in memory.
    """
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError):
            os.posix_fadvise(file.fileno(), place, size, os.POSIX_FADV_DONTNEED)
    return place + size


def _remove_abandoned(folder: Path) -> None:
    for path in folder.glob(".*.npy.*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _ABANDONED:
                path.unlink()
