"""What methods aim at beside one bound for everybody: a bound for people of whom something is known
beside the release.

    V_s  =  (1 / k) sum over outcomes z of  max_a P(z | value a, group s)

within every group s: each value of each attribute that the adversary knows, the private values
equally likely within it. All bounds, that of everybody among them, hold at once with the
certificate's confidence: half of what may fail is for everybody, half is shared by all groups. A
group is allowed what the target leaves after its own slack for as many of its people as *test* has;
one whose slack leaves too little of the target is kept near guessing, and its bound is then what
its slack allows. Groups that are too small for that are left out, and the card names them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from privet.data.dataset import Array, Attribute, Dataset
from privet.methods.known_labels import one_hot_known

# Of what may fail, the share that is for the bound of everybody where groups have bounds too.
FOR_EVERYBODY = 0.5
# A group with more slack than this is too small to aim at anything.
MOST_SLACK = 0.1
# How far above guessing a small group may be, at least.
NEAR_GUESSING = 0.05


class Aim(NamedTuple):
    """A bound to aim at for one private attribute: of everybody, or of one group.

    Parameters:
        attribute: The private attribute.
        by: The known attribute; None for everybody.
        value: Its value in this group, an index.
        people: People of *test* who have each private value that occurs there.
        target: The bound.
        confidence: How sure this bound by itself has to be.
        allowed: Success that the target leaves on a sample, after slack and margin.
    """

    attribute: Attribute
    by: Attribute | None
    value: int
    people: tuple[int, ...]
    target: float
    confidence: float
    allowed: float

    @property
    def name(self) -> str:
        known = f" given {self.by.name} = {self.by.values[self.value]}" if self.by else ""
        return f"{self.attribute.name}{known}"

    def inside(self, labels: Mapping[str, Array]) -> Array:
        """Which records belong to the group and have a private value."""
        known = labels[self.attribute.name] >= 0
        if self.by is None:
            return known
        return np.asarray(known & (labels[self.by.name] == self.value))


def people_per_value(data: Dataset, attribute: Attribute) -> tuple[int, ...]:
    """How many people each value of the attribute has, of the values that occur."""
    labels = data.labels[attribute.name]
    counts = [len(np.unique(data.people[labels == value])) for value in range(attribute.classes)]
    return tuple(n for n in counts if n)


def group_aims(
    test: Dataset,
    attribute: Attribute,
    known: Sequence[Attribute],
    target: float,
    delta: float,
    margin: float,
) -> tuple[list[Aim], list[str]]:
    """The groups to aim at for one private attribute, and the names of those that are too small;
    `delta` is what may fail for all of them together."""
    from privet.evidence.certificate.sampling import balanced_slack

    groups = [(by, value) for by in known for value in range(by.classes)]
    confidence = 1 - delta / max(len(groups), 1)
    aims, small = [], []
    for by, value in groups:
        members = test.take(np.flatnonzero(test.labels[by.name] == value))
        people = people_per_value(members, attribute)
        aim = Aim(attribute, by, value, people, target, confidence, 1.0)
        slack = balanced_slack(people, 1 - confidence) if len(people) > 1 else 1.0
        if len(people) < attribute.classes or slack > MOST_SLACK:
            small.append(f"{by.name} = {by.values[value]}")
            continue
        allowed = max(target - slack - margin, 1 / attribute.classes + NEAR_GUESSING)
        aims.append(aim._replace(target=allowed + slack + margin, allowed=allowed))
    return aims, small


def members(aims: Sequence[Aim], labels: Mapping[str, Tensor]) -> Tensor:
    """Which cell each record is in, (n, aims, values): the group of each aim, by private value.

    The aims are for one private attribute; a record is in the cells of several groups.
    """
    attribute = aims[0].attribute
    values = one_hot_known(labels[attribute.name], attribute.classes)
    groups = [
        values.new_ones(len(values)) if aim.by is None else (labels[aim.by.name] == aim.value)
        for aim in aims
    ]
    return torch.stack([group.to(values.dtype) for group in groups], 1).unsqueeze(2) * (
        values.unsqueeze(1)
    )
