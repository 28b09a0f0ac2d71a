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
# Share of the time limit, at its end, in which nothing new is started.
GRACE = 0.05
TRIES = 2


@dataclass
class Job:
    """A cell on its way: its folder, how far it has come, how often the work under way was tried,
    and since when."""

    cell: Cell
    folder: Path
    state: State = "left"
    error: str = ""
    tries: int = 0
    since: float = 0.0

    @property
    def running(self) -> bool:
        return self.state in ("learning", "attacking")


class Worker(Protocol):
    """Whoever takes jobs, one at a time: a process here, or a task of a cluster
    (scale/ray_cells.py)."""

    job: Job | None

    def give(self, job: Job, do: str, device: str, raw: Path | None) -> None: ...
    def ending(self) -> str: ...
    def stop(self) -> None: ...


# What workers say: a line of JSON, or None when they have died.
Events = queue.Queue[tuple[Worker, str | None]]
# Given the log in the comparison's folder and how many work at the same time.
StartWorker = Callable[[Path, int, Events], Worker]


@dataclass
class Scheduler:
    """Gives jobs to workers until everything is done, failed, or the time is up.

    Parameters:
        jobs, raws: All jobs, and by question the one on its raw records.
        device: For learning and attacking.
        workers, start_worker, log: How many, how one is started, and where they log.
        deadline, grace: A reading of `time.monotonic` by which everything is stopped, and the
            seconds before it in which nothing new is started.
        changed: Called whenever a job changes its state.
        audits: Seconds of the audits of this run: one that cannot end in time is not begun.
    """

    jobs: list[Job]
    raws: dict[str, Job]
    device: str
    workers: int
    start_worker: StartWorker
    log: Path
    deadline: float = float("inf")
    grace: float = 0.0
    changed: Callable[[Job], None] = lambda job: None
    audits: list[float] = field(default_factory=list)

    def run(self) -> None:
        events: Events = queue.Queue()
        staff: list[Worker] = []
        try:
            while (left := self.deadline - time.monotonic()) > 0:
                self._give(staff, events)
                if not any(job.running for job in self.jobs):
                    return
                with contextlib.suppress(queue.Empty):
                    self._hear(*events.get(timeout=min(left, 1.0)), staff)
        finally:
            for worker in staff:
                worker.stop()
            for job in self.jobs:
                if job.running:
                    self._set(job, reached(job.folder))

    def _give(self, staff: list[Worker], events: Events) -> None:
        """Give every idle worker something to do, and start more while there is more to do."""
        while (job := self._next()) is not None:
            worker = next((w for w in staff if w.job is None), None)
            if worker is None:
                if len(staff) >= self.workers:
                    return
                worker = self.start_worker(self.log, self.workers, events)
                staff.append(worker)
            learning = job.state == "left" and not job.cell.is_raw
            raw = self.raws[job.cell.question]
            known = raw.folder / "audit" / "audit.json"
            job.since = time.monotonic()
            job.tries += 1
            shared = known if raw is not job and raw.state == "done" else None
            worker.give(job, "learn" if learning else "attack", self.device, shared)
            self._set(job, "learning" if learning else "attacking")

    def _next(self) -> Job | None:
        """Raw records first; then releases that wait for their attack, so that results appear
        early; then the next one to learn."""
        left = self.deadline - self.grace - time.monotonic()
        if left <= 0:
            return None
        in_time = not self.audits or statistics.median(self.audits) < left
        waiting = [job for job in self.jobs if job.state == "left"]
        learned = [job for job in self.jobs if job.state == "learned" and in_time]
        known = [j for j in learned if self.raws[j.cell.question].state in ("done", "failed")]
        raws = [job for job in waiting if job.cell.is_raw]
        return next(iter([*raws, *known, *waiting]), None)

    def _hear(self, worker: Worker, line: str | None, staff: list[Worker]) -> None:
        """An answer, or the end of a worker."""
        job, worker.job = worker.job, None
        died = f"The process that worked on it ended ({worker.ending()})."
        answer: dict[str, Any] = {"error": died, "broken": True}
        if line is not None:
            answer = json.loads(line)
        broken = bool(answer.get("broken"))
        if broken:
            staff[:] = [other for other in staff if other is not worker]
        if job is None:
            return
        if broken and job.tries < TRIES:
            self._set(job, reached(job.folder))
        elif "error" in answer:
            job.error = answer["error"]
            self._set(job, "failed")
        else:
            job.tries = 0
            if job.state == "attacking":
                self.audits.append(time.monotonic() - job.since)
            self._set(job, "learned" if job.state == "learning" else "done")

    def _set(self, job: Job, state: State) -> None:
        job.state = state
        self.changed(job)


class WorkerProcess:
    """A process, the job it has, and a thread that passes its answers on.

    Parameters:
        log: Where its errors go.
        among: How many share the cores.
        events: Where its answers go.
    """

    def __init__(self, log: Path, among: int, events: Events) -> None:
        threads = os.environ.get("OMP_NUM_THREADS") or str(max(1, (os.cpu_count() or 1) // among))
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                PROGRAM,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={"GOMP_SPINCOUNT": "10000", **os.environ, **dict.fromkeys(names, threads)},
                start_new_session=True,
            )
        self.job: Job | None = None
        assert self.process.stdin and self.process.stdout
        self.entrance: IO[bytes] = self.process.stdin
        listening = (self.process.stdout, events)
        threading.Thread(target=self._listen, args=listening, daemon=True).start()

    def _listen(self, answers: IO[bytes], events: Events) -> None:
        for line in answers:
            events.put((self, line.decode()))
        self.process.wait()
        events.put((self, None))

    def give(self, job: Job, do: str, device: str, raw: Path | None) -> None:
        self.job = job
        words = {"do": do, "cell": job.cell.to_json(), "folder": str(job.folder)}
        line = json.dumps({**words, "device": device, "raw": raw and str(raw)})
        with contextlib.suppress(OSError):  # it has died, which its listener will say
            self.entrance.write(line.encode() + b"\n")
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
    """By key, every cell and how far it has come in the comparison's folder, `room`."""
    folders = {cell.key: cell.folder(room) for cell in cells}
    return {c.key: Job(c, folders[c.key], reached(folders[c.key])) for c in cells}


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
    start_worker: StartWorker | None = None,
) -> None:
    """Do what is not done yet; the jobs say how far each has come.

    `time_limit` counts from `started`, a reading of `time.monotonic`, and everything is stopped by
    then.
    """
    raws = {cell.question: jobs[cell.key] for cell in cells if cell.is_raw}
    log, start = room / "workers.log", start_worker or WorkerProcess
    scheduler = Scheduler(list(jobs.values()), raws, device, count(workers), start, log)
    scheduler.changed = changed
    if time_limit is not None:
        scheduler.deadline = (time.monotonic() if started is None else started) + time_limit
        scheduler.grace = GRACE * time_limit
    scheduler.run()


def reached(folder: Path) -> State:
    """How far a cell has come that nobody works on."""
    so_far = stage(folder)
    return "left" if so_far == "new" else so_far


def count(workers: int | None) -> int:
    """How many workers: as many as were asked for, else one per core and at most four."""
    if workers is not None and workers < 1:
        raise PrivetError(f"At least one worker is needed, not {workers}.")
    return min(os.cpu_count() or 1, 4) if workers is None else workers


@contextmanager
def locked(room: Path) -> Iterator[None]:
    """One comparison at a time in a folder; the lock goes with the process, however it ends."""
    with (room / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise PrivetError(
                f"Another comparison is at work in {room}: wait for it, or choose another --out."
            ) from None
        yield
