"""A gate passes only what the far end of the interval allows, and says so with its exit code."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from privet.auditing.gate import Check, gate
from privet.auditing.signatures import Signer, make_key, sign
from privet.cli import main as cli
from privet.core.errors import PrivetError
from privet.evidence.certificate.values import Certification
from privet.evidence.figures import (
    VERSION,
    Audit,
    Certified,
    CertifiedGroup,
    Figure,
    Finding,
    Reading,
)
from privet.evidence.what_leaves import WhatLeaves

SHARES = st.floats(0, 1)
INTERVALS = st.tuples(SHARES, SHARES, SHARES).map(sorted)
GATES = Path(__file__).parents[2] / "docs" / "gate.md"
unhurried = settings(deadline=None)  # a busy machine is no failure


def check(
    found: Audit,
    most: dict[str, float],
    least: dict[str, float],
    certified: dict[str, float] | None = None,
) -> list[Check]:
    return gate(found, max_accuracy=most, min_utility=least, max_certified=certified)


def figure(low: float, value: float, high: float, n: int = 2000) -> Figure:
    return Figure(value, low, high, n, 0.5)


def reading(attribute: str, role: Any, *figures: Figure, best: int = 0) -> Reading:
    plain = figure(0, 0.01, 0.02)  # plain accuracy is not what is held against a limit
    found = tuple(
        Finding(
            "mlp",
            "released",
            0.5,
            f,
            figure(0.98, 0.99, 1) if role == "utility" else plain,
            None,
            1.0,
        )
        for f in figures
    )
    return Reading(attribute, role, ("no", "yes"), found, (), best, 0)


def audit(*readings: Reading) -> Audit:
    return Audit(
        {"method": "TIPRDC"}, {"name": "portraits", "modality": "image"}, "quick", readings, (), 1.0
    )


def held(role: str, found: Figure, limit: float) -> bool:
    limits = ({"a": limit}, {}) if role == "private" else ({}, {"a": limit})
    (one,) = check(audit(reading("a", role, found)), *limits)
    return one.ok


@unhurried
@given(INTERVALS, SHARES)
def test_the_far_end_decides(ends: list[float], limit: float) -> None:
    low, value, high = ends
    assert held("private", figure(low, value, high), limit) == (high <= limit)
    assert held("utility", figure(low, value, high), limit) == (low >= limit)


@unhurried
@given(st.tuples(SHARES, SHARES, SHARES), SHARES)
def test_no_figure_beyond_the_limit_passes_whatever_its_interval_claims(
    ends: tuple[float, float, float], limit: float
) -> None:
    low, value, high = ends
    if held("private", figure(low, value, high), limit):
        assert high <= limit and value <= limit
    if held("utility", figure(low, value, high), limit):
        assert low >= limit and value >= limit


@unhurried
@given(INTERVALS, st.tuples(SHARES, SHARES).map(sorted), st.sampled_from(["private", "utility"]))
def test_a_stricter_limit_never_passes_more(
    ends: list[float], limits: list[float], role: str
) -> None:
    strict, loose = limits if role == "private" else reversed(limits)
    assert held(role, figure(*ends), strict) <= held(role, figure(*ends), loose)


@unhurried
@given(INTERVALS, SHARES, st.sampled_from(["private", "utility"]))
def test_the_line_says_what_was_decided(ends: list[float], limit: float, role: str) -> None:
    given_limits = ({"a": limit}, {}) if role == "private" else ({}, {"a": limit})
    (one,) = check(audit(reading("a", role, figure(*ends))), *given_limits)
    assert one.line.startswith("ok      a: " if one.ok else "FAILED  a: ") and "\n" not in one.line
    low, high = map(float, re.findall(r"([\d.]+) to ([\d.]+)", one.line)[0])
    assert low / 100 <= ends[0] + 1e-9 and ends[2] <= high / 100 + 1e-9


NAN = float("nan")
VOID = [figure(0, NAN, 1, 0), figure(0, NAN, 1), figure(NAN, 0.5, NAN), figure(0, 0.5, 1, 0)]


@pytest.mark.parametrize(
    "found",
    [*[(f,) for f in VOID], ()],
    ids=["empty", "no value", "no interval", "no records", "no adversary"],
)
@pytest.mark.parametrize("role,limit", [("private", 1.0), ("utility", 0.0)])
def test_what_was_not_measured_never_passes(
    found: tuple[Figure, ...], role: str, limit: float
) -> None:
    limits = ({"a": limit}, {}) if role == "private" else ({}, {"a": limit})
    (one,) = check(audit(reading("a", role, *found)), *limits)
    assert not one.ok and "not measured" in one.line


def test_the_adversary_that_was_strongest_on_select_is_the_one_held() -> None:
    two = (figure(0.5, 0.51, 0.52), figure(0.7, 0.71, 0.72))
    limits: tuple[dict[str, float], dict[str, float]] = ({"a": 0.6}, {})
    assert [
        check(audit(reading("a", "private", *two, best=best)), *limits)[0].ok for best in (0, 1)
    ] == [True, False]
    assert not check(audit(reading("a", "private", *two, best=7)), *limits)[0].ok


@unhurried
@given(INTERVALS, SHARES)
def test_undeclared_attributes_are_held_like_private_ones(ends: list[float], limit: float) -> None:
    whole = replace(audit(BEARD), undeclared=(reading("hat", "undeclared", figure(*ends)),))
    (one,) = check(whole, {"hat": limit}, {})
    assert one.ok == (ends[2] <= limit) and "upper end" in one.line


@unhurried
@given(st.tuples(*[st.floats(-1, 1)] * 3).map(sorted), SHARES)
def test_of_a_number_the_variance_explained_is_held(ends: list[float], limit: float) -> None:
    number = replace(reading("age", "private", figure(*ends)), values=())
    (one,) = check(audit(number), {"age": limit}, {})
    assert one.ok == (ends[2] <= limit) and "share of variance explained" in one.line


def test_averaged_releases_are_not_held() -> None:
    often = Finding(
        "mlp",
        "averaged",
        0.99,
        figure(0.98, 0.99, 1),
        figure(0.98, 0.99, 1),
        None,
        1.0,
        releases=16,
    )
    assert check(audit(replace(BEARD, others=(often,))), {"beard": 0.6}, {})[0].ok


BEARD = reading("beard", "private", figure(0.55, 0.57, 0.59))
SMILING = reading("smiling", "utility", figure(0.86, 0.88, 0.90))


@pytest.fixture
def room(tmp_path: Path) -> Path:
    replace(
        audit(BEARD, SMILING), undeclared=(reading("hat", "undeclared", figure(0.5, 0.6, 0.7)),)
    ).save(tmp_path / "audit.json")
    (tmp_path / "words.json").write_text("what")
    (tmp_path / "list.json").write_text("[1, 2]")
    (tmp_path / "card.json").write_text(json.dumps({"method": "TIPRDC", "version": VERSION}))
    (tmp_path / "newer.json").write_text(json.dumps({"version": 99}))
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\xff\xfe")
    (tmp_path / "empty").mkdir()
    return tmp_path


GOOD = ["--max-accuracy", "beard=0.60"]
TABLE = [
    ("no limit", ["audit.json"], "without a limit"),
    ("unknown private", ["audit.json", "--max-accuracy", "bread=0.6"], "did you mean 'beard'"),
    ("unknown task", ["audit.json", "--min-utility", "smilling=0.6"], "did you mean 'smiling'"),
    (
        "a task as private",
        ["audit.json", "--max-accuracy", "smiling=0.6"],
        "is a task, not a private attribute",
    ),
    (
        "a private one as task",
        ["audit.json", "--min-utility", "beard=0.6"],
        "is private, not a task",
    ),
    (
        "an undeclared one as task",
        ["audit.json", "--min-utility", "hat=0.6"],
        "is not a task in this audit: --max-accuracy",
    ),
    (
        "unknown, undeclared known",
        ["audit.json", "--max-accuracy", "hut=0.6"],
        "did you mean 'hat'",
    ),
    ("above 1", ["audit.json", "--max-accuracy", "beard=60"], "write 0.6 for 60 in 100"),
    ("below 0", ["audit.json", "--max-accuracy", "beard=-0.1"], "between 0 and 1"),
    (
        "not a number",
        ["audit.json", "--max-accuracy", "beard=low"],
        "between 0 and 1, and not 'low'",
    ),
    ("nan", ["audit.json", "--min-utility", "smiling=nan"], "between 0 and 1"),
    ("infinite", ["audit.json", "--max-accuracy", "beard=inf"], "between 0 and 1"),
    ("no =", ["audit.json", "--max-accuracy", "beard"], "ATTRIBUTE=LIMIT"),
    ("no name", ["audit.json", "--max-accuracy", "=0.6"], "ATTRIBUTE=LIMIT"),
    ("no value", ["audit.json", "--max-accuracy", "beard="], "between 0 and 1"),
    ("twice", ["audit.json", *GOOD, "--max-accuracy", "beard=0.9"], "twice"),
    ("one good, one wrong", ["audit.json", *GOOD, "--min-utility", "smiling=2"], "between 0 and 1"),
    ("no such file", ["nowhere.json", *GOOD], "Cannot read the audit"),
    ("folder without audit", ["empty", *GOOD], "audit.json"),
    ("not JSON", ["words.json", *GOOD], "not an audit"),
    ("other JSON", ["list.json", *GOOD], "not an audit"),
    ("a card", ["card.json", *GOOD], "not an audit"),
    ("a later layout", ["newer.json", *GOOD], "version 99"),
    ("not text", ["picture.png", *GOOD], "not an audit"),
]


@pytest.mark.parametrize("words,said", [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_a_wrong_word_gets_one_sentence(room: Path, words: list[str], said: str) -> None:
    result = CliRunner().invoke(cli.app, ["gate", str(room / words[0]), *words[1:]])
    assert isinstance(result.exception, PrivetError), (result.exception, result.output)
    error = str(result.exception)
    assert said in error and "\n" not in error and not result.output, (
        "nothing is called ok before all words are understood"
    )


@pytest.mark.parametrize(
    "words,code,said",
    [
        (
            ["--max-accuracy", "beard=0.60", "--min-utility", "smiling=0.85"],
            0,
            ["HELD", "ok", "ok"],
        ),
        (
            ["--max-accuracy", "beard=0.58", "--min-utility", "smiling=0.85"],
            1,
            ["NOT", "FAILED", "ok"],
        ),
        (["--min-utility", "smiling=0.87"], 1, ["NOT", "FAILED"]),
        (["--max-accuracy", "bread=0.60"], 2, []),
        (["--max-accuracy"], 2, []),
    ],
    ids=["all hold", "one fails", "a task fails", "wrong word", "no word"],
)
@pytest.mark.parametrize("given_as", ["audit.json", "."], ids=["file", "folder"])
def test_exit_codes(
    room: Path, monkeypatch, capsys, given_as: str, words: list[str], code: int, said: list[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["privet", "gate", str(room / given_as), *words])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert (stopped.value.code or 0) == code
    printed = capsys.readouterr()
    assert [line.split()[0] for line in printed.out.splitlines()] == said
    assert bool(printed.err) == (code == 2)


def test_names_are_taken_literally(tmp_path: Path) -> None:
    odd = replace(BEARD, attribute="[red]a=b[/red]")
    audit(odd).save(tmp_path / "audit.json")
    result = CliRunner().invoke(
        cli.app, ["gate", str(tmp_path), "--max-accuracy", "[red]a=b[/red]=0.6"]
    )
    assert result.exit_code == 0 and "\nok      [red]a=b[/red]: " in result.output


def test_help_says_what_is_compared_and_has_an_example() -> None:
    said = " ".join(
        re.sub(
            r"[│\n]",
            " ",
            CliRunner().invoke(cli.app, ["gate", "--help"], env={"COLUMNS": "200"}).output,
        ).split()
    )
    assert "privet gate" in said.split("Example")[1]
    assert "balanced accuracy" in said and "upper end" in said and "lower end" in said


def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    whole = audit(replace(BEARD, attribute="gender"), SMILING)
    replace(whole, certificates=(certified(0.58, "gender"),)).save(tmp_path / "audit.json")
    commands = re.findall(r"privet (gate audit .*)", GATES.read_text())
    assert len(commands) == 3, "two at the top, one in the workflow"
    for command in commands:
        verb, _, *rest = shlex.split(command)
        assert CliRunner().invoke(cli.app, [verb, str(tmp_path), *rest]).exit_code == 0


def certified(bound: float | None, attribute: str = "beard", releases: int = 1) -> Certified:
    why = "" if bound is not None else "the release adds no noise"
    return Certified(
        attribute,
        ("no", "yes"),
        bound,
        None,
        (0.5, 0.5),
        None,
        0.5,
        0.1,
        0.99,
        (90, 90),
        2,
        0.4,
        releases,
        "smoothed",
        why,
    )


@unhurried
@given(st.floats(0.55, 1), SHARES)
def test_a_certified_bound_is_held(bound: float, limit: float) -> None:
    (one,) = check(
        replace(audit(BEARD), certificates=(certified(bound), certified(1.0, releases=4))),
        {},
        {},
        {"beard": limit},
    )
    assert one.ok == (bound <= limit) and one.line.startswith(
        "ok      beard: cert" if one.ok else "FAILED  beard: cert"
    )


def test_what_is_not_certified_never_passes() -> None:
    for found, why in (
        ((certified(None),), "adds no noise"),
        ((), "no certificate"),
        ((replace(certified(0.6), given=("hat",)),), "no certificate"),
    ):
        (one,) = check(replace(audit(BEARD), certificates=found), {}, {}, {"beard": 1.0})
        assert not one.ok and "not certified" in one.line and why in one.line


@pytest.mark.parametrize(
    "name,limit,said",
    [
        ("bread", 0.6, "did you mean 'beard'"),
        ("smiling", 0.6, "is a task"),
        ("beard", 60.0, "write 0.6 for 60"),
    ],
)
def test_wrong_words_about_certificates(name: str, limit: float, said: str) -> None:
    task = reading("smiling", "utility", figure(0.8, 0.85, 0.9))
    with pytest.raises(PrivetError, match=said):
        check(replace(audit(BEARD, task), certificates=(certified(0.55),)), {}, {}, {name: limit})


# Doubts: a certificate that does not speak of all that leaves, or that something speaks against.


def doubted(found: Audit, **rest: Any) -> str:
    """What the gate says of a certificate that any limit allows, and that it must not pass."""
    (one,) = gate(found, max_certified={"beard": 1.0}, **rest)
    assert not one.ok
    return one.line


def with_certificates(*found: Certified, leaves: WhatLeaves | None = None) -> Audit:
    return replace(audit(BEARD), certificates=found, leaves=leaves or WhatLeaves())


def test_an_attacker_above_the_certificate_fails() -> None:
    """BEARD is read at 57 with the lower end at 55."""
    assert gate(with_certificates(certified(0.55)), max_certified={"beard": 1.0})[0].ok
    assert "an attacker reads 57.0" in doubted(with_certificates(certified(0.549)))


def test_people_who_may_not_be_new_fail() -> None:
    note = "The release was learned on other data (elsewhere): this holds only if ..."
    other = with_certificates(replace(certified(0.6), note=note))
    assert "nobody checked" in doubted(other)
    assert gate(other, max_certified={"beard": 0.6}, new_people=True)[0].ok


def test_records_that_were_left_out_fail() -> None:
    note = "12 records of 9 people contradict most of their person's labels and were left out."
    assert "left out" in doubted(with_certificates(replace(certified(0.6), note=note)))


@pytest.mark.parametrize(
    "leaves,said",
    [
        (WhatLeaves(records=None), "nothing limits how many records"),
        (WhatLeaves(records=6), "of 6 records of a person"),
        (WhatLeaves(releases=5), "5 releases of each"),
        (WhatLeaves(records=5, releases=4), "of 5 records of a person and 4 releases"),
        (WhatLeaves(kept=("hat",)), "with hat beside it"),
        (WhatLeaves(kept=("hat",), asked=("job",)), "with hat and job beside it"),
        (WhatLeaves(kept=("job",), records=5), "together"),
        (WhatLeaves(made_of=None), "nothing limits how many records of a person its release"),
        (WhatLeaves(made_of=3), "of one release of 3 records of a person"),
        (WhatLeaves(made_of=3, releases=2), "each made of several records"),
    ],
    ids=lambda value: "" if isinstance(value, str) else repr(value),
)
def test_more_leaves_than_was_certified(leaves: WhatLeaves, said: str) -> None:
    many = [certified(0.6), certified(0.7, releases=4), replace(certified(0.8), records=5)]
    assert said in doubted(with_certificates(*many, leaves=leaves))


def test_what_leaves_decides_which_bound_is_held() -> None:
    group = CertifiedGroup("job", "clerk", 0.9, 0.8, 0.1, (50, 50))
    small = CertifiedGroup("job", "nurse", None, NAN, NAN, (5, 5), "too few people")
    many = [
        certified(0.6),
        certified(0.7, releases=4),
        replace(certified(0.65), records=2),
        replace(certified(0.8), records=5),
        replace(certified(0.62), records=5, per="person"),
        replace(certified(0.5), weighing="records"),
        replace(certified(0.75), given=("job",), groups=(group, small)),
    ]
    for leaves, most in (
        (WhatLeaves(), 0.6),
        (WhatLeaves(releases=3), 0.7),
        (WhatLeaves(records=2), 0.65),
        (WhatLeaves(records=4), 0.8),
        (WhatLeaves(kept=("job",)), 0.9),
        (WhatLeaves(made_of=5), 0.62),
    ):
        held = with_certificates(*many, leaves=leaves)
        ok = [gate(held, max_certified={"beard": most + x})[0].ok for x in (-1e-9, 0)]
        assert ok == [False, True], leaves


def test_columns_that_were_not_judged_fail() -> None:
    beside = replace(audit(BEARD), leaves=WhatLeaves(kept=("hat",)))
    (one,) = gate(beside, max_accuracy={"beard": 1.0})
    assert not one.ok and "not measured with hat beside it" in one.line
    hat = Finding(
        "trees",
        "released and kept",
        0.8,
        figure(0.78, 0.8, 0.82),
        figure(0.9, 0.9, 0.9),
        None,
        1.0,
        columns=("hat",),
    )
    judged = replace(beside, readings=(replace(BEARD, others=(hat,)),))
    ok = [gate(judged, max_accuracy={"beard": limit})[0].ok for limit in (0.6, 0.81, 0.82)]
    assert ok == [False, False, True]


def test_a_certificate_beside_an_audit_is_of_the_same_release_and_data() -> None:
    release, data = {"private": ["beard"], "sha256": {"graph": "g"}}, {"fingerprint": "f"}
    own = replace(audit(BEARD), release=release, data=data)
    beside = Certification(release, data, (certified(0.6),), 0.0)
    assert gate(own, certificate=beside, max_certified={"beard": 0.6})[0].ok
    other_data = replace(beside, data={"fingerprint": "other"})
    assert "other data than the audit" in doubted(own, certificate=other_data)
    other_release = replace(beside, release={"private": ["beard"], "sha256": {"graph": "h"}})
    assert "another release" in doubted(own, certificate=other_release)
    assert "above" in doubted(own, certificate=replace(beside, certificates=(certified(0.5),)))


def test_signed_asks_for_a_signature_that_is_right(tmp_path: Path) -> None:
    value = Certification({"private": ["beard"]}, {}, (certified(0.6),), 0.0)
    limit = {"max_certified": {"beard": 0.7}, "signed": True}
    first, second = gate(value, **limit)
    assert not first.ok and "not signed" in first.line and second.ok
    make_key(tmp_path / "key")
    signed = sign(value, Signer(tmp_path / "key", "Ada"))
    signed.save(tmp_path / "certificate.json")
    assert all(check.ok for check in gate(tmp_path, **limit))
    text = (tmp_path / "certificate.json").read_text()
    (tmp_path / "certificate.json").write_text(text.replace("0.6,", "0.55,", 1))
    assert "changed since" in gate(tmp_path, **limit)[0].line


def test_a_certificate_is_held_as_a_value_a_file_or_a_folder(tmp_path: Path) -> None:
    value = Certification({"private": ["beard"]}, {}, (certified(0.55),), 0.0)
    value.save(tmp_path / "certificate.json")
    for found in (value, str(tmp_path), tmp_path / "certificate.json"):
        held = [gate(found, max_certified={"beard": limit})[0].ok for limit in (0.54, 0.56)]
        assert held == [False, True]
    audit(BEARD).save(tmp_path / "audit.json")
    (one,) = gate(tmp_path, max_accuracy={"beard": 1.0})
    assert one.ok, "an audit in the same folder comes first"
