"""Figures that go by the order of scores, with intervals from drawing people anew: AUC, its tail,
and rank correlation.

A draw is a vector of how often each person was taken. With records sorted by score once, every draw
is a cumulative sum of weights along that order; there is no sorting per draw and no loop over
records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from privet.evidence import Array
from privet.evidence.intervals import Interval
from privet.evidence.person_intervals import affordable, by_content, draw, ends


class Estimate(NamedTuple):
    """A value and its interval."""

    value: float
    interval: Interval


def auc_over_people(
    person: npt.ArrayLike,
    truth: npt.ArrayLike,
    scores: npt.ArrayLike,
    confidence: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> Estimate | None:
    """Area under the ROC curve as `leakage.auc` counts it, with people drawn anew; None where fewer
    than two classes occur.

    With weights w of the records, for one class against the rest::

        AUC = sum over i in the class of w_i (W(below s_i) + W(up to s_i)) / 2
              / (W in the class x W outside it)

    where W(below s) is the weight outside the class of records with a lower score. A draw without
    one of the classes is not defined. As every estimate of a curve from few people it is rough: the
    smallest class counts as the number of people.

    Sources: Hanley and McNeil, Radiology 143 (1982), 29-36; for several records per person
    Obuchowski, Nonparametric analysis of clustered ROC curve data, Biometrics 53 (1997), 567-578.

    >>> truth = np.arange(60) % 2
    >>> area, (low, high) = auc_over_people(
    ...     np.arange(60) // 2, truth, truth + np.arange(60) % 5 / 2
    ... )
    >>> round(area, 3), low < area < high
    (0.82, True)
    """
    codes, table = _checked(truth, scores)
    present = np.unique(codes)
    if len(present) < 2:
        return None
    if table.shape[1] == 2:
        present = np.array([1])
    place, people = _places(person, codes, table)
    curves = [_sides(table[:, c], codes == c, place) for c in present]

    def area(weights: Array) -> Array:
        return np.asarray(np.mean([_area(weights, curve) for curve in curves], axis=0))

    value = float(area(np.ones((1, people)))[0])
    found = draw(area, people, affordable(len(codes) * len(curves), draws), seed, size=len(codes))
    return Estimate(value, ends(found, value, _fewest(codes, place), confidence))


def tpr_over_people(
    person: npt.ArrayLike,
    truth: npt.ArrayLike,
    score: npt.ArrayLike,
    fpr: float = 0.01,
    confidence: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> Estimate | None:
    """Share of class 1 found while at most a share `fpr` of class 0 is flagged, as `bayes.tpr_at`,
    with people drawn anew.

    The threshold is set anew in every draw. None where a class is absent.

    >>> truth = np.arange(400) % 2
    >>> found, (low, high) = tpr_over_people(np.arange(400), truth, truth * np.arange(400) / 400)
    >>> round(found, 3), low <= found <= high
    (1.0, True)
    """
    codes, table = _checked(truth, score)
    if len(np.unique(codes)) < 2:
        return None
    place, people = _places(person, codes, table)
    order = np.argsort(-table[:, 1], kind="stable")
    falling, inside, who = table[order, 1], codes[order] == 1, place[order]
    last = np.append(
        np.flatnonzero(np.diff(falling)), len(falling) - 1
    )  # a threshold takes all records of a score, or none
    caught = [np.append(0, np.cumsum(side))[last + 1] for side in (inside, ~inside)]

    def rate(weights: Array) -> Array:
        hits, alarms = (_cumulate(weights[:, who[side]]) for side in (inside, ~inside))
        allowed = fpr * alarms[:, -1:] + 1e-9
        far = (alarms[:, caught[1]] <= allowed).sum(1)
        at = np.append(0, caught[0])[far]
        return _divide(
            np.take_along_axis(hits, at[:, None], 1)[:, 0],
            np.where(alarms[:, -1] > 0, hits[:, -1], 0),
        )

    value = float(rate(np.ones((1, people)))[0])
    found = draw(rate, people, affordable(len(codes), draws), seed, size=len(codes))
    return Estimate(value, ends(found, value, _fewest(codes, place), confidence))


def rank_correlation_over_people(
    person: npt.ArrayLike,
    truth: npt.ArrayLike,
    guesses: npt.ArrayLike,
    confidence: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> Estimate | None:
    """Spearman's rank correlation (ties get their mean rank) with people drawn anew; None where
    either side is constant.

    Source: Spearman, The proof and measurement of association between two things, American Journal
    of Psychology 15 (1904).

    >>> rho, (low, high) = rank_correlation_over_people(
    ...     range(50), np.arange(50.0), np.arange(50.0) ** 3
    ... )
    >>> round(rho, 6), high
    (1.0, 1.0)
    """
    sides = [np.asarray(side, dtype=np.float64) for side in (truth, guesses)]
    assert sides[0].shape == sides[1].shape, (
        f"{len(sides[0])} numbers do not go with {len(sides[1])} guesses."
    )
    if not len(sides[0]) or any(np.ptp(side) == 0 for side in sides):
        return None
    place, people = _places(person, sides[0], np.stack(sides, axis=1))
    ranks = [_ranking(side, place) for side in sides]

    def correlation(weights: Array) -> Array:
        each = weights[:, place]
        total = each.sum(1, keepdims=True)
        left, right = (rank(weights) for rank in ranks)
        left, right = (side - (each * side).sum(1, keepdims=True) / total for side in (left, right))
        spread = (each * left**2).sum(1) * (each * right**2).sum(1)
        return _divide((each * left * right).sum(1), np.sqrt(spread))

    value = float(np.clip(correlation(np.ones((1, people)))[0], -1, 1))
    found = draw(correlation, people, affordable(2 * len(place), draws), seed, size=2 * len(place))
    return Estimate(value, ends(found, value, people, confidence, bounds=(-1.0, 1.0)))


class _Sides(NamedTuple):
    """One class against the rest, along rising scores.

    Parameters:
        inside: Who the records of the class are of.
        below: For each record of the class, how many records outside have a lower score,
        upto: and how many a score that is not higher; None where no scores are equal and it is the
            same.
    """

    inside: Array
    outside: Array
    below: Array
    upto: Array | None


def _sides(score: Array, member: Array, place: Array) -> _Sides:
    rest = np.argsort(score[~member], kind="stable")
    rising = score[~member][rest]
    below, upto = (np.searchsorted(rising, score[member], side) for side in ("left", "right"))
    return _Sides(
        place[member], place[~member][rest], below, None if (below == upto).all() else upto
    )


def _area(weights: Array, curve: _Sides) -> Array:
    inside, outside = weights[:, curve.inside], _cumulate(weights[:, curve.outside])
    won = np.einsum("ij,ij->i", inside, outside[:, curve.below])
    if curve.upto is not None:
        won = (won + np.einsum("ij,ij->i", inside, outside[:, curve.upto])) / 2
    return _divide(won, inside.sum(1) * outside[:, -1])


def _ranking(side: Array, place: Array) -> Callable[[Array], Array]:
    """Weights of people to the mean ranks of their records, up to a constant."""
    order = np.argsort(side, kind="stable")
    rising = side[order]
    below, upto = np.searchsorted(rising, side, "left"), np.searchsorted(rising, side, "right")

    def ranks(weights: Array) -> Array:
        along = _cumulate(weights[:, place[order]])
        return np.asarray(along[:, below] + along[:, upto]) / 2

    return ranks


def _cumulate(weights: Array) -> Array:
    """Sums of the first 0, 1, 2, ... columns."""
    along = np.zeros((len(weights), weights.shape[1] + 1))
    np.cumsum(weights, axis=1, out=along[:, 1:])
    return along


def _divide(above: Array, below: Array) -> Array:
    return np.where(below > 0, above / np.where(below > 0, below, 1), np.nan)


def _fewest(codes: Array, place: Array) -> int:
    """People of the class that has the fewest."""
    pairs = np.unique(np.stack([codes, place]), axis=1)[0]
    return int(np.unique(pairs, return_counts=True)[1].min())


def _places(person: npt.ArrayLike, truth: Array, table: Array) -> tuple[Array, int]:
    """Who each record is of, as 0..P-1 in an order that does not depend on names, and P."""
    names, place = np.unique(np.asarray(person), return_inverse=True)
    assert place.shape == truth.shape, (
        f"{len(place)} records have a person, but {len(truth)} have a label."
    )
    rank = np.empty(len(names), dtype=np.int64)
    rank[by_content(place, len(names), truth, *table.T)] = np.arange(len(names))
    return rank[place], len(names)


def _checked(truth: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[Array, Array]:
    """Codes, and scores with a column per class; scores of class 1 alone become its column of
    two."""
    codes, table = np.asarray(truth, dtype=np.int64), np.asarray(scores, dtype=np.float64)
    assert np.isfinite(table).all(), "A score is not a finite number."
    assert len(codes) == len(table), f"{len(codes)} labels do not go with {len(table)} scores."
    table = np.stack([-table, table], axis=1) if table.ndim == 1 else table
    assert codes.min(initial=0) >= 0, "A label is missing (-1): drop those records before counting."
    assert codes.max(initial=0) < table.shape[1], (
        f"A label is {codes.max()}, but the scores know only {table.shape[1]} classes."
    )
    return codes, table
