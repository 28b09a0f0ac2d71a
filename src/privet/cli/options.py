"""Options that several verbs share, and where verbs write."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privet.core.terminal import plain_console

if TYPE_CHECKING:
    from privet.data.schema_file import Layout

# Results go to standard output; progress and errors to standard error.
out = plain_console()

Data = Annotated[
    str,
    typer.Option(
        "--data",
        help="portraits, toy:gaussian, celeba:DIR, a table (parquet, CSV, ...), its parts "
        "('parts/*.parquet', a folder of them, s3://...), a folder of pictures",
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option(
        "--schema", help="TOML file that says what the columns are, where the guess is wrong"
    ),
]
SkipBroken = Annotated[
    bool,
    typer.Option(
        "--skip-broken",
        help="Leave out pictures, and parts of a table, that cannot be read; each is listed",
    ),
]
People = Annotated[
    int | None,
    typer.Option(
        "--people",
        metavar="N",
        min=100,
        help="Of a table in parquet, N people, sampled by a hash of who they are; else all, or of "
        "several files as many as fit into 2 GB",
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", help="On one machine's CPU the same seed gives the same result")
]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda or auto")]
Ray = Annotated[
    str | None,
    typer.Option("--ray", metavar="auto|HOST:PORT", help="Work on this Ray cluster; docs/scale.md"),
]
Log = Annotated[
    str | None,
    typer.Option(
        "--log",
        metavar="FILE.jsonl|mlflow:URI",
        help="Write down settings, figures and results: JSON lines, or a run of MLflow",
    ),
]
Out = Annotated[Path, typer.Option("--out", help="Folder for the results")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is in --out already")]


def layout(
    schema: Path | None, skip_broken: bool, people: int | None = None
) -> Path | Layout | None:
    """What --schema, --skip-broken and --people say together."""
    if not skip_broken and people is None:
        return schema
    from privet.data.schema_file import read_layout

    found = read_layout(schema)
    return replace(
        found,
        skip_broken=skip_broken or found.skip_broken,
        people=found.people if people is None else people,
    )


def command_line() -> str:
    """The command as it was typed, for cards and pages."""
    return shlex.join(["privet", *sys.argv[1:]])
