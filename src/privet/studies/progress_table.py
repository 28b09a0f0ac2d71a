"""What `privet compare` shows while it works: a table for a person at a terminal, a line per event
where the output is a file."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import get_args

from rich.console import Group as Stack
from rich.live import Live
from rich.table import Table
from rich.text import Text

from privet.core.errors import PrivetError
from privet.core.progress import console
from privet.evidence.figures import Audit, Reading
from privet.evidence.formatting import duration, percent
from privet.studies.cells import Cell
from privet.studies.scheduler import Job, State

# Cells shown that have not begun.
WAITING = 3
_COLUMNS = ("cell", "state", "worst adversary", "utility")
_STYLES = {"failed": "red", "done": "", "left": "dim", "learned": "dim"}


class ProgressTable:
    """How far the cells of a comparison have come; an audit is read once, when it is done."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        self.figures: dict[str, tuple[str, str]] = {}
        self.started = time.monotonic()

    def changed(self, job: Job) -> None:
        """Say so, where there is no table."""
        if console.is_terminal or job.state in ("left", "learned"):
            return
        ended = sum(other.state in ("done", "failed") for other in self.jobs)
        spent = duration(time.monotonic() - self.started)
        head = f"{spent}  {ended}/{len(self.jobs)}  {_name(job.cell)}: {job.state}"
        said = "; ".join(filter(None, self._said(job)))
        line = f"{head}. {said}" if said else head
        console.print(line, highlight=False, soft_wrap=True, markup=False)

    def _said(self, job: Job) -> tuple[str, str]:
        """The worst adversaries and the task models of a cell that is done, or its error."""
        if job.state == "done" and job.cell.key not in self.figures:
            try:
                audit = Audit.load(job.folder / "audit" / "audit.json")
                self.figures[job.cell.key] = _figures(audit.private), _figures(audit.utility)
            except PrivetError as error:
                self.figures[job.cell.key] = str(error), ""
        return self.figures.get(job.cell.key, (job.error, ""))

    def __rich__(self) -> Stack:
        """The latest results, those at work and the next in line, as many as there is room for."""
        table = Table(*_COLUMNS, box=None, pad_edge=False)
        table.add_column("seconds", justify="right")
        for column in table.columns:
            column.no_wrap = True
        for job in self._shown(max(console.size.height - 8, 6)):
            spent = f"{time.monotonic() - job.since:.0f}" if job.running else ""
            said = map(Text, self._said(job))
            style = _STYLES.get(job.state, "bold")
            table.add_row(_name(job.cell), job.state, *said, spent, style=style)
        count = Counter(job.state for job in self.jobs)
        states = ", ".join(f"{count[state]} {state}" for state in get_args(State) if count[state])
        spent = duration(time.monotonic() - self.started)
        return Stack(table, Text(f"{states}; {spent}", style="dim"))

    def _shown(self, room: int) -> list[Job]:
        running = [job for job in self.jobs if job.running]
        ended = [job for job in self.jobs if job.state in ("done", "failed")]
        ahead = [job for job in self.jobs if job.state in ("left", "learned")]
        ended.sort(key=lambda job: job.since)
        return [*ended[-max(room - len(running) - WAITING, 3) :], *running, *ahead[:WAITING]]


def _name(cell: Cell) -> str:
    return f"{cell.question}: {cell.name}" if cell.question else cell.name


def _figures(readings: Sequence[Reading]) -> str:
    worst = [(reading.attribute, reading.worst) for reading in readings]
    return ", ".join(f"{n} {percent(one.score.value)} ({one.called})" for n, one in worst)


@contextmanager
def progress_table(jobs: Sequence[Job]) -> Iterator[ProgressTable]:
    """Shown as long as the block runs."""
    table = ProgressTable(jobs)
    if not console.is_terminal:
        yield table
        return
    with Live(table, console=console, refresh_per_second=2):
        yield table
