"""The page, the table and the parquet file of a comparison that was made by hand."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pandas as pd
import pytest
from made_cells import cell
from made_rows import comparison, row, study

from privet.studies.cells import RAW
from privet.studies.collaborative_page import cards_by_page
from privet.studies.frontier_page import answer, failures, paper_figures, render, table, unreached
from privet.studies.frontier_plots import Style, curve_plot, curves
from privet.studies.groups import groups, pareto_front, volume
from privet.studies.results_table import Row, at_once, write_parquet
from privet.studies.study import Published

PAPER = (
    Published("beard", 0.588, "Figure 4", label="TIPRDC", budget=0.9),
    Published("beard", 0.61, "Table 4", label="TIPRDC", budget=0.9, adversary="res-cl"),
    Published("beard", 0.61, "Table 4", label="TIPRDC", budget=0.9, adversary="v-cl-19"),
    Published("beard", 0.9, "raw", measure="balanced accuracy"),
    Published(
        "smiling", 0.2, "fair", label="Hedge", budget=0.58, measure="demographic parity difference"
    ),
)


@pytest.fixture(scope="module")
def page() -> str:
    return render(
        study(seeds=2, published=PAPER, notes=("GAP is left out: <why>.",)),
        comparison(),
        "privet compare --out c",
    )


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_it_is_whole_and_loads_nothing(page):
    tags = Tags()
    tags.feed(page)
    assert not tags.open
    assert not [
        a
        for _, a in tags.seen
        for key in ("src", "href")
        if (a.get(key) or "").startswith(("http", "//"))
    ]
    ids = [a["id"] for _, a in tags.seen if "id" in a]
    assert len(ids) == len(set(ids))
    for _, a in tags.seen:
        if (a.get("href") or "").startswith("#c-"):
            assert a["href"][1:] in ids, "a point leads nowhere"


def test_the_verdict_is_held_against_the_goal_that_was_stated():
    released = [g for g in groups(comparison(), "", "beard", "smiling") if not g.cell.is_raw]
    words = [answer(released, None, goal).word for goal in (0.99, 0.501)]
    assert words == ["held", "at risk"]
    stated = render(study(seeds=2, goals={"beard": 0.613}), comparison())
    assert "61.3" in stated and stated != render(study(seeds=2), comparison())


def test_its_script_is_the_one_that_is_allowed(page):
    script = re.search(r"<script>(.*?)</script>", page, re.S).group(1)
    assert (
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        in page.split("</head>")[0]
    )


def test_what_is_not_in_the_picture_is_named(page):
    assert "TIPRDC budget 0.5, seed 0 failed: Learning diverged." in page and "&lt;why&gt;" in page
    assert (
        "Not reached in the time there was: TIPRDC, 1 of 6. The same command goes on with them."
        in page
    )


def test_what_is_missing_alike_is_said_once():
    rows = [Row(cell(budget=b, seed=seed), "failed", "No.") for b in (0.1, 0.2) for seed in (0, 1)]
    rows += [Row(cell("hedge", b, seed), "left") for b in (0.54, 0.58) for seed in (0, 1)] + [
        Row(cell("hedge", 0.54, 2), "done")
    ]
    assert failures(rows) == [("TIPRDC, 4 cells", "No.")] and unreached(rows) == ["Hedge, 4 of 5"]
    assert unreached([Row(cell(RAW, None), "left")]) == ["raw data"] and unreached(rows[-1:]) == []


def test_curves_over_the_dial_have_every_figure_and_every_budget():
    rows = comparison()
    found = {
        curve.title: curve
        for curve in curves(study().questions[0], rows)
        if "TIPRDC" in curve.lines
    }
    assert set(found) == {
        "beard: worst attacker",
        "smiling: best model",
        "smiling: demographic parity gap by beard",
    }
    leak = found["beard: worst attacker"]
    assert [budget for budget, _ in leak.lines["TIPRDC"]] == [0.0, 0.9] and leak.dial == "budget"
    assert [round(figure.value, 3) for _, figure in leak.lines["TIPRDC"]] == [
        0.905,
        0.805,
    ], "means over seeds"
    assert leak.raw is not None and leak.raw.value == 0.93
    picture = str(curve_plot(leak, {"TIPRDC": Style("TIPRDC", 0)}))
    assert (
        picture.count('class="dot') == 2
        and "raw data" in picture
        and "TIPRDC at 0.9: 80.5" in picture
    )
    across = [float(x) for x in re.findall(r"translate\(([\d.]+) ", picture)]
    assert across == sorted(across)
    many = [
        replace(r, cell=replace(r.cell, method=f"{r.cell.method}{k}"))
        for k in range(2)
        for r in rows
    ]
    assert curves(study().questions[0], many) == [], "four methods: the tables serve better"


def test_sanitizers_have_a_page_of_their_own():
    assert cards_by_page(comparison()) == {}
    rows = [
        row(cell("collaborative", 0.9, seed, question=q), 0.8, 0.8, card={"outcomes": {}})
        for q in ("a", "b")
        for seed in (0, 1)
    ]
    found = cards_by_page(rows)
    assert list(found) == ["collaborative.html", "collaborative-2.html"] and [
        len(cards) for _, cards in found.values()
    ] == [1, 1]


def test_the_tip_says_settings_and_numbers(page):
    tip = next(
        t for t in re.findall(r'data-tip="([^"]*)"', page) if t.startswith("Hedge budget 0.58")
    )
    assert (
        "(2 seeds)" in tip
        and "beard: 55.0 (52.0 to 58.0)" in tip
        and "certified at most 58.0 for one record" in tip
        and "width 0.25" in tip
    )


def test_points_are_means_and_the_front_has_no_raw_data():
    found = groups(comparison(), "", "beard", "smiling")
    named = {group.cell.variant: group for group in found}
    assert (
        named["TIPRDC budget 0.9"].leak.value == pytest.approx(0.805)
        and len(named["TIPRDC budget 0.9"].rows) == 2
    )
    assert (
        named["Hedge budget 0.58"].certified == 0.58 and named["TIPRDC budget 0"].certified is None
    )
    assert [found[i].cell.variant for i in pareto_front(found)] == [
        "Hedge budget 0.54",
        "Hedge budget 0.58",
        "TIPRDC budget 0.9",
        "TIPRDC budget 0",
    ]
    hedge = [group for group in found if group.cell.method == "hedge"]
    assert 0 < volume(hedge, proved=True) < volume(hedge) < volume(found) < 1


def test_one_seed_without_a_certificate_leaves_the_point_without():
    rows = [row(cell("hedge", 0.58, 0), 0.55, 0.8, 0.58), row(cell("hedge", 0.58, 1), 0.55, 0.8)]
    assert groups(rows, "", "beard", "smiling")[0].certified is None


def test_the_papers_figures_stand_beside_ours_by_the_same_measure():
    ours = [one.ours for one in paper_figures(study(published=PAPER), comparison())]
    assert [None if figure is None else round(figure.value, 3) for figure in ours] == [
        0.795,
        0.795,
        None,
        0.93,
        0.1,
    ]
    worst = [one.worst for one in paper_figures(study(published=PAPER), comparison())]
    assert [None if figure is None else round(figure.value, 3) for figure in worst] == [
        0.805,
        0.805,
        0.805,
        0.93,
        0.815,
    ]


def test_the_table_in_words():
    said = table(study(published=PAPER), comparison())
    assert (
        "| TIPRDC budget 0.9 | 2 | 80.5 (77.5\u201383.5) MLP | 52.0 |" in said
        and "| 54.0 |" in said
    )
    assert "- TIPRDC budget 0.5, seed 0: Learning diverged." in said
    widths = [len(line.split(" | ")) for line in said.splitlines() if line.startswith("| ")]
    assert set(widths) == {6, 4, 5}


def test_the_parquet_file_has_a_row_per_cell(tmp_path):
    write_parquet(tmp_path / "f.parquet", comparison())
    frame = pd.read_parquet(tmp_path / "f.parquet")
    assert len(frame) == len(comparison()) and frame["cell"].is_unique
    assert set(frame["state"]) == {"done", "failed", "left"}
    done = frame[frame["state"] == "done"]
    assert (done["private.beard.low"] < done["private.beard.score"]).all() and (
        done["private.beard.adversary"] == "MLP"
    ).all()
    hedge = frame[frame["method"] == "hedge"]
    assert (
        hedge["private.beard.certified"].notna().all()
        and frame["private.beard.certified"].dtype == "float64"
    )
    assert (
        frame[frame["method"] == RAW]["private.beard.in_game"].isna().all()
        and done["utility.smiling.score"].notna().all()
    )


def test_epsilon_certifies_where_it_says_anything():
    card = {"certificate": {"kind": "local-dp", "bounds": {"beard": 0.73}}}
    assert row(cell("dp"), 0.6, 0.6, card=card).certified("beard") == 0.73
    assert row(cell("dp"), 0.6, 0.6, 0.7, card=card).certified("beard") == 0.7
    assert (
        row(
            cell("dp"),
            0.6,
            0.6,
            card={"certificate": {"kind": "local-dp", "bounds": {"beard": 1.0}}},
        ).certified("beard")
        is None
    )


def test_nothing_done_is_still_a_page(tmp_path):
    rows = [replace(r, state="left", audit=None) for r in comparison()]
    assert "Nothing is measured yet" in render(study(), rows)
    write_parquet(tmp_path / "f.parquet", rows)


def test_the_cells_of_a_comparison_share_one_confidence(tmp_path):
    alone, together = comparison(), at_once(comparison())
    cells = {r.cell.key for r in together}
    assert together[0].figures_at_once == 2 * len(cells)
    assert together[0].bounds_at_once == len(cells) - 1  # raw records have no bound
    hedge = next(i for i, r in enumerate(alone) if r.cell.method == "hedge")
    one, all_of_them = alone[hedge], together[hedge]
    assert all_of_them.certified("beard") > one.certified("beard")
    wide, narrow = all_of_them.score("beard"), one.score("beard")
    assert wide.low < narrow.low < wide.value == narrow.value < narrow.high < wide.high
    write_parquet(tmp_path / "f.parquet", together)
    frame = pd.read_parquet(tmp_path / "f.parquet")
    done = frame[frame["method"] == "hedge"]
    assert (done["private.beard.certified"] > done["private.beard.certified_alone"]).all()
    assert (done["private.beard.high"] > done["private.beard.high_alone"]).all()
    assert "at once" in table(study(), together) and "at once" in render(study(), together)
    assert "at once" not in table(study(), alone)


def test_what_is_wrong_with_the_data_is_said_first_and_once():
    wrong = "Every record is there 2 times."
    rows = [
        r if r.audit is None else replace(r, audit=replace(r.audit, checks=(wrong,)))
        for r in comparison()
    ]
    page, short = render(study(), rows), table(study(), rows)
    assert page.count(wrong) == 1 and page.index(wrong) < page.index('id="q1"')
    assert short.count(wrong) == 1 and short.index(wrong) < short.index("| release |")
