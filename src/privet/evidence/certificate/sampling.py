"""The people that a bound is computed from: what their codes weigh, and how far such a sample may
be from all people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from privet.core.errors import PrivetError
from privet.evidence import Array

Weighing = Literal["people", "records"]


@dataclass(frozen=True)
class Sample:
    """Distinct codes in a fixed order, so that neither the order of records nor the names of people
    matter.

    Parameters:
        codes: (n, d)
        within: (n, k): weight of the code among the people of each value; columns sum to 1.
        joint: (n, k): weight of the code and value among all people; sums to 1.
        held: (people, k): weight of the person among the people, or records, of each value.
        shares: (people,): weight of the person among all; sums to 1.
    """

    codes: Array
    within: Array
    joint: Array
    held: Array
    shares: Array

    @property
    def people(self) -> tuple[int, ...]:
        return tuple(int(n) for n in (self.held > 0).sum(0))

    @staticmethod
    def of(
        codes: Array, labels: Array, person: Array, k: int, weighing: Weighing = "people"
    ) -> Sample:
        """Every person of a value weighs the same, and so does each of the person's records; or,
        weighing records, every record of a value weighs the same.

        With records, the bound is for people who have as many records of each value as these have:
        given those counts, records of person i enter a fixed rule's success under value a with
        weight n_ia / n_a in all, people are independent, and Hoeffding holds with that influence.
        """
        everyone, who = np.unique(person, return_inverse=True)
        records = np.bincount(who * k + labels, minlength=len(everyone) * k).reshape(-1, k)
        weights = records if weighing == "records" else records > 0
        held = weights / np.maximum(weights.sum(0), 1)
        total = records.sum(1)
        shares = total / max(len(labels), 1)
        if weighing == "people":
            shares = np.full(len(everyone), 1 / max(len(everyone), 1))
        distinct, place = np.unique(
            codes + 0.0, axis=0, return_inverse=True
        )  # + 0.0 makes -0.0 the same code as 0.0

        def gather(weights: Array) -> Array:
            return np.bincount(place.ravel() * k + labels, weights, len(distinct) * k).reshape(
                -1, k
            )

        within = gather(held[who, labels] / records[who, labels])
        return Sample(distinct, within, gather((shares / total)[who]), held, shares)

    def prior(self, given: Sequence[float] | None) -> tuple[float, ...]:
        """How frequent the values are: among these people, or as given."""
        if given is None:
            return tuple(float(p) for p in self.joint.sum(0))
        if len(given) != self.within.shape[1] or min(given) < 0 or abs(sum(given) - 1) > 1e-9:
            raise PrivetError("A prior holds one probability per value, and they sum to 1.")
        return tuple(float(p) for p in given)

    def at(self, prior: Sequence[float] | None) -> Array:
        """(n, k): weight of the code and value at a prior that is given, or among all people."""
        return self.joint if prior is None else self.within * np.asarray(prior)


def checked(
    codes: Array, labels: Array, person: Array, values: Sequence[str]
) -> tuple[Array, Array, Array]:
    """One code, one label and one person per record, or a sentence that says what is wrong."""
    codes, labels, person = np.asarray(codes), np.asarray(labels), np.asarray(person)
    codes = codes[:, None] if codes.ndim == 1 else codes
    if codes.ndim != 2 or labels.shape != person.shape or labels.shape != codes.shape[:1]:
        shapes = f"{codes.shape}, {labels.shape} and {person.shape}"
        raise PrivetError(
            f"A certificate needs one code, one label and one person per record, not {shapes}."
        )
    if len(labels) and (
        labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= len(values)
    ):
        raise PrivetError(
            f"Labels must be whole numbers from 0 to {len(values) - 1}: leave out records whose"
            " value is missing."
        )
    return codes, labels.astype(np.int64), person


def balanced_slack(people: Sequence[int], delta: float) -> float:
    """Hoeffding's slack for a balanced accuracy of so many people of each value, one value each.

    >>> round(balanced_slack([1000, 1000], 0.01), 4)
    0.0339
    """
    return math.sqrt(sum(1 / n for n in people) * math.log(1 / delta) / 2) / len(people)


def sampling_margin(people: Sequence[int], others: Sequence[int]) -> float:
    """Most that one standard deviation of the difference between two samples' balanced accuracies
    can be.

    >>> round(sampling_margin([1000, 1000], [1000, 1000]), 4)
    0.0158
    """
    return math.sqrt(sum(1 / n for n in (*people, *others))) / (2 * len(people))


def hoeffding(influence: Array, delta: float) -> float:
    """Hoeffding's slack for people (rows) with this influence under each value (columns);
    gaussian.py has the proof."""
    several = bool(((influence > 0).sum(1) > 1).any())
    spread = np.sqrt((influence**2).sum(0)).sum() if several else np.sqrt((influence**2).sum())
    return float(spread) * math.sqrt(math.log((influence.shape[1] if several else 1) / delta) / 2)


def bernstein(influence: Array, means: Sequence[float], delta: float) -> float:
    """Slack for people (rows) with this influence under each value (columns), for a rule that says
    a value of no more than a share `means` of the people of each.

    Person i adds u_i g_i with g_i in [0, 1], and sum_i u_i E g_i <= mean: the variance sum_i u_i^2
    Var g_i is at most max_i u_i times the mean, and at most sum_i u_i^2 / 4. Bernstein: v and the
    largest influence b give sqrt(2 v ln(1 / delta)) + b ln(1 / delta) / 3. `influence` may be
    scaled by value, as long as each column's influences sum to its scale.

    Source: Boucheron, Lugosi and Massart, Concentration inequalities (2013), corollary 2.11.

    >>> people = np.array([[1 / 1000, 0.0]] * 1000 + [[0.0, 1 / 1000]] * 1000)
    >>> round(bernstein(people, (0.01, 0.01), 0.01), 3), round(hoeffding(people, 0.01), 3)
    (0.015, 0.068)
    """
    several = bool(((influence > 0).sum(1) > 1).any())
    largest, scale = influence.max(0), influence.sum(0)
    variance = np.minimum(largest * scale * np.asarray(means), (influence**2).sum(0) / 4)
    if not several:
        variance, largest = variance.sum(keepdims=True), largest.max(keepdims=True)
    log = math.log((len(variance) if several else 1) / delta)
    return float((np.sqrt(2 * variance * log) + largest * log / 3).sum())
