"""Curves agree with scikit-learn and scipy at one draw, with a slow bootstrap at many, and cover as
often as they say."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import norm, spearmanr
from sklearn.metrics import roc_auc_score

from privet.evidence.bayes import tpr_at
from privet.evidence.intervals import Interval
from privet.evidence.leakage import auc
from privet.evidence.roc import auc_over_people, rank_correlation_over_people, tpr_over_people

Array = npt.NDArray[Any]


def clustered(
    random: np.random.Generator, people: int, distance: float = 1.0, ties: bool = False
) -> tuple[Array, Array, Array]:
    """1 to 8 records of each person, whose scores have much in common."""
    person = np.repeat(np.arange(people), random.integers(1, 9, people))
    truth = (random.random(people) < 0.35).astype(int)[person]
    score = (
        distance * truth
        + random.normal(0, 0.8, people)[person]
        + random.normal(0, 0.6, len(person))
    )
    return person, truth, np.round(score, 1) if ties else score


@pytest.mark.parametrize("ties", [False, True])
def test_values_are_those_of_other_implementations(ties: bool) -> None:
    person, truth, score = clustered(np.random.default_rng(0), 80, ties=ties)
    area, rate, rho = (
        f(person, truth, score)
        for f in (auc_over_people, tpr_over_people, rank_correlation_over_people)
    )
    assert area and rate and rho
    assert area.value == pytest.approx(roc_auc_score(truth, score)) and rate.value == pytest.approx(
        tpr_at(truth, score)
    )
    assert rho.value == pytest.approx(spearmanr(truth, score).statistic)
    wider = tpr_over_people(person, truth, score, fpr=0.2)
    assert (
        wider is not None
        and wider.value == pytest.approx(tpr_at(truth, score, 0.2))
        and wider.value > rate.value
    )
    table = np.random.default_rng(1).dirichlet(np.ones(4), len(truth))
    labels = np.random.default_rng(2).integers(0, 3, len(truth))  # the fourth class does not occur
    several = auc_over_people(person, labels, table)
    assert several is not None and several.value == pytest.approx(auc(labels, table))


@pytest.mark.parametrize("which", ["auc", "tpr", "rank"])
def test_draws_are_those_of_a_slow_bootstrap(which: str) -> None:
    """Every person's records are copied as often as the person was drawn, and the plain formula is
    used."""
    function, plain = {
        "auc": (auc_over_people, roc_auc_score),
        "tpr": (lambda *a, **k: tpr_over_people(*a, fpr=0.2, **k), lambda y, s: tpr_at(y, s, 0.2)),
        "rank": (rank_correlation_over_people, lambda y, s: spearmanr(y, s).statistic),
    }[which]
    random = np.random.default_rng(3)
    person, truth, score = clustered(random, 150, ties=True)
    records = [np.flatnonzero(person == p) for p in range(150)]
    drawn = [np.concatenate([records[p] for p in random.integers(0, 150, 150)]) for _ in range(400)]
    slow = np.quantile([plain(truth[rows], score[rows]) for rows in drawn], [0.025, 0.975])
    found = function(person, truth, score)
    assert found is not None
    low, high = found.interval
    # Quantiles of 400 draws err by about a tenth of a deviation, and fewer people than 150 carry
    # the smaller class.
    assert (low, high) == pytest.approx(slow, abs=0.12 * (high - low))


@pytest.mark.parametrize(("people", "distance"), [(40, 1.0), (150, 1.0), (100, 2.5)])
def test_auc_is_covered_though_people_have_several_records(people: int, distance: float) -> None:
    true, runs, covered = float(norm.cdf(distance / np.sqrt(2))), 200, 0
    for seed in range(runs):
        found = auc_over_people(
            *clustered(np.random.default_rng(seed), people, distance), draws=300
        )
        covered += found is None or found.interval.low <= true <= found.interval.high
    assert covered >= 0.93 * runs


def test_records_counted_as_people_would_not_be_covered() -> None:
    true, covered = float(norm.cdf(1 / np.sqrt(2))), 0
    for seed in range(100):
        person, truth, score = clustered(np.random.default_rng(seed), 150)
        found = auc_over_people(np.arange(len(person)), truth, score, draws=300)
        assert found is not None
        covered += found.interval.low <= true <= found.interval.high
    assert covered < 88


@pytest.mark.parametrize(
    "function", [auc_over_people, tpr_over_people, rank_correlation_over_people]
)
def test_order_and_names_change_nothing(function: Any) -> None:
    random = np.random.default_rng(4)
    person, truth, score = clustered(random, 50, ties=True)
    order = random.permutation(len(person))
    names = np.array([f"person {i}" for i in random.permutation(50)])
    first, second = (
        function(person, truth, score),
        function(names[person][order], truth[order], score[order]),
    )
    assert second.value == pytest.approx(first.value) and second.interval == pytest.approx(
        first.interval
    )


def test_perfect_and_few_people_are_not_certain() -> None:
    truth = np.arange(40) % 2
    perfect = auc_over_people(range(40), truth, truth)
    assert (
        perfect is not None
        and perfect.value == perfect.interval.high == 1
        and 0.8 < perfect.interval.low < 0.9
    )
    few = auc_over_people(range(41), np.append(truth * 0, 1), np.append(truth, 5))
    assert few is not None and few.interval == Interval(0, 1)
    same = rank_correlation_over_people(range(30), np.arange(30.0), np.arange(30.0))
    assert same is not None and same.value == pytest.approx(1) and same.interval.low < 0.9


def test_nothing_to_order_is_none() -> None:
    assert (
        auc_over_people([], [], []) is None and auc_over_people([1, 2], [1, 1], [0.1, 0.2]) is None
    )
    assert tpr_over_people([1, 2], [0, 0], [0.1, 0.2]) is None
    assert (
        rank_correlation_over_people([], [], []) is None
        and rank_correlation_over_people([1, 2], [1, 1], [0.1, 0.2]) is None
    )


@pytest.mark.parametrize("per_person", [1, 8])
def test_a_thousand_draws_take_no_second(per_person: int) -> None:
    random = np.random.default_rng(0)
    truth, score = random.integers(0, 2, 16_000), random.normal(size=16_000)
    begun = time.process_time()
    found = auc_over_people(np.arange(16_000) // per_person, truth, score)
    assert time.process_time() - begun < 1
    assert (
        found is not None
        and found.interval.low < 0.5 < found.interval.high
        and found.interval.high - found.interval.low < 0.025
    )
