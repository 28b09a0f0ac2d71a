"""The learning curve of an attack: does it still gain from more records to learn from?

The adversary learns from the records of an eighth, a quarter and half of the *attack* people, and
is judged like the one that learned from all. Where the last doubling still gained something beyond
noise, an attacker with more records would read more than this audit says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from privet.adversaries.adversary import Tick, has_label, silent, span
from privet.auditing.attribute_attack import AttackResult, AttackTarget, run_adversary
from privet.data.dataset import Array
from privet.evidence.figures import CurvePoint, Direction, Figure
from privet.evidence.person_intervals import bootstrap_people
from privet.evidence.predictions import guesses_of

SHARES = (1 / 8, 1 / 4, 1 / 2)
# Fewer records of *attack* than this are not taken.
FEWEST_RECORDS = 100


class Curve(NamedTuple):
    """What an adversary reads after learning from fewer records.

    Parameters:
        points: The fewest records first, all of them last.
        gain: What the last doubling of people gained; None where there is nothing to compare.
    """

    points: tuple[CurvePoint, ...]
    gain: Figure | None


def learning_curve(
    whole: AttackResult, target: AttackTarget, seed: int = 0, tick: Tick = silent
) -> Curve:
    """The curve of one adversary; `whole` is its result after learning from everybody."""
    seen = target.parts["attack"]
    labelled = np.flatnonzero(has_label(target.labels("attack")))
    people = np.random.default_rng(seed).permutation(np.unique(seen.people[labelled]))
    points, last = [], None
    for done, share in enumerate(SHARES):
        some = people[: max(1, round(share * len(people)))]
        rows = labelled[np.isin(seen.people[labelled], some)]
        if len(rows) < FEWEST_RECORDS or _lacks_a_class(target, rows):
            continue
        parts = {**target.parts, "attack": seen.taking(rows)}
        part = span(tick, done / len(SHARES), (done + 1) / len(SHARES))
        last = run_adversary(whole.adversary, target._replace(parts=parts), seed, part)
        points.append(CurvePoint(len(rows), last.finding.score, whole.finding.called))
    if last is None:
        return Curve((), None)
    points.append(CurvePoint(len(labelled), whole.finding.score, whole.finding.called))
    gain = _gain(last, whole, target) if target.attribute.is_class else None
    return Curve(tuple(points), gain)


def _lacks_a_class(target: AttackTarget, rows: Array) -> bool:
    labels = target.labels("attack")
    return target.attribute.is_class and len(np.unique(labels[rows])) < 2


def _gain(half: AttackResult, whole: AttackResult, target: AttackTarget) -> Figure:
    select, truth = target.labels("select"), target.labels("test")
    present = has_label(truth)
    guesses = [
        guesses_of(select, one.select, one.test, target.attribute)[present] for one in (half, whole)
    ]
    people = target.parts["test"].people[present]
    return gain_figure(truth[present], guesses, people, target.better)


def gain_figure(
    truth: Array, guesses: Sequence[Array], person: Array, better: Direction = "lower"
) -> Figure:
    """By how much the second guesses' balanced accuracy is above that of the first, on the same
    people.

    >>> truth = np.arange(400) % 2
    >>> figure = gain_figure(truth, [np.zeros(400, int), truth], np.arange(400))
    >>> figure.value, figure.is_chance
    (0.5, False)
    """
    member = truth[:, None] == np.unique(truth)
    gained = (guesses[1] == truth).astype(float) - (guesses[0] == truth)
    inputs = np.hstack([member * gained[:, None], member])

    def statistic(sums: Array) -> Array:
        difference, size = np.hsplit(sums, 2)
        return np.asarray((difference / size).mean(1))

    fewest = min(len(np.unique(person[column])) for column in member.T)
    low, high = bootstrap_people(person, inputs, statistic, bounds=(-1.0, 1.0), people=fewest)
    return Figure(
        float(statistic(inputs.sum(0)[None])[0]),
        low,
        high,
        len(truth),
        0.0,
        better=better,
        interval="bootstrap over people 95 %",
        measure="balanced accuracy gained by twice as many people to learn from",
        note="Above 0 beyond noise: an attacker with more records would read more.",
    )
