"""Shuffling: a uniformly random order that follows from the records' words, whatever the memory."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from privet.release import shuffle
from privet.release.shuffle import PLACE, shuffled


def _table(n: int, seed: int = 0, kind: str = "fixed") -> pa.Table:
    rng = np.random.default_rng(seed)
    numbers = np.arange(3 * n, dtype=np.float32)
    z = (
        pa.FixedSizeListArray.from_arrays(pa.array(numbers), 3)
        if kind == "fixed"
        else pa.ListArray.from_arrays(pa.array(np.arange(0, 3 * n + 1, 3, np.int32)), numbers)
    )
    places = rng.integers(0, 2**64, n, dtype=np.uint64)
    return pa.table({"name": [f"p{i}" for i in range(n)], "z": z, PLACE: places})


@pytest.mark.parametrize("kind", ["fixed", "free"])
@pytest.mark.parametrize("room", [1 << 30, 20_000, 300])
def test_the_order_is_that_of_the_words(tmp_path: Path, kind: str, room: int) -> None:
    """In memory, over one level of buckets, and over several."""
    table = _table(2000, kind=kind)
    pieces = [table.slice(0, 700), table.slice(700, 1), table.slice(701)]
    given = pa.concat_tables(shuffled(pieces, tmp_path, 100, room))
    wanted = table.take(pa.array(np.argsort(table[PLACE].to_numpy()))).drop_columns([PLACE])
    assert given.equals(wanted)
    assert max(len(part) for part in shuffled(pieces, tmp_path, 100, room)) <= 100
    assert not list(tmp_path.iterdir()), "the file of buckets has no name"


def test_every_order_is_as_likely(tmp_path: Path) -> None:
    counts = dict.fromkeys(permutations(range(4)), 0)
    words = np.random.default_rng(1).integers(0, 2**64, (4800, 4), dtype=np.uint64)
    for row in words:
        table = pa.table({"name": [0, 1, 2, 3], PLACE: row})
        (given,) = shuffled([table], tmp_path, 10)
        counts[tuple(given["name"].to_pylist())] += 1
    chi_squared = sum((count - 200) ** 2 / 200 for count in counts.values())
    assert chi_squared < 49.7, "the 0.999 quantile for 23 degrees of freedom"


def test_memory_holds_no_more_than_a_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    take = shuffle._take
    monkeypatch.setattr(
        shuffle, "_take", lambda table, order: sizes.append(len(table)) or take(table, order)
    )
    pieces = (_table(500, seed) for seed in range(40))
    assert sum(map(len, shuffled(pieces, tmp_path, 100, room=30_000))) == 20_000
    assert max(sizes) <= 1500


def test_equal_words_lose_no_record(tmp_path: Path) -> None:
    table = _table(300).drop_columns([PLACE]).append_column(PLACE, pa.array(np.zeros(300, "u8")))
    given = pa.concat_tables(shuffled([table], tmp_path, 1000, room=100))
    assert given.equals(table.drop_columns([PLACE]))


def test_nothing_gives_nothing(tmp_path: Path) -> None:
    assert list(shuffled([], tmp_path, 10)) == []
