"""What a certificate is about: one attribute, or several at once, and who of a part has which
value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from privet.core.errors import PrivetError
from privet.data.dataset import Array, Dataset
from privet.evidence.certificate.classes import binned, jointly, quantile_edges

RANGES = 4
"""A number is guessed as one of so many ranges, equally frequent among the *attack* people."""
FEW = 20
"""One person in so many may have records that contradict each other."""


class Question(NamedTuple):
    """One attribute, or several at once, of the people of one part."""

    name: str
    values: tuple[str, ...]
    labels: Array
    """Index into `values`; -1 where it is missing."""
    note: str = ""


def questions(data: Dataset, part: str, names: Sequence[str], joint: bool = True) -> list[Question]:
    """What is guessed about the people of a part; ranges of a number come from the *attack*
    people."""
    labels, people = data.part(part).labels, data.part(part).people
    found = []
    for name in names:
        attribute = data.attribute(name)
        if attribute.is_class:
            found.append(Question(name, attribute.values, *_one_value(labels[name], people)))
        elif attribute.kind == "number":
            edges = quantile_edges(data.part("attack").labels[name], RANGES)
            where, values = binned(labels[name], edges)
            found.append(
                Question(
                    name,
                    values,
                    where,
                    f"What is guessed is which range {name} lies in: {', '.join(values)}.",
                )
            )
        else:
            raise PrivetError(
                f"The private attribute '{name}' is a {attribute.kind}, and there is nothing to guess about it in one word."
            )
    if joint and len(found) > 1:
        both, values = jointly([q.labels for q in found], [q.values for q in found])
        found.append(
            Question(" and ".join(names), values, both, " ".join(q.note for q in found if q.note))
        )
    return found


def _one_value(labels: Array, people: Array) -> tuple[Array, str]:
    """Labels without those that contradict most of their person's, where few people have any; and a
    note on them.

    A person whose records disagree counts towards two values, and the bound then has to be paid for
    twice. Where hardly anybody does (one in FEW), the attribute is the person's and the rest are
    mistaken labels; where many do, it is the record's.
    """
    there = np.flatnonzero(labels >= 0)
    _, who = np.unique(people[there], return_inverse=True)
    if not len(there):
        return labels, ""
    counts = np.zeros((who.max() + 1, labels.max() + 1), dtype=np.int64)
    np.add.at(counts, (who, labels[there]), 1)
    mixed = (counts > 0).sum(1) > 1
    if not mixed.any() or mixed.sum() * FEW > len(counts):
        return labels, ""
    wrong = there[labels[there] != counts.argmax(1)[who]]
    kept = labels.copy()
    kept[wrong] = -1
    return (
        kept,
        f"{len(wrong):,} records of {int(mixed.sum()):,} people contradict most of their person's labels and were left out.",
    )


def people_of_each(question: Question, data: Dataset) -> list[int]:
    """How many people have each value."""
    there = question.labels >= 0
    pairs = np.unique(np.stack([question.labels[there], data.people[there]]), axis=1)
    return np.bincount(pairs[0], minlength=len(question.values)).tolist()  # type: ignore[no-any-return]
