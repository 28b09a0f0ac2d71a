"""The scheduler: worker processes that take jobs one after another, cells that are not done twice,
and a time limit that holds.

A cell is two jobs, learning and attacking; the raw records of a question are attacked first, and
meanwhile other workers learn. A worker that dies is replaced and its job tried once more. Killing
this process ends its workers: they see their input end.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import queue
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, Protocol

from privet.core.errors import PrivetError
from privet.studies.cells import Cell, stage

State = Literal["done", "failed", "attacking", "learning", "learned", "left"]
PROGRAM = (sys.executable, "-m", "privet.studies.worker")
GRACE = 0.05
"""Share of the time limit, at its end, in which nothing new is started."""
TRIES = 2


@dataclass
class Job:
    """A cell on its way."""

    cell: Cell
    folder: Path
    state: State = "left"
    error: str = ""
    tries: int = 0
    since: float = 0.0
    """When the work under way began."""
    fresh: bool = False
    """Whether it was done in this run rather than found."""

    @property
    def running(self) -> bool:
        return self.state in ("learning", "attacking")


class Hand(Protocol):
    """Whoever takes jobs, one at a time: a process here, or a task of a cluster
    (scale/cells.py)."""

    job: Job | None

    def give(self, job: Job, do: str, device: str, raw: Path | None) -> None: ...
    def ending(self) -> str: ...
    def stop(self) -> None: ...


Events = queue.Queue[tuple[Hand, str | None]]
"""What hands say: a line of JSON, or None when they have died."""
Hire = Callable[[Path, int, Events], Hand]
"""Takes a hand on, given the log in the comparison's folder and how many work at the same time."""


@dataclass
class Crew:
    jobs: list[Job]
    raws: dict[str, Job]
    """By question, the job on its raw records."""
    device: str
    workers: int
    log: Path
    deadline: float = float("inf")
    grace: float = 0.0
    changed: Callable[[Job], None] = lambda job: None
    """Called whenever a job changes its state."""
    hire: Hire = field(kw_only=True)
    audits: list[float] = field(default_factory=list)
    """Seconds of the audits of this run: one that cannot end in time is not begun."""

    def work(self) -> None:
        """Until everything is done, failed, or the time is up."""
        events: Events = queue.Queue()
        staff: list[Hand] = []
        try:
            while True:
                self._hire(staff, events)
                if not any(job.running for job in self.jobs) and self._next() is None:
                    return
                left = self.deadline - time.monotonic()
                if left <= 0:
                    return
                with contextlib.suppress(queue.Empty):
                    self._hear(*events.get(timeout=min(left, 1.0)), staff)
        finally:
            for worker in staff:
                worker.stop()
            for job in self.jobs:
                if job.running:
                    self._set(job, reached(job.folder))

    def _hire(self, staff: list[Hand], events: Events) -> None:
        """Give every idle worker something to do, and take on more while there is more to do than
        hands."""
        while (job := self._next()) is not None:
            worker = next((w for w in staff if w.job is None), None)
            if worker is None:
                if len(staff) >= self.workers:
                    return
                staff.append(worker := self.hire(self.log, self.workers, events))
            learning = job.state == "left" and not job.cell.is_raw
            job.since = time.monotonic()
            job.tries += 1
            worker.give(job, "learn" if learning else "attack", self.device, self._raw(job))
            self._set(job, "learning" if learning else "attacking")

    def _next(self) -> Job | None:
        """Raw records first; then releases that wait for their attack, so that results appear
        early; then the next one to learn."""
        left = self.deadline - self.grace - time.monotonic()
        if left <= 0:
            return None
        waiting = [job for job in self.jobs if job.state == "left"]
        first = next((job for job in waiting if job.cell.is_raw), None)
        if first is not None:
            return first
        in_time = not self.audits or statistics.median(self.audits) < left
        known = {question for question, raw in self.raws.items() if raw.state in ("done", "failed")}
        ready = (
            job
            for job in self.jobs
            if in_time and job.state == "learned" and job.cell.question in known
        )
        return next(ready, None) or next(iter(waiting), None)

    def _raw(self, job: Job) -> Path | None:
        own = self.raws[job.cell.question]
        return (
            own.folder / "audit" / "audit.json" if own is not job and own.state == "done" else None
        )

    def _hear(self, worker: Hand, line: str | None, staff: list[Hand]) -> None:
        """An answer, or the end of a worker."""
        job, worker.job = worker.job, None
        died = {
            "error": f"The process that worked on it ended ({worker.ending()}).",
            "broken": True,
        }
        answer: dict[str, Any] = died if line is None else json.loads(line)
        if answer.get("broken"):
            staff[:] = [w for w in staff if w is not worker]
        if job is None:
            return
        if "error" in answer:
            if answer.get("broken") and job.tries < TRIES:
                self._set(job, reached(job.folder))
            else:
                job.error = answer["error"]
                self._set(job, "failed")
            return
        job.tries = 0
        if job.state == "learning":
            self._set(job, "learned")
            return
        job.fresh = True
        self.audits.append(time.monotonic() - job.since)
        self._set(job, "done")

    def _set(self, job: Job, state: State) -> None:
        job.state = state
        self.changed(job)


class Worker:
    """A process, the job it has, and a thread that passes its answers on."""

    def __init__(self, log: Path, among: int, events: Events) -> None:
        threads = os.environ.get("OMP_NUM_THREADS") or str(max(1, (os.cpu_count() or 1) // among))
        own = {
            name: threads for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        }
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                PROGRAM,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={"GOMP_SPINCOUNT": "10000", **os.environ, **own},
                start_new_session=True,
            )
        self.job: Job | None = None
        assert self.process.stdin and self.process.stdout
        self.entrance: IO[bytes] = self.process.stdin
        threading.Thread(
            target=self._listen, args=(self.process.stdout, events), daemon=True
        ).start()

    def _listen(self, answers: IO[bytes], events: Events) -> None:
        for line in answers:
            events.put((self, line.decode()))
        self.process.wait()
        events.put((self, None))

    def give(self, job: Job, do: str, device: str, raw: Path | None) -> None:
        self.job = job
        words = {
            "do": do,
            "cell": job.cell.to_json(),
            "folder": str(job.folder),
            "device": device,
            "raw": raw and str(raw),
        }
        with contextlib.suppress(OSError):  # it has died, which its listener will say
            self.entrance.write(json.dumps(words).encode() + b"\n")
            self.entrance.flush()

    def ending(self) -> str:
        code = self.process.returncode
        return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"

    def stop(self) -> None:
        """Nothing is lost: learning has its checkpoint, and files appear whole."""
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            self.entrance.close()


def jobs_of(cells: Sequence[Cell], room: Path) -> dict[str, Job]:
    """By key, every cell and how far it has come in `room`."""
    return {
        cell.key: Job(cell, folder, reached(folder))
        for cell in cells
        for folder in (cell.folder(room),)
    }


def run(
    cells: Sequence[Cell],
    jobs: dict[str, Job],
    room: Path,
    *,
    workers: int | None = None,
    device: str = "auto",
    time_limit: float | None = None,
    started: float | None = None,
    changed: Callable[[Job], None] = lambda job: None,
    hire: Hire | None = None,
) -> None:
    """Do what is not done yet; the jobs say how far each has come.

    `time_limit` counts from `started`, a reading of `time.monotonic`, and everything is stopped by
    then.
    """
    raws = {cell.question: jobs[cell.key] for cell in cells if cell.is_raw}
    crew = Crew(
        list(jobs.values()),
        raws,
        device,
        count(workers),
        room / "workers.log",
        changed=changed,
        hire=hire or Worker,
    )
    if time_limit is not None:
        crew.deadline = (time.monotonic() if started is None else started) + time_limit
        crew.grace = GRACE * time_limit
    crew.work()


def reached(folder: Path) -> State:
    """How far a cell has come that nobody works on."""
    found = stage(folder)
    return "left" if found == "new" else found


def count(workers: int | None) -> int:
    cores = os.cpu_count() or 1
    if workers is None:
        return min(cores, 4)
    if workers < 1:
        raise PrivetError(f"At least one worker is needed, not {workers}.")
    return workers


@contextmanager
def alone(room: Path) -> Iterator[None]:
    """One comparison at a time in a folder; the lock goes with the process, however it ends."""
    with (room / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise PrivetError(
                f"Another comparison is at work in {room}: wait for it, or choose another --out."
            ) from None
        yield
