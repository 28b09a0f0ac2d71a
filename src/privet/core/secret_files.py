"""Secrets in files that only their owner may read."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from privet.core.errors import PrivetError
from privet.core.files import sync_folder


def write_secret(path: Path, text: str) -> None:
    """A secret in a file of its own; what is there already is not overwritten."""
    try:
        made = place_secret(path, text)
    except OSError as error:
        raise PrivetError(f"Cannot write {path}: {error.strerror}.") from None
    if not made:
        raise PrivetError(
            f"{path} is there already and holds a secret: it is not overwritten. Choose another "
            "place."
        )


def place_secret(path: Path, text: str) -> bool:
    """The same, whole or not at all; False where there is a file already: of two at the same time
    one wins."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(prefix=".", dir=path.parent)  # for its owner alone
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(name, path)  # unlike a rename, fails where there is a file
        sync_folder(path.parent)
    except FileExistsError:
        return False
    finally:
        Path(name).unlink(missing_ok=True)
    return True


def read_secret(path: Path, what: str = "a secret") -> str:
    """The text of such a file, which nobody else may be able to read; OSError where it cannot be
    read at all."""
    if path.stat().st_mode & 0o077:
        raise PrivetError(
            f"Others may read {path}, which holds {what}: make it yours alone with  chmod 600 "
            f"{path}."
        )
    return path.read_text(encoding="utf-8")
