"""The command line: one function per verb, no logic. What a verb needs is imported when it runs."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.console import Console

from privet.cli.bench import mount as mount_bench
from privet.cli.exchange import mount as mount_exchange
from privet.cli.export import mount as mount_export
from privet.cli.language import lm_app
from privet.cli.words import mount as mount_words
from privet.core.errors import PrivetError, missing_package
from privet.core.settings import names
from privet.core.version import __version__

# Threads that wait by spinning cost a factor of ten where another program wants the same cores.
# Read when torch is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
data_app = typer.Typer(
    no_args_is_help=True, help="Look at data before anything is learned from it."
)
app.add_typer(data_app, name="data")

# Results go to standard output; progress and errors to standard error.
out = Console(soft_wrap=True, highlight=False)

Data = Annotated[
    str,
    typer.Option(
        "--data",
        help="portraits, toy:gaussian, celeba:DIR, a table (parquet, CSV), a folder of pictures",
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option(
        "--schema", help="TOML file that says what the columns are, where the guess is wrong"
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
Out = Annotated[Path, typer.Option("--out", help="Folder for the results")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is in --out already")]


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"privet {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Say which version this is", callback=_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Learn releases that hide private attributes, attack them, and see in plain numbers what is
    left."""


@app.command(epilog="Example:  privet demo")
def demo(
    folder: Out = Path("privet-demo"),
    seed: Seed = 0,
    device: Device = "auto",
    records: Annotated[
        int,
        typer.Option(min=400, help="Portraits to draw: fewer are quicker, with wider intervals"),
    ] = 4000,
) -> None:
    """The whole story on built-in data: learn a release, attack it, write a report. About two
    minutes."""
    from privet.studies.demo import demo as run

    out.print(f"Open the report:  {run(folder, seed, device, records)}", markup=False)
    privet = shlex.quote(sys.argv[0])
    out.print(
        "With a table of your own, whose column SECRET is to be hidden and TASK to stay readable:\n"
        f"  {privet} data show FILE.csv\n"
        f"  {privet} learn hedge --data FILE.csv --private SECRET --utility TASK --out r\n"
        f"  {privet} audit r --data FILE.csv --utility TASK --out a",
        markup=False,
    )


@data_app.command("show", epilog="Example:  privet data show portraits:4000")
def data_show(
    spec: Annotated[str, typer.Argument(help="What to read, as for --data")],
    private: Annotated[str, typer.Option(help="What is to be hidden: checked first")] = "",
    utility: Annotated[str, typer.Option(help="The tasks: checked first")] = "",
    schema: SchemaFile = None,
) -> None:
    """What is wrong with the data; sizes, people, attributes and their rates, and how many bits
    attributes share with each other."""
    from privet.core.settings import names
    from privet.data.show import show
    from privet.data.sources import load

    out.print(show(load(spec, schema), names(private), names(utility), out.width))


@app.command("methods", epilog="Example:  privet methods")
def list_methods() -> None:
    """Every way to privatize: what it takes, whether it wants a task, and what its budget turns."""
    from privet.methods.registry import table

    out.print(table())


@app.command(
    epilog=(
        "Example:  privet learn tiprdc --data portraits --private beard --budget 0.9 --set"
        " width=0.25 --out tiprdc"
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
        typer.Option(help="Bound to aim at, of methods whose releases are certified: 0.58"),
    ] = None,
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
    seed: Seed = 0,
    device: Device = "auto",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint in --out, if there is one")
    ] = False,
    accept: Annotated[
        str,
        typer.Option(
            metavar="CHECK",
            help="Go on although a check of the data fails: duplicates, label or people",
        ),
    ] = "",
    force: Force = False,
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
            settings=[*(settings or []), *([f"known={known}"] if known else [])],
            without=without,
            schema=schema,
            seed=seed,
            run=how,
        )
        if not first():
            return
    again = shlex.join(["--data", data, *(["--schema", str(schema)] if schema else [])])
    out.print(
        f"The release is in {folder}. Attack it:  privet audit {folder} {again} --utility TASK"
        f" --out {folder}-audit",
        markup=False,
    )


@app.command(
    epilog=(
        "Examples:  privet audit hedge --data portraits --utility smiling --out hedge-audit    "
        "privet audit theirs.onnx --data photos/ --private gender --out a    "
        "privet audit released.parquet --private gender --utility smiling --out a"
    )
)
def audit(
    release: Annotated[
        Path,
        typer.Argument(
            help=(
                "Folder of a release, an ONNX file, or a parquet file of released records with"
                " labels"
            )
        ),
    ],
    folder: Out,
    data: Annotated[
        str | None,
        typer.Option("--data", help="Records to attack with, as for learn; not for a parquet file"),
    ] = None,
    private: Annotated[
        str,
        typer.Option(help="What must not be readable, where the release's own card does not say"),
    ] = "",
    utility: Annotated[str, typer.Option(help="Tasks to try on the released records")] = "",
    battery: Annotated[
        str,
        typer.Option(
            help="quick, lean, standard or strong: how many attackers, how large, how well tuned"
        ),
    ] = "quick",
    card: Annotated[
        Path | None, typer.Option(help="JSON file that says how an ONNX file takes its records")
    ] = None,
    raw_from: Annotated[
        Path | None,
        typer.Option(help="audit.json of the same data, to take the figures on raw records from"),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(
            help="Column of texts: released as they are, or what vectors beside them stand for"
        ),
    ] = None,
    keep: Annotated[
        str,
        typer.Option(help="Columns that leave beside released records: attacked with them"),
    ] = "",
    schema: SchemaFile = None,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """Attack a release with people it has not seen; write audit.json, report.html and
    summary.md."""
    from privet.commands.audit import FileOptions
    from privet.commands.audit import audit as run
    from privet.reporting.certificate import headline
    from privet.reporting.sentences import (
        inversion_sentences,
        looks_sentence,
        louder,
        records,
        sentence,
    )

    result = run(
        release,
        data,
        utility,
        battery=battery,
        private=private,
        out=folder,
        files=FileOptions(schema, card, text),
        raw_from=raw_from,
        seed=seed,
        device=device,
        keep=keep,
    )
    for check in result.checks:
        out.print(f"Look at the data first: {check}", markup=False)
    if looked := looks_sentence(result):
        out.print(looked, markup=False)
    noun = records(result)
    for reading in result.readings:
        said = [sentence(reading, noun), *louder(reading, noun), headline(result, reading)]
        out.print(f"{reading.attribute}: {' '.join(filter(None, said))}", markup=False)
    for line in inversion_sentences(result.rebuilt):
        out.print(line, markup=False)
    out.print(f"The report:  {folder / 'report.html'}", markup=False)


@app.command(
    epilog=(
        "Examples:  privet certify hedge --data portraits    "
        "privet certify hedge --data portraits --target 0.58 --utility smiling --out hedge58    "
        "privet certify hedge --data new.parquet --new-people --sign key --auditor Ada --out c"
    )
)
def certify(
    release: Annotated[
        Path,
        typer.Argument(
            help="Folder of a release that adds gaussian noise to a code of few numbers"
        ),
    ],
    data: Data,
    folder: Annotated[
        Path | None, typer.Option("--out", help="Folder for certificate.json and certificate.html")
    ] = None,
    confidence: Annotated[float, typer.Option(help="How sure all bounds shall be at once")] = 0.99,
    target: Annotated[
        float | None,
        typer.Option(help="Choose the smallest noise for this bound; the release goes to --out"),
    ] = None,
    utility: Annotated[
        str, typer.Option(help="Tasks to draw beside the bound, at other noise levels too")
    ] = "",
    new_people: Annotated[
        bool,
        typer.Option("--new-people", help="All people of --data are new to the release: use all"),
    ] = False,
    given: Annotated[
        str,
        typer.Option(
            help="Known beside the release: attributes with commas, a+b at once; else the tasks"
        ),
    ] = "",
    records: Annotated[
        str, typer.Option(help="Records of a person that are seen, with commas")
    ] = "2,5",
    sign: Annotated[
        Path | None, typer.Option(metavar="KEYFILE", help="Sign with this key of an auditor")
    ] = None,
    auditor: Annotated[str, typer.Option(help="Name to sign with")] = "",
    schema: SchemaFile = None,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """Say what no adversary can beat, whatever its design: a bound, from people the release has not
    seen."""
    from privet.auditing.signatures import Signer
    from privet.commands.certify import Scope
    from privet.commands.certify import certify as run
    from privet.core.settings import read_numbers
    from privet.reporting.certificate import (
        by_attribute,
        condition_sentences,
        participant_sentence,
        repeated_sentence,
        target_sentence,
    )
    from privet.reporting.sentences import looks_sentence
    from privet.reporting.signers import said_by

    found = run(
        release,
        data,
        utility,
        confidence=confidence,
        target=target,
        out=folder,
        schema=schema,
        scope=Scope(given, read_numbers("--records", records), new_people),
        sign=None if sign is None else Signer(sign, auditor),
        seed=seed,
        device=device,
        command=command_line(),
    )
    for check in found.checks:
        out.print(f"Look at the data first: {check}", markup=False)
    if looked := looks_sentence(found):
        out.print(looked, markup=False)
    for releases in by_attribute(found.certificates).values():
        one = releases[1]
        by = said_by(found, "whoever ran this")
        said = [participant_sentence(one, found.certificates, by), repeated_sentence(releases)]
        out.print(" ".join(filter(None, said)), markup=False)
        for condition in condition_sentences(one, found.certificates):
            out.print(f"  {condition}", markup=False)
    if target is not None:
        out.print(target_sentence(found), markup=False)
    if folder is not None:
        out.print(f"The page:  {folder / 'certificate.html'}", markup=False)


@app.command(
    epilog=(
        "Examples:  privet verify certificate.json hedge    "
        "privet verify certificate.json hedge --data people.parquet --signed"
    )
)
def verify(
    document: Annotated[
        Path,
        typer.Argument(
            metavar="CERTIFICATE", help="certificate.json, audit.json, or the folder that holds it"
        ),
    ],
    release: Annotated[Path, typer.Argument(help="Folder of the release it shall be about")],
    data: Annotated[
        str | None,
        typer.Option("--data", help="The data it was made on: every bound is computed again"),
    ] = None,
    signed: Annotated[bool, typer.Option("--signed", help="It must be signed")] = False,
    key: Annotated[
        str, typer.Option(help="Fingerprint of the key that it must be signed with")
    ] = "",
    schema: SchemaFile = None,
) -> None:
    """Check a certificate or an audit: is it about this release, who signed it, and do its bounds
    come out again? Exit code 0 if it holds, 1 if not, 2 for a mistake."""
    from privet.commands.verify import verify as run

    result = run(document, release, data, schema=schema, signed=signed, key=key)
    for line in result.lines:
        out.print(line, markup=False)
    if not result.ok:
        raise typer.Exit(1)


@app.command("auditor-key", epilog="Example:  privet auditor-key ada.key")
def auditor_key(
    file: Annotated[Path, typer.Argument(help="Where to write the secret key; yours alone")],
) -> None:
    """Make a key to sign audits and certificates with, and say its fingerprint."""
    from privet.commands.verify import make_key

    out.print(f"Make this fingerprint known:  {make_key(file)}", markup=False)


@app.command(epilog="Example:  privet sign hedge-audit --key ada.key --auditor 'Ada Lovelace'")
def sign(
    document: Annotated[
        Path, typer.Argument(help="audit.json, certificate.json, or the folder that holds it")
    ],
    key: Annotated[Path, typer.Option(help="File of the key, as  privet auditor-key  writes it")],
    auditor: Annotated[str, typer.Option(help="Name to sign with")],
) -> None:
    """Sign an audit or a certificate, so that no field of it can be changed unnoticed."""
    from privet.commands.verify import sign as run

    out.print(f"Signed:  {run(document, key, auditor)}", markup=False)


@app.command(
    epilog="Example:  privet gate hedge-audit --max-accuracy beard=0.60 --min-utility smiling=0.85"
)
def gate(
    found: Annotated[
        Path, typer.Argument(metavar="AUDIT", help="audit.json, or the folder that holds it")
    ],
    max_accuracy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A=LIMIT",
            help=(
                "Most balanced accuracy (of a number: variance explained) of the worst adversary,"
                " upper end; repeatable"
            ),
        ),
    ] = None,
    min_utility: Annotated[
        list[str] | None,
        typer.Option(
            metavar="C=LIMIT",
            help="Least balanced accuracy a task must have, lower end of its interval; repeatable",
        ),
    ] = None,
    max_certified: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A=LIMIT",
            help="Most balanced accuracy any adversary can have, certified; repeatable",
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(help="certificate.json to hold instead of the audit's own certificates"),
    ] = None,
    new_people: Annotated[
        bool,
        typer.Option(
            "--new-people",
            help="Rely on certificates from other data: you know that its people are new",
        ),
    ] = False,
    signed: Annotated[bool, typer.Option("--signed", help="What is held must be signed")] = False,
) -> None:
    """Hold an audit against limits, for pipelines: exit code 0 if all hold, 1 if any fails, 2 for a
    wrong word."""
    from privet.auditing.gate import gate as hold
    from privet.auditing.gate import parse_limits

    checks = hold(
        found,
        max_accuracy=parse_limits("--max-accuracy", max_accuracy),
        min_utility=parse_limits("--min-utility", min_utility),
        max_certified=parse_limits("--max-certified", max_certified),
        certificate=certificate,
        new_people=new_people,
        signed=signed,
    )
    for one in checks:
        out.print(one.line, markup=False)
    if not all(one.ok for one in checks):
        raise typer.Exit(1)


@app.command(
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
    schema: SchemaFile = None,
    device: Device = "auto",
    ray: Ray = None,
) -> None:
    """Learn and attack methods at several budgets; write the frontier of what leaks against what is
    of use."""
    from privet.commands.compare import compare as run
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


@app.command(
    epilog="Example:  privet maps cloak-smiling cloak-glasses --data photos/ --out maps.html"
)
def maps(
    releases: Annotated[list[Path], typer.Argument(help="Folders of cloak releases, one per task")],
    data: Data,
    page: Annotated[Path, typer.Option("--out", help="The page to write")],
    schema: SchemaFile = None,
) -> None:
    """Draw what each task needs of a record, as cloak has learned it: over pictures, or column by
    column."""
    from privet.studies.noise_maps import write

    write(page, releases, data, schema)
    out.print(f"The maps:  {page}", markup=False)


@app.command(epilog="Example:  privet apply hedge photos/ --out released.parquet")
def apply(
    release: Annotated[Path, typer.Argument(help="Folder of the release")],
    inputs: Annotated[
        list[Path],
        typer.Argument(help="Pictures, a folder of pictures, or one table: parquet, CSV, ..."),
    ],
    target: Annotated[Path, typer.Option("--out", help="A .parquet or .csv file, or a folder")],
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
    ray: Ray = None,
    force: Force = False,
) -> None:
    """Privatize files: only what the release lets through is written.

    Noise is drawn from a secret key that stays here, so releasing a record again gives the same
    numbers. Keys are in $PRIVET_HOME/keys (~/.local/share/privet/keys); privet forget destroys one.
    """
    from privet.commands.apply import apply as run
    from privet.release.apply import ApplyOptions, Per

    written = run(
        release,
        inputs,
        target,
        keep=keep,
        accept=accept,
        audit=judged,
        column=column,
        options=ApplyOptions(
            campaign, id_column, fresh, ordered, cast(Per, per), person, records, force
        ),
        ray=ray,
    )
    out.print(f"Released:  {written}", markup=False)


@app.command(epilog="Example:  privet forget survey-2026")
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


mount_exchange(app)
app.add_typer(lm_app, name="lm")
mount_words(app)
mount_bench(app)
mount_export(app)


def command_line() -> str:
    """The command as it was typed, for cards and pages."""
    return shlex.join(["privet", *sys.argv[1:]])


def _end(number: int, frame: object) -> None:
    sys.exit(128 + number)


def main() -> None:
    """Run a command; a wrong word of the user's gets one sentence and exit code 2."""
    # Whoever is asked to end cleans up, as at Ctrl-C; the exchange's server has its own way.
    signal.signal(signal.SIGTERM, _end)
    try:
        try:
            app()
        except ModuleNotFoundError as error:
            raise missing_package(error) from error
    except PrivetError as error:
        sys.stderr.write(f"privet: {error}\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.stderr.write(
            "privet: stopped. If it was learning, the same command with --resume goes on from the"
            " last checkpoint.\n"
        )
        sys.exit(130)


if __name__ == "__main__":
    main()
