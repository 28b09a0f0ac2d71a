"""`privet learn`: read the data, learn a release, and write it whole or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from privet.commands.logs import open_log
from privet.commands.reading import PLAIN, read
from privet.core.errors import PrivetError
from privet.core.files import writable_folder
from privet.core.progress import console
from privet.core.run_log import logged
from privet.core.settings import names
from privet.data.checks import check_data, input_columns, refuse_meaningless, serious
from privet.data.dataset import Dataset
from privet.data.schema import TableSchema
from privet.data.schema_file import Layout
from privet.methods.method import Method, Problem
from privet.methods.registry import METHODS
from privet.release.drawn_records import GRID, draw_records, write_grid
from privet.release.release import Release
from privet.release.runtime import FILES
from privet.train import distributed
from privet.train.checkpoint import CHECKPOINT
from privet.train.game import Run


def learn(  # noqa: PLR0913 - a verb has as many parameters as options
    method: str | Method,
    data: str | Path | Dataset,
    private: str | Iterable[str],
    utility: str | Iterable[str] = (),
    *,
    out: str | Path | None = None,
    budget: float | None = None,
    target: float | None = None,
    battery: str = "standard",
    settings: Iterable[str] = (),
    without: str | Iterable[str] = (),
    schema: str | Path | Layout | None = None,
    seed: int = 0,
    run: Run | None = None,
    log: str | Path | None = None,
) -> Release:
    """Learn a release of `data` that hides `private`, and write it to the folder `out`, if given.

    Everything that can be wrong with the arguments is found before the work starts.

    method: a method's name, or a method with its settings (then budget, settings and seed are its
        own).
    data: what `privet.load` takes, or a Dataset.
    private: the attributes to hide.
    utility: tasks to keep possible, for methods that take tasks; for all, a task's column is no
        input.
    out: the folder for card.json, weights.safetensors and release.onnx.
    budget: the method's dial: how much privacy for how much use.
    target: the bound to aim at, of methods whose releases are certified; of others, what the
        strongest attacker may read on *select*, for which the dial is searched: many releases are
        learned and attacked, and the most useful one at or below the target is kept.
    battery: who attacks in such a search.
    settings: other settings, as "key=value".
    without: table columns to leave out of the release's input.
    schema: a TOML file that says what the columns are.
    seed: on one machine's CPU the same seed gives the same release.
    run: device, resuming, checkpoints, checks of the data that are accepted, and whether to replace
        a release that is in `out` already.
    log: a file FILE.jsonl, or mlflow:URI: settings, figures of rounds and, at the end, the files.

    >>> release = learn("leace", "toy:gaussian", private="u")
    >>> release.card["method"], release.private
    ('leace', ['u'])
    """
    folder, run = Path() if out is None else Path(out), run or Run()
    if isinstance(method, str):
        dial = _dial(method, budget, target)
        method = METHODS[method].parse(list(settings), budget=dial, seed=seed)
    aim = None if method.dial == "target" else target
    data = data if isinstance(data, Dataset) else read(data, schema)
    hidden, tasks, left_out = names(private), names(utility), names(without)
    problem = method.problem(data, hidden, tasks, left_out, run)
    checks = check_data(data, hidden, tasks, input_columns(problem.schema))
    refuse_meaningless(checks, run.accept)
    for sentence in serious(checks):
        console.print(f"Look at the data first: {sentence}", **PLAIN)
    if unused := _unused_columns(problem, [*hidden, *tasks, *left_out]):
        console.print(
            f"Left out of the input: {', '.join(unused)}. No two people share a value there, and "
            "the card would name theirs.",
            **PLAIN,
        )
    if out is not None:
        _refuse_leftovers(folder, run)
    if log is not None and distributed.first():
        run = replace(run, log=open_log(log, run.resume))
    with logged(run.log, "learn", _said(method, problem, out)):
        if out is None:
            with tempfile.TemporaryDirectory(prefix="privet-search-") as room:
                how = run if aim is None else replace(run, folder=Path(room), resume=False)
                release = _learned(method, problem, aim, battery, how)[0]
        else:
            release = _written(method, problem, data, aim, battery, folder, run)
        if run.log is not None:
            paths = [folder / name for name in ("card.json", *FILES.values())]
            run.log.end({}, [path for path in paths if out is not None and path.exists()])
    return release


def _refuse_leftovers(folder: Path, run: Run) -> None:
    """Nothing is overwritten that somebody has not said may be."""
    if (folder / "card.json").exists() and not run.force:
        raise PrivetError(
            f"{folder} holds a release already: choose another --out, or replace it with --force."
        )
    if not run.resume and (folder / CHECKPOINT).exists():
        raise PrivetError(
            f"{folder} holds a checkpoint of unfinished work: go on with --resume, or remove it "
            "first."
        )


def _said(method: Method, problem: Problem, out: str | Path | None) -> dict[str, Any]:
    """What a log tells of the request; the same words name the same work."""
    return {
        "method": method.name,
        **method.settings(),
        "private": [attribute.name for attribute in problem.private],
        "utility": [attribute.name for attribute in problem.utility],
        "seed": method.seed,
        "data": problem.data.name,
        "fingerprint": problem.data.fingerprint,
        "out": None if out is None else str(out),
    }


def _written(
    method: Method,
    problem: Problem,
    data: Dataset,
    aim: float | None,
    battery: str,
    folder: Path,
    run: Run,
) -> Release:
    """Learn a release and write it to the folder."""
    run = replace(run, folder=run.folder or folder)
    undo = writable_folder(folder)
    try:
        release, clear = _learned(method, problem, aim, battery, run)
        release.card["command"] = run.command
        release.save(folder, release.graph)
        (folder / CHECKPOINT).unlink(missing_ok=True)
        (folder / GRID).unlink(missing_ok=True)
        if (drawn := draw_records(release, data)) and drawn.values:
            write_grid(drawn, folder / GRID)
            console.print(
                f"Before, after and as each value: {folder / GRID}. It shows real records of the "
                "test part: keep it out of what you hand on.",
                **PLAIN,
            )
        clear()
    except BaseException:
        undo()
        raise
    return release


def _learned(
    method: Method, problem: Problem, aim: float | None, battery: str, run: Run
) -> tuple[Release, Callable[[], None]]:
    """A release, by a search of the dial where there is an aim; and what to do once it is saved."""
    if aim is None:
        return method.fit_problem(problem, run), lambda: None
    from privet.auditing.dial_search import DialSearch  # brings every adversary

    search = DialSearch(method, problem, aim, battery, run)
    return search.play(), search.clear


def _unused_columns(problem: Problem, without: list[str]) -> list[str]:
    """Columns that the user did not leave out, and that are not in the input."""
    if not isinstance(problem.schema, TableSchema):
        return []
    used = {column.name for column in problem.schema.columns}
    columns = problem.data.records.columns
    return [name for name in columns if name not in used and name not in without]


def _dial(name: str, budget: float | None, target: float | None) -> float | None:
    """The value of the method's dial: --target is the plain name of --budget where the dial is a
    certified bound; of other methods the dial is searched."""
    if target is None:
        return budget
    if budget is not None:
        raise PrivetError(
            f"--budget and --target both say where the dial of {name} is to be: give one of them."
        )
    return target if METHODS[name].dial == "target" else None
