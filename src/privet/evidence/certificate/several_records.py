"""Several records of one person: all of them released and known to be the same person's, or one
release made of them.

m records seen together. The tuple of their codes is the code. P_a is the law of this tuple: a
person of value a who has m records or more, one of the person's records of that value, and m - 1
others of the person's records, drawn without repetition. What is guessed is the value of the first;
where the attribute is the person's, that is the value of all. Noise is drawn afresh for each, so
that the tuple is a code of d m numbers with Gaussian noise, or m symbols each replaced by itself,
and the bound is that of gaussian.py: f* is the best rule on tuples, person i adds the mean of its
success over some of the person's tuples, each drawn as P_a says, so that the mean has the right
expectation, lies in [0, 1], and is independent of other people's. Drawing several tuples per person
only makes V(P^) smoother. Nothing follows from the bound for one record: two records with equal
marginals and opposite coupling tell nothing one by one and everything together. The other way round
it does: who sees m records sees one.

It is a statement about people who have m records, and about records as they come: if people choose
*which* m to release by what is in them, another law of tuples leaves.

One release per person. The code is the mean of the codes of up to m records of the person, drawn
without repetition, and gets noise once. That is a code of d numbers again, one per person, and
nothing else of the bound changes: more records make the code of a person more exact, and the bound
is for that code.

Draws are made in an order of people and records that only depends on codes and labels, so neither
the order of a file nor the names of people change a bound. Given the data, the draws of different
people are independent and do not depend on that order.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from privet.core.errors import PrivetError
from privet.evidence import Array
from privet.evidence.certificate.coded_people import CodedPeople

# Tuples of all people together, about: more of them cost time in proportion.
TUPLES = 8000
# Most tuples of one person and value.
EACH = 16


def record_tuples(people: CodedPeople, records: int, *, seed: int = 0) -> Array:
    """Rows (tuples, records) of records of the same person, as the proof above has them; of people
    with fewer records there are none.

    >>> people = CodedPeople(np.arange(5.0), np.zeros(5, int), [1, 1, 1, 2, 3], "sex", ("f", "m"))
    >>> set(record_tuples(people, 3).ravel().tolist())
    {0, 1, 2}
    """
    if records < 1:
        raise PrivetError(f"An adversary sees at least one record of a person, not {records}.")
    who, order = _canonical(people)
    rows = order[np.bincount(who)[who[order]] >= records] if len(order) else order
    if records == 1 or not len(rows):
        return rows.reshape(-1, records)
    pairs = np.unique(who[rows] * len(people.values) + people.labels[rows])
    repeats = min(max(TUPLES // len(pairs), 1), EACH)
    random = np.random.default_rng(seed)
    tuples = [
        _tuples_of_value(value, people.labels, who, rows, records, random)
        for _ in range(repeats)
        for value in np.unique(people.labels[rows])
    ]
    return np.concatenate(tuples)


def tuples_of_records(people: CodedPeople, records: int, *, seed: int = 0) -> CodedPeople:
    """The same people, each code being that of so many of a person's records.

    Every person weighs the same. The bound is for people with so many records or more.

    >>> from privet.evidence.certificate.coded_people import certify_people
    >>> from privet.evidence.certificate.mechanisms import RandomisedSymbols
    >>> random, sex = np.random.default_rng(0), np.arange(2000) % 2
    >>> first = random.integers(0, 2, 2000)
    >>> codes = np.stack([first, first ^ sex], 1).ravel()  # equal, or opposite
    >>> people = CodedPeople(codes, sex.repeat(2), np.arange(2000).repeat(2), "sex", ("f", "m"))
    >>> one, two = people, tuples_of_records(people, 2)
    >>> [round(certify_people(p, RandomisedSymbols(2)).empirical, 2) for p in (one, two)]
    [0.51, 1.0]
    """
    rows = record_tuples(people, records, seed=seed)
    first = people.take(rows[:, 0])
    codes = people.codes[rows].reshape(len(rows), records * people.codes.shape[1])
    return replace(first, codes=codes, weighing="people")


def one_per_person(
    people: CodedPeople, records: int | None = None, *, seed: int = 0
) -> CodedPeople:
    """One code per person: the mean of the codes of all the person's records, or of so many of
    them. People with records of several values count under each.

    >>> people = CodedPeople([0.0, 1.0, 4.0], [0, 0, 1], ["a", "a", "b"], "sex", ("f", "m"))
    >>> one_per_person(people).codes.ravel()
    array([0.5, 4. ])
    """
    if records is not None and records < 1:
        raise PrivetError(f"A release is made of at least one record of a person, not {records}.")
    who, order = _canonical(people)
    if records is not None:
        keys = np.random.default_rng(seed).random(len(order))
        order = order[_place(who[order], keys) < records]
    codes = people.codes[order].astype(np.float64)
    number = np.bincount(who[order], minlength=who.max(initial=-1) + 1)
    sums = np.zeros((len(number), codes.shape[1]))
    np.add.at(sums, who[order], codes)
    _, first = np.unique(who * len(people.values) + people.labels, return_index=True)
    means = sums / np.maximum(number, 1)[:, None]
    return replace(people.take(first), codes=means[who[first]], weighing="people")


def _canonical(people: CodedPeople) -> tuple[Array, Array]:
    """People as numbers, and an order of records in which those of a person are together; neither
    depends on the order of records or on names, but where people have the very same records."""
    _, named = np.unique(people.person, return_inverse=True)
    by_content = np.lexsort((*people.codes.T[::-1], people.labels, named))
    starts = np.flatnonzero(np.diff(named[by_content], prepend=-1))
    sizes = np.diff(starts, append=len(named))
    lowest = by_content[starts]
    places = np.lexsort((sizes, *people.codes[lowest].T[::-1], people.labels[lowest]))
    number = np.empty(len(places), dtype=np.int64)
    number[places] = np.arange(len(places))
    who = number[named]
    return who, np.lexsort((*people.codes.T[::-1], people.labels, who))


def _tuples_of_value(
    value: int,
    labels: Array,
    who: Array,
    rows: Array,
    records: int,
    random: np.random.Generator,
) -> Array:
    """One tuple per person of this value: a record of the value, then others of the person's."""
    own = rows[labels[rows] == value]
    first = own[_place(who[own], random.random(len(own))) == 0]
    all_of_them = rows[np.isin(who[rows], who[first])]
    keys = random.random(len(all_of_them))
    keys[np.isin(all_of_them, first)] = -1.0
    order = np.lexsort((keys, who[all_of_them]))
    chosen = _place(who[all_of_them], keys)[order] < records
    return all_of_them[order][chosen].reshape(-1, records)


def _place(groups: Array, keys: Array) -> Array:
    """Each entry's place within its group, in the order of the keys."""
    order = np.lexsort((keys, groups))
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    sizes = np.diff(starts, append=len(groups))
    place = np.empty(len(groups), dtype=np.int64)
    place[order] = np.arange(len(groups)) - np.repeat(starts, sizes)
    return place
