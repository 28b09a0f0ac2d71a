"""Learning a release and applying it. One function per verb, no logic. What a verb needs
is imported when it runs."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, cast

import typer

from privet.cli.options import (
    Data,
    Device,
    Force,
    Log,
    Out,
    People,
    Ray,
    SchemaFile,
    Seed,
    SkipBroken,
    command_line,
    layout,
    out,
)

verbs = typer.Typer()


@verbs.command(epilog="Example:  privet demo")
def demo(
    folder: Out = Path("privet-demo"),
    seed: Seed = 0,
    device: Device = "auto",
    records: Annotated[
        int,
        typer.Option(min=400, help="Portraits to draw: fewer are quicker, with wider intervals"),
    ] = 4000,
    pictures: Annotated[
        bool,
        typer.Option("--pictures", help="A third release, of faces drawn anew: minutes more"),
    ] = False,
) -> None:
    """The whole story on built-in data: learn a release, attack it, write a report. About two
    minutes."""
    from privet.studies.demo import demo as run

    page = run(folder, seed, device, records, pictures)
    out.print(f"Open the report:  {page}", markup=False)
    privet = shlex.quote(sys.argv[0])
    out.print(
        "With a table of your own, whose column SECRET is to be hidden and TASK to stay readable:\n"
        f"  {privet} data show FILE.csv\n"
        f"  {privet} learn hedge --data FILE.csv --private SECRET --utility TASK --out r\n"
        f"  {privet} audit r --data FILE.csv --utility TASK --out a",
        markup=False,
    )


@verbs.command("methods", epilog="Example:  privet methods")
def list_methods() -> None:
    """Every way to privatize: what it takes, whether it wants a task, and what its budget turns."""
    from privet.methods.registry import table

    out.print(table())


@verbs.command(
    epilog=(
        "Examples:  privet learn tiprdc --data portraits --private beard --budget 0.9 --set"
        " width=0.25 --out tiprdc    "
        "privet learn veil --data portraits --private beard --target 0.6 --out veil60"
    )
)
def learn(
    method: Annotated[
        str, typer.Argument(help="hedge, tiprdc, gap, ...:  privet methods  lists them all")
    ],
    data: Data,
    private: Annotated[
        str, typer.Option(help="What to hide: one attribute, or several with commas")
    ],
    folder: Out,
    utility: Annotated[
        str,
        typer.Option(
            help="Tasks to keep possible, for methods that take tasks; never part of the input"
        ),
    ] = "",
    budget: Annotated[
        float | None,
        typer.Option(help="How much privacy for how much use; its meaning is the method's"),
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(
            help="What an attacker may read at most: a bound to aim at (hedge, codebook, tree), "
            "else the dial is searched for it: 0.6"
        ),
    ] = None,
    battery: Annotated[
        str, typer.Option(help="Who attacks in such a search: quick, lean, standard or strong")
    ] = "standard",
    known: Annotated[
        str, typer.Option(help="Attributes that an adversary knows beside the release: aim there")
    ] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Another setting; repeatable"),
    ] = None,
    without: Annotated[
        str, typer.Option(help="Table columns to leave out of the release's input")
    ] = "",
    schema: SchemaFile = None,
    skip_broken: SkipBroken = False,
    people: People = None,
    seed: Seed = 0,
    device: Device = "auto",
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on from the checkpoint or search in --out, if any"),
    ] = False,
    accept: Annotated[
        str,
        typer.Option(
            metavar="CHECK",
            help="Go on although a check of the data fails: duplicates, label or people",
        ),
    ] = "",
    force: Force = False,
    log: Log = None,
    checkpoint_rounds: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Learn a release from the fit part of the data and write it to a folder."""
    from privet.commands.learn import learn as run
    from privet.core.settings import names
    from privet.train.distributed import first, joined
    from privet.train.game import Run

    with joined(method, device, folder) as (own, where):
        how = Run(
            where,
            resume,
            own,
            rounds_between=checkpoint_rounds,
            command=command_line(),
            accept=tuple(names(accept)),
            force=force,
        )
        run(
            method,
            data,
            private,
            utility,
            out=where,
            budget=budget,
            target=target,
            battery=battery,
            settings=[*(settings or []), *([f"known={known}"] if known else [])],
            without=without,
            schema=layout(schema, skip_broken, people),
            seed=seed,
            run=how,
            log=log,
        )
        if not first():
            return
    again = shlex.join(["--data", data, *(["--schema", str(schema)] if schema else [])])
    out.print(
        f"The release is in {folder}. Attack it:  privet audit {folder} {again} --utility TASK"
        f" --out {folder}-audit",
        markup=False,
    )


@verbs.command(
    epilog="Examples:  privet apply hedge photos/ --out released.parquet    or, of a veil,  "
    "privet apply veil photos/ --as picture --out shared/    or, of a large table,  "
    "privet apply hedge 'people/*.parquet' --id person --parts --out s3://bucket/shared"
)
def apply(
    release: Annotated[Path, typer.Argument(help="Folder of the release")],
    inputs: Annotated[
        list[str],
        typer.Argument(
            help="Pictures, a folder of pictures, or one table: parquet, CSV, ...; with --parts "
            "parquet files, a folder of them, a pattern in quotes, or s3://..."
        ),
    ],
    target: Annotated[
        str,
        typer.Option("--out", help="A .parquet or .csv file, or a folder; with --parts also s3://"),
    ],
    form: Annotated[
        str | None,
        typer.Option(
            "--as",
            help="Write records in their own form, where the release has one: picture (PNG files), "
            "row (the same columns and units), vector, window, or record for any of them",
        ),
    ] = None,
    keep: Annotated[
        str,
        typer.Option(
            help="Columns to write beside the released records, which  privet audit --keep  has "
            "judged; never a private one"
        ),
    ] = "",
    accept: Annotated[
        str, typer.Option(help="Columns of --keep to write all the same, whatever they tell")
    ] = "",
    judged: Annotated[
        Path | None,
        typer.Option(
            "--audit", help="The audit that judged them; else one in the release's folder"
        ),
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="The column that holds the picture, text or window")
    ] = None,
    campaign: Annotated[
        str | None,
        typer.Option(
            help="Whose key the noise is drawn with: the same record gets the same numbers in the "
            "same campaign. Without it, the release has a key of its own"
        ),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="The column that tells records with the same content apart. Without it, a row's "
            "number in the file or the name of a picture's file; name one where rows may move",
        ),
    ] = None,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Draw noise that nobody can repeat; whoever sees many releases of a record "
            "averages it away",
        ),
    ] = False,
    ordered: Annotated[
        bool,
        typer.Option(
            "--ordered",
            help="Keep the order of the records, which can tell whose they are; else they are "
            "shuffled",
        ),
    ] = False,
    per: Annotated[
        str,
        typer.Option(
            help="record, or person: one release per person, the mean code of the person's records "
            "with noise added once"
        ),
    ] = "record",
    person: Annotated[
        str | None,
        typer.Option(
            help="With --per person, the column that says whose a record is; else person or author"
        ),
    ] = None,
    records: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="With --per person, how many records of a person are used at most; those of the "
            "certificate, where it was made for so many",
        ),
    ] = None,
    in_parts: Annotated[
        bool,
        typer.Option(
            "--parts",
            help="Write a folder of parquet parts with a manifest of their hashes; a part tells "
            "which input its records are from",
        ),
    ] = False,
    rows_per_part: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="With --parts, rows of a part, rounded up to a multiple of 256; else about 256 MB "
            "of released numbers",
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="With --parts, go on: parts that are done are kept"),
    ] = False,
    ray: Ray = None,
    force: Force = False,
) -> None:
    """Privatize files: only what the release lets through is written.

    Noise is drawn from a secret key that stays here, so releasing a record again gives the same
    numbers. Keys are in $PRIVET_HOME/keys (~/.local/share/privet/keys); privet forget destroys one.
    """
    from privet.commands.apply import apply as run
    from privet.commands.apply import for_recipients
    from privet.core.errors import refuse_if
    from privet.release.apply import ApplyOptions, Per
    from privet.release.own_form import Form
    from privet.release.part_writing import Parts

    refuse_if(
        not in_parts and (resume or rows_per_part is not None),
        "--resume and --rows-per-part go with --parts.",
    )
    written = run(
        release,
        inputs,
        target,
        keep=keep,
        accept=accept,
        audit=judged,
        column=column,
        options=ApplyOptions(
            campaign,
            id_column,
            fresh,
            ordered,
            cast(Per, per),
            person,
            records,
            force,
            cast(Form | None, form),
        ),
        ray=ray,
        parts=Parts(rows_per_part, resume) if in_parts else None,
    )
    out.print(f"Released:  {written}", markup=False)
    if form is None:
        out.print(for_recipients(written, keep), markup=False)


@verbs.command(epilog="Example:  privet forget survey-2026")
def forget(
    campaign: Annotated[str, typer.Argument(help="The campaign's name, or its link")],
) -> None:
    """Destroy the key of a campaign's noise, when the campaign is over.

    Whoever has the key can take the noise off what was released. Without it nobody can, and nobody
    can repeat the release: a record that is released again gets other noise, and whoever sees both
    learns more.
    """
    from privet.release.noise_keys import forget as run

    out.print(
        f"Destroyed:  {run(campaign)}\nNobody can take the noise off what was released any more, or"
        " release a record again with the same noise.",
        markup=False,
    )
