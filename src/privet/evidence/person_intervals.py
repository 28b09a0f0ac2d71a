"""Intervals where one person has several records: whole people are drawn anew, not records.

A statistic that is a function of sums over records (`bootstrap_people`) needs one sum per person
and no pass over the records: accuracy is (sum of right) / (sum of ones), balanced accuracy the same
per class. Any other is written as a function of how often each person was drawn (`draw`, then
`ends`); curves.py has those that go by the order of scores.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.stats import norm, t

from privet.evidence import Array
from privet.evidence.intervals import Interval

# People drawn in one go: what fits a cache, whatever the number of draws.
AT_ONCE = 1 << 18
# People of one kind, on average, from which on kinds are drawn rather than people.
FEW_KINDS = 8
# Numbers looked at for one interval: where a draw takes many, there are fewer draws.
ENOUGH = 2 * 10**7


def bootstrap_people(
    person: npt.ArrayLike,
    statistic_inputs: npt.ArrayLike,
    statistic: Callable[[Array], Array],
    confidence: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    people: int | None = None,
    unseen: tuple[float, float] | None = None,
) -> Interval:
    """Interval for a function of sums over records, from `draws` samples of as many people with
    replacement.

    `person` (n,) names who each record is of, `statistic_inputs` (n, m) or (n,) holds what is
    summed, and `statistic` takes sums (draws, m) to values (draws,), or nan where it is not
    defined. `ends` makes the interval. Neither the order of the records nor the names of people
    change it.

    Source: Davison and Hinkley, Bootstrap methods and their application (1997), section 3.8.

    >>> # 100 people, always right or always wrong
    >>> person, right = np.arange(400) // 4, np.arange(400) // 4 % 4 > 0
    >>> low, high = bootstrap_people(
    ...     person, np.c_[right, np.ones(400)], lambda sums: sums[:, 0] / sums[:, 1]
    ... )
    >>> round(low, 2), round(high, 2)
    (0.66, 0.84)
    """
    assert 0 < confidence < 1, f"A confidence lies between 0 and 1, {confidence} does not."
    assert draws >= 1, f"{draws} draws show nothing."
    names, inputs = np.asarray(person), np.asarray(statistic_inputs, dtype=np.float64)
    inputs = inputs[:, None] if inputs.ndim == 1 else inputs
    assert names.ndim == 1 and inputs.ndim == 2, (
        f"One person per record and a row of inputs, not {names.shape} and {inputs.shape}."
    )
    assert len(names) == len(inputs), (
        f"{len(names)} records have a person, but {len(inputs)} have inputs."
    )
    assert np.isfinite(inputs).all(), "An input is not a finite number."
    known, place = np.unique(names, return_inverse=True)
    count = len(known) if people is None else people
    assert count <= len(known), f"A class cannot have {count} of {len(known)} people."
    sums = np.stack([np.bincount(place, column, len(known)) for column in inputs.T], axis=1)
    value = float(_evaluate(statistic, sums.sum(0)[None])[0])
    kinds, often = np.unique(
        sums, axis=0, return_counts=True
    )  # sorted: the same draws, whoever comes first
    if FEW_KINDS * len(kinds) < len(sums):
        # Who is drawn does not matter, only of which kind: so many of each are multinomial, and
        # need no draw per person.
        drawn = np.random.default_rng(seed).multinomial(len(sums), often / len(sums), draws)
        found = _evaluate(statistic, drawn @ kinds)
    else:
        everybody = np.repeat(kinds, often, axis=0)
        found = draw(
            lambda weights: _evaluate(statistic, weights @ everybody), len(known), draws, seed
        )
    return ends(found, value, count, confidence, bounds=bounds, unseen=unseen)


def draw(
    statistic: Callable[[Array], Array],
    people: int,
    draws: int = 1000,
    seed: int = 0,
    size: int = 0,
) -> Array:
    """Values of a statistic in `draws` samples of as many people, with replacement; some draws at a
    time.

    `statistic` takes how often each person was drawn, float64 (some, people), to values (some,) or
    (some, m). `size` is how many numbers it holds per draw, where that is more than one per person.

    >>> draw(lambda weights: weights.sum(1), people=7, draws=3)
    array([7., 7., 7.])
    """
    random, found = np.random.default_rng(seed), []
    at_once = max(AT_ONCE // max(people, size, 1), 1)
    for start in range(0, draws, at_once):
        some = min(at_once, draws - start)
        drawn = (
            random.integers(0, max(people, 1), (some, people)) + np.arange(some)[:, None] * people
        )
        found.append(
            statistic(
                np.bincount(drawn.ravel(), minlength=some * people)
                .reshape(some, people)
                .astype(np.float64)
            )
        )
    return np.concatenate(found)


def affordable(size: int, draws: int = 1000) -> int:
    """How many draws to take where each looks at `size` numbers: `draws`, or fewer, down to a
    hundred.

    >>> affordable(16_000), affordable(100_000), affordable(10**9)
    (1000, 200, 100)
    """
    return min(draws, max(100, ENOUGH // max(size, 1)))


def by_content(place: Array, people: int, *columns: Array) -> Array:
    """People 0..P-1 in an order that follows from what their records hold: then names and order of
    records change no draw.

    Each record becomes a point on a circle, and people are sorted by the sums of their points:
    equal only for equal records, but for an accident.

    >>> by_content(np.array([0, 0, 1]), 2, np.array([5, 6, 7])), by_content(
    ...     np.array([1, 0, 1]), 2, np.array([6, 7, 5])
    ... )
    (array([1, 0]), array([0, 1]))
    """
    angle = sum((np.sqrt(k + 2) * column for k, column in enumerate(columns)), np.zeros(len(place)))
    keys = [
        np.round(np.bincount(place, turn(angle), people), 9) for turn in (np.cos, np.sin)
    ]  # sums err in their last digits
    return np.lexsort(keys)


def ends(
    found: Array,
    value: float,
    people: int,
    confidence: float = 0.95,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    unseen: tuple[float, float] | None = None,
) -> Interval:
    """Interval around `value` from its draws `found`, nan where a draw was not defined. It lies
    within `bounds`.

    With P people and a = 1 - confidence, the ends are the b and 1 - b quantiles of the draws, where
    ::

        b = Phi(-sqrt(P / (P - 1)) t(1 - a / 2; P - 1))

    makes up for the bootstrap being too narrow for few people (Hesterberg), and at far tails, where
    fewer than ten draws lie beyond an end, at least v +- sqrt(P / (P - 1)) t sd around the value v.
    A draw that is not defined could have been anything, and counts beyond both ends.

    People who all agree have drawn nobody who differs: a kind of person never seen among P may
    still make up u = 1 - (a / 2)^(1 / P) of all, so the interval holds at least v + u (unseen - v).
    For a share of 0 or 1 with one record per person that is Clopper-Pearson's limit. `unseen` is
    what such people alone would make of the statistic at worst and at best: `bounds`, unless these
    have no end. Where the statistic divides by classes, P is how many people the smallest of them
    has.

    No people, or one, show no spread: then the interval is `unseen`.

    Source: Hesterberg, What teachers should know about the bootstrap, The American Statistician 69
    (2015), 371-386.

    >>> low, high = ends(np.linspace(0.4, 0.6, 1001), 0.5, people=10_000)
    >>> round(low, 3), round(high, 3)
    (0.405, 0.595)
    """
    worst = bounds if unseen is None else unseen
    if people < 2 or not np.isfinite(value):
        return Interval(*worst)
    wide = float(np.sqrt(people / (people - 1)) * t.ppf(1 - (1 - confidence) / 2, people - 1))
    tail = float(norm.cdf(-wide))
    undefined = np.isnan(found)
    if undefined.all():
        return Interval(*worst)
    low = float(
        np.quantile(
            np.where(undefined, min(worst[0], np.nanmin(found)), found), tail, method="lower"
        )
    )
    high = float(
        np.quantile(
            np.where(undefined, max(worst[1], np.nanmax(found)), found), 1 - tail, method="higher"
        )
    )
    if tail * len(found) < 10:
        spread = wide * float(found[~undefined].std())
        low, high = min(low, value - spread), max(high, value + spread)
    share = 1 - ((1 - confidence) / 2) ** (1 / people)
    low, high = (
        min(low, value + share * (worst[0] - value)),
        max(high, value + share * (worst[1] - value)),
    )
    return Interval(float(np.clip(low, *bounds)), float(np.clip(high, *bounds)))


def accuracy_over_people(
    person: npt.ArrayLike,
    truth: npt.ArrayLike,
    guesses: npt.ArrayLike,
    confidence: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> Interval:
    """Interval for accuracy. With one record per person it is close to Clopper-Pearson, and the
    same at 0 and n of n.

    >>> low, high = accuracy_over_people(range(20), [1] * 20, [1] * 20)
    >>> round(low, 4), high
    (0.8316, 1.0)
    """
    right = np.asarray(truth) == np.asarray(guesses)
    return bootstrap_people(
        person, np.c_[right, np.ones(len(right))], _share, confidence, draws, seed
    )


def balanced_over_people(
    person: npt.ArrayLike,
    truth: npt.ArrayLike,
    guesses: npt.ArrayLike,
    confidence: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> Interval:
    """Interval for balanced accuracy over the classes that are present.

    A draw without one of them is not defined: with a class of six people or fewer among many the
    interval is all of (0, 1).

    >>> person, truth = np.arange(400) // 4, np.arange(400) // 4 % 2
    >>> low, high = balanced_over_people(
    ...     person, truth, np.where(np.arange(400) % 5 > 0, truth, 1 - truth)
    ... )
    >>> low < 0.8 < high
    True
    """
    codes, said, names = np.asarray(truth), np.asarray(guesses), np.asarray(person)
    assert len(codes) == len(said), f"{len(codes)} labels do not go with {len(said)} guesses."
    assert codes.min(initial=0) >= 0, "A label is missing (-1): drop those records before counting."
    member = codes[:, None] == np.unique(codes)
    if not len(codes):
        return Interval(0.0, 1.0)
    people = min(len(np.unique(names[column])) for column in member.T)
    inputs = np.hstack([member & (codes == said)[:, None], member])
    return bootstrap_people(names, inputs, _mean_recall, confidence, draws, seed, people=people)


def best_of(k: int, confidence: float = 0.95) -> float:
    """The confidence each of k intervals needs, so that all hold at once with `confidence`, and so
    the best one does.

    Bonferroni: 1 - (1 - confidence) / k, whatever the dependence between them. Needed where the
    best of k was picked on the records that it is reported on; not where it was picked on *select*
    and is reported on *test*.

    Source: Dunn, Multiple comparisons among means, Journal of the American Statistical Association
    56 (1961), 52-64.

    >>> round(best_of(10), 4), best_of(1)
    (0.995, 0.95)
    """
    assert k >= 1, f"The best of {k} does not exist."
    assert 0 < confidence < 1, f"A confidence lies between 0 and 1, {confidence} does not."
    return 1 - (1 - confidence) / k if k > 1 else confidence


def _evaluate(statistic: Callable[[Array], Array], sums: Array) -> Array:
    with np.errstate(
        divide="ignore", invalid="ignore"
    ):  # a draw may hold nobody of a class: nan says so
        values = np.asarray(statistic(sums), dtype=np.float64)
    assert values.shape == sums.shape[:1], (
        f"A statistic gives one value per draw, not the shape {values.shape}."
    )
    return np.where(np.isfinite(values), values, np.nan)


def _share(sums: Array) -> Array:
    return np.asarray(sums[:, 0] / sums[:, 1])


def _mean_recall(sums: Array) -> Array:
    right, all_ = np.hsplit(sums, 2)
    return np.asarray((right / all_).mean(1))
