"""Figures in which every person weighs the same, as in certificates, beside those in which every
record does."""

from __future__ import annotations

import numpy as np

from privet.evidence import Array
from privet.evidence.figures import Direction, Figure
from privet.evidence.leakage import chance
from privet.evidence.person_intervals import bootstrap_people


def people_figures(
    truth: Array, guesses: Array, likeliest: Array, person: Array, better: Direction = "lower"
) -> dict[str, Figure]:
    """Balanced accuracy of `guesses` and accuracy of `likeliest`, the share of right answers being
    taken within each person first. Empty where nobody has two records: then they are the audit's
    own figures.

    >>> # one person with eight records that are read, eight with one record each that are not
    >>> person, truth = np.array([0] * 8 + [1, 2, 3, 4, 5, 6, 7, 8]), np.array([1] * 8 + [1, 0] * 4)
    >>> said = np.array([1] * 8 + [0] * 8)
    >>> found = people_figures(truth, said, said, person)
    >>> round(found["balanced_by_people"].value, 2)  # 0.83 where every record weighs the same
    0.6
    """
    if len(np.unique(person)) == len(person) or not len(person):
        return {}
    codes, right, figures = np.unique(truth), truth == guesses, {}
    percent = "bootstrap over people 95 %"
    if len(codes) > 1:
        member = (truth[:, None] == codes) * _one_over_count(person, truth)[:, None]
        inputs = np.hstack([member * right[:, None], member])
        fewest = min(len(np.unique(person[truth == code])) for code in codes)
        low, high = bootstrap_people(person, inputs, _mean_share, people=fewest)
        figures["balanced_by_people"] = Figure(
            float(_mean_share(inputs.sum(0)[None])[0]),
            low,
            high,
            len(np.unique(person)),
            1 / len(codes),
            better=better,
            interval=percent,
            measure="balanced accuracy, every person weighing the same",
            note="As in certificates; the headline weighs every record the same.",
        )
    weight = _one_over_count(person, np.zeros(len(person)))
    inputs = np.c_[weight * (truth == likeliest), weight]
    low, high = bootstrap_people(person, inputs, _mean_share)
    figures["accuracy_by_people"] = Figure(
        float(_mean_share(inputs.sum(0)[None])[0]),
        low,
        high,
        len(np.unique(person)),
        chance(truth, int(truth.max()) + 1)[0],
        better=better,
        interval=percent,
        measure="accuracy at the real frequencies, every person weighing the same",
        note="Guessing is always saying the commonest value of a record.",
    )
    return figures


def _one_over_count(person: Array, label: Array) -> Array:
    """One over how many records the person has with the same label, for every record."""
    pairs = np.stack([person, label], axis=1)
    _, place, count = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    return np.asarray(1 / count[place.ravel()])


def _mean_share(sums: Array) -> Array:
    right, everything = np.hsplit(sums, 2)
    return np.asarray((right / everything).mean(1))
