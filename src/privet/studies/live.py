"""What is going on, while it goes on: a table for a person at a terminal, a line per event where
the output is a file."""

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
from privet.evidence.figures import Audit
from privet.evidence.formatting import duration, percent
from privet.studies.cells import Cell
from privet.studies.scheduler import Job, State

WAITING = 3
"""Cells shown that have not begun."""


def name(cell: Cell) -> str:
    """
    >>> from privet.studies.cells import Source
    >>> s = Source("x")
    >>> name(Cell("tiprdc", {}, 1, s, "", (), (), (), s, "", (), (), "quick", label="TIPRDC", dial="budget", budget=0.9))
    'TIPRDC budget 0.9 seed 1'
    """
    dial = "" if cell.budget is None else f" {cell.dial} {cell.budget:g}"
    head = f"{cell.question}: " if cell.question else ""
    return f"{head}{cell.label}{dial}{'' if cell.is_raw else f' seed {cell.seed}'}"


class Board:
    """Reads an audit once, when it is done."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        self.found: dict[str, tuple[str, str]] = {}
        self.started = time.monotonic()

    def changed(self, job: Job) -> None:
        if not console.is_terminal and job.state in ("learning", "attacking", "done", "failed"):
            console.print(self._line(job), highlight=False, soft_wrap=True, markup=False)

    def _read(self, job: Job) -> tuple[str, str]:
        if job.state != "done":
            return job.error, ""
        if job.cell.key not in self.found:
            self.found[job.cell.key] = _figures(job)
        return self.found[job.cell.key]

    def _line(self, job: Job) -> str:
        ended = sum(j.state in ("done", "failed") for j in self.jobs)
        said = "; ".join(filter(None, self._read(job)))
        head = f"{duration(time.monotonic() - self.started)}  {ended}/{len(self.jobs)}  {name(job.cell)}: {job.state}"
        return f"{head}. {said}" if said else head

    def __rich__(self) -> Stack:
        """The latest results, those at work and the next in line, as many as there is room for."""
        room = max(console.size.height - 8, 6)
        table = Table(box=None, pad_edge=False)
        for title in ("cell", "state", "worst adversary", "utility", "seconds"):
            table.add_column(title, justify="right" if title == "seconds" else "left", no_wrap=True)
        running = [job for job in self.jobs if job.running]
        ended = sorted(
            (job for job in self.jobs if job.state in ("done", "failed")), key=lambda job: job.since
        )
        ahead = [job for job in self.jobs if job.state in ("left", "learned")]
        for job in (*ended[-max(room - len(running) - WAITING, 3) :], *running, *ahead[:WAITING]):
            leak, use = self._read(job)
            spent = f"{time.monotonic() - job.since:.0f}" if job.running else ""
            style = {"failed": "red", "done": "", "left": "dim", "learned": "dim"}.get(
                job.state, "bold"
            )
            table.add_row(name(job.cell), job.state, Text(leak), Text(use), spent, style=style)
        count = Counter(job.state for job in self.jobs)
        told = ", ".join(f"{count[state]} {state}" for state in get_args(State) if count[state])
        return Stack(
            table, Text(f"{told}; {duration(time.monotonic() - self.started)}", style="dim")
        )


def _figures(job: Job) -> tuple[str, str]:
    try:
        found = Audit.load(job.folder / "audit" / "audit.json")
    except PrivetError as error:
        return str(error), ""
    private = ", ".join(
        f"{r.attribute} {percent(r.worst.score.value)} ({r.worst.called})" for r in found.private
    )
    utility = ", ".join(f"{r.attribute} {percent(r.worst.score.value)}" for r in found.utility)
    return private, utility


@contextmanager
def board(jobs: Sequence[Job]) -> Iterator[Board]:
    made = Board(jobs)
    if not console.is_terminal:
        yield made
        return
    with Live(made, console=console, refresh_per_second=2):
        yield made
