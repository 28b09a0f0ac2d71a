"""Tables of the documentation are generated from benchmarks/results, and agree with it."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import tables

ROOT = Path(__file__).parents[2]


def study(**other: Any) -> dict[str, Any]:
    facts = dict.fromkeys(("data", "n", "seeds", "confidence", "machine", "commit", "published_in"))
    columns = [{"key": "method", "title": "method"}, {"key": "sex", "title": "sex", "unit": "%"}]
    rows = [{"method": "hedge", "sex": {"value": 52.1, "low": 51.2, "high": 53.0}}]
    known = {"title": "One", "command": ["privet learn hedge --out r"], **facts, "source": None}
    return known | {"columns": columns, "rows": rows} | other


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one results file and a page that shows it."""
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    page = (
        "# Page\n\n<!-- command: one -->\n<!-- end -->\n\nText.\n\n<!-- table: one -->\n<!-- end"
        " -->\n"
    )
    (tmp_path / "docs" / "page.md").write_text(page)
    (tmp_path / "benchmarks" / "results" / "one.json").write_text(json.dumps(study()))
    return tmp_path


def test_the_pages_are_as_the_results_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert tables.main(["--check"]) == 0, capsys.readouterr().err


def test_a_page_is_filled_and_then_agrees(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tables.main(["--check"], root) == 1
    assert "docs/page.md differs" in capsys.readouterr().err
    assert tables.main([], root) == 0
    assert tables.main(["--check"], root) == 0
    text = (root / "docs" / "page.md").read_text()
    assert "| method | sex, % |\n|---|---|\n| hedge | 52.1 (51.2\u201353.0) |\n" in text
    assert "    privet learn hedge --out r\n" in text
    assert "`benchmarks/results/one.json`" in text
    assert "Text." in text


def test_a_changed_value_or_a_changed_cell_is_found(root: Path) -> None:
    tables.main([], root)
    page, values = root / "docs" / "page.md", root / "benchmarks" / "results" / "one.json"
    text = page.read_text()
    page.write_text(text.replace("52.1", "51.9"))
    assert tables.main(["--check"], root) == 1
    page.write_text(text)
    values.write_text(values.read_text().replace("52.1", "51.9"))
    assert tables.main(["--check"], root) == 1


def test_a_table_without_values_and_values_without_a_page_are_refused(root: Path) -> None:
    page = root / "docs" / "page.md"
    text = page.read_text()
    page.write_text(text.replace("table: one", "table: two"))
    assert tables.main([], root) == 2
    page.write_text("# Nothing\n")
    assert tables.main([], root) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"colour": "red"},
        {"columns": [{"key": "method"}]},
        {"columns": [{"key": "method", "title": "method", "width": 3}]},
        {"rows": [{"method": "hedge", "age": 3}]},
        {"rows": [{"sex": {"low": 51, "high": 53}}]},
        {"rows": [{"sex": {"value": 52, "low": 51}}]},
        {"rows": [{"sex": {"value": 52, "low": 53, "high": 54}}]},
        {"rows": [{"sex": {"value": "52"}}]},
        {"rows": [{"sex": {"value": 52, "unsure": True}}]},
        {"rows": [{"sex": True}]},
    ],
    ids=str,
)
def test_what_is_no_result_is_refused_by_name(root: Path, wrong: dict[str, Any]) -> None:
    path = root / "benchmarks" / "results" / "one.json"
    path.write_text(json.dumps(study(**wrong)))
    with pytest.raises(tables.ResultError, match=r"^one\.json: "):
        tables.read(path)
    assert tables.main(["--check"], root) == 2


@pytest.mark.parametrize(
    "cell, text",
    [
        (None, "\u2013"),
        ("a|b", r"a\|b"),
        (16281, "16,281"),
        (Decimal("0.50"), "0.50"),
        (
            {"value": Decimal("-0.26"), "low": Decimal("-0.61"), "high": 0},
            "\u22120.26 (\u22120.61 to 0)",
        ),
        (
            {"value": 2, "low": 1, "high": 3, "seeds": [1, 3], "by": "MLP"},
            "2 (1\u20133); 1, 3, MLP",
        ),
        ({"value": 2, "seeds": [1, 3]}, "2 (1, 3)"),
        ({"value": 2, "unit": "s", "strong": True}, "**2 s**"),
        ([29, 16], "29 \u2192 16"),
    ],
)
def test_a_cell_is_written_as_the_file_has_it(cell: Any, text: str) -> None:
    assert tables.figure(cell, {"key": "x", "title": "x", "joined": " \u2192 "}) == text


def test_the_caption_says_what_the_figures_are_counted_on(root: Path) -> None:
    path = root / "benchmarks" / "results" / "one.json"
    path.write_text(json.dumps(study(n=16281, seeds=3, confidence=0.95, machine="one core")))
    said = tables.caption("one", tables.read(path))
    assert said.endswith("; n = 16,281; 3 seeds; intervals 95 %; one core.")


def test_every_file_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.json")):
        found = tables.read(path)
        tables.write(tmp_path / path.name, found)
        assert (tmp_path / path.name).read_text() == path.read_text(), "written by tables.write"


def test_a_cell_may_be_taken_from_another_study(root: Path) -> None:
    results = root / "benchmarks" / "results"
    taken = {"study": "one", "row": "hedge", "key": "sex"}
    (results / "two.json").write_text(json.dumps(study(rows=[{"method": "ours", "sex": taken}])))
    with (root / "docs" / "page.md").open("a") as page:
        page.write("\n<!-- table: two -->\n<!-- end -->\n")
    assert tables.main([], root) == 0
    assert "| ours | 52.1 (51.2\u201353.0) |" in (root / "docs" / "page.md").read_text()
    for wrong in ({"row": "leace"}, {"key": "age"}, {"study": "three"}):
        rows = [{"method": "ours", "sex": taken | wrong}]
        (results / "two.json").write_text(json.dumps(study(rows=rows)))
        assert tables.main(["--check"], root) == 2
