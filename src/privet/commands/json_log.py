"""A log as JSON lines: one object per event, handed to the system line by line, so that `kill -9`
loses at most the last one.

{"time": "2026-11-18T13:10:00.000+00:00", "run": "5e858d0fc6e5", "event": "round",
 "phase": "learning", "round": 40, "of": 400, "figures": {"task loss": 0.61}}

Events are start (with verb and settings), resume, round, end (with figures and files) and failed
(with reason). A file is only ever added to; `run` tells the runs in it apart.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from privet.core.errors import PrivetError
from privet.core.run_log import RunLog


class JsonLog(RunLog):
    """Events of a run as lines of a file.

    Parameters:
        path: The file; made where it is not there, else added to.
        resume: Go on with the last run in the file that had the same settings and has not ended.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "runs.jsonl"
        >>> log = JsonLog(path)
        >>> log.start("learn", {"method": "hedge"})
        >>> log.round("learning", 1, 2, {"loss": 0.5})
        >>> [event["event"] for event in read_events(path)]
        ['start', 'round']
    """

    def __init__(self, path: Path, resume: bool = False) -> None:
        self.path, self.resume, self.run = path, resume, uuid4().hex[:12]
        self.known: set[tuple[str, int]] = set()
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            _end_last_line(self._file)
        except OSError as error:
            raise PrivetError(f"Cannot write the log {path}: {error.strerror}.") from None

    def start(self, verb: str, settings: Mapping[str, Any]) -> None:
        plain = json.loads(json.dumps(_plain(settings)))
        if not (self.resume and self._go_on(verb, plain)):
            self._write("start", verb=verb, settings=plain)

    def round(self, phase: str, done: int, total: int, figures: Mapping[str, float]) -> None:
        if (phase, done) not in self.known:
            self._write("round", phase=phase, round=done, of=total, figures=_plain(figures))

    def end(self, figures: Mapping[str, float], files: Sequence[Path] = ()) -> None:
        self._write("end", figures=_plain(figures), files=[str(path) for path in files])

    def fail(self, reason: str) -> None:
        self._write("failed", reason=reason)

    def _go_on(self, verb: str, settings: Any) -> bool:
        """Take up the last run of the same work, if it has not ended."""
        events = list(read_events(self.path))
        same = [
            event["run"]
            for event in events
            if event["event"] == "start" and (event["verb"], event["settings"]) == (verb, settings)
        ]
        if not same or any(e["run"] == same[-1] and e["event"] == "end" for e in events):
            return False
        self.run = same[-1]
        self.known = {
            (event["phase"], event["round"])
            for event in events
            if event["run"] == self.run and event["event"] == "round"
        }
        self._write("resume")
        return True

    def _write(self, event: str, **fields: Any) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, "run": self.run, "event": event, **fields})
        os.write(self._file, f"{line}\n".encode())


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a log, in order; what is no event, such as half a line, is passed over."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and {"run", "event"} <= set(event):
                yield event


def _end_last_line(file: int) -> None:
    """A line that was cut off by `kill -9` or a full disk must not run into the next."""
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        os.write(file, b"\n")


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """What JSON can hold; a figure that is no number becomes null."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }
