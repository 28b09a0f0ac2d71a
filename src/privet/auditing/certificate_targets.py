"""What a certificate is about: one attribute, or several at once, and who of a part has which
value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from privet.core.errors import PrivetError
from privet.data.dataset import Array, Dataset
from privet.evidence.certificate.classes import binned, jointly, quantile_edges

# A number is guessed as one of so many ranges, equally frequent among the *attack* people.
RANGES = 4
# One person in so many may have records that contradict each other.
ONE_IN = 20


class GuessTarget(NamedTuple):
    """What is guessed about the people of one part.

    Parameters:
        name: Of the attribute, or of several at once.
        values: What it can be.
        labels: Of every record, an index into `values`; -1 where it is missing.
        note: How the values came about, in one sentence.
    """

    name: str
    values: tuple[str, ...]
    labels: Array
    note: str = ""


def guess_targets(
    data: Dataset, part: str, names: Sequence[str], joint: bool = True
) -> list[GuessTarget]:
    """What is guessed about the people of a part; ranges of a number come from the *attack* people.

    With `joint`, several attributes are also guessed at once.
    """
    labels, people, targets = data.part(part).labels, data.part(part).people, []
    for name in names:
        attribute = data.attribute(name)
        if attribute.is_class:
            own, note = _consistent(labels[name], people)
            targets.append(GuessTarget(name, attribute.values, own, note))
        elif attribute.kind == "number":
            edges = quantile_edges(data.part("attack").labels[name], RANGES)
            own, values = binned(labels[name], edges)
            note = f"What is guessed is which range {name} lies in: {', '.join(values)}."
            targets.append(GuessTarget(name, values, own, note))
        else:
            raise PrivetError(
                f"The private attribute '{name}' is a {attribute.kind}, and there is nothing to "
                "guess about it in one word."
            )
    if joint and len(targets) > 1:
        own, values = jointly([t.labels for t in targets], [t.values for t in targets])
        note = " ".join(target.note for target in targets if target.note)
        targets.append(GuessTarget(" and ".join(names), values, own, note))
    return targets


def _consistent(labels: Array, people: Array) -> tuple[Array, str]:
    """Labels without those that contradict most of their person's, where few people have any; and a
    note on them.

    A person whose records disagree counts towards two values, and the bound then has to be paid for
    twice. Where hardly anybody does (one in ONE_IN), the attribute is the person's and the rest are
    mistaken labels; where many do, it is the record's.
    """
    rows = np.flatnonzero(labels >= 0)
    _, person = np.unique(people[rows], return_inverse=True)
    if not len(rows):
        return labels, ""
    counts = np.zeros((person.max() + 1, labels.max() + 1), dtype=np.int64)
    np.add.at(counts, (person, labels[rows]), 1)
    mixed = int(((counts > 0).sum(1) > 1).sum())
    if not mixed or mixed * ONE_IN > len(counts):
        return labels, ""
    wrong = rows[labels[rows] != counts.argmax(1)[person]]
    kept = labels.copy()
    kept[wrong] = -1
    note = (
        f"{len(wrong):,} records of {mixed:,} people contradict most of their person's labels and "
        "were left out."
    )
    return kept, note


def people_per_value(target: GuessTarget, people: Array) -> list[int]:
    """How many people have each value."""
    present = target.labels >= 0
    pairs = np.unique(np.stack([target.labels[present], people[present]]), axis=1)
    counts: list[int] = np.bincount(pairs[0], minlength=len(target.values)).tolist()
    return counts
