"""Every value of an attribute against the rest.

The mean over many values hides a value that is read well among values that are not, and a few
people of rare values make it uncertain. So each value is judged by itself: how well it is told from
all the others, by the adversary and the threshold that do best at it on *select*, counted on
*test*, with intervals that hold for all values at once (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from privet.evidence import Array
from privet.evidence.attribute import Attribute
from privet.evidence.figures import ClassScore, Direction
from privet.evidence.leakage import balanced_accuracy, balanced_figure, best_threshold
from privet.evidence.person_intervals import best_of

# Fewer test people than this say little about their value.
RARE = 50


class Answers(NamedTuple):
    """One adversary's probabilities (n, classes).

    Parameters:
        adversary: What it is called.
        select: Of the records of *select*.
        test: Of the records of *test*.
    """

    adversary: str
    select: Array
    test: Array


def class_scores(
    truth_select: Array,
    truth_test: Array,
    person_test: Array,
    adversaries: Sequence[Answers],
    attribute: Attribute,
    better: Direction = "lower",
) -> tuple[ClassScore, ...]:
    """Every value that occurs on *test* against the rest, the most readable first.

    Labels are codes with -1 where missing. Of two values, telling one from the rest is telling the
    other: both get the same score, and nothing is corrected.

    >>> truth, size = np.arange(600) % 3, Attribute("size", "categorical", ("s", "m", "l"))
    >>> blind = np.full((600, 3), 1 / 3)
    >>> sees_l = np.where(truth[:, None] == 2, [[0.1, 0.1, 0.8]], [[0.45, 0.45, 0.1]])
    >>> both = [Answers("blind", blind, blind), Answers("sees l", sees_l, sees_l)]
    >>> first, *others = class_scores(truth, truth, np.arange(600), both, size)
    >>> first.value, first.score.value, first.people, first.adversary
    ('l', 1.0, 200, 'sees l')
    """
    known, present = truth_select >= 0, truth_test >= 0
    select, truth, people = truth_select[known], truth_test[present], person_test[present]
    values = [code for code in range(attribute.classes) if (truth == code).any()]
    if len(values) < 2 or not adversaries:
        return ()
    statements = len(values) if len(values) > 2 else 1
    scores = []
    for code in values if len(values) > 2 else values[1:]:
        tries = [_guesses(select == code, one, code, known, present) for one in adversaries]
        best = int(np.argmax([score for score, _ in tries]))
        member = (truth == code).astype(np.int64)
        figure = balanced_figure(member, tries[best][1], 2, better, people, best_of(statements))
        if statements > 1:
            kind = figure.interval.rsplit(" ", 2)[0].rstrip(",")
            figure = replace(figure, interval=f"{kind}, 95 % for all {statements} at once")
        scores.append((code, figure, adversaries[best].adversary))
    if len(values) == 2:
        scores.append((values[0], *scores[0][1:]))
    counts = {code: len(np.unique(people[truth == code])) for code in values}
    judged = [
        ClassScore(attribute.values[code], counts[code], figure, name, counts[code] < RARE)
        for code, figure, name in scores
    ]
    return tuple(sorted(judged, key=lambda one: -one.score.low))


def _guesses(
    member: Array, adversary: Answers, code: int, known: Array, present: Array
) -> tuple[float, Array]:
    """Balanced accuracy on *select*, and what is said on *test*, at the best threshold of
    *select*; where *select* does not have the value, or nothing else, nobody is said to have it."""
    select, test = (
        np.nan_to_num(answers[:, code], nan=0.5, posinf=0.5, neginf=0.5)
        for answers in (adversary.select[known], adversary.test[present])
    )
    if member.all() or not member.any():
        return 0.5, np.zeros(len(test), dtype=np.int64)
    threshold = best_threshold(member.astype(np.int64), select)
    score = balanced_accuracy(member.astype(np.int64), (select > threshold).astype(np.int64))
    return score, (test > threshold).astype(np.int64)
