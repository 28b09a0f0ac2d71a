"""What a certificate is about: one attribute, or several at once, and who of a part has which
value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from privet.core.errors import PrivetError
from privet.data.dataset import Array, Dataset
from privet.evidence.certificate.classes import binned, jointly, quantile_edges
from privet.evidence.certificate.side_information import SideInformation

# A number is guessed as one of so many ranges, equally frequent among the *attack* people.
RANGES = 4
# Of new people, each so-many-th sets the edges of ranges and is not counted.
EDGES = 4


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


class GivenAttributes(NamedTuple):
    """What is known beside a release.

    Parameters:
        names: The attributes, known all at once.
        known: Their values, per record.
    """

    names: tuple[str, ...]
    known: SideInformation


def guess_targets(
    data: Dataset, part: str, names: Sequence[str], joint: bool = True
) -> list[GuessTarget]:
    """What is guessed about the people of a part.

    With `joint`, several attributes are also guessed at once.
    """
    labels, people, targets = data.part(part).labels, data.part(part).people, []
    for name in names:
        attribute = data.attribute(name)
        if attribute.is_class:
            note = _contradictions(labels[name], people)
            targets.append(GuessTarget(name, attribute.values, labels[name], note))
        elif attribute.kind == "number":
            targets.append(_in_ranges(data, part, name))
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


def side_information(data: Dataset, part: str, words: Sequence[str]) -> list[GivenAttributes]:
    """What may be known about the people of a part beside a release: each word is an attribute, or
    several at once with + between them; a number is known by ranges.

    >>> import privet
    >>> people = privet.load("toy:gaussian")
    >>> [side.names for side in side_information(people, "test", ["u", "u"])]
    [('u',)]
    """
    sides = []
    for word in dict.fromkeys(words):
        together = word not in data.attributes and "+" in word
        names = tuple(w.strip() for w in word.split("+")) if together else (word,)
        known = [_side(data, part, name) for name in names]
        sides.append(
            GivenAttributes(names, SideInformation.jointly(known) if together else known[0])
        )
    return sides


def _side(data: Dataset, part: str, word: str) -> SideInformation:
    attribute = data.attribute(word)
    if attribute.is_class:
        return SideInformation(word, attribute.values, data.part(part).labels[word])
    if attribute.kind != "number" or not len(data.part("attack")):
        instead = "choose another, or give it bins in a --schema file"
        raise PrivetError(f"'{word}' is a {attribute.kind} and cannot be given: {instead}.")
    ranges = _in_ranges(data, part, word)
    return SideInformation(word, ranges.values, ranges.labels)


def _in_ranges(data: Dataset, part: str, name: str) -> GuessTarget:
    """A number as ranges with equally many people each. Their edges must not come from the people
    who are counted: they are those of *attack* or, where all people are new, of every fourth
    person, who then is not counted."""
    view, others = data.part(part), data.part("attack").labels[name]
    counted, said = view.labels[name], "found on the attack people"
    if not len(others):
        fourth = np.isin(view.people, np.unique(view.people)[::EDGES])
        others, counted = counted[fourth], np.where(fourth, np.nan, counted)
        said = f"found on every {EDGES}th of the people, who were not counted"
    codes, values = binned(counted, quantile_edges(others, RANGES))
    note = f"What is guessed is which range {name} lies in, {said}: {', '.join(values)}."
    return GuessTarget(name, values, codes, note)


def _contradictions(labels: Array, people: Array) -> str:
    """A note on people whose records have several values; empty where nobody's do.

    Such people count towards every value that they have, and the bound pays for it. Leaving their
    records out would judge other people than those who are released.
    """
    rows = np.flatnonzero(labels >= 0)
    pairs = np.unique(np.stack([people[rows], labels[rows]]), axis=1)
    mixed = int((np.unique(pairs[0], return_counts=True)[1] > 1).sum())
    if not mixed:
        return ""
    return (
        f"{mixed:,} people have records with several values: they count towards each of them, and "
        "nothing is left out."
    )


def people_per_value(target: GuessTarget, people: Array) -> list[int]:
    """How many people have each value."""
    present = target.labels >= 0
    pairs = np.unique(np.stack([target.labels[present], people[present]]), axis=1)
    counts: list[int] = np.bincount(pairs[0], minlength=len(target.values)).tolist()
    return counts
