"""The files that peers read and write; numpy and pyarrow only, so that every environment can.

    raw.parquet        x (a list of numbers: the record, encoded), private, task, person, split
    table.parquet      the columns of a table as they are, private, task, split; row by row the same
    released.parquet   z (a list of numbers: what is released), private, task, person, split
    said.json          what the peer says about its release: its own bound, its own attacker, ...

`split` of raw.parquet is fit, attack, select or test. A peer learns from *fit* and may choose
settings on *select*; the rows that it writes are those of the other three, in their order, with
train, valid and test for their names: adversaries learn from *train* and are chosen on *valid*.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

Array = npt.NDArray[Any]
SPLIT_NAMES = {"attack": "train", "select": "valid", "test": "test"}


def write(path: Path, name: str, numbers: Array, columns: dict[str, Array]) -> None:
    """A table with a column of lists called `name`, and others."""
    flat = np.ascontiguousarray(numbers, dtype=np.float32)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])
    pq.write_table(pa.table({name: lists, **{k: pa.array(v) for k, v in columns.items()}}), path)


def read(path: Path, name: str) -> tuple[Array, dict[str, Array]]:
    """The lists as (n, d), and the other columns."""
    table = pq.read_table(path)
    flat = table[name].combine_chunks()
    numbers = np.asarray(flat.flatten()).reshape(len(table), -1)
    others = {key: np.asarray(table[key]) for key in table.column_names if key != name}
    return numbers, others


def equally_many(labels: Array, people: Array, most: int) -> Array:
    """Rows of these people, as many of each value, at most so many in all; drawn with seed 0."""
    values = np.unique(labels)
    some = [np.flatnonzero(people & (labels == value)) for value in values]
    each = min(most // len(values), *(len(rows) for rows in some))
    random = np.random.default_rng(0)
    return np.sort(np.concatenate([random.permutation(rows)[:each] for rows in some]))


class Raw:
    """What a peer reads: records, the private value and the task of every person, by part.

    Parameters:
        folder: Where raw.parquet is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.x, self.columns = read(folder / "raw.parquet", "x")
        self.fit = self.columns["split"] == "fit"
        self.select = self.columns["split"] == "select"
        self.judged = np.isin(self.columns["split"], list(SPLIT_NAMES))
        self.private = np.unique(self.columns["private"], return_inverse=True)[1]
        self.task = np.unique(self.columns["task"], return_inverse=True)[1]

    def release(self, z: Array, **said: Any) -> None:
        """Write what is released of the people of `judged`, and what the peer says about it."""
        kept = {name: column[self.judged] for name, column in self.columns.items()}
        kept["split"] = np.array([SPLIT_NAMES[name] for name in kept["split"]])
        write(self.folder / "released.parquet", "z", z, kept)
        (self.folder / "said.json").write_text(json.dumps(said), encoding="utf-8")
