"""Files of a participant: whole or not at all, on disk when the call returns, for its owner
alone."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from privet.core.errors import PrivetError
from privet.core.files import sync_folder


def write_private(path: Path, content: bytes) -> None:
    """Replace a file; it is never readable by others, not even while it is written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise PrivetError(f"Cannot write {path}: {error.strerror}.") from None
