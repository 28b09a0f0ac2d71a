"""`privet bench` on the command line: no logic. What it needs is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privet.core.terminal import plain_console

out = plain_console()


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
    from privet.benchmarking.bench import bench as run
    from privet.benchmarking.ratios import machine

    _, slower = run(
        names or (),
        turns=turns,
        out=target,
        stored=stored,
        keep=keep,
        each=lambda ratio: out.print(ratio.line, markup=False),
    )
    out.print(", ".join(f"{key} {value}" for key, value in machine().items()), markup=False)
    for line in slower:
        out.print(line, markup=False)
    if slower:
        raise typer.Exit(1)


def mount(app: typer.Typer) -> None:
    app.command(
        epilog="Examples:  privet bench --out bench.json    privet bench packing --turns 7"
    )(bench)
