"""`privet learn`: read the data, learn a release, and write it whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from privet.core.errors import PrivetError
from privet.core.files import writable_folder
from privet.core.progress import console
from privet.core.settings import names
from privet.data.checks import check_data, input_columns, refuse_meaningless, serious
from privet.data.column_meaning import NO_INPUT
from privet.data.dataset import Dataset
from privet.data.schema import TableSchema
from privet.data.sources import load
from privet.methods.method import Method, Problem
from privet.methods.registry import METHODS
from privet.release.release import Release
from privet.train.checkpoint import CHECKPOINT
from privet.train.game import Run

PLAIN: dict[str, Any] = {"markup": False, "highlight": False, "soft_wrap": True}


def learn(
    method: str | Method,
    data: str | Path | Dataset,
    private: str | Iterable[str],
    utility: str | Iterable[str] = (),
    *,
    out: str | Path | None = None,
    budget: float | None = None,
    target: float | None = None,
    settings: Iterable[str] = (),
    without: str | Iterable[str] = (),
    schema: str | Path | None = None,
    seed: int = 0,
    run: Run | None = None,
) -> Release:
    """Learn a release of `data` that hides `private`, and write it to the folder `out`, if given.

    Everything that can be wrong with the arguments is found before the work starts.

    method: a method's name, or a method with its settings (then budget, target, settings and seed
        are its own).
    data: what `privet.load` takes, or a Dataset.
    private: the attributes to hide.
    utility: tasks to keep possible, for methods that take tasks; for all, a task's column is no
        input.
    out: the folder for card.json, weights.safetensors and release.onnx.
    budget: the method's dial: how much privacy for how much use.
    target: the bound to aim at, of methods whose releases are certified.
    settings: other settings, as "key=value".
    without: table columns to leave out of the release's input.
    schema: a TOML file that says what the columns are.
    seed: on one machine's CPU the same seed gives the same release.
    run: device, resuming, checkpoints, checks of the data that are accepted, and whether to replace
        a release that is in `out` already.

    >>> release = learn("leace", "toy:gaussian", private="u")
    >>> release.card["method"], release.private
    ('leace', ['u'])
    """
    folder, run = Path() if out is None else Path(out), run or Run()
    if isinstance(method, str):
        dial = _dial(method, budget, target)
        method = METHODS[method].parse(list(settings), budget=dial, seed=seed)
    data = data if isinstance(data, Dataset) else load(data, schema)
    hidden, tasks, left_out = names(private), names(utility), names(without)
    problem = method.problem(data, hidden, tasks, left_out, run)
    checks = check_data(data, hidden, tasks, input_columns(problem.schema))
    refuse_meaningless(checks, run.accept)
    for sentence in serious(checks):
        console.print(f"Look at the data first: {sentence}", **PLAIN)
    for note in data.notes:
        if note.startswith(NO_INPUT):
            console.print(note, **PLAIN)
    if unused := _unused_columns(problem, [*hidden, *tasks, *left_out]):
        console.print(
            f"Left out of the input: {', '.join(unused)}. No two people share a value there, and "
            "the card would name theirs.",
            **PLAIN,
        )
    if out is None:
        return method.fit_problem(problem, run)
    if (folder / "card.json").exists() and not run.force:
        raise PrivetError(
            f"{folder} holds a release already: choose another --out, or replace it with --force."
        )
    run = replace(run, folder=run.folder or folder)
    undo = writable_folder(folder)
    try:
        if not run.resume and (folder / CHECKPOINT).exists():
            raise PrivetError(
                f"{folder} holds a checkpoint of unfinished work: go on with --resume, or remove "
                "it first."
            )
        release = method.fit_problem(problem, run)
        release.card["command"] = run.command
        release.save(folder)
        (folder / CHECKPOINT).unlink(missing_ok=True)
    except BaseException:
        undo()
        raise
    return release


def _unused_columns(problem: Problem, without: list[str]) -> list[str]:
    """Columns that the user did not leave out, and that are not in the input."""
    if not isinstance(problem.schema, TableSchema):
        return []
    used = {column.name for column in problem.schema.columns}
    columns = problem.data.records.columns
    return [name for name in columns if name not in used and name not in without]


def _dial(name: str, budget: float | None, target: float | None) -> float | None:
    """The value of the method's dial: --target is the plain name of --budget where the dial is a
    certified bound."""
    if target is None:
        return budget
    if METHODS[name].dial != "target":
        certified = [other.name for other in METHODS.values() if other.dial == "target"]
        raise PrivetError(
            f"The method {name} aims at no certified bound: --target is for "
            f"{' and '.join(certified)}."
        )
    if budget is not None:
        raise PrivetError(
            f"--budget and --target are the same to the method {name}: give one of them."
        )
    return target
