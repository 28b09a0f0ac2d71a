"""Whom an attribute is read of: the headline's measure within groups of people, and how sure an
adversary is per record."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privet.evidence import Array
from privet.evidence.attribute import Attribute
from privet.evidence.figures import Direction, Figure, Group, Risk
from privet.evidence.intervals import clopper_pearson
from privet.evidence.leakage import as_codes, as_probabilities, balanced_figure
from privet.evidence.person_intervals import accuracy_over_people
from privet.evidence.regression import explained_figure

SURE = 0.9


def by_group(
    truth: Array,
    guesses: Array,
    person: Array,
    groups: Mapping[str, tuple[Array, tuple[str, ...]]],
    attribute: Attribute,
    better: Direction = "lower",
    least: int = 50,
) -> tuple[Group, ...]:
    """The score of `attribute` among the records of each value of other attributes, by their name
    and then by code.

    `guesses` are codes at the chosen threshold, or numbers. `groups` names codes (-1 where missing)
    and what they are called. Of fewer than `least` records, or of one value of the attribute, a
    group says nothing and is left out. Many groups are looked at, each with an interval of its own:
    one in twenty misses.

    >>> truth = np.arange(400) % 2
    >>> # only the young are read
    >>> right = np.arange(400) < 200
    >>> ages = {"age": ((~right).astype(int), ("young", "old"))}
    >>> found = by_group(
    ...     truth,
    ...     np.where(right, truth, 0),
    ...     np.arange(400),
    ...     ages,
    ...     Attribute("sex", "binary", ("a", "b")),
    ... )
    >>> [(group.value, group.score.value) for group in found]
    [('young', 1.0), ('old', 0.5)]
    """
    truth, guesses, person = np.asarray(truth), np.asarray(guesses), np.asarray(person)
    there = truth >= 0 if attribute.is_class else np.isfinite(truth)
    found = []
    for name in sorted(groups):
        codes, values = groups[name]
        for code, value in enumerate(values):
            own = there & (np.asarray(codes) == code)
            if own.sum() < least or len(np.unique(truth[own])) < 2:
                continue
            if attribute.is_class:
                score = balanced_figure(
                    truth[own], guesses[own], attribute.classes, better, person[own]
                )
            else:
                score = explained_figure(truth[own], guesses[own], person[own], better)
            found.append(Group(name, value, score))
    return tuple(found)


def risk(
    truth: Array, probabilities: Array, person: Array | None = None, better: Direction = "lower"
) -> Risk:
    """How the probability of the true value is spread over the records, and the share that is read
    right and surely.

    Whoever knows only that one value has at least nine tenths of the records is sure of it: chance
    is its share then, else 0.

    >>> found = risk(np.array([0, 1, 1]), np.array([[0.95, 0.05], [0.5, 0.5], [0.9, 0.1]]))
    >>> found.counts, round(found.sure.value, 3)
    ((0, 1, 0, 0, 0, 1, 0, 0, 0, 1), 0.333)
    """
    truth = np.asarray(truth)
    there = truth >= 0
    codes, table = as_codes(truth[there]), as_probabilities(np.asarray(probabilities)[there])
    n, own = len(codes), table[np.arange(len(codes)), codes]
    sure = own >= SURE - 1e-9
    edges = np.linspace(0, 1, 11)
    # A probability that rounding put just below an edge belongs above it; 1 belongs to the last
    # bin.
    counts = np.bincount(np.minimum((own * 10 + 1e-6).astype(np.int64), 9), minlength=10)
    right, top = int(sure.sum()), float(np.bincount(codes).max() / n) if n else 0.0
    who = np.arange(n) if person is None else np.asarray(person)[there]
    if len(np.unique(who)) == n:
        kind, (low, high) = "Clopper-Pearson 95 %", clopper_pearson(right, n)
    else:
        kind, (low, high) = (
            "bootstrap over people 95 %",
            accuracy_over_people(who, np.ones(n, dtype=np.int64), sure.astype(np.int64)),
        )
    figure = Figure(
        right / n if n else 0.0,
        low,
        high,
        n,
        top if top >= SURE else 0.0,
        better=better,
        interval=kind,
        measure="share read right with at least 90 % sureness",
        note="By the adversary's own probabilities, which may be too sure or not sure enough.",
    )
    return Risk(
        tuple(round(float(edge), 1) for edge in edges),
        tuple(int(count) for count in counts),
        figure,
    )
