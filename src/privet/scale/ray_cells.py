"""A crew of `privet compare` whose workers are tasks of a Ray cluster: one cell, learned or
attacked, per task.

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
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from privet.core.errors import PrivetError
from privet.core.files import write_bytes
from privet.scale.cluster import connected
from privet.studies.cells import Cell
from privet.studies.scheduler import Events, Job, StartWorker, WorkerProcess, count
from privet.train.checkpoint import CHECKPOINT

# What a task does, by its name, so that nothing but words and files travels.
WORK = "privet.studies.worker:do"
RELEASE_CHECKPOINT = f"release/{CHECKPOINT}"
# Files that say that others are there; written after them.
LAST = ("learned.json", "done.json")
# Seconds between two checkpoints sent.
EVERY = 30.0
# Most of the time that sending them may take, where they are large.
SHARE = 0.05
# Seconds for an answer to get through.
THROUGH = 1.0
# Seconds between two looks at whether there is something to send.
LOOK = 0.2


@contextmanager
def crew(address: str | None, workers: int | None = None, device: str = "auto") -> Iterator[Staff]:
    """Who works for a comparison: processes of this machine, or with an address the tasks of a Ray
    cluster."""
    if address is None:
        yield Staff(workers, device, WorkerProcess)
        return
    if workers is not None:
        count(workers)
    with connected(address) as ray:
        has = ray.cluster_resources()
        chosen = ("cuda" if has.get("GPU", 0) >= 1 else "cpu") if device == "auto" else device
        needs = {"num_cpus": 1, "num_gpus": int(chosen.startswith("cuda"))}
        most = int(has.get("GPU" if needs["num_gpus"] else "CPU", 0))
        if not most:
            raise PrivetError(
                f"The Ray cluster has no {'GPU' if needs['num_gpus'] else 'CPU'} to work on; choose"
                " another --device."
            )
        task = ray.remote(perform).options(num_returns="streaming", max_retries=0, **needs)
        with _token() as token:
            # On this machine, which may have no GPU, only the words are checked.
            yield Staff(
                workers or most,
                "cpu",
                lambda log, among, events: RayWorker(ray, task, token, chosen, log.parent, events),
            )


class Staff:
    """How many work at the same time, on which device, and how one is started."""

    def __init__(self, workers: int | None, device: str, start_worker: StartWorker) -> None:
        self.workers, self.device, self.start_worker = workers, device, start_worker


class Token:
    """A file of a name that nobody else has: whoever sees it sees the same disk."""

    def __init__(self) -> None:
        self.name = f".ray-{secrets.token_hex(16)}"
        self.left: set[Path] = set()

    def leave_in(self, room: Path) -> None:
        if room not in self.left:
            (room / self.name).touch()
            self.left.add(room)


@contextmanager
def _token() -> Iterator[Token]:
    token = Token()
    try:
        yield token
    finally:
        for room in token.left:
            (room / token.name).unlink(missing_ok=True)


class RayWorker:
    """What the scheduler knows as a worker: one task after the other, and a thread that passes on
    what each sends."""

    def __init__(
        self, ray: Any, task: Any, token: Token, device: str, room: Path, events: Events
    ) -> None:
        self.ray, self.task, self.device, self.room, self.events = (
            ray,
            task,
            device,
            room.resolve(),
            events,
        )
        self.job: Job | None = None
        self.token = token.name
        self._at, self._why = "before it began", "no answer"
        self._stream: Any = None
        self._listener: threading.Thread | None = None
        self._stopped = False
        token.leave_in(room)

    def give(self, job: Job, do: str, device: str, raw: Path | None) -> None:
        self.job = job
        given = (
            files(job.folder)
            if do == "learn"
            else {name: b for name, b in files(job.folder).items() if name != RELEASE_CHECKPOINT}
        )
        words = {
            "do": do,
            "cell": job.cell.to_json(),
            "key": job.cell.key,
            "device": self.device,
            "room": str(self.room),
            "token": self.token,
            "raw": raw and str(raw.resolve()),
            "work": WORK,
            "every": EVERY,
        }
        # In a list, so that only a task that needs them fetches them.
        sent = [self.ray.put((given, None if raw is None else raw.read_bytes()))]
        self._stream = self.task.remote(words, sent)
        self._listener = threading.Thread(
            target=self._listen, args=(job.folder, self._stream), daemon=True
        )
        self._listener.start()

    def _listen(self, folder: Path, stream: Any) -> None:
        line: str | None = None
        try:
            for sent in stream:
                said = self.ray.get(sent)
                if self._stopped:
                    return
                self._at = said.get("at", self._at)
                keep(folder, said.get("files", {}))
                if "answer" in said:
                    line = json.dumps(said["answer"])
        except Exception as error:
            self._why = (str(error).strip() or type(error).__name__).splitlines()[0]
        if not self._stopped:
            self.events.put((self, line))

    def ending(self) -> str:
        return f"{self._at}: {self._why}"

    def stop(self) -> None:
        """Nothing is lost: learning has its checkpoint, and files appear whole."""
        self._stopped = True
        if self._stream is not None and self._listener is not None and self._listener.is_alive():
            with suppress(Exception):  # it may end in this very moment
                self.ray.cancel(self._stream, force=True)
            self._listener.join(5)


def perform(words: dict[str, Any], sent: list[Any]) -> Iterator[dict[str, Any]]:
    """One task, on whatever node: where it is, checkpoints now and then, at last its files and an
    answer as studies/worker.py gives it."""
    yield {"at": f"process {os.getpid()} on {socket.gethostname()}"}
    for said in _performed(words, sent):
        yield said
        if said.get("answer", {}).get("broken"):
            # A GPU that has failed once fails on: once the answer is through, the process makes
            # room for a new one.
            time.sleep(THROUGH)
            os._exit(1)


def _performed(words: dict[str, Any], sent: list[Any]) -> Iterator[dict[str, Any]]:
    room = Path(words["room"])
    if (room / words["token"]).is_file():
        yield {"answer": _work(words, room / "cells" / words["key"], words["raw"])}
        return
    with tempfile.TemporaryDirectory(prefix="privet-cell-") as scratch:
        folder, raw = Path(scratch) / words["key"], Path(scratch) / "raw.json"
        given, raw_audit = importlib.import_module("ray").get(sent[0])
        keep(folder, given)
        if raw_audit is not None:
            write_bytes(raw, raw_audit)
        answers: list[dict[str, Any]] = []
        thread = threading.Thread(
            target=lambda: answers.append(
                _work(words, folder, None if raw_audit is None else str(raw))
            ),
            daemon=True,
        )
        thread.start()
        yield from _checkpoints(folder / RELEASE_CHECKPOINT, thread, words["every"])
        thread.join()
        yield {
            "files": {
                name: content
                for name, content in files(folder).items()
                if given.get(name) != content
            },
            "answer": answers[0],
        }


def _checkpoints(path: Path, thread: threading.Thread, every: float) -> Iterator[dict[str, Any]]:
    """The checkpoint, whenever there is a new one and the last was sent a while ago."""
    seen, due = path.stat().st_mtime_ns if path.exists() else 0, 0.0
    while thread.is_alive():
        thread.join(LOOK)
        with suppress(FileNotFoundError):
            if (new := path.stat().st_mtime_ns) != seen and time.monotonic() >= due:
                started = time.monotonic()
                yield {"files": {RELEASE_CHECKPOINT: path.read_bytes()}}
                seen, due = new, time.monotonic() + max(every, (time.monotonic() - started) / SHARE)


def _work(words: Mapping[str, Any], folder: Path, raw: str | None) -> dict[str, Any]:
    from privet.studies.worker import answer

    def work() -> None:
        cell = Cell.from_json(words["cell"])
        if cell.key != words["key"]:
            raise PrivetError(
                f"{socket.gethostname()} has another version of privet than the machine that asks."
            )
        _same_data(cell, words["do"])
        module, _, name = words["work"].partition(":")
        asked = {key: words[key] for key in ("do", "cell", "device")}
        getattr(importlib.import_module(module), name)({**asked, "folder": str(folder), "raw": raw})

    return answer(work)


def _same_data(cell: Cell, do: str) -> None:
    """Refuse other data under the same name: the results would be found again as those of the
    asker's."""
    from privet.studies.worker import (
        read_once,  # which keeps what it reads, for the work that follows
    )

    source, wanted = (
        (cell.learned_on, cell.learned_print)
        if do == "learn"
        else (cell.audited_on, cell.audited_print)
    )
    if read_once(source).fingerprint != wanted:
        raise PrivetError(
            f"{source.spec} holds other data on {socket.gethostname()} than where the comparison"
            " was begun."
        )


def files(folder: Path) -> dict[str, bytes]:
    """What a cell's folder holds, by name."""
    found = (
        {}
        if not folder.is_dir()
        else {str(p.relative_to(folder)): p for p in sorted(folder.rglob("*")) if p.is_file()}
    )
    return {
        name: path.read_bytes()
        for name, path in found.items()
        if not Path(name).name.startswith(".")
    }


def keep(folder: Path, given: Mapping[str, bytes]) -> None:
    """Write files to a cell's folder, those last that say it is complete."""
    for name in sorted(given, key=lambda name: (name in LAST, name)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, given[name])
    if "learned.json" in given:
        (folder / RELEASE_CHECKPOINT).unlink(missing_ok=True)
