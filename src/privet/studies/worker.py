"""A process that learns and attacks one cell after another: `python -m privet.studies.worker`.

Jobs come as lines of JSON on standard input and answers go as lines of JSON to standard output.
When the input ends, whoever gave the jobs is gone, and the process ends at once, in the middle of
whatever it does: learning goes on from its checkpoint another time, and everything else is written
whole or not at all.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from privet.adversaries.raw_classifiers import cache_folder
from privet.auditing.audit import audit
from privet.auditing.raw_figures import given_inputs
from privet.core.errors import PrivetError
from privet.data.dataset import Dataset
from privet.data.schema import learn_schema
from privet.data.sources import load
from privet.evidence.figures import Audit, Reading
from privet.methods.registry import METHODS
from privet.release.release import Release
from privet.reporting.page import report
from privet.studies import cell_pictures as pictures
from privet.studies.cells import Cell, Source, write_json
from privet.train.checkpoint import CHECKPOINT
from privet.train.game import Run


def learn(cell: Cell, folder: Path, device: str) -> None:
    """Learn the release of a cell, from its checkpoint if there is one."""
    started = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "cell.json", {**cell.content(), "label": cell.label, "budget": cell.budget})
    room = folder / "release"
    room.mkdir(exist_ok=True)
    built = METHODS[cell.method](**cell.settings, seed=cell.seed)
    run = Run(room, resume=True, device=device, progress=False)
    release = built.fit(
        read_once(cell.learned_on), cell.private, cell.tasks, without=cell.without, run=run
    )
    release.save(room)
    write_json(folder / "learned.json", {"seconds": round(time.monotonic() - started, 1)})
    (room / CHECKPOINT).unlink(missing_ok=True)


def attack(cell: Cell, folder: Path, device: str, raw: Path | None) -> None:
    """Attack a cell's release; figures on raw records are taken from `raw`, where that audit saw
    the same input."""
    started = time.monotonic()
    data, release = read_once(cell.audited_on), Release.load(folder / "release")
    earlier = None if raw is None else Audit.load(raw)
    if earlier is not None and earlier.data.get("input") != given_inputs(release):
        earlier = None
    found = audit(
        release,
        data,
        cell.utility,
        cell.battery,
        private=cell.hidden,
        seed=cell.audit_seed,
        device=device,
        progress=False,
        rebuild=cell.rebuild,
        raw_from=earlier,
    )
    _finish(folder, release.to("cpu"), found, data, started)


def attack_raw(cell: Cell, folder: Path, device: str) -> None:
    """Attack the raw records of a question, once for all its cells."""
    started = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "cell.json", {**cell.content(), "label": cell.label})
    data = read_once(cell.audited_on)
    release = Release.identity(
        learn_schema(read_once(cell.learned_on), [*cell.private, *cell.without])
    )
    found = audit(
        release,
        data,
        cell.utility,
        cell.battery,
        private=cell.hidden,
        seed=cell.audit_seed,
        device=device,
        progress=False,
        rebuild=False,
        raw=False,
    )
    _finish(folder, release.to("cpu"), as_raw(found), data, started)


def as_raw(found: Audit) -> Audit:
    """The audit of the identity as one that `raw_from` takes: what was read from its releases was
    read from raw records."""

    def both(reading: Reading) -> Reading:
        return replace(
            reading,
            raw=tuple(replace(f, source="raw") for f in reading.released),
            best_raw=reading.best,
        )

    return replace(
        found,
        readings=tuple(map(both, found.readings)),
        undeclared=tuple(map(both, found.undeclared)),
        people=tuple(replace(p, raw=p.figures) for p in found.people),
        fairness=tuple(replace(f, raw=f.released) for f in found.fairness),
    )


def _finish(folder: Path, release: Release, found: Audit, data: Dataset, started: float) -> None:
    room = folder / "audit"
    room.mkdir(exist_ok=True)
    found.save(room / "audit.json")
    report(found, room / "report.html")
    write_json(folder / "pictures.json", pictures.shown(release, found, data))
    write_json(folder / "done.json", {"seconds": round(time.monotonic() - started, 1)})


@lru_cache(maxsize=2)
def read_once(source: Source) -> Dataset:
    return load(source.spec, source.schema, progress=False)


def do(job: Mapping[str, Any]) -> None:
    cell, folder = Cell.from_json(job["cell"]), Path(job["folder"])
    if job["do"] == "learn":
        learn(cell, folder, job["device"])
        return
    with cache_folder(
        folder.parent.parent / "lessons"
    ):  # the raw cell's networks are where the others' start
        if cell.is_raw:
            attack_raw(cell, folder, job["device"])
        else:
            attack(cell, folder, job["device"], job["raw"] and Path(job["raw"]))


def main() -> None:
    # Libraries may print: only answers go to the pipe.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    jobs: queue.Queue[dict[str, Any]] = queue.Queue()

    def listen() -> None:
        for line in sys.stdin:
            jobs.put(json.loads(line))
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        job = jobs.get()
        answer: dict[str, Any] = {}
        try:
            do(job)
        except PrivetError as error:
            answer = {"error": str(error)}
        except Exception as error:
            import traceback

            traceback.print_exc()
            answer = {
                "error": f"{type(error).__name__}: {error}".splitlines()[0][:300],
                "broken": True,
            }
        answers.write(json.dumps(answer) + "\n")
        if answer.get("broken"):  # a GPU that has failed once fails on; a new process starts clean
            os._exit(1)


if __name__ == "__main__":
    main()
