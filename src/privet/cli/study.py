"""Comparing methods. One function per verb, no logic. What a verb needs
is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privet.cli.options import (
    Data,
    Device,
    Out,
    Ray,
    SchemaFile,
    SkipBroken,
    command_line,
    layout,
    out,
)
from privet.core.settings import names

verbs = typer.Typer()


@verbs.command(
    epilog=(
        "Examples:  privet compare --data adult.parquet --private sex --utility income --methods"
        " hedge,leace --out c    privet compare --recipe tiprdc-figure-6 --size small --out c"
    )
)
def compare(
    folder: Out,
    data: Annotated[
        str | None,
        typer.Option("--data", help="As for learn; for a recipe, the folder that holds its files"),
    ] = None,
    private: Annotated[
        str, typer.Option(help="What to hide: one attribute, or several with commas")
    ] = "",
    utility: Annotated[str, typer.Option(help="Tasks to keep possible")] = "",
    methods: Annotated[
        str, typer.Option(help="Which to compare, with commas; all that take the data")
    ] = "",
    budgets: Annotated[
        str,
        typer.Option(
            help="'hedge=0.54,0.58;tiprdc=0.9', or a list for one method; else each method's own"
        ),
    ] = "",
    seeds: Annotated[
        int | None, typer.Option(help="How often to learn each, from seeds 0, 1, ...")
    ] = None,
    battery: Annotated[str | None, typer.Option(help="quick, lean, standard or strong")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="METHOD.KEY=VALUE", help="Another setting; repeatable"),
    ] = None,
    recipe: Annotated[
        str | None, typer.Option(help="A study of a paper by its name, or a TOML file")
    ] = None,
    size: Annotated[
        str, typer.Option(help="Of a recipe: full, or small for minutes on two cores")
    ] = "full",
    workers: Annotated[
        int | None, typer.Option(help="How many processes work at the same time")
    ] = None,
    time_limit: Annotated[
        str | None,
        typer.Option(help="Stop by then, in seconds, or as 10m or 2h; the same command goes on"),
    ] = None,
    goal: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ATTRIBUTE=]SHARE",
            help="What attackers should not exceed, for the verdict: 0.60; repeatable",
        ),
    ] = None,
    schema: SchemaFile = None,
    device: Device = "auto",
    ray: Ray = None,
) -> None:
    """Learn and attack methods at several budgets; write the frontier of what leaks against what is
    of use."""
    from privet.commands.compare import compare as run
    from privet.evidence.verdict import parse_goals
    from privet.studies.command_line import read_seconds, read_study

    study = read_study(
        recipe,
        size,
        data,
        names(private),
        names(utility),
        methods=names(methods),
        budgets=budgets,
        settings=settings or [],
        seeds=seeds,
        battery=battery,
        schema=schema,
        goal=parse_goals(goal or ()),
    )
    found = run(
        study,
        folder,
        workers=workers,
        time_limit=None if time_limit is None else read_seconds(time_limit),
        device=device,
        ray=ray,
        command=command_line(),
    )
    out.print(str(found), markup=False)
    if found.stopped or found.count("failed"):
        raise typer.Exit(130 if found.stopped else 1)


@verbs.command(
    epilog="Example:  privet maps cloak-smiling cloak-glasses --data photos/ --out maps.html"
)
def maps(
    releases: Annotated[list[Path], typer.Argument(help="Folders of cloak releases, one per task")],
    data: Data,
    page: Annotated[Path, typer.Option("--out", help="The page to write")],
    schema: SchemaFile = None,
    skip_broken: SkipBroken = False,
) -> None:
    """Draw what each task needs of a record, as cloak has learned it: over pictures, or column by
    column."""
    from privet.studies.noise_maps import write

    write(page, releases, data, layout(schema, skip_broken))
    out.print(f"The maps:  {page}", markup=False)
