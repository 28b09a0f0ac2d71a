"""What no adversary can beat that knows something about the person beside the release.

Side information s takes one of finitely many values: a label that is sent along, a column kept, a
group that everybody can see the person is in; numbers in ranges. Knowledge and release together can
tell more than either: s may be independent of the private value, z too, and (s, z) tell all. So a
bound on z alone says nothing about (s, z). Two statements do.

On average. A rule may use the pair (s, z). P_a is then the law of the pair (s, c) among people of
value a, and the argument of gaussian.py goes through word for word: f* is the best rule for the
true laws of pairs, person i has influence u_i on its success in the sample, and ::

    V(s, z)  <=  V^(s, z) + slack,     V^(s, z) = sum over s of integral of max_a pi_a P^_a(s, dz)

It is to be read beside V^(s), what s tells alone. Combinations that nobody in the sample has add
nothing to f*'s success there either, so that they need not be declared.

In every group at once. Among people who have a record with the value s of the side information, let
P_a,s be the law of the code of such a record: a person of value a who has one, then one of those.
Given who has which records of which s and a, people are independent, and within the group the same
bound holds, at a prior that is balanced within the group ::

    V_s  <=  V^_s + slack_s(delta / number of groups)      in all groups, with probability 1 - delta

The number of groups that a statement is made of may depend on how many people they have, because
the bounds hold given that; groups too small for any statement get none and cost none. Groups by the
label of a task give equalised odds: no model on top of z treats two values of the private attribute
that differently among people of one label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from privet.core.errors import PrivetError
from privet.evidence import Array
from privet.evidence.certificate.coded_people import CodedPeople, both_accuracies
from privet.evidence.certificate.gaussian import VACUOUS, Certificate, too_few
from privet.evidence.certificate.mechanisms import Mechanism
from privet.evidence.certificate.sampling import hoeffding
from privet.evidence.certificate.smoothing import Value
from privet.evidence.figures import CertifiedGroup

# How records are named whose side information is missing: that it is missing can be seen too.
MISSING = "missing"
# Fewest people of each value that a group is certified with: below, its slack at a usual confidence
# is above 15 points.
FEWEST = 50


@dataclass(frozen=True)
class SideInformation:
    """What an adversary knows about each record beside the release.

    Parameters:
        name: Of the attribute; of several, their names with 'and' between them.
        values: What it can be.
        labels: (n,), each an index into `values`; -1 where it is missing, which is a value of its
            own.
    """

    name: str
    values: tuple[str, ...]
    labels: Array

    def __post_init__(self) -> None:
        labels, values = np.asarray(self.labels), tuple(map(str, self.values))
        known = labels.dtype.kind in "iu" and labels.ndim == 1
        if not known or (len(labels) and (labels.min() < -1 or labels.max() >= len(values))):
            raise PrivetError(
                f"Side information '{self.name}' needs one whole number per record, from 0 to "
                f"{len(values) - 1}, or -1 where it is missing."
            )
        if len(labels) and labels.min() < 0:
            labels, values = np.where(labels < 0, len(values), labels), (*values, MISSING)
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "values", values)

    def take(self, rows: Array) -> SideInformation:
        """That of some of the records."""
        return replace(self, labels=self.labels[rows])

    @staticmethod
    def jointly(several: Sequence[SideInformation]) -> SideInformation:
        """All of it known at once: its values are the combinations that occur.

        >>> a = SideInformation("job", ("clerk", "nurse"), np.array([0, 1, 1]))
        >>> b = SideInformation("smoker", ("no", "yes"), np.array([1, 0, -1]))
        >>> both = SideInformation.jointly([a, b])
        >>> both.name, both.values, both.labels
        ('job and smoker', ('clerk, yes', 'nurse, no', 'nurse, missing'), array([0, 1, 2]))
        """
        table = np.stack([side.labels for side in several], 1)
        cells, labels = np.unique(table, axis=0, return_inverse=True)
        values = [
            ", ".join(side.values[i] for side, i in zip(several, cell, strict=True))
            for cell in cells
        ]
        return SideInformation(
            " and ".join(side.name for side in several), tuple(values), labels.ravel()
        )


@dataclass(frozen=True)
class CertifiedGiven:
    """What holds of an adversary that knows something beside the release.

    Parameters:
        average: Bound on guessing from (s, z), on average over people.
        alone: Balanced accuracy of the best guess from s without the release, among just these
            people.
        groups: The bound in every group by s, the highest first, then those not certified.
    """

    average: Certificate
    alone: float
    groups: tuple[CertifiedGroup, ...]


def certify_given(
    people: CodedPeople,
    mechanism: Mechanism,
    side: SideInformation,
    *,
    delta: float = 0.01,
    average: float = 0.2,
    fewest: int = FEWEST,
) -> CertifiedGiven:
    """Both statements about one piece of side information, holding together with probability 1 -
    delta, of which the share `average` goes to the first.

    >>> from privet.evidence.certificate.mechanisms import RandomisedSymbols
    >>> s, flip = np.arange(8000) % 2, np.arange(8000) // 2 % 2
    >>> people = CodedPeople(s ^ flip, flip, np.arange(8000), "sex", ("f", "m"))
    >>> side = SideInformation("job", ("clerk", "nurse"), s)
    >>> found = certify_given(people, RandomisedSymbols(2), side)
    >>> round(found.alone, 3), round(found.average.empirical, 3)  # neither tells, both tell all
    (0.5, 1.0)
    >>> [round(group.empirical, 3) for group in found.groups]
    [1.0, 1.0]
    """
    return CertifiedGiven(
        certify_average(people, mechanism, side, delta=average * delta),
        alone(people, side),
        certify_groups(people, mechanism, [side], delta=(1 - average) * delta, fewest=fewest),
    )


def certify_average(
    people: CodedPeople, mechanism: Mechanism, side: SideInformation, *, delta: float = 0.01
) -> Certificate:
    """What no adversary beats that knows s and sees a release, on average over people: balanced
    and plain accuracy, both at once."""
    _check_length(people, side)
    codes, blank = mechanism.check(people.codes), people.blank(mechanism, delta)
    if len(people.values) < 2:
        return replace(blank, reason=too_few(people.values))
    # The pair (s, c) is a code with one more coordinate, which gets no noise.
    sample = people.sample(np.column_stack([codes, side.labels]))
    blank = replace(blank, people=sample.people, prior=sample.prior(None))
    if reason := too_few(sample.people) or mechanism.refusal(codes):
        return replace(blank, reason=reason)
    pairs, cells = sample.codes[:, :-1].astype(codes.dtype), sample.codes[:, -1]
    order = np.argsort(cells, kind="stable")
    starts = np.flatnonzero(np.diff(cells[order], prepend=-1.0))
    total, left = [Value(0.0, 0.0), Value(0.0, 0.0)], delta
    for rows in np.split(order, starts[1:]):
        tables = [sample.within[rows] / len(people.values), sample.joint[rows]]
        found = mechanism.integrals(pairs[rows], tables, delta / len(starts))
        total = [
            Value(a.value + b.value, a.error + b.error)
            for a, b in zip(total, found.values, strict=True)
        ]
        left -= delta / len(starts) - found.left
    return both_accuracies(blank, sample, (total[0], total[1]), left)


def alone(people: CodedPeople, side: SideInformation) -> float:
    """Balanced accuracy of the best guess from s without the release, among just these people: no
    bound, a figure to read beside one."""
    _check_length(people, side)
    within = people.sample(side.labels[:, None]).within
    return float(within.max(1).sum() / max(within.shape[1], 1))


def certify_groups(
    people: CodedPeople,
    mechanism: Mechanism,
    sides: Sequence[SideInformation],
    *,
    delta: float = 0.01,
    fewest: int = FEWEST,
) -> tuple[CertifiedGroup, ...]:
    """The bound in every group by each of these, all at once with probability 1 - delta: the
    highest first, then those not certified, which have a reason.

    A group with fewer than `fewest` people of a value gets no statement.
    """
    codes, k = mechanism.check(people.codes), len(people.values)
    groups, rows = list[CertifiedGroup](), list[Array]()
    refusal = mechanism.refusal(codes) if k > 1 else too_few(people.values)
    for side in sides:
        _check_length(people, side)
        for index, value in enumerate(side.values):
            members = np.flatnonzero(side.labels == index)
            counts = people.take(members).sample(codes[members]).people
            reason = refusal or _too_small(counts, people.values, fewest)
            groups.append(
                CertifiedGroup(side.name, value, None, math.nan, math.nan, counts, reason)
            )
            rows.append(members)
    certified = sum(not group.reason for group in groups)
    groups = [
        group
        if group.reason
        else _bounded(group, people.take(members), codes[members], mechanism, delta / certified)
        for group, members in zip(groups, rows, strict=True)
    ]
    return tuple(sorted(groups, key=lambda g: (g.bound is None, -(g.bound or 0.0), -min(g.people))))


def _bounded(
    group: CertifiedGroup, members: CodedPeople, codes: Array, mechanism: Mechanism, delta: float
) -> CertifiedGroup:
    """The group with its bound."""
    k, sample = len(members.values), members.sample(codes)
    (even,), left = mechanism.integrals(sample.codes, [sample.within / k], delta)
    value = min(max(even.value, 1 / k), 1.0)
    slack = even.error + mechanism.spread(codes.shape[1]) * hoeffding(sample.held / k, left)
    group = replace(group, empirical=value, slack=slack)
    if 1 / k + slack >= VACUOUS:
        return replace(group, reason=f"too few people: {_counted(group.people, members.values)}")
    if value + slack >= VACUOUS:
        bound = 100 * min(value + slack, 1.0)
        return replace(group, reason=f"the bound would be {bound:.1f} %, which says nothing")
    return replace(group, bound=value + slack)


def _too_small(people: Sequence[int], values: Sequence[str], fewest: int) -> str:
    if min(people) >= max(fewest, 2):
        return ""
    return f"too few people: {_counted(people, values)}"


def _counted(people: Sequence[int], values: Sequence[str]) -> str:
    """How many people have the rarest value."""
    rarest = int(np.argmin(people))
    return f"{people[rarest]:,} of them {values[rarest]}"


def _check_length(people: CodedPeople, side: SideInformation) -> None:
    if len(side.labels) != len(people):
        raise PrivetError(
            f"Side information '{side.name}' is of {len(side.labels)} records, and "
            f"{len(people)} are certified."
        )
