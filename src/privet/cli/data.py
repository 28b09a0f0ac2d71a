"""Looking at data. One function per verb, no logic. What a verb needs
is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privet.cli.options import SchemaFile, SkipBroken, layout, out

verbs = typer.Typer(no_args_is_help=True, help="Look at data before anything is learned from it.")


@verbs.command("show", epilog="Example:  privet data show portraits:4000")
def data_show(
    spec: Annotated[str, typer.Argument(help="What to read, as for --data")],
    private: Annotated[str, typer.Option(help="What is to be hidden: checked first")] = "",
    utility: Annotated[str, typer.Option(help="The tasks: checked first")] = "",
    schema: SchemaFile = None,
    skip_broken: SkipBroken = False,
    page: Annotated[
        Path | None, typer.Option("--html", help="Write a page about it to this HTML file as well")
    ] = None,
) -> None:
    """What is wrong with the data; sizes, people, attributes and their rates, and how many bits
    attributes share with each other."""
    from privet.core.settings import names
    from privet.data.show import show
    from privet.data.sources import load
    from privet.reporting.data_page import write_data_page

    data = load(spec, layout(schema, skip_broken))
    out.print(show(data, names(private), names(utility), out.width))
    if page is not None:
        write_data_page(page, data, names(private), names(utility))
        out.print(f"The page:  {page}", markup=False)
