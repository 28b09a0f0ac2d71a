"""Attacking, certifying and checking a release. One function per verb, no logic. What a verb needs
is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privet.cli.options import (
    Data,
    Device,
    Log,
    Out,
    People,
    SchemaFile,
    Seed,
    SkipBroken,
    command_line,
    layout,
    out,
)
from privet.core.settings import names

verbs = typer.Typer()


@verbs.command(
    epilog=(
        "Examples:  privet audit hedge --data portraits --utility smiling --goal 0.60 --out a    "
        "privet audit theirs.onnx --data photos/ --private gender --out a    "
        "privet audit released.parquet --private gender --utility smiling --out a    "
        "privet audit shared/ --private gender --labels people.parquet --by id --out a"
    )
)
def audit(
    release: Annotated[
        str,
        typer.Argument(
            help=(
                "Folder of a release, an ONNX file, or released records with labels: a parquet "
                "file, or the folder or s3:// address that  apply --parts  wrote"
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
    words: Annotated[
        str,
        typer.Option(help="Was this name in it? Words to ask for one by one in those texts"),
    ] = "",
    keep: Annotated[
        str,
        typer.Option(help="Columns that leave beside released records: attacked with them"),
    ] = "",
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Of released records, a parquet file with the private attribute and the tasks, "
            "which are not written with them",
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="With --labels, the column of both that says which is which")
    ] = None,
    goal: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[A=]LIMIT",
            help="What attackers should not exceed, for the verdict: 0.60, or A=0.60; repeatable",
        ),
    ] = None,
    schema: SchemaFile = None,
    skip_broken: SkipBroken = False,
    people: People = None,
    seed: Seed = 0,
    device: Device = "auto",
    log: Log = None,
) -> None:
    """Attack a release with people it has not seen; say first whether it is held; write
    audit.json, report.html and summary.md."""
    from privet.commands.audit import FileOptions
    from privet.commands.audit import audit as run
    from privet.evidence.verdict import parse_goals, verdicts
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
        files=FileOptions(
            layout(schema, skip_broken, people), card, text, labels, by, words=tuple(names(words))
        ),
        raw_from=raw_from,
        seed=seed,
        device=device,
        keep=keep,
        goal=parse_goals(goal or ()),
        log=log,
    )
    for one in verdicts(result):
        out.print(f"{one.word.upper()}  {one.sentence}. {one.goal.sentence}.", markup=False)
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


@verbs.command(
    epilog=(
        "Examples:  privet certify hedge --data portraits    "
        "privet certify hedge --data portraits --target 0.58 --utility smiling --out hedge58    "
        "privet certify hedge --data new.parquet --new-people --sign key --auditor Ada --out c    "
        "privet certify hedge --data 'people/*.parquet' --people 20000"
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
    skip_broken: SkipBroken = False,
    people: People = None,
    seed: Seed = 0,
    device: Device = "auto",
    log: Log = None,
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
        schema=layout(schema, skip_broken, people),
        scope=Scope(given, read_numbers("--records", records), new_people),
        sign=None if sign is None else Signer(sign, auditor),
        seed=seed,
        device=device,
        command=command_line(),
        log=log,
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


@verbs.command(
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


@verbs.command("auditor-key", epilog="Example:  privet auditor-key ada.key")
def auditor_key(
    file: Annotated[Path, typer.Argument(help="Where to write the secret key; yours alone")],
) -> None:
    """Make a key to sign audits and certificates with, and say its fingerprint."""
    from privet.commands.verify import make_key

    out.print(f"Make this fingerprint known:  {make_key(file)}", markup=False)


@verbs.command(epilog="Example:  privet sign hedge-audit --key ada.key --auditor 'Ada Lovelace'")
def sign(
    document: Annotated[
        Path, typer.Argument(help="audit.json, certificate.json, or the folder that holds it")
    ],
    key: Annotated[Path, typer.Option(help="File of the key, as  privet auditor-key  writes it")],
    auditor: Annotated[str, typer.Option(help="Name to sign with")],
    to_publish: Annotated[
        bool,
        typer.Option("--to-publish", help="Without test people's records, as campaigns publish it"),
    ] = False,
) -> None:
    """Sign an audit or a certificate, so that no field of it can be changed unnoticed."""
    from privet.commands.verify import sign as run

    signed = run(document, key, auditor, to_publish=to_publish)
    out.print(f"Signed:  {signed}", markup=False)


@verbs.command(
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
    min_recall: Annotated[
        float | None,
        typer.Option(help="Least recall@10 a search of released vectors must have, lower end"),
    ] = None,
    min_ndcg: Annotated[
        float | None,
        typer.Option(help="Least nDCG@10 a search of released vectors must have, lower end"),
    ] = None,
    max_figure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LIMIT",
            help="Most of another figure, upper end: 'membership auc', 'word alice'; repeatable",
        ),
    ] = None,
    min_figure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LIMIT",
            help="Least of another figure, lower end: recall_at_10_raw_queries; repeatable",
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
    from privet.auditing.gate import parse_limits, verdict_line

    checks = hold(
        found,
        max_accuracy=parse_limits("--max-accuracy", max_accuracy),
        min_utility=parse_limits("--min-utility", min_utility),
        max_certified=parse_limits("--max-certified", max_certified),
        certificate=certificate,
        new_people=new_people,
        signed=signed,
        max_figure=parse_limits("--max-figure", max_figure),
        min_figure=parse_limits("--min-figure", min_figure)
        | ({} if min_recall is None else {"recall_at_10": min_recall})
        | ({} if min_ndcg is None else {"ndcg_at_10": min_ndcg}),
    )
    out.print(verdict_line(checks), markup=False)
    for one in checks:
        out.print(one.line, markup=False)
    if not all(one.ok for one in checks):
        raise typer.Exit(1)
