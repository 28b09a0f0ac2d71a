"""What `privet compare` shows while it works: a line per cell that is learned, attacked or done,
and a bar with the time left."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import get_args

from privet.core.errors import PrivetError
from privet.core.progress import bar, console
from privet.evidence.figures import Audit
from privet.evidence.formatting import duration, percent
from privet.studies.scheduler import Job, State


@contextmanager
def progress(jobs: Sequence[Job]) -> Iterator[Callable[[Job], None]]:
    """Gives a function to call whenever a job changes its state."""
    started = time.monotonic()
    with bar("Comparing", len(jobs)) as tick:

        def changed(job: Job) -> None:
            count = Counter(job.state for job in jobs)
            ended = count["done"] + count["failed"]
            tick(ended, ", ".join(f"{count[s]} {s}" for s in get_args(State) if count[s]))
            if job.state not in ("left", "learned"):
                question = f"{job.cell.question}: " if job.cell.question else ""
                spent = duration(time.monotonic() - started)
                head = f"{spent}  {ended}/{len(jobs)}  {question}{job.cell.name}: {job.state}"
                said = ". ".join(filter(None, (head, results(job))))
                console.print(said, highlight=False, soft_wrap=True, markup=False)

        yield changed


def results(job: Job) -> str:
    """The worst adversaries and the task models of a cell that is done, or its error."""
    if job.state != "done":
        return job.error
    try:
        audit = Audit.load(job.folder / "audit" / "audit.json")
    except PrivetError as error:
        return str(error)
    worst = [(one.attribute, one.worst) for one in (*audit.private, *audit.utility)]
    return ", ".join(f"{n} {percent(one.score.value)} ({one.called})" for n, one in worst)
