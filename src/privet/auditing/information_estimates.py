"""Bits that released records carry: about an attribute by neighbours, about the records themselves
by bounds.

evidence/information.py has the estimates; here they get their records, their critic and their
interval, and become figures. Of a person with several records one is taken: near copies of a record
are no new neighbours, and no fair counterexamples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.stats import t

from privet.auditing.critic import train_critic
from privet.data.dataset import Array
from privet.evidence.certificate.classes import binned, quantile_edges
from privet.evidence.figures import Figure
from privet.evidence.information import (
    Information,
    gaussian_bound,
    infonce_bound,
    jensen_shannon_bound,
    knn_information,
    least_bits,
    reduction,
)
from privet.evidence.person_intervals import bootstrap_people

# Of the k-NN estimate: principal coordinates, folds of the jackknife, and most people, since the
# interval repeats the estimate for every fold.
COORDINATES = 8
FOLDS = 10
MOST_PEOPLE = 4000
# Of the critic: records that it learns from; people whom it is judged on, since the scores are a
# table of all with all; principal coordinates that it sees of a record, where less can only lower a
# lower bound.
LEARNED_RECORDS = 4000
JUDGED_PEOPLE = 2000
SEEN_COORDINATES = 128
# Records from which principal directions are found.
SAMPLE = 1000


def released_information(
    z: npt.ArrayLike, labels: npt.ArrayLike, person: npt.ArrayLike | None = None, seed: int = 0
) -> Figure:
    """k-NN estimate of I(z; u) in bits for released vectors z (n, d) and an attribute u, on the
    principal coordinates of z.

    Labels are codes with -1 where missing, or numbers with NaN, which are cut into eight parts of
    equal size first (the bits about the part are at most those about the number). The interval is
    value +- t se by the jackknife that leaves out a tenth of the people at a time; it knows of
    chance, not of the estimate's own error. Fewer than twenty people show nothing.

    Sources: `knn_information`; Shao and Wu, A general theory for jackknife variance estimation,
    Annals of Statistics 17 (1989), 1176-1197.

    >>> u = np.arange(600) % 2
    >>> z = u[:, None] + np.random.default_rng(0).normal(0, 0.05, (600, 1))
    >>> figure = released_information(z, u)
    >>> round(figure.value, 2), figure.unit, figure.chance
    (1.0, 'bits', 0.0)
    """
    points, codes = np.asarray(z, dtype=np.float64), np.asarray(labels)
    if codes.dtype.kind not in "iub":
        codes = binned(codes, quantile_edges(codes, 8))[0]
    assert points.ndim == 2 and len(points) == len(codes), (
        f"{len(codes)} labels do not go with vectors of shape {points.shape}."
    )
    people = np.arange(len(codes)) if person is None else np.asarray(person)
    rows = np.flatnonzero(codes >= 0)
    rows = rows[_one_each(people[rows], MOST_PEOPLE, seed)]
    points, codes = points[rows], codes[rows].astype(np.int64)
    if len(points):
        points = _principal(points, COORDINATES, standardise=False)(points)
    points = points[:, :COORDINATES]
    estimate = knn_information(points, codes)
    note = f"On {points.shape[1]} main coordinates and one record per person."
    top, note = estimate.cap or 0.0, f"{estimate.limit} {note}"
    figure = _bits(estimate.value, (0.0, top), estimate.n, "the whole range", "k-NN estimate", note)
    if len(codes) < 2 * FOLDS:
        return figure
    fold = np.random.default_rng(seed).permutation(len(codes)) % FOLDS
    parts = [fold != f for f in range(FOLDS)]
    without = np.array([knn_information(points[part], codes[part]).raw for part in parts])
    error = float(t.ppf(0.975, FOLDS - 1) * np.sqrt((FOLDS - 1) * without.var()))
    low, high = np.clip([estimate.raw - error, estimate.raw + error], 0, top).tolist()
    return replace(figure, low=low, high=high, interval="jackknife over people 95 %")


def contrastive_information(
    x: npt.ArrayLike, z: npt.ArrayLike, person: npt.ArrayLike | None = None, seed: int = 0
) -> dict[str, Figure]:
    """Lower bounds on I(x; z) in bits, of records x (n, d) and their released vectors z (n, e):
    InfoNCE and Jensen-Shannon.

    A critic (critic.py) learns to tell true pairs from mixed ones on four tenths of the people, is
    stopped where it does best on another tenth, and scores the other half. Intervals draw the
    judged people anew, with the partners that each is compared with held fixed, and know nothing of
    what a better critic would find.

    Sources: `infonce_bound`, `jensen_shannon_bound`.

    >>> noise = np.random.default_rng(0).normal(size=(2, 300, 2))
    >>> found = contrastive_information(noise[0], noise[1])
    >>> sorted(found), found["infonce"].value < 0.2
    (['infonce', 'jensen_shannon'], True)
    """
    sides = np.asarray(x), np.asarray(z)
    assert len(sides[0]) == len(sides[1]), (
        f"{len(sides[0])} records do not go with {len(sides[1])} released ones."
    )
    names = np.arange(len(sides[0])) if person is None else np.asarray(person)
    people, random = np.unique(names, return_inverse=True)[1], np.random.default_rng(seed)
    tenth = (random.permutation(int(people.max(initial=-1)) + 1) % 10)[people]
    rows = [random.permutation(np.flatnonzero(tenth < 4))[:LEARNED_RECORDS]]
    for others in (np.flatnonzero(tenth == 4), np.flatnonzero(tenth > 4)):
        rows.append(others[_one_each(people[others], JUDGED_PEOPLE, seed)])
    scores = np.zeros((0, 0))
    if min(map(len, rows)) >= 2:
        parts = [_flat_pairs(sides, some) for some in rows]
        project = [_principal(side, SEEN_COORDINATES) for side in parts[0]]
        learned, chosen, judged = ((project[0](left), project[1](right)) for left, right in parts)
        # Of few pairs a critic soon knows all by heart.
        steps = min(500, max(100, len(rows[0]) // 4))
        scores = train_critic(learned, chosen, seed, steps).scores(*judged)
    n, true = max(len(scores), 2), scores.diagonal()
    shown = (true - np.logaddexp.reduce(scores, axis=1, initial=-np.inf) + np.log(n)) / np.log(2)
    mixed = (np.logaddexp(0, scores).sum(1) - np.logaddexp(0, true)) / (n - 1)
    diverge = 1 - (np.logaddexp(0, -true) + mixed) / 2 / np.log(2)
    infonce, jensen = infonce_bound(scores), jensen_shannon_bound(scores)

    def within(raw: float, cap: float) -> float:
        return min(max(raw, 0.0), cap)

    return {
        "infonce": _bounded(infonce, shown, "InfoNCE lower bound", np.log2(n), within),
        "jensen_shannon": _bounded(jensen, diverge, "Jensen-Shannon lower bound", 1.0, least_bits),
    }


def _flat_pairs(sides: tuple[Array, Array], rows: Array) -> tuple[Array, Array]:
    left, right = (side[rows].reshape(len(rows), -1).astype(np.float32) for side in sides)
    return left, right


def gaussian_information(
    covariance: npt.ArrayLike, sigmas: npt.ArrayLike, n: int, before: npt.ArrayLike | None = None
) -> dict[str, Figure]:
    """Upper bound on the bits that a release with fresh Gaussian noise carries about its noise-free
    code, and Cloak's reduction.

    `covariance` is that of the code, counted on n records, and `sigmas` are the deviations of the
    noise per coordinate. `before` are those of the release to compare with: the reduction is 1 -
    bits / bits before, absent where there are none or they have no end. The bound itself has no end
    where a coordinate varies and gets no noise.

    Source: `gaussian_bound`.

    >>> found = gaussian_information(np.eye(4), np.full(4, 2.0), n=1000, before=np.full(4, 0.5))
    >>> {name: round(figure.value, 3) for name, figure in found.items()}
    {'gaussian_bound': 0.644, 'cloak_reduction': 0.861}
    """
    bound = gaussian_bound(covariance, sigmas)
    note = bound.limit
    if not np.isfinite(bound.value):
        note = f"Infinite: at least one coordinate varies and gets no noise. {note}"
    ends, measure = (bound.value, bound.value), "Gaussian upper bound"
    figures = {"gaussian_bound": _bits(bound.value, ends, n, "", measure, note)}
    share = None if before is None else reduction(gaussian_bound(covariance, before), bound)
    if share is not None:
        note = "Of two upper bounds: it says how much less could be there, not how much less is."
        measure = "share of the bound that is gone"
        figures["cloak_reduction"] = reduction_figure(share, n, measure, note)
    return figures


def reduction_figure(share: float, n: int, measure: str, note: str) -> Figure:
    """Cloak's figure, the share of the bits that is gone, without an interval."""
    return Figure(share, share, share, n, 1.0, "share", "higher", "", measure, note)


def _bits(
    value: float, ends: tuple[float, float], n: int, interval: str, measure: str, note: str
) -> Figure:
    return Figure(value, *ends, n, 0.0, "bits", "lower", interval, measure, note)


def _bounded(
    bound: Information,
    each: Array,
    measure: str,
    most: float,
    to_bits: Callable[[float, float], float],
) -> Figure:
    """A bound as a figure. The raw value, at most `most`, is the mean of `each`, one per person;
    `to_bits` makes bits of it."""
    if not len(each):
        note = f"Too few people to learn from and to judge on. {bound.limit}"
        return _bits(bound.value, (bound.value, bound.value), bound.n, "", measure, note)
    worst = (min(0.0, float(each.min())), float(most))
    inputs = np.c_[each, np.ones(len(each))]
    low, high = bootstrap_people(
        np.arange(len(each)), inputs, _mean, bounds=(-np.inf, np.inf), unseen=worst
    )
    ends = (to_bits(low, bound.cap or 0.0), to_bits(high, bound.cap or 0.0))
    note = f"{bound.limit} Of a release without noise there is no end to the truth."
    return _bits(bound.value, ends, bound.n, "bootstrap over people 95 %", measure, note)


def _one_each(person: Array, most: int, seed: int) -> Array:
    """Indices of one record of each person, in random order, of at most so many people."""
    order = np.random.default_rng(seed).permutation(len(person))
    first = np.unique(person[order], return_index=True)[1]
    return np.asarray(order[np.random.default_rng(seed).permutation(first)[:most]])


def _principal(sample: Array, most: int, standardise: bool = True) -> Callable[[Array], Array]:
    """Vectors to their coordinates along the principal directions of a sample (at most so many),
    each of unit deviation.

    Standardised first, a direction is principal where many columns agree; else where the sample
    varies most.

    Source: Halko, Martinsson and Tropp, Finding structure with randomness, SIAM Review 53 (2011),
    217-288.
    """
    mean, deviation = sample.mean(0), sample.std(0)
    scales = standardise or sample.shape[1] <= most
    deviation = np.where((deviation > 0) & scales, deviation, 1)

    def scaled(x: Array) -> Array:
        return np.asarray((x - mean) / deviation)

    if sample.shape[1] <= most:
        return scaled
    rows = scaled(sample[:SAMPLE])
    basis = np.random.default_rng(0).standard_normal((rows.shape[1], most + 8)).astype(rows.dtype)
    for _ in range(2):
        basis = np.linalg.qr(rows.T @ (rows @ basis))[0]
    _, values, rotation = np.linalg.svd(rows @ basis, full_matrices=False)
    along = np.maximum(values[:most], 1e-6 * max(float(values[0]), 1e-30)) / np.sqrt(len(rows))
    directions = (basis @ rotation.T[:, :most]) / along
    return lambda x: np.asarray(scaled(x) @ directions, dtype=x.dtype)


def _mean(sums: Array) -> Array:
    return np.asarray(sums[:, 0] / sums[:, 1])
