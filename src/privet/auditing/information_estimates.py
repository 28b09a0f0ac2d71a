"""Bits that released records carry: about an attribute by neighbours, about the records themselves
by bounds.

information.py has the estimates; here they get their records, their critic and their interval, and
become figures. Of a person with several records one is taken: near copies of a record are no new
neighbours, and no fair counterexamples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import t

from privet.auditing.critic import learn
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

Array = npt.NDArray[Any]
COORDINATES = 8
FOLDS = 10
MOST = 4000
"""People for the k-NN estimate: the interval repeats it ten times."""
LEARNED = 4000
"""Records that a critic learns from."""
ROWS = 1000
"""Records from which main directions are found."""
PAIRS = 2000
"""People whom a critic is judged on: the scores are a table of all with all."""
WIDE = 128
"""Principal coordinates a critic sees of a record: less of it can only lower a lower bound."""


def released_information(
    z: npt.ArrayLike, labels: npt.ArrayLike, person: npt.ArrayLike | None = None, seed: int = 0
) -> Figure:
    """k-NN estimate of I(z; u) in bits for released vectors z (n, d) and an attribute u, on the
    main coordinates of z.

    Labels are codes with -1 where missing, or numbers with NaN, which are cut into eight parts of
    equal size first (the bits about the part are at most those about the number). The interval is
    value +- t se by the jackknife that leaves out a tenth of the people at a time; it knows of
    chance, not of the estimate's own error. Fewer than twenty people show nothing.

    Sources: `knn_information`; Shao and Wu, A general theory for jackknife variance estimation,
    Annals of Statistics 17 (1989), 1176-1197.

    >>> u = np.arange(600) % 2
    >>> figure = released_information(
    ...     u[:, None] + np.random.default_rng(0).normal(0, 0.05, (600, 1)), u
    ... )
    >>> round(figure.value, 2), figure.unit, figure.chance
    (1.0, 'bits', 0.0)
    """
    points, codes = np.asarray(z, dtype=np.float64), _cut(np.asarray(labels))
    assert points.ndim == 2 and len(points) == len(codes), (
        f"{len(codes)} labels do not go with vectors of shape {points.shape}."
    )
    there = np.flatnonzero(codes >= 0)
    kept = there[
        _one_each(
            np.arange(len(codes))[there] if person is None else np.asarray(person)[there],
            MOST,
            seed,
        )
    ]
    points, codes = points[kept], codes[kept]
    points = (
        _principal(points, COORDINATES, standardise=False)(points)
        if len(points)
        else points[:, :COORDINATES]
    )
    found = knn_information(points, codes)
    words = f"On {points.shape[1]} main coordinates and one record per person."
    top = found.cap or 0.0
    figure = Figure(
        found.value,
        0.0,
        top,
        found.n,
        0.0,
        "bits",
        "lower",
        "the whole range",
        "k-NN estimate",
        f"{found.limit} {words}",
    )
    if len(codes) < 2 * FOLDS:
        return figure
    fold = np.random.default_rng(seed).permutation(len(codes)) % FOLDS
    without = np.array(
        [knn_information(points[fold != f], codes[fold != f]).raw for f in range(FOLDS)]
    )
    wide = float(t.ppf(0.975, FOLDS - 1) * np.sqrt((FOLDS - 1) * without.var()))
    low, high = (float(np.clip(end, 0, top)) for end in (found.raw - wide, found.raw + wide))
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
    left, right = np.asarray(x), np.asarray(z)
    assert len(left) == len(right), (
        f"{len(left)} records do not go with {len(right)} released ones."
    )
    people = np.unique(
        np.arange(len(left)) if person is None else np.asarray(person), return_inverse=True
    )[1]
    random = np.random.default_rng(seed)
    tenth = (random.permutation(int(people.max(initial=-1)) + 1) % 10)[people]
    learned = random.permutation(np.flatnonzero(tenth < 4))[:LEARNED]
    other, judged = (
        rows[_one_each(people[rows], PAIRS, seed)]
        for rows in (np.flatnonzero(tenth == 4), np.flatnonzero(tenth > 4))
    )
    if min(len(learned), len(other), len(judged)) < 2:
        scores = np.zeros((0, 0))
    else:
        parts = [
            [side[rows].reshape(len(rows), -1).astype(np.float32) for side in (left, right)]
            for rows in (learned, other, judged)
        ]
        project = [_principal(side, WIDE) for side in parts[0]]
        seen = [[turn(side) for turn, side in zip(project, part, strict=True)] for part in parts]
        steps = min(
            500, max(100, len(learned) // 4)
        )  # of few pairs a critic soon knows all by heart
        scores = learn((seen[0][0], seen[0][1]), (seen[1][0], seen[1][1]), seed, steps).scores(
            seen[2][0], seen[2][1]
        )
    n = max(len(scores), 2)
    true = scores.diagonal()
    shown = (true - np.logaddexp.reduce(scores, axis=1, initial=-np.inf) + np.log(n)) / np.log(2)
    mixed = (np.logaddexp(0, scores).sum(1) - np.logaddexp(0, true)) / (n - 1)
    diverge = 1 - (np.logaddexp(0, -true) + mixed) / 2 / np.log(2)
    return {
        "infonce": _bounded(
            infonce_bound(scores),
            shown,
            "InfoNCE lower bound",
            np.log2(n),
            lambda raw, cap: min(max(raw, 0.0), cap),
        ),
        "jensen_shannon": _bounded(
            jensen_shannon_bound(scores), diverge, "Jensen-Shannon lower bound", 1.0, least_bits
        ),
    }


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
    figures = {
        "gaussian_bound": Figure(
            bound.value,
            bound.value,
            bound.value,
            n,
            0.0,
            "bits",
            "lower",
            "",
            "Gaussian upper bound",
            note,
        )
    }
    share = None if before is None else reduction(gaussian_bound(covariance, before), bound)
    if share is not None:
        note = "Of two upper bounds: it says how much less could be there, not how much less is."
        figures["cloak_reduction"] = Figure(
            share,
            share,
            share,
            n,
            1.0,
            "share",
            "higher",
            "",
            "share of the bound that is gone",
            note,
        )
    return figures


def _bounded(
    found: Information,
    each: Array,
    measure: str,
    most: float,
    turn: Callable[[float, float], float],
) -> Figure:
    """A bound as a figure. The raw value, at most `most`, is the mean of `each`, one per person;
    `turn` makes bits of it."""
    top = found.cap or 0.0
    low = high = found.value
    kind, note = (
        "",
        found.limit
        if len(each)
        else f"Too few people to learn from and to judge on. {found.limit}",
    )
    if len(each):
        worst = (min(0.0, float(each.min())), float(most))
        inputs = np.c_[each, np.ones(len(each))]
        ends = bootstrap_people(
            np.arange(len(each)), inputs, _mean, bounds=(-np.inf, np.inf), unseen=worst
        )
        low, high = (turn(end, top) for end in ends)
        kind, note = (
            "bootstrap over people 95 %",
            f"{note} Of a release without noise there is no end to the truth.",
        )
    return Figure(found.value, low, high, found.n, 0.0, "bits", "lower", kind, measure, note)


def _cut(labels: Array) -> Array:
    """Codes as they are; numbers as which eighth they are in, -1 where missing."""
    if labels.dtype.kind in "iub":
        return labels.astype(np.int64)
    there = np.isfinite(labels)
    edges = (
        np.unique(np.quantile(labels[there], np.arange(1, 8) / 8)) if there.any() else np.zeros(0)
    )
    return np.where(there, np.searchsorted(edges, np.where(there, labels, 0), "right"), -1)


def _one_each(person: Array, most: int, seed: int) -> Array:
    """Indices of one record of each person, in random order, of at most so many people."""
    order = np.random.default_rng(seed).permutation(len(person))
    first = np.unique(person[order], return_index=True)[1]
    return np.asarray(order[np.random.default_rng(seed).permutation(first)[:most]])


def _principal(sample: Array, most: int, standardise: bool = True) -> Callable[[Array], Array]:
    """Vectors to their coordinates along the main directions of a sample (at most so many), each of
    unit deviation.

    Standardised first, a direction is main where many columns agree; else where the sample varies
    most.

    Source: Halko, Martinsson and Tropp, Finding structure with randomness, SIAM Review 53 (2011),
    217-288.
    """
    mean, deviation = sample.mean(0), sample.std(0)
    deviation = (
        np.where(deviation > 0, deviation, 1)
        if standardise or sample.shape[1] <= most
        else np.ones_like(deviation)
    )

    def scaled(x: Array) -> Array:
        return np.asarray((x - mean) / deviation)

    if sample.shape[1] <= most:
        return scaled
    rows = scaled(sample[:ROWS])
    basis = np.random.default_rng(0).standard_normal((rows.shape[1], most + 8)).astype(rows.dtype)
    for _ in range(2):
        basis = np.linalg.qr(rows.T @ (rows @ basis))[0]
    _, values, turned = np.linalg.svd(rows @ basis, full_matrices=False)
    along = np.maximum(values[:most], 1e-6 * max(float(values[0]), 1e-30)) / np.sqrt(len(rows))
    directions = (basis @ turned.T[:, :most]) / along
    return lambda x: np.asarray(scaled(x) @ directions, dtype=x.dtype)


def _mean(sums: Array) -> Array:
    return np.asarray(sums[:, 0] / sums[:, 1])
