"""The folder on this machine where Privet keeps what belongs to its user."""

from __future__ import annotations

import os
from pathlib import Path


def home_folder() -> Path:
    """`$PRIVET_HOME`, or `~/.local/share/privet`: receipts, records that wait to be sent, keys."""
    return Path(os.environ.get("PRIVET_HOME") or Path.home() / ".local" / "share" / "privet")
