"""`privet export` on the command line: no logic. What it needs is imported when it runs."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from privet.core.errors import PrivetError
from privet.core.terminal import plain_console

out = plain_console()


def export(
    release: Annotated[Path, typer.Argument(help="Folder of a release")],
    folder: Annotated[
        Path, typer.Option("--out", help="Folder for the int8 release, or of Triton's models")
    ],
    data: Annotated[
        str,
        typer.Option(
            "--data",
            help="Records to set scales from and to audit with, as for learn; --int8 needs them",
        ),
    ] = "",
    int8: Annotated[
        bool,
        typer.Option(
            "--int8",
            help="Products in eight bits: smaller and faster in browsers and on telephones",
        ),
    ] = False,
    triton: Annotated[
        bool,
        typer.Option(
            "--triton", help="A model folder for a Triton or KServe server; callers draw the noise"
        ),
    ] = False,
    name: Annotated[str, typer.Option(help="With --triton: what the model is called")] = "privet",
    force: Annotated[
        bool, typer.Option("--force", help="With --triton: replace the model")
    ] = False,
    utility: Annotated[str, typer.Option(help="Tasks whose figures must hold as well")] = "",
    battery: Annotated[
        str, typer.Option(help="Which adversaries compare the two: quick, lean, standard or strong")
    ] = "quick",
    schema: Annotated[
        Path | None, typer.Option("--schema", help="TOML file that says what the columns are")
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", help="On one machine's CPU the same seed gives the same result")
    ] = 0,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda or auto")] = "auto",
) -> None:
    """Write another form of a release, unless an audit finds that it leaks more or serves less."""
    if triton and not int8:
        _triton(release, folder, name, force)
        return
    if not int8 or triton:
        raise PrivetError(
            f"The float graph is {release / 'release.onnx'} already: add --int8 for one in eight"
            " bits, or --triton for a server's model folder; one of the two."
        )
    if not data:
        raise PrivetError("--int8 sets its scales from records: name them with --data.")
    from privet.auditing.certify import why_not_certifiable
    from privet.auditing.int8 import export_int8

    tasks = [word.strip() for word in utility.split(",") if word.strip()]
    command = shlex.join(["privet", *sys.argv[1:]])
    made, moved = export_int8(
        folder,
        release,
        data,
        tasks,
        battery=battery,
        schema=schema,
        seed=seed,
        device=device,
        command=command,
    )
    for one in moved:
        out.print(f"{one.line}.", markup=False)
    again = (
        f"It can be certified again:  privet certify {folder} --data {shlex.quote(data)}"
        if not why_not_certifiable(made)
        else ""
    )
    out.print(
        f"No certificate of the float release holds for this one. {again}".rstrip(), markup=False
    )
    out.print(f"The int8 release is in {folder}.", markup=False)


def _triton(release: Path, models: Path, name: str, force: bool) -> None:
    from privet.release.runtime import Runnable
    from privet.release.triton import export_triton

    made = export_triton(release, models, name, force)
    out.print(f"The model is in {made}; give the server {models}.", markup=False)
    if Runnable.load(release).noise is not None:
        out.print(
            "It takes the noise as an input: whoever calls the server draws the noise, and a"
            " server that keeps it can take it off.",
            markup=False,
        )


def mount(app: typer.Typer) -> None:
    app.command(
        epilog=(
            "Example:  privet export hedge --int8 --data portraits --utility smiling --out"
            " hedge-int8;  privet export hedge --triton --out models"
        )
    )(export)
