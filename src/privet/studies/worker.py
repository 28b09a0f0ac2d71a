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
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from privet.adversaries.raw_classifiers import cache_folder
from privet.auditing.audit import audit
from privet.auditing.raw_figures import input_fingerprint
from privet.core.errors import PrivetError
from privet.data.dataset import Dataset
from privet.data.looks import looking_for
from privet.data.schema import learn_schema
from privet.data.sources import load
from privet.evidence.figures import Audit, Reading
from privet.methods.registry import METHODS
from privet.release.release import Release
from privet.reporting.page import report
from privet.studies import example_images
from privet.studies.cells import Cell, Source, write_json
from privet.train.checkpoint import CHECKPOINT
from privet.train.game import Run


def learn(cell: Cell, folder: Path, device: str) -> None:
    """Learn the release of a cell, from its checkpoint if there is one."""
    started = time.monotonic()
    room = folder / "release"
    room.mkdir(parents=True, exist_ok=True)
    write_json(folder / "cell.json", {**cell.content(), "label": cell.label, "budget": cell.budget})
    method = METHODS[cell.method](**cell.settings, seed=cell.seed)
    run = Run(room, resume=True, device=device, progress=False)
    data = read_once(cell.learned_on)
    release = method.fit(data, cell.private, cell.tasks, without=cell.without, run=run)
    release.save(room)
    write_json(folder / "learned.json", {"seconds": round(time.monotonic() - started, 1)})
    (room / CHECKPOINT).unlink(missing_ok=True)


def attack(cell: Cell, folder: Path, device: str, raw: Path | None) -> None:
    """Attack a cell's release, or the raw records of a question, once for all its cells.

    Figures on raw records are taken from the audit `raw`, where that saw the same input.
    """
    started = time.monotonic()
    data, room = read_once(cell.audited_on), folder / "audit"
    room.mkdir(parents=True, exist_ok=True)
    if cell.is_raw:
        write_json(folder / "cell.json", {**cell.content(), "label": cell.label})
        hidden = [*cell.private, *cell.without]
        release = Release.identity(learn_schema(read_once(cell.learned_on), hidden))
    else:
        release = Release.load(folder / "release")
    known = None if raw is None else Audit.load(raw)
    if known is not None and known.data.get("input") != input_fingerprint(release):
        known = None
    result = audit(
        release,
        data,
        cell.utility,
        cell.battery,
        private=cell.hidden,
        seed=cell.audit_seed,
        device=device,
        progress=False,
        rebuild=cell.rebuild and not cell.is_raw,
        raw=not cell.is_raw,
        raw_from=known,
    )
    result = as_raw(result) if cell.is_raw else result
    result.save(room / "audit.json")
    report(result, room / "report.html")
    shown = example_images.examples(release.to("cpu"), result, data)
    write_json(folder / "pictures.json", shown)
    write_json(folder / "done.json", {"seconds": round(time.monotonic() - started, 1)})


def as_raw(result: Audit) -> Audit:
    """The audit of the identity as one that `raw_from` takes: what was read from its releases was
    read from raw records."""

    def both(readings: Iterable[Reading]) -> tuple[Reading, ...]:
        made = []
        for one in readings:
            raw = tuple(replace(finding, source="raw") for finding in one.released)
            made.append(replace(one, raw=raw, best_raw=one.best))
        return tuple(made)

    return replace(
        result,
        readings=both(result.readings),
        undeclared=both(result.undeclared),
        people=tuple(replace(one, raw=one.figures) for one in result.people),
        fairness=tuple(replace(one, raw=one.released) for one in result.fairness),
    )


@lru_cache(maxsize=2)
def read_once(source: Source) -> Dataset:
    """The data of a source; the last two are kept."""
    return load(source.spec, source.schema, progress=False)


def do(job: Mapping[str, Any]) -> None:
    """One job, as the scheduler gives it."""
    cell, folder = Cell.from_json(job["cell"]), Path(job["folder"])
    if job["do"] == "learn":
        learn(cell, folder, job["device"])
        return
    # The raw cell's networks are where the others' start.
    with cache_folder(folder.parent.parent / "lessons"), looking_for("compare"):
        attack(cell, folder, job["device"], job["raw"] and Path(job["raw"]))


def answer(work: Callable[[], None]) -> dict[str, Any]:
    """What to say after some work: nothing, or the error; `broken` where nobody expected it."""
    try:
        work()
    except PrivetError as error:
        return {"error": str(error)}
    except Exception as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300], "broken": True}
    return {}


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
        said = answer(partial(do, jobs.get()))
        answers.write(json.dumps(said) + "\n")
        if "broken" in said:  # a GPU that has failed once fails on; a new process starts clean
            os._exit(1)


if __name__ == "__main__":
    main()
