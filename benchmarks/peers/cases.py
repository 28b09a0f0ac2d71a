"""The data sets of the leaderboard: who is in which part, and the files that peers read.

Adult: people of the official training part are dealt anew to *fit*, *attack* and *select* for each
seed; *test* is the official one. Blogs: sentence vectors of posts; authors are dealt anew for each
seed (benchmarks/hidden_vectors.py), gender is hidden and age (23 and older) kept. MotionSense:
windows of 24 people, dealt anew within each gender; gender is hidden and activity kept.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from files import Array, write

PARTS = np.array(["fit", "attack", "select", "test"])
OLDER = 23


@dataclass(frozen=True)
class Case:
    """A data set of the leaderboard.

    Parameters:
        name: What it is called on the command line and in the results.
        private: What is hidden.
        task: What is kept.
        deal: The data of a seed, with its parts.
        file: Its file.
        words: How a page says which data, and how they were split.
        shape: Of a window: channels and steps; empty for other records.
        notes: What has to be known about how its rows were measured.
    """

    name: str
    private: str
    task: str
    deal: Callable[[str, int], Any]
    file: str
    words: str
    shape: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    def write_raw(self, data: Any, folder: Path) -> None:
        """raw.parquet and, for columns of several kinds, table.parquet."""
        from privet.data.schema import learn_schema

        columns = {
            key: np.array(data.attribute(name).values)[data.labels[name]].astype(str)
            for key, name in (("private", self.private), ("task", self.task))
        }
        columns["split"] = PARTS[data.part_of]
        folder.mkdir(parents=True, exist_ok=True)
        people = {"person": np.asarray(data.people)}
        if self.shape:
            numbers = np.asarray(data.records[data.rows]).reshape(len(data), -1)
        else:
            numbers = learn_schema(data, [self.private, self.task]).inputs(data)[:]
        write(folder / "raw.parquet", "x", numbers, {**columns, **people})
        table = folder / "table.parquet"
        table.unlink(missing_ok=True)
        if self.name == "adult":
            raw = data.records.drop(columns=[self.private, self.task], errors="ignore")
            arrow = pa.Table.from_pandas(raw, preserve_index=False)
            for key, column in columns.items():
                arrow = arrow.append_column(key, pa.array(column))
            pq.write_table(arrow, table)


def dealt_adult(path: str, seed: int) -> Any:
    """Seed 0 as Privet deals them."""
    import privet

    data = privet.load(path, progress=False)
    if not seed:
        return data
    part, others = data.part_of.copy(), data.part_of < 3
    part[others] = np.random.default_rng(seed).permutation(part[others])
    return replace(data, part_of=part)


def dealt_blogs(path: str, seed: int) -> Any:
    """Vectors as a table of 512 columns, in the units they come in."""
    import pandas as pd

    from privet.data.in_memory import as_dataset

    sys.path.insert(0, str(Path(__file__).parents[1]))
    from hidden_vectors import Bench

    bench = Bench(Path(path), seed)
    frame = pd.DataFrame(bench.x.astype(np.float32), columns=[f"v{i}" for i in range(512)])
    labels: dict[str, Array] = {
        "gender": np.array(["female", "male"])[bench.u],
        "age": np.array(["younger", "older"])[bench.age],
        "author": bench.author,
        "split": PARTS[bench.part],
    }
    return as_dataset(frame.assign(**labels))


def dealt_motionsense(path: str, seed: int) -> Any:
    """Seed 0 as Privet deals them; others with as many people of each gender in each part."""
    import privet

    data = privet.load(path, progress=False)
    if not seed:
        return data
    part, random = data.part_of.copy(), np.random.default_rng(seed)
    for value in (0, 1):
        rows = data.labels["gender"] == value
        people, first = np.unique(data.people[rows], return_index=True)
        dealt = random.permutation(data.part_of[rows][first])
        part[rows] = dealt[np.searchsorted(people, data.people[rows])]
    return replace(data, part_of=part)


CASES = {
    "adult": Case(
        "adult",
        "sex",
        "income",
        dealt_adult,
        "adult.parquet",
        "UCI Adult, official test; fit 14,472, attack 14,471, select 3,618 dealt by seed",
        notes=(
            "FNF at gamma 0.99, 0.5 and 0.1 and `dp` were measured in a working folder made anew; "
            "raw records and tree, target 54 %, came out in it as they stand here, all seeds.",
        ),
    ),
    "blogs": Case(
        "blogs",
        "gender",
        "age",
        dealt_blogs,
        "blogs_use512.parquet",
        "blogs_use512, 1,200 authors of ten posts dealt by seed: fit 4,800, attack 3,600, select "
        "1,200, test 2,400 posts",
        notes=(
            "hedge, tree, codebook, donors, FARE and LFR were measured in a working folder made "
            "anew; raw records and erase came out in it as they stand here, all seeds.",
        ),
    ),
    "motionsense": Case(
        "motionsense",
        "gender",
        "activity",
        dealt_motionsense,
        "motionsense.parquet",
        "MotionSense, 24 people dealt by seed: fit 10, attack 7, select 2, test 5",
        (6, 64),
    ),
}
