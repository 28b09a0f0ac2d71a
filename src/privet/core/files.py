"""Writing so that a reader never sees half a file, even after `kill -9` or a power cut."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from privet.core.errors import PrivetError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place, synced to disk, if the block ends well;
    else nothing is left."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_bytes(path: Path, content: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def writable_folder(path: Path) -> Callable[[], None]:
    """Make the folder `path` if it is not there and check that it can be written to, before any
    long work starts.

    Returns what undoes it: removes the folders made here, as far as they are still empty.
    """
    made: list[Path] = []
    try:
        made = [p for p in (path, *path.parents) if not p.exists()]
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path):
            pass
    except OSError as error:
        _remove_empty(made)
        raise PrivetError(
            f"Cannot write to {path}: {error.strerror}. Choose another --out."
        ) from None
    return lambda: _remove_empty(made)


@contextmanager
def results_folder(path: Path) -> Iterator[None]:
    """`writable_folder` for a block of work: if the block fails, folders made for it that are still
    empty are removed."""
    undo = writable_folder(path)
    try:
        yield
    except BaseException:
        undo()
        raise


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def sync_folder(folder: Path) -> None:
    """Make the names of the files in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
