"""Run a study: check it, do what is not done yet, and write the results: frontier.parquet,
frontier.html and table.md."""

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
from privet.studies.progress import progress
from privet.studies.results_table import Row, rows, write_parquet
from privet.studies.scheduler import Job, StartWorker, count, jobs_of, locked, run
from privet.studies.study import Study

KEPT = "Cells that are done are kept"
# Seconds between two writings of the results while work goes on.
EVERY = 20.0


@dataclass(frozen=True)
class Comparison:
    """The results of a study.

    Parameters:
        study: What was asked, with notes on who was left out.
        rows: One per cell, with its audit.
        folder: Where frontier.html, frontier.parquet, table.md and the cells are.
        stopped: Whether somebody interrupted it.
    """

    study: Study
    rows: tuple[Row, ...]
    folder: Path
    stopped: bool = False

    @property
    def page(self) -> Path:
        return self.folder / "frontier.html"

    @property
    def table(self) -> Path:
        """The parquet file, a row per cell."""
        return self.folder / "frontier.parquet"

    def count(self, state: str) -> int:
        """How many cells are done, failed or left."""
        return len({row.cell.key for row in self.rows if row.state == state})

    def __str__(self) -> str:
        """What the command says when it is through, or was stopped."""
        done, failed, left = map(self.count, ("done", "failed", "left"))
        said = f"{done} cells are done"
        if self.stopped:
            said = f"Stopped. {KEPT}, {done} so far: run the same command again to go on"
        elif failed or left:
            said += f", {failed} failed" if failed else ""
            said += f", {left} are left: the same command goes on with them" if left else ""
        return f"{said}. The picture:  {self.page}"


def run_study(
    study: Study,
    folder: Path,
    *,
    workers: int | None = None,
    time_limit: float | None = None,
    device: str = "auto",
    command: str | None = None,
    started: float | None = None,
    start_worker: StartWorker | None = None,
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
    stopped, written = False, time.monotonic()
    try:
        with locked(folder):
            jobs = jobs_of(cells, folder)

            def changed(job: Job) -> None:
                nonlocal written
                show(job)
                if job.state == "done" and time.monotonic() - written > EVERY:
                    write(folder, study, cells, jobs, command)
                    written = time.monotonic()

            with progress(list(jobs.values())) as show:
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
                        start_worker=start_worker,
                    )
                except KeyboardInterrupt:
                    stopped = True
            results = write(folder, study, cells, jobs, command)
            return Comparison(study, tuple(results), folder, stopped)
    except BaseException:
        undo()
        raise


def write(
    folder: Path, study: Study, cells: Sequence[Cell], jobs: dict[str, Job], command: str | None
) -> list[Row]:
    """The results as far as they are there."""
    results = rows(cells, jobs)
    write_parquet(folder / "frontier.parquet", results, study.refused)
    write_text(folder / "frontier.html", render(study, results, command))
    write_text(folder / "table.md", table(study, results))
    for name, (_, cards) in cards_by_page(results).items():
        write_text(folder / name, collaborative_page(cards))
    return results


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C outside of the work itself, while data is read or results are written, ends with a
    sentence and not with a traceback."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write(f"privet: stopped. {KEPT}: run the same command again to go on.\n")
        raise SystemExit(130) from None
