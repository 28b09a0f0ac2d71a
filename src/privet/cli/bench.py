"""`privet bench` on the command line: no logic. What it needs is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

out = Console(soft_wrap=True, highlight=False)


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(help="Which cases; all without a name")
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option("--out", help="JSON file for the ratios, with machine, versions and spread"),
    ] = None,
    turns: Annotated[
        int, typer.Option(min=1, help="How often ours and the reference take turns")
    ] = 3,
    stored: Annotated[
        Path | None,
        typer.Option(
            "--check", help="Stored ratios: exit code 1 where one is worse by a factor of 1.5"
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option("--store", help="JSON file to keep these ratios in, for later checks"),
    ] = None,
) -> None:
    """How fast Privet is: ratios to named references that take turns with it in the same run. A
    minute or two."""
    from privet.benchmarking.cases import CASES
    from privet.benchmarking.ratios import check, machine, measure, read_stored, save, store
    from privet.core.errors import unknown

    for name in names or []:
        if name not in CASES:
            raise unknown("case", name, CASES)
    limits = read_stored(stored, list(CASES)) if stored else {}
    found = []
    for name in names or CASES:
        found.append(measure(CASES[name], turns, lambda ratio: not check([ratio], limits)))
        out.print(found[-1].line, markup=False)
    here = machine()
    out.print(", ".join(f"{key} {value}" for key, value in here.items()), markup=False)
    if target is not None:
        save(target, found)
    if keep is not None:
        store(keep, found)
    slower = check(found, limits)
    for line in slower:
        out.print(line, markup=False)
    if slower:
        raise typer.Exit(1)


def mount(app: typer.Typer) -> None:
    app.command(
        epilog="Examples:  privet bench --out bench.json    privet bench packing --turns 7"
    )(bench)
