"""The ledger of looks at *test*: how often the test part of some data was used to count a figure.

Whoever looks often and keeps the best release chooses on *test*, and its figures come out too good.
The ledger is a file of JSON lines per test part in the folder of the data's cache, named by a hash
of the test records, with who looked, the hash of the release and the date: no data. It is written
where it can be, and nothing fails where it cannot. `PRIVET_LOOKS=off` switches it off.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from privet.core.errors import PrivetError
from privet.data.cache import cache_folder, digest
from privet.data.dataset import Dataset
from privet.data.duplicates import record_hashes

SWITCH = "PRIVET_LOOKS"
_purpose: ContextVar[str] = ContextVar("purpose", default="")


@contextmanager
def looking_for(purpose: str) -> Iterator[None]:
    """Looks within the block are written down as this one's, such as a comparison's."""
    token = _purpose.set(purpose)
    try:
        yield
    finally:
        _purpose.reset(token)


def look_at_test(data: Dataset, by: str, hashes: object = None) -> int | None:
    """Write down a look at *test*, and say how many there had been before.

    None where the ledger is switched off or cannot be read and written.

    Parameters:
        data: The data whose *test* is looked at.
        by: Who looks: audit, certify.
        hashes: Of the files of the release that is judged, as its card has them.
    """
    if os.environ.get(SWITCH, "").lower() == "off":
        return None
    entry = {
        "date": datetime.now(UTC).date().isoformat(),
        "by": _purpose.get() or by,
        "release": None if hashes is None else digest(json.dumps(hashes, sort_keys=True)),
    }
    try:
        return _append(ledger_of(data), json.dumps(entry))
    except (OSError, PrivetError):
        return None


def ledger_of(data: Dataset) -> Path:
    """The file of the looks at this data's *test*; the order of its records does not matter."""
    hashes = np.sort(record_hashes(data.part("test"))).astype("<u8")
    return cache_folder() / "looks" / f"{digest('looks', hashes.tobytes())}.jsonl"


def _append(path: Path, line: str) -> int:
    """Add a line while nobody else does; gives how many whole ones there were before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file, _locked(file.fileno()):
        file.seek(0)
        content = file.read()
        # What a killed process left half written ends here.
        start = b"" if not content or content.endswith(b"\n") else b"\n"
        file.write(start + line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    return sum(map(_is_entry, content.splitlines()))


def _is_entry(line: bytes) -> bool:
    try:
        return "date" in json.loads(line)
    except (ValueError, TypeError):
        return False


@contextmanager
def _locked(handle: int) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # there is no such lock on Windows; short appends are whole there, too
        yield
        return
    with contextlib.suppress(OSError):  # some network disks have no locks
        fcntl.flock(handle, fcntl.LOCK_EX)
    yield
