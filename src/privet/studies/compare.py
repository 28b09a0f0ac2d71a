"""`privet compare`: check a study, do what is not done yet, and write what came out:
frontier.parquet, frontier.html and table.md."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from privet.core.files import writable_folder, write_text
from privet.core.progress import console
from privet.studies.cells import Cell
from privet.studies.collaborative_page import cards_by_page
from privet.studies.collaborative_page import page as collaborative_page
from privet.studies.frontier_page import render, table
from privet.studies.live import board
from privet.studies.results_table import Row, rows, write_parquet
from privet.studies.scheduler import Hire, Job, alone, count, jobs_of, run
from privet.studies.study import Study

KEPT = "Cells that are done are kept"
EVERY = 20.0
"""Seconds between two writings of the results while work goes on."""


@dataclass(frozen=True)
class Comparison:
    study: Study
    rows: tuple[Row, ...]
    stopped: bool = False
    """Whether somebody interrupted it."""

    def count(self, state: str) -> int:
        return len({row.cell.key for row in self.rows if row.state == state})


def compare_to(
    folder: Path,
    study: Study,
    *,
    workers: int | None = None,
    time_limit: float | None = None,
    device: str = "auto",
    command: str | None = None,
    started: float | None = None,
    hire: Hire | None = None,
) -> Comparison:
    """Learn and attack every cell of the study that `folder` does not hold yet. The same call goes
    on where another was stopped."""
    started = time.monotonic() if started is None else started
    count(workers)
    cells, refused = study.cells(device)
    left_out = dict.fromkeys(one.said for one in refused)
    study = replace(study, notes=(*study.notes, *left_out), refused=tuple(refused))
    for note in left_out:
        console.print(note, highlight=False, soft_wrap=True, markup=False)
    undo = writable_folder(folder)
    stopped = False
    try:
        with alone(folder):
            jobs = jobs_of(cells, folder)
            written = time.monotonic()
            with board(list(jobs.values())) as live:

                def changed(job: Job) -> None:
                    nonlocal written
                    live.changed(job)
                    if job.state == "done" and time.monotonic() - written > EVERY:
                        write(folder, study, cells, jobs, command)
                        written = time.monotonic()

                try:
                    run(
                        cells,
                        jobs,
                        folder,
                        workers=workers,
                        device=device,
                        time_limit=time_limit,
                        started=started,
                        changed=changed,
                        hire=hire,
                    )
                except KeyboardInterrupt:
                    stopped = True
            return Comparison(study, tuple(write(folder, study, cells, jobs, command)), stopped)
    except BaseException:
        undo()
        raise


def write(
    folder: Path, study: Study, cells: Sequence[Cell], jobs: dict[str, Job], command: str | None
) -> list[Row]:
    """The results as far as they are there."""
    found = rows(cells, jobs)
    write_parquet(folder / "frontier.parquet", found, study.refused)
    write_text(folder / "frontier.html", render(study, found, command))
    write_text(folder / "table.md", table(study, found))
    for name, (_, cards) in cards_by_page(found).items():
        write_text(folder / name, collaborative_page(cards))
    return found


def ending(found: Comparison, folder: Path) -> str:
    """What the command says when it is through, or was stopped."""
    if found.stopped:
        return f"Stopped. {KEPT}, {found.count('done')} so far: run the same command again to go on. The picture:  {folder / 'frontier.html'}"
    said = [f"{found.count('done')} cells are done"]
    said += [f"{found.count('failed')} failed"] if found.count("failed") else []
    said += (
        [f"{found.count('left')} are left: the same command goes on with them"]
        if found.count("left")
        else []
    )
    return f"{', '.join(said)}. The picture:  {folder / 'frontier.html'}"


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C outside of the work itself, while data is read or results are written, ends with a
    sentence and not with a traceback."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write(f"privet: stopped. {KEPT}: run the same command again to go on.\n")
        raise SystemExit(130) from None
