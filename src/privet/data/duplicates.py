"""Records that are exactly the same: under several people, in several parts, or of one person.

Four parts that share no person are worth nothing if a file was joined with itself: the same record
then stands in *fit* under one name and in *test* under another. Rows of a few coarse columns and
short texts coincide by nature, too. Natural coincidences can be told from copies: if each distinct
content is drawn by a Poisson number of people, whatever the rates, and f_m contents are had by
exactly m people, the moments of the rates give f_2^2 <= 1.5 f_1 f_3 on average (Cauchy and
Schwarz). Pairs without their share of triples are copies.
"""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
import pandas as pd

from privet.data.dataset import PARTS, Array, Dataset
from privet.data.stored_table import StoredTable

_BLOCK = 1_000
# Contents that must all be there a multiple of m times before a file counts as joined with itself.
_ENOUGH = 20
# Records of a table on disk among which copies are counted.
_MOST = 1_000_000


class Copies(NamedTuple):
    """How many records are exact copies of others.

    Parameters:
        across_people: Records whose content another person has as well.
        within_person: Records whose content the same person has in an earlier record.
        in_test: Records of *test* whose content another person has in another part.
        test: Records of *test*.
        natural: Whether as many coincide by chance where contents are as coarse as these.
        times: In how many copies every content is there, under different people; 1 where some are
            there once.
    """

    across_people: int
    within_person: int
    in_test: int
    test: int
    natural: bool
    times: int


def record_hashes(data: Dataset) -> Array:
    """A hash of 64 bits of every record's content, in the order of the view."""
    if isinstance(data.records, StoredTable):
        parts = data.records.iloc[data.rows].frames()
        return np.concatenate(
            [pd.util.hash_pandas_object(part, index=False).to_numpy() for part in parts]
        )
    if data.modality == "table":
        frame = data.records.iloc[data.rows]
        return pd.util.hash_pandas_object(frame, index=False).to_numpy()
    if data.modality == "text":
        texts = pd.Series(data.records[data.rows]).astype(str)
        return pd.util.hash_array(texts.to_numpy(dtype=object), categorize=False)
    hashes = np.empty(len(data), dtype=np.uint64)
    for start in range(0, len(data), _BLOCK):
        block = np.ascontiguousarray(data.records[data.rows[start : start + _BLOCK]])
        for place, record in enumerate(block, start):
            hashes[place] = int.from_bytes(blake2b(record, digest_size=8).digest(), "little")
    return hashes


def some_contents(data: Dataset) -> tuple[Dataset, int]:
    """The records whose contents are counted, and one in how many contents that is: all, but of a
    large table on disk those whose hash leaves no rest, so that copies stay together."""
    each = math.ceil(len(data) / _MOST) if isinstance(data.records, StoredTable) else 1
    if each == 1:
        return data, 1
    return data.take(np.flatnonzero(record_hashes(data) % np.uint64(each) == 0)), each


def copies(data: Dataset) -> Copies:
    """Count the exact copies of a dataset view."""
    _, content = np.unique(record_hashes(data), return_inverse=True)
    _, person = np.unique(data.people, return_inverse=True)
    holders = np.unique(np.stack([content, person], axis=1), axis=0)
    people_per_content = np.bincount(holders[:, 0])
    shared = people_per_content[content] > 1
    is_test = data.part_of == PARTS.index("test")
    elsewhere = np.zeros(len(people_per_content), dtype=bool)
    elsewhere[content[~is_test]] = True
    # Parts share no person, so whoever has a test record's content in another part is another one.
    in_test = is_test & elsewhere[content]
    times = math.gcd(*map(int, np.unique(people_per_content)))
    if len(people_per_content) < _ENOUGH:
        times = 1
    coarse = data.modality in ("table", "text")
    return Copies(
        int(shared.sum()),
        len(data) - len(holders),
        int(in_test.sum()),
        int(is_test.sum()),
        coarse and times == 1 and coincide_by_chance(people_per_content),
        times,
    )


def coincide_by_chance(people_per_content: Array) -> bool:
    """Whether contents are shared as independent people would share them.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.geometric(0.002, 5000)
    >>> coincide_by_chance(np.unique(rows, return_counts=True)[1])
    True
    >>> coincide_by_chance(np.repeat([1, 2], [4000, 500]))
    False
    """
    once, twice, thrice = np.bincount(people_per_content, minlength=4)[1:4]
    least_thrice = twice**2 / (1.5 * max(once, 1))
    return bool(thrice >= least_thrice - 3 * math.sqrt(least_thrice + 1))
