"""Workers of `privet compare` that are tasks of a Ray cluster: one cell, learned or attacked, per
task.

The scheduler, the states and the folders are those of studies/scheduler.py; only where the work is
done is another matter. A task that finds the comparison's folder on its own disk, because the
cluster shares it, works there. One that does not gets the cell's files through Ray's object store
and sends them back as they appear: the checkpoint now and then while it learns, everything at the
end. Either way a worker that is killed loses what it did since its last checkpoint, and the
scheduler gives the cell to another.
"""

from __future__ import annotations

import importlib
import json
import os
import secrets
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from privet.core.errors import PrivetError, first_line
from privet.core.files import write_bytes
from privet.scale.cluster import connected, read_files, write_files
from privet.studies.cells import Cell
from privet.studies.scheduler import Events, Job, StartWorker, WorkerProcess, count
from privet.train.checkpoint import CHECKPOINT

# What a task does, by its name, so that nothing but JSON and files travels.
WORK = "privet.studies.worker:do"
RELEASE_CHECKPOINT = f"release/{CHECKPOINT}"
# Files that say that others are there; written after them.
MARKERS = ("learned.json", "done.json")
# Seconds between two checkpoints sent, and the most of the time that sending them may take, where
# they are large.
CHECKPOINT_SECONDS = 30.0
SENDING_SHARE = 0.05
# Seconds for an answer to get through, and between two looks at whether there is a checkpoint.
ANSWER_SECONDS = 1.0
LOOK_SECONDS = 0.2


class WorkerPool(NamedTuple):
    """How many workers there are at the same time, on which device, and how one is started."""

    workers: int | None
    device: str
    start_worker: StartWorker


@contextmanager
def worker_pool(
    address: str | None, workers: int | None = None, device: str = "auto"
) -> Iterator[WorkerPool]:
    """The workers of a comparison.

    Parameters:
        address: Of a Ray cluster; None for processes of this machine.
        workers: How many work at the same time.
        device: cpu, cuda or auto.
    """
    if address is None:
        yield WorkerPool(workers, device, WorkerProcess)
        return
    if workers is not None:
        count(workers)
    with connected(address) as ray, ExitStack() as at_end:
        resources = ray.cluster_resources()
        if device == "auto":
            device = "cuda" if resources.get("GPU", 0) >= 1 else "cpu"
        kind = "GPU" if device.startswith("cuda") else "CPU"
        most = int(resources.get(kind, 0))
        if not most:
            raise PrivetError(f"The Ray cluster has no {kind} to work on; choose another --device.")
        task = ray.remote(run_job).options(
            num_returns="streaming", max_retries=0, num_cpus=1, num_gpus=int(kind == "GPU")
        )
        name = f".ray-{secrets.token_hex(16)}"

        def start(log: Path, _among: int, events: Events) -> RayWorker:
            mark = log.resolve().parent / name
            at_end.callback(mark.unlink, missing_ok=True)
            leave_mark(mark)
            return RayWorker(ray, task, mark, device, events)

        # On this machine, which may have no GPU, only the settings are checked.
        yield WorkerPool(workers or most, "cpu", start)


def leave_mark(mark: Path) -> None:
    """Write a file of a name that nobody else has: whoever sees it sees the same disk."""
    mark.touch()


class RayWorker:
    """What the scheduler knows as a worker: one task after the other, and a thread that passes on
    what each sends.

    Parameters:
        ray: The package, connected.
        task: `run_job` as a remote function.
        mark: A file in the comparison's folder; tasks that see it work there.
        device: That the tasks use.
        events: Where answers go.
    """

    def __init__(self, ray: Any, task: Any, mark: Path, device: str, events: Events) -> None:
        self.ray, self.task, self.events = ray, task, events
        self.job: Job | None = None
        self.about = {"mark": str(mark), "device": device}
        self._where, self._why = "before it began", "no answer"
        self._stream: Any = None
        self._listener: threading.Thread | None = None
        self._stopped = False

    def give(self, job: Job, do: str, device: str, raw: Path | None) -> None:
        self.job = job
        files = read_files(job.folder)
        if do != "learn":
            files.pop(RELEASE_CHECKPOINT, None)
        about = {
            **self.about,
            "do": do,
            "cell": job.cell.to_json(),
            "key": job.cell.key,
            "raw": raw and str(raw.resolve()),
            "work": WORK,
            "checkpoint_seconds": CHECKPOINT_SECONDS,
        }
        # In a list, so that only a task that needs them fetches them.
        stored = [self.ray.put((files, None if raw is None else raw.read_bytes()))]
        self._stream = self.task.remote(about, stored)
        self._listener = threading.Thread(
            target=self._listen, args=(job.folder, self._stream), daemon=True
        )
        self._listener.start()

    def _listen(self, folder: Path, stream: Any) -> None:
        line: str | None = None
        try:
            for reference in stream:
                message = self.ray.get(reference)
                if self._stopped:
                    return
                self._where = message.get("where", self._where)
                write_cell(folder, message.get("files", {}))
                if "answer" in message:
                    line = json.dumps(message["answer"])
        except Exception as error:
            self._why = first_line(error)
        if not self._stopped:
            self.events.put((self, line))

    def ending(self) -> str:
        return f"{self._where}: {self._why}"

    def stop(self) -> None:
        """Nothing is lost: learning has its checkpoint, and files appear whole."""
        self._stopped = True
        if self._listener is not None and self._listener.is_alive():
            with suppress(Exception):  # it may end in this very moment
                self.ray.cancel(self._stream, force=True)
            self._listener.join(5)


def run_job(about: dict[str, Any], stored: list[Any]) -> Iterator[dict[str, Any]]:
    """One task, on whatever node: where it is, checkpoints now and then, at last its files and an
    answer as studies/worker.py gives it."""
    yield {"where": f"process {os.getpid()} on {socket.gethostname()}"}
    for message in _in_place(about) or _in_scratch(about, stored):
        yield message
        if message.get("answer", {}).get("broken"):
            # A GPU that has failed once fails on: once the answer is through, the process makes
            # room for a new one.
            time.sleep(ANSWER_SECONDS)
            os._exit(1)


def _in_place(about: dict[str, Any]) -> list[dict[str, Any]]:
    """The answer, where this node sees the comparison's folder."""
    mark = Path(about["mark"])
    if not mark.is_file():
        return []
    return [{"answer": _work(about, mark.parent / "cells" / about["key"], about["raw"])}]


def _in_scratch(about: dict[str, Any], stored: list[Any]) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="privet-cell-") as scratch:
        folder, raw = Path(scratch) / about["key"], Path(scratch) / "raw.json"
        files, raw_audit = importlib.import_module("ray").get(stored[0])
        write_cell(folder, files)
        if raw_audit is not None:
            write_bytes(raw, raw_audit)
        answers: list[dict[str, Any]] = []

        def work() -> None:
            answers.append(_work(about, folder, None if raw_audit is None else str(raw)))

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        yield from _checkpoints(folder / RELEASE_CHECKPOINT, thread, about["checkpoint_seconds"])
        thread.join()
        after = read_files(folder)
        changed = {name: after[name] for name in after if files.get(name) != after[name]}
        yield {"files": changed, "answer": answers[0]}


def _checkpoints(path: Path, thread: threading.Thread, every: float) -> Iterator[dict[str, Any]]:
    """The checkpoint, whenever there is a new one and the last was sent a while ago."""
    seen, due = path.stat().st_mtime_ns if path.exists() else 0, 0.0
    while thread.is_alive():
        thread.join(LOOK_SECONDS)
        with suppress(FileNotFoundError):
            if (new := path.stat().st_mtime_ns) != seen and time.monotonic() >= due:
                started = time.monotonic()
                yield {"files": {RELEASE_CHECKPOINT: path.read_bytes()}}
                taken = time.monotonic() - started
                seen, due = new, time.monotonic() + max(every, taken / SENDING_SHARE)


def _work(about: Mapping[str, Any], folder: Path, raw: str | None) -> dict[str, Any]:
    """The answer to a job. Other data under the same name are refused: the results would be found
    again as those of the asker's."""
    from privet.studies.worker import answer, read_once

    def work() -> None:
        host, cell = socket.gethostname(), Cell.from_json(about["cell"])
        if cell.key != about["key"]:
            raise PrivetError(f"{host} has another version of privet than the machine that asks.")
        source, fingerprint = (
            (cell.learned_on, cell.learned_print)
            if about["do"] == "learn"
            else (cell.audited_on, cell.audited_print)
        )
        # It is kept for the work that follows.
        if read_once(source).fingerprint != fingerprint:
            raise PrivetError(
                f"{source.spec} holds other data on {host} than where the comparison was begun."
            )
        module, _, name = about["work"].partition(":")
        job = {key: about[key] for key in ("do", "cell", "device")}
        do = getattr(importlib.import_module(module), name)
        do({**job, "folder": str(folder), "raw": raw})

    return answer(work)


def write_cell(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files to a cell's folder, those last that say it is complete."""
    names = sorted(files, key=lambda name: (name in MARKERS, name))
    write_files(folder, {name: files[name] for name in names})
    if "learned.json" in files:
        (folder / RELEASE_CHECKPOINT).unlink(missing_ok=True)
