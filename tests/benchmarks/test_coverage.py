"""Simulated coverage of certificates, small, and FARE's bound beside ours."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import coverage
import fare
import tables

NAMED = {scenario.name: scenario for scenario in coverage.SCENARIOS}


@pytest.mark.parametrize(
    "name", ["symbols", "contradicting", "by-records", "groups", "pair", "per-person", "page"]
)
def test_certificates_miss_no_more_often_than_they_may(name: str) -> None:
    found = coverage.simulate(NAMED[name], 100)
    assert not coverage.too_often(found, 100)
    assert 0 < found.above < 0.25, "a bound that is far above everything would miss nothing"


def test_a_bound_without_slack_would_be_noticed() -> None:
    """The same simulation with a bound that forgets the sampling error: every other run misses."""
    scenario = NAMED["symbols"]

    def forgetful(random: np.random.Generator) -> coverage.Statements:
        return [((bound or 1.0) - 0.06, truth) for bound, truth in scenario.draw(random)]

    found = coverage.simulate(replace(scenario, draw=forgetful), 100)
    assert coverage.too_often(found, 100) and found.below > 0


def test_the_promised_scenarios_are_there_and_the_page_shows_them() -> None:
    assert len(NAMED) >= 12
    stored = tables.read(tables.RESULTS / "coverage.json")
    assert stored.seeds == coverage.RUNS == 1000
    assert [row["scenario"] for row in stored.rows] == [s.title for s in coverage.SCENARIOS]
    assert all(row["misses"] <= 20 for row in stored.rows)


def test_only_some_scenarios_are_run_and_nothing_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert coverage.main(["--runs", "5", "--only", "symbols", "--out", "-"]) == 0
    assert capsys.readouterr().err.count("misses") == 1


@pytest.mark.parametrize("law", fare.LAWS, ids=str)
def test_a_law_of_the_comparison_has_the_truth_that_it_says(law: fare.Law) -> None:
    table = law.table()
    assert table.sum(2) == pytest.approx(np.ones((2, 2)))
    for rows in (*table, table.mean(0)):
        assert rows.max(0).sum() / 2 == pytest.approx(law.truth)


@pytest.mark.parametrize(
    "bound", [fare.fare_parity, fare.fare_odds], ids=["parity", "given the label"]
)
def test_fares_bound_holds_and_is_above_ours(
    bound: Callable[[fare.Law, np.random.Generator, int], float],
) -> None:
    law = replace(fare.LAWS[0], people=4000)
    ours = fare.ours_odds if bound is fare.fare_odds else fare.ours_parity
    for seed in range(10):
        theirs = bound(law, np.random.default_rng(seed), law.people)
        assert law.truth < ours(law, np.random.default_rng(seed)) < theirs


def test_an_interval_for_proportions_covers() -> None:
    low, high = fare.clopper_pearson(np.arange(21), np.full(21, 20), 0.1)
    assert low[0] == 0 and high[-1] == 1 and (low < high).all()
    for p in (0.05, 0.3, 0.5):
        inside = (low <= p) & (p <= high)
        assert binom.pmf(np.arange(21), 20, p)[inside].sum() >= 0.9
