"""The summary is read by an independent Markdown renderer: names cannot break its tables, figures
are the audit's."""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import replace

import example_audits as example
from hypothesis import example as tried
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from privet.evidence.figures import Audit
from privet.reporting.markdown import summary

NASTY = st.text(
    st.sampled_from("ab |\\`*_[](){}<>#!&;:~$@/\n\r\t-=+.'\"\u2028\u202e\x00é") | st.characters(),
    max_size=12,
)
unhurried = settings(deadline=None)  # a busy machine is no failure


def tables(markdown: str) -> list[list[list[str]]]:
    """Cells as HTML, per table and row, without the head."""
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)
    bodies = re.findall(r"<tbody>(.*?)</tbody>", page, re.S)
    return [
        [
            re.findall(r"<td>(.*?)</td>", row, re.S)
            for row in re.findall(r"<tr>(.*?)</tr>", body, re.S)
        ]
        for body in bodies
    ]


def shown(name: str) -> str:
    """What a reader should see of a name: no control characters, no runs of white space."""
    return " ".join("".join(" " if unicodedata.category(c)[0] == "C" else c for c in name).split())


def test_the_figures_of_both_tables() -> None:
    private, tasks = tables(summary(example.audit()))
    found, raw = example.BEARD.worst.score, example.BEARD.reference.score
    assert (found.value, raw.value) == (0.611, 0.968)
    released = "<strong>61.1</strong> (58.9 to 63.3)"
    assert private == [["beard", "network", released, "96.8 (96.0 to 97.6)", "50.0", "2,000"]]
    assert [row[:2] for row in tasks] == [["smiling", "network"]] and tasks[0][2].startswith(
        "<strong>88.3</strong> ("
    )


def test_method_battery_interval_and_limits_are_said() -> None:
    audit = example.audit()
    said = summary(audit)
    assert said.startswith("## Privet audit: TIPRDC on portraits\n") and said.endswith("\n")
    assert "Clopper-Pearson 95 %" in said and "battery standard" in said
    assert all(limit in said for limit in audit.limits)
    assert [line for line in said.splitlines() if line.startswith("**Limits.**")] == [
        said.splitlines()[-1]
    ]


def test_chance_is_said_exactly_where_the_interval_reaches_it() -> None:
    hidden = example.reading("beard", "private", {"network": 0.505}, {"network": 0.9})
    (row,), _ = tables(summary(example.audit((hidden, example.SMILING))))
    assert row[2].endswith("not distinguishable from guessing")
    assert "not distinguishable" not in summary(example.audit())


@unhurried
@given(NASTY, NASTY, NASTY)
@tried("a|b", "\\|", "<script>alert(1)</script>")
@tried("`|`", "a\n|x|y|\n", "[a](http://b)")
@tried("&#124;", "![p](q)", "**b** _i_ ~~s~~")
def test_no_name_breaks_the_tables(attribute: str, adversary: str, task: str) -> None:
    finding = replace(example.BEARD.worst, adversary=adversary)
    readings = (
        replace(example.BEARD, attribute=attribute, released=(finding,), best=0),
        replace(example.SMILING, attribute=task),
    )
    audit = example.audit(readings, title=attribute)
    audit = replace(
        audit,
        data={**audit.data, "name": task},
        limits=(f"{adversary} was readable.",),
        battery=task,
    )
    plain = tables(summary(example.audit()))
    odd = tables(summary(audit))
    assert (
        [[len(row) for row in rows] for rows in odd]
        == [[len(row) for row in rows] for rows in plain]
        == [[6], [6]]
    )
    assert odd[0][0][2:] == plain[0][0][2:] and odd[1][0][1:] == plain[1][0][1:]
    for cell, name in ((odd[0][0][0], attribute), (odd[0][0][1], adversary), (odd[1][0][0], task)):
        assert "<" not in cell, "markup came through"
        assert html.unescape(cell).replace("@\u200b", "@") == (shown(name) or "(no name)")


def test_what_else_was_found_is_one_line_each() -> None:
    said = summary(example.full())
    (also,) = [line for line in said.splitlines() if "did not list" in line]
    assert "glasses 93.0 (91.8 to 94.2), guessing 50.0, hat 90.8" in also and also.endswith(
        "and 15 more."
    )
    assert "**Re-identification.** Of 280 people, one other picture is enough" in said
    assert (
        "**Membership.** An attacker who guesses" in said and "share of variance explained" in said
    )
    assert [row[0] for row in tables(said)[0]] == ["beard", "age"] and tables(said)[0][1][
        2
    ] == "<strong>31.0</strong> (27.0 to 35.0)"
    quiet = summary(example.audit())
    assert "did not list" not in quiet and "Membership" not in quiet and "variance" not in quiet


@unhurried
@given(NASTY)
@tried("**x**\n\n# y")
def test_no_undeclared_name_breaks_its_line(name: str) -> None:
    audit = replace(
        example.audit(), undeclared=(example.reading(name, "undeclared", {"network": 0.9}, {}),)
    )
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(summary(audit))
    (line,) = re.findall(r"<p><strong>Attributes you.*?</p>", page, re.S)
    assert line.count("<") == 4, "a paragraph and what is strong in it"
    assert (shown(name) or "(no name)") in html.unescape(line).replace("@\u200b", "@")


def test_nobody_is_mentioned() -> None:
    readings = (replace(example.BEARD, attribute="@octocat"), example.SMILING)
    page = html.unescape(MarkdownIt().enable("table").render(summary(example.audit(readings))))
    assert re.search(r"@\w", page) is None and "octocat" in page


def test_missing_things_are_called_missing() -> None:
    unmeasured = tables(summary(example.audit((example.unmeasured(),))))
    assert unmeasured == [[["beard", "network", "not measured", "not measured", "50.0", "0"]]]
    nobody = replace(example.BEARD, released=(), raw=())
    (row,), _ = tables(summary(example.audit((nobody, replace(example.SMILING, raw=())))))
    assert row[1:3] == ["none was run", "not measured"]
    empty = summary(Audit({}, {}, "quick", (), (), 0.0))
    assert (
        "No private attribute was attacked." in empty
        and "No task was tried." in empty
        and "nan" not in empty
    )


def test_certificates_are_one_line_each() -> None:
    lines = summary(example.full()).splitlines()
    assert any(
        line.startswith(
            "**beard.** No adversary who sees one release of one record and knows nothing else"
        )
        and "above 64.5 %" in line
        for line in lines
    )
    assert "**age.** Not certified: one of its values has fewer than two people." in lines
    assert sum("No adversary" in line for line in lines) == 2, "one release of a record"


@unhurried
@given(NASTY)
@tried("**x**\n\n# y")
def test_no_certified_name_breaks_its_line(name: str) -> None:
    audit = replace(
        example.audit(), certificates=(replace(example.certificates()[0], attribute=name),)
    )
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(summary(audit))
    (line,) = [found for found in re.findall(r"<p>.*?</p>", page, re.S) if "No adversary" in found]
    assert line.count("<") == 4, "a paragraph and what is strong in it"
    assert (shown(name) or "(no name)") in html.unescape(line).replace("@\u200b", "@")
