"""Cases that only a changed line showed to be untested: what is negative, empty, or at an edge."""

from __future__ import annotations

from typing import Any

import jsonschema
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import log_softmax, softmax

from privet.evidence.attribute import Attribute
from privet.evidence.audit_schema import json_schema
from privet.evidence.calibration import calibrated
from privet.evidence.certificate.gaussian import certify
from privet.evidence.certificate.smoothing import GRID, REACH, grid_steps
from privet.evidence.fairness import fairness
from privet.evidence.figures import Direction
from privet.evidence.formatting import duration, percent, times
from privet.evidence.intervals import balanced_limits
from privet.evidence.person_intervals import ends
from privet.evidence.predictions import evidence_of, judge
from privet.evidence.roc import tpr_over_people

Array = npt.NDArray[Any]
CHANGE = Attribute("change", "number")
RACE = Attribute("race", "categorical", ("a", "b", "c"))


@pytest.mark.parametrize("better", ["lower", "higher"])
def test_numbers_below_zero_are_numbers(better: Direction) -> None:
    """Shifting a number by a constant changes no figure of it, and every figure has a direction."""
    random = np.random.default_rng(0)
    truth = random.normal(size=300)
    guesses, people = truth + 0.5 * random.normal(size=300), np.arange(300)

    def figures(shift: float) -> list[Any]:
        moved = (truth + shift, guesses + shift)
        on_select, score, plain, _ = judge(*moved, *moved, people, CHANGE, better)
        assert score.n == plain.n == 300 and score.better == better
        return [on_select, score.value, score.low, score.high, plain.value]

    assert figures(-10.0) == pytest.approx(figures(10.0))
    details = evidence_of(truth, guesses, truth, guesses, people, CHANGE, better)
    assert {figure.n for figure in details.values()} == {300}
    assert {figure.better for figure in details.values()} == {better}
    assert details["rank_correlation"].unit == "correlation"


def test_an_empty_or_uniform_select_chooses_nothing() -> None:
    truth, people = np.arange(60) % 3, np.arange(60)
    answers = np.eye(3)[truth] * 0.4 + 0.2
    on_select, score, _, _ = judge(
        np.zeros(20, int), np.eye(3)[np.zeros(20, int)], truth, answers, people, RACE, "lower"
    )
    assert on_select == 1 / 3, "one value on select: there was nothing to tell apart"
    assert score.value == 1.0
    number = truth.astype(float)
    none = np.zeros(0)
    found = evidence_of(none, none, number, number, people, CHANGE, "lower")
    assert found["within_10_percent"].value == 1.0


def test_a_class_that_nobody_has_and_nobody_says_is_no_part_of_f1() -> None:
    truth, people = np.arange(100) % 2, np.arange(100)
    said = np.where(np.arange(100) < 50, truth, 1 - truth)
    answers = np.eye(3)[said]
    found = evidence_of(truth, np.eye(3)[truth], truth, answers, people, RACE, "lower")
    assert found["f1"].value == pytest.approx(0.5)
    assert all(figure.interval == "bootstrap over people 95 %" for figure in found.values())


def test_calibration_is_at_the_least_loss() -> None:
    """No other temperature or bias nearby has a lower loss; classes and their biases differ."""
    random = np.random.default_rng(3)
    truth = random.choice(3, 400, p=[0.6, 0.3, 0.1])
    said = softmax(2 * np.eye(3)[truth] + 2 * random.normal(size=(400, 3)) + [0, 1, 2], axis=1)
    found = calibrated(truth, said, said)

    def loss(a: float, b: Array) -> float:
        out = log_softmax(a * np.log(said) + b, axis=1)
        return float(-out[np.arange(400), truth].mean() + (b**2).sum() / (20 * 400))

    # The biases' mean is free but for their own penalty, which is least at zero.
    rows = np.c_[np.log(said).ravel(), np.tile(np.eye(3), (400, 1)), np.repeat(np.eye(400), 3, 0)]
    a, *b = np.linalg.lstsq(rows, np.log(found).ravel(), rcond=None)[0][:4]
    bias = np.array(b) - np.mean(b)
    assert softmax(a * np.log(said) + bias, axis=1) == pytest.approx(found, abs=1e-6)
    least = loss(a, bias)
    for step in np.r_[np.eye(4), -np.eye(4)] * 0.02:
        assert loss(a + step[0], bias + step[1:]) > least


def test_classes_of_a_task_are_those_given_or_those_that_occur() -> None:
    """Of two classes one difference is enough; of three, each is looked at."""
    group, people = np.arange(400) % 2, np.arange(400)
    truth = np.arange(400) // 2 % 2
    said = np.where(group == 1, truth, 0)

    def width(classes: int | None) -> float:
        found = fairness("t", "g", truth, said, None, group, ("a", "b"), people, classes)
        figure = found.released["demographic_parity_difference"]
        return figure.high - figure.low

    assert width(None) == width(2) < width(3), "more differences at once, wider intervals"


def test_a_tail_with_no_false_positive_starts_at_nothing_caught() -> None:
    """With the highest score outside the class, nobody is caught before the first false alarm."""
    truth = np.r_[np.ones(50, int), np.zeros(50, int)]
    score = np.r_[np.linspace(0, 0.9, 50), np.linspace(0.1, 1.0, 50)]
    found = tpr_over_people(np.arange(100), truth, score, 0.01)
    assert found is not None and found.value == 0.0 and found.interval.low == 0.0


def test_words_at_their_edges() -> None:
    assert duration(3599) == "59 min 59 s" and duration(3600) == "1 h 0 min"
    assert times(0.996) == "over 99" and times(0.4) == "40"
    assert percent(0.57, "up") == "57.0", "a whole share is not rounded up"


def test_the_schema_asks_for_objects_and_explains_them() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    with pytest.raises(jsonschema.ValidationError, match="is not of type 'object'"):
        jsonschema.validate([], schema)
    assert all(kind["type"] == "object" for kind in schema["$defs"].values())
    assert all(kind["description"] for kind in schema["$defs"].values())
    explained = [f for kind in schema["$defs"].values() for f in kind["properties"].values()]
    assert any("description" in field for field in explained)


def test_a_reason_gives_the_numbers_that_it_is_about() -> None:
    """How many people it would take at this confidence, and which bound says nothing."""
    labels = np.arange(4) % 2
    few = certify(np.zeros((4, 1)), 1.0, labels, np.arange(4), "x", ("f", "m"), confidence=0.9)
    # ln(10) / (2 * 2 * 0.05^2)
    assert few.bound is None and "about 231 people of each value" in few.reason
    random, labels = np.random.default_rng(0), np.arange(200) % 2
    codes = random.normal(size=(200, 2))
    none = certify(codes, 1e-3, labels, np.arange(200), "x", ("f", "m"))
    assert none.bound is None and "a code of d = 2 and noise of 0.001" in none.reason
    assert "the bound would be 100.0 %" in none.reason and "100 people" in none.reason


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("sigma", [1.0, 1e-2, 1e-3, 1e-5, 1e-300])
def test_a_grid_has_no_more_points_than_it_may(d: int, sigma: float) -> None:
    codes = np.r_[np.zeros((1, d)), np.ones((1, d))]
    steps = grid_steps(codes, sigma)
    assert steps == 0 or ((1 / sigma + 2 * REACH + 1) * steps) ** d <= GRID


@given(
    hnp.arrays(np.int64, 3, elements=st.integers(0, 6)),
    st.sampled_from([0.5, 0.9, 0.99]),
)
def test_intervals_end_within_their_bounds(right: Array, confidence: float) -> None:
    low, high = balanced_limits(right[None], np.array([6, 7, 1000]), confidence)
    assert 0 <= low[0] <= (right / [6, 7, 1000]).mean() <= high[0] <= 1
    draws = np.linspace(0.0, 1.0, 50)
    around = ends(draws, right.mean() / 6, 2, confidence)
    assert 0 <= around.low <= right.mean() / 6 <= around.high <= 1
