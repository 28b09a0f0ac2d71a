"""Who goes where: four parts that share no person, honouring a `split` column where there is
one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privet.core.errors import PrivetError
from privet.data.dataset import PARTS, Array

# fit, attack, select, test, where the data says nothing.
SHARES = (0.4, 0.3, 0.1, 0.2)
# People; up to so many, chance alone often leaves a part without one of two values.
FEW_PEOPLE = 100

_NAMES = {
    "fit": "fit",
    "attack": "attack",
    "select": "select",
    "train": "train",
    "training": "train",
    "0": "train",
    "valid": "valid",
    "val": "valid",
    "validation": "valid",
    "dev": "valid",
    "1": "valid",
    "test": "test",
    "testing": "test",
    "eval": "test",
    "2": "test",
}


def is_split_name(name: str) -> bool:
    """Whether a word names a part of a published split.

    >>> is_split_name("Train"), is_split_name("cat")
    (True, False)
    """
    return name.strip().lower() in _NAMES


def assign(
    n: int,
    person: Array | None,
    split: Array | None,
    seed: int = 0,
    labels: Mapping[str, Array] | None = None,
) -> tuple[Array, tuple[str, ...]]:
    """Part of every record (int8 index into PARTS), and notes on what was done.

    A published split keeps its meaning: *test* stays test, *valid* chooses, and the people of
    *train* are divided between learning the release and training its adversaries. Without one,
    people are dealt out by SHARES. A person who appears on both sides of a published split stays
    where the release may learn from them, never in a later part: a release is not judged on a
    person it was fitted on. Where people are few and `labels` (codes, -1 for missing) say things
    that do not change within a person, those with two values are spread evenly over the parts.
    """
    who = np.arange(n) if person is None else np.unique(person, return_inverse=True)[1]
    people = int(who.max(initial=-1)) + 1
    if people < len(PARTS):
        raise PrivetError(
            f"The data has {people} people, and the four parts fit, attack, select and test need"
            " one each."
        )
    if split is None:
        return _dealt(who, people, seed, labels or {} if person is not None else {})
    order = ("train", "fit", "attack", "valid", "select", "test")
    rank = _ranks(split, order)
    first = np.full(people, len(order))
    np.minimum.at(first, who, rank)
    moved = int((first[who] != rank).sum())
    note = f"{moved} records of people on both sides of the split were moved to the earlier part."
    return _from_split(first, order, people, seed)[who], (note,) if moved else ()


def _dealt(
    who: Array, people: int, seed: int, labels: Mapping[str, Array]
) -> tuple[Array, tuple[str, ...]]:
    """Parts by SHARES; few people evenly by their labels."""
    kinds, by = _kinds(who, people, labels if people <= FEW_PEOPLE else {})
    note = (
        f"The data has {people} people: they were dealt out so that each part has its share by"
        f" {', '.join(by)}."
    )
    part = _deal(np.arange(people), (0, 1, 2, 3), SHARES, people, seed, kinds)
    return part[who], (note,) if by else ()


def _ranks(split: Array, order: tuple[str, ...]) -> Array:
    """The place of every record's part in `order`."""
    values = np.unique(split)
    names = [_NAMES.get(str(value).strip().lower(), "") for value in values]
    if "" in names:
        raise PrivetError(
            f"The split column has the value '{values[names.index('')]}'; use train, valid and"
            " test, or fit, attack, select and test."
        )
    return np.array([order.index(name) for name in names])[np.searchsorted(values, split)]


def _from_split(first: Array, order: tuple[str, ...], people: int, seed: int) -> Array:
    """The part of every person, whose earliest place in `order` is `first`."""
    part = np.full(people, -1, dtype=np.int8)
    for code, name in enumerate(PARTS):
        part[first == order.index(name)] = code
    train, valid = (np.flatnonzero(first == order.index(name)) for name in ("train", "valid"))
    part[valid] = 2
    if len(valid) > 1 and not (first == order.index("test")).any():
        part[valid] = _deal(valid, (2, 3), (0.33, 0.67), people, seed)[valid]
    if len(train):
        wanted = {0, 1, *(code for code in range(4) if not (part == code).any())}
        shares = [SHARES[code] if code != 1 else SHARES[0] for code in sorted(wanted)]
        part[train] = _deal(train, tuple(sorted(wanted)), tuple(shares), people, seed)[train]
    if empty := [PARTS[code] for code in range(4) if not (part == code).any()]:
        raise PrivetError(
            f"The split column leaves no person for: {', '.join(empty)}. Add a train part, or drop"
            " the column."
        )
    return part


def _kinds(who: Array, people: int, labels: Mapping[str, Array]) -> tuple[Array, tuple[str, ...]]:
    """Kind of every person by the attributes that have two values and one per person, and the names
    of these."""
    kinds = np.zeros(people, dtype=int)
    names: tuple[str, ...] = ()
    for name, codes in labels.items():
        low, high = np.full(people, 2), np.full(people, -1)
        np.minimum.at(low, who, codes)
        np.maximum.at(high, who, codes)
        if np.array_equal(low, high) and np.array_equal(np.unique(low), (0, 1)):
            kinds, names = 2 * kinds + low, (*names, name)
    return np.unique(kinds, return_inverse=True)[1], names


def _evenly(order: Array, kinds: Array, random: np.random.Generator) -> Array:
    """The same people in an order of which every stretch has about as much of each kind as the
    whole: systematic sampling."""
    kind = kinds[order]
    sizes = np.bincount(kind)
    rank = np.empty(len(order))
    rank[np.argsort(kind, kind="stable")] = np.concatenate([np.arange(size) for size in sizes])
    return order[np.argsort((rank + random.random(len(sizes))[kind]) / sizes[kind], kind="stable")]


def _deal(
    chosen: Array,
    codes: tuple[int, ...],
    shares: tuple[float, ...],
    people: int,
    seed: int,
    kinds: Array | None = None,
) -> Array:
    """Deal the chosen people out over the codes in the given shares; every code gets at least
    one."""
    random = np.random.default_rng(seed)
    order = random.permutation(chosen)
    if kinds is not None and kinds.any():
        order = _evenly(order, kinds, random)
    inner = np.cumsum(shares)[:-1] / sum(shares) * len(order)
    low, high = np.arange(1, len(codes)), len(order) - np.arange(len(codes) - 1, 0, -1)
    apart = (
        np.maximum.accumulate(np.round(inner).astype(int) - low) + low
    )  # two cuts at one place would leave a part empty
    cuts = np.clip(apart, low, np.maximum(low, high))
    part = np.full(people, -1, dtype=np.int8)
    for code, group in zip(codes, np.split(order, cuts), strict=True):
        part[group] = code
    return part
