"""What a run tells about itself while it goes on: where it started, the figures of its rounds, how
it ended. Adapters (commands/json_log.py, commands/mlflow_log.py) write it down."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from privet.core.errors import first_line

# Rounds of a phase that are logged, about; which ones does not depend on the clock.
POINTS = 200


class RunLog(ABC):
    """Takes the events of one run. An adapter writes the four methods below.

    Figures are numbers by name; of one with an interval, `NAME/low` and `NAME/high` are its ends.
    """

    @abstractmethod
    def start(self, verb: str, settings: Mapping[str, Any]) -> None:
        """Work begins, or goes on after it was stopped."""

    @abstractmethod
    def round(self, phase: str, done: int, total: int, figures: Mapping[str, float]) -> None:
        """So many rounds of a phase are done. A round that was written down before the run was
        stopped is not written again."""

    @abstractmethod
    def end(self, figures: Mapping[str, float], files: Sequence[Path] = ()) -> None:
        """Work is done, and these files are its result."""

    @abstractmethod
    def fail(self, reason: str) -> None:
        """Work was broken off."""

    def within(self, name: str) -> RunLog:
        """A log for one of several parts of the work, whose phases have the same names."""
        return _Part(self, name)


class _Part(RunLog):
    """Part of a run: its phases go by `NAME/PHASE`, and it neither starts nor ends the whole."""

    def __init__(self, whole: RunLog, name: str) -> None:
        self.whole, self.name = whole, name

    def start(self, verb: str, settings: Mapping[str, Any]) -> None:
        pass

    def round(self, phase: str, done: int, total: int, figures: Mapping[str, float]) -> None:
        self.whole.round(f"{self.name}/{phase}", done, total, figures)

    def end(self, figures: Mapping[str, float], files: Sequence[Path] = ()) -> None:
        pass

    def fail(self, reason: str) -> None:
        pass


def is_logged(done: int, total: int) -> bool:
    """Whether a round is one of about POINTS that are logged: the same ones after a stop.

    >>> [done for done in range(1, 11) if is_logged(done, 10)] == list(range(1, 11))
    True
    >>> sum(is_logged(done, 100_000) for done in range(1, 100_001))
    200
    """
    return done % max(1, total // POINTS) == 0 or done == total


@contextmanager
def logged(log: RunLog | None, verb: str, settings: Mapping[str, Any]) -> Iterator[None]:
    """A block of work whose start is logged, and, where it breaks off, why; its end is for the
    block to tell."""
    if log is None:
        yield
        return
    log.start(verb, settings)
    try:
        yield
    except BaseException as error:
        log.fail(f"{type(error).__name__}: {first_line(error)}")
        raise
