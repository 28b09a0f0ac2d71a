"""Answers become figures that agree with other implementations, stay at chance where nothing is
read, and never crash."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import softmax
from sklearn import metrics
from sklearn.linear_model import LogisticRegression

from privet.core.errors import PrivetError
from privet.data.dataset import Attribute
from privet.evidence.bayes import (
    additive_leakage,
    bayes_security,
    min_entropy_leakage,
    multiplicative_leakage,
    tpr_at,
)
from privet.evidence.calibration import calibrated
from privet.evidence.figures import Figure
from privet.evidence.leakage import class_weights, confusion, guess
from privet.evidence.person_intervals import best_of
from privet.evidence.predictions import evidence_of, highest_of, judge

Array = npt.NDArray[Any]
BINARY = Attribute("sex", "binary", ("a", "b"))
THREE = Attribute("race", "categorical", ("a", "b", "c"))
AGE = Attribute("age", "number")


def answered(
    seed: int, n: int, classes: int = 2, known: float = 1.0, prior: Array | None = None
) -> tuple[Array, Array]:
    """Labels, and probabilities of an adversary that knows p(c | x) but for being twice too
    sure."""
    random = np.random.default_rng(seed)
    prior = np.full(classes, 1 / classes) if prior is None else prior
    truth = random.choice(classes, n, p=prior)
    return truth, softmax(
        2
        * (
            known * (np.eye(classes)[truth] * known + random.normal(size=(n, classes)))
            + np.log(prior)
        ),
        axis=1,
    )


def same(one: Figure, other: Figure) -> bool:
    return (one.value, one.low, one.high) == pytest.approx(
        (other.value, other.low, other.high), abs=1e-6
    )


def test_figures_are_those_of_sklearn() -> None:
    (ts, ps), (tt, pt) = answered(0, 500, 3), answered(1, 700, 3)
    on_select, score, plain, area = judge(ts, ps, tt, pt, np.arange(700), THREE, "lower")
    said = guess(pt, class_weights(ts, ps))
    assert on_select == pytest.approx(
        metrics.balanced_accuracy_score(ts, guess(ps, class_weights(ts, ps)))
    )
    assert score.value == pytest.approx(metrics.balanced_accuracy_score(tt, said))
    assert plain.value == pytest.approx(metrics.accuracy_score(tt, pt.argmax(1)))
    assert area is not None and area.value == pytest.approx(
        metrics.roc_auc_score(tt, pt, multi_class="ovr")
    )
    assert [f.measure for f in (score, plain, area)] == ["balanced accuracy", "accuracy", "AUC"]
    assert (score.chance, area.chance) == (pytest.approx(1 / 3), 0.5) and plain.chance == max(
        np.bincount(tt)
    ) / 700
    found = evidence_of(ts, ps, tt, pt, np.arange(700), THREE, "lower", 4)
    assert found["f1"].value == pytest.approx(metrics.f1_score(tt, said, average="macro"))
    assert found["advantage"].value == pytest.approx(plain.value - plain.chance)
    entropy = metrics.mutual_info_score(tt, tt)
    proper = calibrated(ts, ps, pt)
    assert found["usable_bits"].value == pytest.approx(
        (entropy - metrics.log_loss(tt, proper)) / np.log(2), abs=1e-4
    )
    rates = [tpr_at((tt == c).astype(int), pt[:, c]) for c in range(3)]
    assert any(found["tpr_at_fpr_1_percent"].value == pytest.approx(rate) for rate in rates)


def test_leakage_is_that_of_the_channel_where_select_knows_the_replies() -> None:
    """With as many records the best replies and the best pair are the same on both parts, and so
    are the formulas of bayes.py."""
    (ts, ps), (tt, pt) = answered(2, 6000, 3), answered(3, 6000, 3)
    found = evidence_of(ts, ps, tt, pt, np.arange(6000), THREE, "lower")
    joint = confusion(tt, guess(pt, class_weights(ts, ps)), 3)
    for name, exact in (
        ("additive", additive_leakage),
        ("multiplicative", multiplicative_leakage),
        ("min_entropy", min_entropy_leakage),
    ):
        assert found[f"{name}_leakage"].value == pytest.approx(exact(joint))
    assert bayes_security(joint) <= found["bayes_security"].value <= bayes_security(joint) + 0.03
    assert (
        found["bayes_security"].better == "higher"
        and "this adversary's guesses" in found["bayes_security"].note
    )


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("lopsided", [False, True])
def test_an_adversary_who_knows_nothing_stands_at_chance(classes: int, lopsided: bool) -> None:
    """Plain formulas would not: a largest entry is never zero by chance. Each interval may miss one
    time in twenty."""
    attribute = Attribute("x", "categorical", tuple("abcd"[:classes]))
    prior = np.array([0.7, 0.3] if classes == 2 else [0.7, 0.1, 0.1, 0.1]) if lopsided else None
    missed: dict[str, int] = {}
    for seed in range(30):
        (ts, ps), (tt, pt) = (
            answered(2 * seed, 200, classes, 0.1, prior),
            answered(2 * seed + 1, 200, classes, 0.1, prior),
        )
        ps, pt = (
            np.random.default_rng(seed).permutation(ps),
            np.random.default_rng(seed).permutation(pt),
        )  # answers about others
        figures = evidence_of(ts, ps, tt, pt, np.arange(200), attribute, "lower")
        _, score, plain, area = judge(ts, ps, tt, pt, np.arange(200), attribute, "lower")
        assert area is not None
        for name, figure in {**figures, "score": score, "plain": plain, "auc": area}.items():
            reached = figure.high >= 1 - 1e-9 if name == "bayes_security" else figure.is_chance
            missed[name] = missed.get(name, 0) + (not reached)
    assert all(count <= 4 for count in missed.values()), (
        missed
    )  # of 30 at 2.5 %, five or more come once in 1,000


def test_people_with_several_records_widen_every_interval() -> None:
    (ts, ps), (tt, pt) = answered(4, 400), answered(5, 200)
    tt, pt, person = np.tile(tt, 8), np.tile(pt, (8, 1)), np.tile(np.arange(200), 8)
    careful, careless = (
        evidence_of(ts, ps, tt, pt, who, BINARY, "lower") for who in (person, np.arange(1600))
    )
    assert all(
        careful[name].high - careful[name].low > 1.5 * (careless[name].high - careless[name].low)
        for name in careful
    )
    careful, careless = (
        judge(ts, ps, tt, pt, who, BINARY, "lower") for who in (person, np.arange(1600))
    )
    for one, other in zip(careful[1:], careless[1:], strict=True):
        assert one.high - one.low > 1.5 * (other.high - other.low) and one.value == other.value
    assert (
        careful[1].interval == "bootstrap over people 95 %"
        and "Clopper-Pearson" in careless[1].interval
    )


def test_order_of_records_and_names_of_people_change_nothing() -> None:
    random = np.random.default_rng(6)
    (ts, ps), (tt, pt) = answered(6, 200), answered(7, 300)
    person, order, names = (
        random.integers(0, 80, 300),
        random.permutation(300),
        random.permutation(80) + 1000,
    )
    first, second = (tt, pt, person), (tt[order], pt[order], names[person][order])
    for make in (
        lambda *a: judge(ts, ps, *a, BINARY, "lower")[1:],
        lambda *a: tuple(evidence_of(ts, ps, *a, BINARY, "lower").values()),
    ):
        assert all(same(one, other) for one, other in zip(make(*first), make(*second), strict=True))


def test_missing_labels_and_broken_answers_are_left_out() -> None:
    (ts, ps), (tt, pt) = answered(8, 200), answered(9, 300)
    holed, broken = np.concatenate([tt, [-1] * 50]), np.concatenate([pt, np.full((50, 2), np.nan)])
    person = np.arange(350)
    whole, rest = (
        judge(ts, ps, tt, pt, person[:300], BINARY, "lower"),
        judge(ts, ps, holed, broken, person, BINARY, "lower"),
    )
    assert whole == rest and whole[1].n == 300
    assert evidence_of(ts, ps, tt, pt, person[:300], BINARY, "lower") == evidence_of(
        ts, ps, holed, broken, person, BINARY, "lower"
    )
    pt[0] = np.nan
    assert judge(ts, ps, tt, pt, person[:300], BINARY, "lower")[1].n == 300
    years = np.r_[np.arange(20.0), np.nan]
    _, score, plain, area = judge(
        years, years, years, np.r_[years[:19], np.inf, 5], np.arange(21), AGE, "higher"
    )
    assert score.n == plain.n == 20 and 0 < score.value < 1 and area is None


@pytest.mark.parametrize("attribute", [BINARY, THREE, AGE], ids=lambda a: a.kind)
@pytest.mark.parametrize("select", [0, 1, 30])
@pytest.mark.parametrize(
    "test",
    ["none", "one record", "one value", "one person", "two records", "all wrong", "all right"],
)
def test_little_data_neither_crashes_nor_claims(
    attribute: Attribute, select: int, test: str
) -> None:
    n = {"none": 0, "one record": 1, "two records": 2}.get(test, 40)
    kinds = max(attribute.classes, 2)

    def make(n: int) -> tuple[Array, Array]:
        codes = np.zeros(n, int) if test == "one value" else np.arange(n) % kinds
        said = (codes + 1) % kinds if test == "all wrong" else codes
        return (
            (codes, np.eye(kinds)[said])
            if attribute.is_class
            else (codes.astype(float), said.astype(float))
        )

    (ts, ps), (tt, pt) = make(select), make(n)
    person = np.zeros(n, int) if test == "one person" else np.arange(n)
    on_select, score, plain, area = judge(ts, ps, tt, pt, person, attribute, "lower")
    found = evidence_of(ts, ps, tt, pt, person, attribute, "lower")
    assert np.isfinite(on_select) and score.n == n
    for figure in (score, plain, *([area] if area else []), *found.values()):
        assert figure.low <= figure.value <= figure.high and figure.measure
        json.dumps(asdict(figure), allow_nan=False)
    if test in ("none", "one record", "one value", "one person"):
        assert score.is_chance and plain.is_chance and (area is None or area.is_chance)
        assert all(
            f.high == 1 if name == "bayes_security" else f.is_chance for name, f in found.items()
        )
    if test == "all right" and select == 30:
        assert not score.is_chance and score.value == 1
    if test == "none":
        assert (score.low, score.high) == (0, 1) and score.value == score.chance


def test_a_number_is_judged_beside_the_median_of_select() -> None:
    random = np.random.default_rng(10)
    select, truth = random.exponential(30, 500), random.exponential(30, 800)
    guesses = truth + random.normal(0, 5, 800)
    on_select, score, plain, area = judge(
        select, select + 5, truth, guesses, np.arange(800) // 2, AGE, "lower"
    )
    assert on_select == pytest.approx(
        metrics.r2_score(select, select + 5)
    ) and score.value == pytest.approx(metrics.r2_score(truth, guesses))
    assert (
        plain.chance
        == pytest.approx(metrics.mean_absolute_error(truth, np.full(800, np.median(select))))
        and plain.better == "higher"
    )
    assert (
        area is None and (plain.unit, score.chance) == ("its own unit", 0) and not plain.is_chance
    )
    found = evidence_of(select, select, truth, guesses, np.arange(800) // 2, AGE, "lower")
    assert set(found) == {"within_10_percent", "rank_correlation"} and all(
        not figure.is_chance for figure in found.values()
    )


def test_calibration_is_logistic_regression_of_the_log_odds() -> None:
    (ts, ps), (_, pt) = answered(11, 3000), answered(12, 50)
    odds = [np.log(p[:, 1:] / p[:, :1]) for p in (ps, pt)]
    other = LogisticRegression(C=np.inf).fit(odds[0], ts).predict_proba(odds[1])
    assert calibrated(ts, ps, pt) == pytest.approx(other, abs=2e-3)
    _, p3 = answered(13, 10, 3)
    assert (calibrated(np.zeros(0, int), np.zeros((0, 3)), p3) == p3).all()


def test_calibration_finds_bits_that_overconfidence_loses() -> None:
    (ts, ps), (tt, pt) = answered(14, 1000), answered(15, 1000)
    sure = [p**3 / (p**3).sum(1, keepdims=True) for p in (ps, pt)]
    plain, hot = (
        evidence_of(ts, a, tt, b, np.arange(1000), BINARY, "lower")["usable_bits"].value
        for a, b in ((ps, pt), sure)
    )
    assert hot == pytest.approx(plain, abs=0.005) and plain > 0.1


def test_the_highest_of_many_has_room_for_the_picking() -> None:
    """Ten adversaries who guess: the luckiest is seldom above chance by its corrected interval, and
    often by its own."""
    random, alone, together = np.random.default_rng(16), 0, 0
    for _ in range(60):
        truth, guesses = random.integers(0, 2, 300), [random.integers(0, 2, 300) for _ in range(10)]
        figure = highest_of(truth, guesses, np.arange(300), 2)
        together += not figure.is_chance
        alone += any(not highest_of(truth, [said], np.arange(300), 2).is_chance for said in guesses)
        assert figure.value == max(metrics.balanced_accuracy_score(truth, said) for said in guesses)
    assert together <= 5 and alone >= 5
    assert (
        "10 adversaries" in figure.measure
        and figure.low < figure.value < figure.high
        and best_of(10) > 0.99
    )
    assert highest_of(np.full(5, -1), [np.zeros(5, int)], np.arange(5), 2).n == 0


def test_what_cannot_be_judged_is_refused() -> None:
    with pytest.raises(PrivetError, match="mask"):
        judge(
            np.zeros(2),
            np.zeros(2),
            np.zeros(2),
            np.zeros(2),
            np.zeros(2),
            Attribute("hair", "mask"),
            "lower",
        )
    with pytest.raises(PrivetError, match="no adversaries"):
        highest_of(np.zeros(2, int), [], np.zeros(2), 2)
