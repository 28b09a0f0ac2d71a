"""Finished comparisons as Markdown, from their parquet files alone."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from made_cells import cell
from made_rows import comparison, row

from privet.core.errors import PrivetError
from privet.studies.markdown import markdown, read
from privet.studies.results_table import Row, write_parquet
from privet.studies.study import Published, Refused

PAPER = (
    Published("beard", 0.588, "Figure 4", label="TIPRDC", budget=0.9),
    Published("beard", 0.61, "Table 4", label="TIPRDC", budget=0.9, adversary="v-cl-19"),
    Published(
        "smiling",
        0.2,
        "slides",
        label="Hedge",
        budget=0.58,
        measure="demographic parity difference",
    ),
    Published("beard", 0.5, "Figure 5", label="TIPRDC", budget=0.5),
)
WHY = "12,288 numbers are more than LEACE takes."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_parquet(tmp_path / "frontier.parquet", comparison(), [Refused("", "leace", "LEACE", WHY)])
    return tmp_path


def lines(text: str, start: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("| ").split(" | ")]
        for line in text.splitlines()
        if line.startswith(f"| {start}")
    ]


def test_every_release_has_its_figures_seeds_and_bounds(folder):
    text = markdown(read([folder]))
    (tiprdc,) = lines(text, "TIPRDC, budget 0.9")[:1]
    assert tiprdc[1].startswith("80.5 (77.5\u201383.5); 80.0, 81.0, MLP") and tiprdc[-1] == "2"
    assert tiprdc[2].startswith("79.5 (76.5\u201382.5); 79.0, 80.0, RES-CL"), (
        "the paper's kind of network, as the paper counts"
    )
    assert tiprdc[3] == "52.0" and tiprdc[4] == "\u2013"
    assert lines(text, "Hedge, budget 0.54")[0][4] == "54.0"
    assert "test records: beard 900, smiling 900" in text


def test_what_is_missing_is_a_row_that_says_why(folder):
    text = markdown(read([folder]))
    assert lines(text, "LEACE")[0][-1] == f"left out: {WHY}"
    assert lines(text, "TIPRDC, budget 0.5")[0][-1] == "failed: Learning diverged."
    assert lines(text, "TIPRDC, budget 1")[0][-1] == "not run yet"
    widths = {len(found) for found in lines(text.partition("| smiling, by")[0], "")}
    assert len(widths) == 1, "a row has as many cells as the head"


def test_the_paper_stands_beside_ours_by_its_own_measure_and_by_the_worst(folder):
    text = markdown(read([folder]), PAPER)
    ours = {
        found[0]: found[2:]
        for start in ("Figure", "Table", "slides")
        for found in lines(text, start)
    }
    assert (
        ours["Figure 4"][0] == "58.8"
        and ours["Figure 4"][1].startswith("79.5")
        and ours["Figure 4"][2].startswith("80.5")
    )
    assert ours["Figure 4"][3:] == ["900", "2"]
    assert ours["Table 4"][1] == "\u2013", "an adversary that this battery lacks"
    assert ours["slides"][1].startswith("10.0 (8.0\u201312.0)") and ours["slides"][2].startswith(
        "81.5"
    )
    assert ours["Figure 5"][-1] == "failed: Learning diverged."


def test_a_study_in_pieces_is_one_table_and_what_is_done_wins(folder, tmp_path):
    other = tmp_path / "other.parquet"
    write_parquet(other, [row(cell(budget=1.0), 0.7, 0.6), Row(cell("hedge", 0.54, 0), "left")])
    for order in ([folder, other], [other, folder]):
        text = markdown(read(order))
        assert (
            lines(text, "TIPRDC, budget 1")[0][1].startswith("70.0")
            and lines(text, "Hedge, budget 0.54")[0][-1] == "2"
        )


def test_the_script_reads_recipes_and_refuses_what_is_not_a_comparison(
    folder, tmp_path, monkeypatch, capsys
):
    script = Path(__file__).parents[2] / "benchmarks" / "recipe_table.py"
    main = runpy.run_path(str(script))["main"]
    monkeypatch.setattr("sys.argv", ["recipe_table", str(folder), "--recipe", "tiprdc-table-4"])
    assert main() == 0
    told = capsys.readouterr().out
    assert "### " not in told and "| TIPRDC, budget 0.9 |" in told
    (tmp_path / "x.parquet").write_text("no")
    monkeypatch.setattr("sys.argv", ["recipe_table", str(tmp_path / "x.parquet")])
    assert main() == 2 and capsys.readouterr().err.count("\n") == 1
    with pytest.raises(PrivetError, match="Cannot read"):
        read([tmp_path / "nowhere"])
