"""How well a number was guessed: share of variance explained, absolute error, guesses that come
close, and their order.

Truth and guesses are finite floats; whoever calls has dropped the records without a label. What is
known without any data is one constant guess, learned on *select*. Intervals draw people anew, and
all but that of the order are functions of sums.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import t

from privet.evidence import Array
from privet.evidence.figures import Direction, Figure
from privet.evidence.intervals import Interval
from privet.evidence.person_intervals import bootstrap_people
from privet.evidence.roc import rank_correlation_over_people

OTHER: dict[Direction, Literal["lower", "higher"]] = {"lower": "higher", "higher": "lower"}
CLOSE = 0.1


def explained(truth: npt.ArrayLike, guesses: npt.ArrayLike) -> float:
    """R^2 = 1 - sum (y - g)^2 / sum (y - mean y)^2; 0 where y does not vary, and below 0 where a
    constant does better.

    >>> explained([1, 2, 3], [1, 2, 3]), explained([1, 2, 3], [2, 2, 2]), explained([5, 5], [1, 9])
    (1.0, 0.0, 0.0)
    """
    y, g = _pair(truth, guesses)
    spread = float(((y - y.mean()) ** 2).sum()) if len(y) else 0.0
    return 1 - float(((y - g) ** 2).sum()) / spread if spread > 0 else 0.0


def explained_figure(
    truth: npt.ArrayLike,
    guesses: npt.ArrayLike,
    person: npt.ArrayLike,
    better: Direction,
    confidence: float = 0.95,
) -> Figure:
    """R^2 with its interval over people; a kind of person never seen counts as guessed no better
    than by a constant.

    At each end the wider of two limits: people drawn anew, and Student's t around the jackknife
    over people of log(1 - R^2), less its bias. A sample holds less spread than its source, so R^2
    of few people errs low and so does drawing them anew: alone it covered 83 % for 12 people and 88
    % for 30 in simulation, both together 94 % and 96 %.

    Where nothing varies there is nothing to explain: 0 with the interval (0, 1).

    Source: Efron and Tibshirani, An introduction to the bootstrap (1993), chapters 11 and 13.

    >>> y = np.arange(40.0)
    >>> figure = explained_figure(y, y + np.tile([4, -4], 20), range(40), "lower")
    >>> round(figure.value, 2), figure.low < figure.value < figure.high, figure.chance
    (0.88, True, 0.0)
    """
    y, g = _pair(truth, guesses)
    value = explained(y, g)
    kind, note = f"bootstrap and jackknife over people {100 * confidence:g} %", ""
    if not len(y) or np.ptp(y) == 0:
        kind, note = (
            "the whole range",
            (
                "All true values are the same: there is nothing to explain."
                if len(y)
                else "There are no records."
            ),
        )
        low, high = 0.0, 1.0
    else:
        scaled, error = (y - y.mean()) / y.std(), (y - g) / y.std()
        inputs = np.stack([np.ones(len(y)), scaled, scaled**2, error**2], axis=1)
        worst = (min(value, 0.0), 1.0)
        drawn = bootstrap_people(
            person, inputs, _explained, confidence, bounds=(-np.inf, 1.0), unseen=worst
        )
        left_out = _jackknife(np.asarray(person), inputs, confidence) or drawn
        low, high = min(drawn.low, left_out.low), max(drawn.high, left_out.high)
    return Figure(
        value,
        low,
        high,
        len(y),
        0.0,
        better=better,
        interval=kind,
        measure="share of variance explained",
        note=note,
    )


def error_figure(
    truth: npt.ArrayLike,
    guesses: npt.ArrayLike,
    person: npt.ArrayLike,
    better: Direction,
    constant: float,
    confidence: float = 0.95,
) -> Figure:
    """Mean absolute error beside that of always guessing `constant`. An error is good where reading
    is bad: `better` turns round.

    >>> figure = error_figure([1, 2, 3, 6], [1, 2, 3, 4], range(4), "lower", constant=2.5)
    >>> figure.value, figure.chance, figure.better, figure.unit
    (0.5, 1.5, 'higher', 'its own unit')
    """
    y, g = _pair(truth, guesses)
    miss = abs(y - g)
    chance = float(abs(y - constant).mean()) if len(y) else 0.0
    value = float(miss.mean()) if len(y) else chance
    kind, (low, high) = "", (value, value)
    if len(y):
        kind, worst = f"bootstrap over people {100 * confidence:g} %", (0.0, max(chance, value))
        low, high = bootstrap_people(
            person,
            np.c_[miss, np.ones(len(y))],
            _mean,
            confidence,
            bounds=(0.0, np.inf),
            unseen=worst,
        )
    return Figure(
        value, low, high, len(y), chance, "its own unit", OTHER[better], kind, "mean absolute error"
    )


def close_figure(
    truth: npt.ArrayLike,
    guesses: npt.ArrayLike,
    person: npt.ArrayLike,
    better: Direction,
    constant: float,
    confidence: float = 0.95,
) -> Figure:
    """Share of guesses within a tenth of the true value, |g - y| <= 0.1 |y|, beside that of always
    guessing `constant`.

    >>> figure = close_figure([10, 20, 30, 40], [10.9, 23, 30, 37], range(4), "lower", constant=38)
    >>> figure.value, figure.chance
    (0.75, 0.25)
    """
    y, g = _pair(truth, guesses)
    near, blind = (abs(y - said) <= CLOSE * abs(y) for said in (g, constant))
    chance = float(blind.mean()) if len(y) else 0.0
    low, high = bootstrap_people(person, np.c_[near, np.ones(len(y))], _mean, confidence)
    kind = f"bootstrap over people {100 * confidence:g} %" if len(y) else "the whole range"
    note = "Of a value near 0 hardly any guess is within a tenth."
    value = float(near.mean()) if len(y) else chance
    return Figure(
        value,
        low,
        high,
        len(y),
        chance,
        better=better,
        interval=kind,
        measure="share within 10 % of the true value",
        note=note,
    )


def rank_figure(
    truth: npt.ArrayLike,
    guesses: npt.ArrayLike,
    person: npt.ArrayLike,
    better: Direction,
    confidence: float = 0.95,
) -> Figure:
    """Spearman's rank correlation of truth and guesses; 0 with the interval (-1, 1) where one side
    is constant.

    >>> rank_figure([1, 2, 3, 4], [2, 3, 5, 9], range(4), "lower").value
    1.0
    """
    y, g = _pair(truth, guesses)
    found = rank_correlation_over_people(person, y, g, confidence)
    if found is None:
        note = "The true values or the guesses are all the same: they have no order."
        return Figure(
            0.0,
            -1.0,
            1.0,
            len(y),
            0.0,
            "correlation",
            better,
            "the whole range",
            "rank correlation",
            note,
        )
    kind = f"bootstrap over people {100 * confidence:g} %"
    return Figure(
        round(found.value, 12),
        *found.interval,
        len(y),
        0.0,
        "correlation",
        better,
        kind,
        "rank correlation",
    )


def likeliest(values: npt.ArrayLike) -> float:
    """The constant that lies within a tenth of the most `values`: what guesses that come close are
    compared with.

    c is within a tenth of y where it lies between 0.9 y and 1.1 y. Both ends rise with y, so the
    values that share some c are neighbours: from one whose upper end is c to the last whose lower
    end is not beyond it. The middle of what they share is taken.

    >>> round(likeliest([1, 9.5, 10, 11]), 6)
    10.175
    """
    y = np.sort(np.asarray(values, dtype=np.float64))
    if not len(y):
        return 0.0
    first, last = np.sort(np.stack([(1 - CLOSE) * y, (1 + CLOSE) * y]), axis=0)
    until = (
        np.searchsorted(first, last - 1e-9 * abs(last), "right") - 1
    )  # what touches in a point shares nothing
    best = int((until - np.arange(len(y))).argmax())
    return float(first[until[best]] / 2 + last[best] / 2)


def _explained(sums: Array) -> Array:
    n, total, squares, errors = sums.T
    spread = squares - total**2 / n
    # Of people who all have one value, rounding leaves a spread that is none.
    return np.where(spread > 1e-9 * n, 1 - errors / spread, np.nan)


def _jackknife(person: Array, inputs: Array, confidence: float) -> Interval | None:
    """Limits for R^2 by way of log(1 - R^2), leaving out one person at a time; None where that is
    not defined."""
    place = np.unique(person, return_inverse=True)[1]
    sums = np.stack([np.bincount(place, column) for column in inputs.T], axis=1)
    people, total = len(sums), sums.sum(0)
    if people < 2:
        return None
    with np.errstate(
        divide="ignore", invalid="ignore"
    ):  # of the others there may be one value, or no error
        value, without = (np.log(1 - _explained(some)) for some in (total[None], total - sums))
    if not (np.isfinite(value).all() and np.isfinite(without).all()):
        return None
    middle = people * float(value[0]) - (people - 1) * float(without.mean())
    wide = float(t.ppf((1 + confidence) / 2, people - 1) * np.sqrt((people - 1) * without.var()))
    return Interval(float(-np.expm1(min(middle + wide, 700.0))), float(-np.expm1(middle - wide)))


def _mean(sums: Array) -> Array:
    return np.asarray(sums[:, 0] / sums[:, 1])


def _pair(truth: npt.ArrayLike, guesses: npt.ArrayLike) -> tuple[Array, Array]:
    y, g = np.asarray(truth, dtype=np.float64), np.asarray(guesses, dtype=np.float64)
    assert y.ndim == 1 and y.shape == g.shape, (
        f"{y.shape} numbers do not go with {g.shape} guesses."
    )
    assert np.isfinite(y).all() and np.isfinite(g).all(), "A number or a guess is not finite."
    return y, g
