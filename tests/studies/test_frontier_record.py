"""Finished comparisons as results files, from their parquet files alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from made_cells import cell
from made_rows import comparison, row

from privet.core.errors import PrivetError
from privet.studies.results_table import Row, write_parquet
from privet.studies.study import Published, Refused

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import record
import tables

PAPER = (
    Published("beard", 0.588, "Figure 4", label="TIPRDC", budget=0.9),
    Published("beard", 0.61, "Table 4", label="TIPRDC", budget=0.9, adversary="v-cl-19"),
    Published("beard", 0.63, "Table 4", label="TIPRDC", budget=0.9, adversary="mlp"),
    Published(
        "smiling",
        0.2,
        "slides",
        label="Hedge",
        budget=0.58,
        measure="demographic parity difference",
    ),
    Published("beard", 0.5, "Figure 5", label="TIPRDC", budget=0.5),
    Published("beard", 0.94, "raw", label=""),
)
WHY = "12,288 numbers are more than LEACE takes."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_parquet(tmp_path / "frontier.parquet", comparison(), [Refused("", "leace", "LEACE", WHY)])
    return tmp_path


def by_release(study: tables.Study) -> dict[str, Any]:
    return {one["release"]: one for one in study.rows}


def text(cell: Any) -> str:
    return tables.figure(cell, {})


def test_every_release_has_its_figures_seeds_and_bounds(folder: Path) -> None:
    study = record.study(record.read([folder]))
    tiprdc = by_release(study)["TIPRDC, budget 0.9"]
    assert text(tiprdc["beard"]) == "80.5 (77.5\u201383.5); 80.0, 81.0, MLP"
    plain = text(tiprdc["beard_plain"])
    assert plain == "79.5 (76.5\u201382.5); 79.0, 80.0", "the paper's kind of network"
    assert text(tiprdc["beard_in_game"]) == "52.0"
    assert tiprdc["beard_certified"] is None
    assert text(by_release(study)["Hedge, budget 0.54"]["beard_certified"]) == "54.0"
    gap = text(tiprdc["smiling_beard_demographic_parity_difference"])
    assert gap == "10.0 (8.0\u201312.0); 10.0, 10.0"
    assert (study.n, study.seeds) == (900, 2)
    assert by_release(study)["raw data"]["seeds"] == 1


def test_what_is_missing_is_a_row_that_says_why(folder: Path) -> None:
    found = by_release(record.study(record.read([folder])))
    assert found["LEACE"]["remark"] == f"left out: {WHY}"
    assert found["TIPRDC, budget 0.5"]["remark"] == "failed: Learning diverged."
    assert found["TIPRDC, budget 1"]["remark"] == "not run yet"
    assert "remark" not in found["TIPRDC, budget 0.9"]


def test_the_paper_stands_beside_ours_by_its_own_measure(folder: Path) -> None:
    found = by_release(record.study(record.read([folder]), PAPER))
    tiprdc = found["TIPRDC, budget 0.9"]
    assert text(tiprdc["beard_plain_accuracy_paper"]) == "58.8"
    assert text(tiprdc["beard_plain_accuracy_ours"]).startswith("79.5")
    lacking = "beard_plain_accuracy_v-cl-19"
    assert text(tiprdc[f"{lacking}_paper"]) == "61.0"
    assert f"{lacking}_ours" not in tiprdc, "the battery lacks it"
    assert text(tiprdc["beard_plain_accuracy_mlp_ours"]).startswith("79.5")
    hedge = found["Hedge, budget 0.58"]
    assert text(hedge["smiling_demographic_parity_difference_ours"]).startswith("10.0 (8.0")
    assert "beard_plain_accuracy_paper" not in hedge
    assert text(found["raw data"]["beard_plain_accuracy_paper"]) == "94.0"


def test_a_study_in_pieces_is_one_and_what_is_done_wins(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.parquet"
    write_parquet(other, [row(cell(budget=1.0), 0.7, 0.6), Row(cell("hedge", 0.54, 0), "left")])
    for order in ([folder, other], [other, folder]):
        found = by_release(record.study(record.read(order)))
        assert text(found["TIPRDC, budget 1"]["beard"]).startswith("70.0")
        assert "remark" not in found["Hedge, budget 0.54"]


def test_questions_are_named_where_there_are_several(tmp_path: Path) -> None:
    rows = [row(cell(budget=0.9, question=name), 0.7, 0.6) for name in ("a", "b")]
    write_parquet(tmp_path / "frontier.parquet", rows)
    study = record.study(record.read([tmp_path]), titles={"a": "(a) young hidden"})
    assert [one["question"] for one in study.rows] == ["(a) young hidden", "b"]


def test_the_file_is_one_that_tables_are_made_of(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "one.json"
    words = [str(folder), "--recipe", "tiprdc-table-4", "--out", str(out), "--machine", "a core"]
    assert record.main([*words, "--title", "Beards"]) == 0
    study = tables.read(out)
    assert (study.title, study.machine, study.commit) == ("Beards", "a core", None)
    lines = tables.table(study)
    assert len(lines) == 2 + len(study.rows)
    assert any(line.startswith("| TIPRDC, budget 0.9 | 80.5 (77.5\u201383.5)") for line in lines)


def test_what_is_no_comparison_is_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.parquet").write_text("no")
    assert record.main([str(tmp_path / "x.parquet"), "--out", str(tmp_path / "x.json")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "x.json").exists()
    with pytest.raises(PrivetError, match="Cannot read"):
        record.read([tmp_path / "nowhere"])
