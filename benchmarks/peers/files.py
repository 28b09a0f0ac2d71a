"""The files that peers read and write; numpy and pyarrow only, so that every environment can.

    raw.parquet        x (a list of numbers: the record, encoded), sex, income, split
    released.parquet   z (a list of numbers: what is released), sex, income, split

`split` of raw.parquet is fit, attack, select or test. A peer learns from *fit*; the rows that it
writes are those of the other three, in their order, with train, valid and test for their names:
adversaries learn from *train* and are chosen on *valid*.
"""

from __future__ import annotations

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


class Raw:
    """What a peer reads: records, the private value and the task of every person, by part.

    Parameters:
        folder: Where raw.parquet is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.x, self.columns = read(folder / "raw.parquet", "x")
        self.fit = self.columns["split"] == "fit"
        self.judged = np.isin(self.columns["split"], list(SPLIT_NAMES))
        self.sex = np.unique(self.columns["sex"], return_inverse=True)[1]
        self.income = np.unique(self.columns["income"], return_inverse=True)[1]

    def release(self, z: Array) -> None:
        """Write what is released of the people of `judged`."""
        kept = {name: column[self.judged] for name, column in self.columns.items()}
        kept["split"] = np.array([SPLIT_NAMES[name] for name in kept["split"]])
        write(self.folder / "released.parquet", "z", z, kept)
