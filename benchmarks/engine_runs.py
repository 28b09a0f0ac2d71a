"""One engine, with Privet's stage and with a bare onnxruntime function, in turn: what
`engines.py` runs in a process for each engine.

    python benchmarks/engine_runs.py ENGINE FOLDER ROWS TURNS        JSON on standard output

FOLDER holds `rows.parquet` (`id`, and `vector`: lists of 104 numbers, or `image`: JPEGs) and a
release. Both functions take the same batches of the same columns and give `id` and `z`. The bare
one draws its noise with numpy's generator, without key or id: nothing less can run the graph.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from privet.release.apply import at_once
from privet.release.runtime import Runnable, read_graph, session
from privet.scale.stage import Stage

# Records of a batch.
ROWS, PICTURES = 4096, 16
Function = Callable[[pa.Table], pa.Table]
# Runs a function over the rows and gives what came out.
Engine = Callable[[Function], pa.Table]


class Bare:
    """Records of a batch through onnxruntime and back, as many at once as a stage gives it, with
    noise that anybody could draw."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, table: pa.Table) -> pa.Table:
        release, run = loaded(self.folder)
        x, few = self.records(table), at_once(release.schema)
        rng, parts = np.random.default_rng(), []
        for at in range(0, len(x), few):
            inputs = {"x": x[at : at + few]}
            if release.noise is not None:
                shape = (len(inputs["x"]), *release.noise.shape)
                inputs["noise"] = rng.standard_normal(shape, dtype=np.float32)
            parts.append(run.run(["z"], inputs)[0])
        z = np.concatenate(parts)
        lists = pa.FixedSizeListArray.from_arrays(pa.array(z.ravel()), z.shape[1])
        return pa.table({"id": table["id"], "z": lists})

    @staticmethod
    def records(table: pa.Table) -> Any:
        if "vector" in table.column_names:
            cells = table["vector"].combine_chunks()
            return cells.flatten().to_numpy().reshape(len(table), -1)
        opened = [Image.open(io.BytesIO(cell)) for cell in table["image"].to_pylist()]
        return np.stack([np.asarray(picture).transpose(2, 0, 1) for picture in opened])


def batch_of(folder: Path) -> int:
    return ROWS if "vector" in pq.read_schema(folder / "rows.parquet").names else PICTURES


@lru_cache(maxsize=1)
def loaded(folder: str) -> tuple[Runnable, Any]:
    return Runnable.load(Path(folder)), session(read_graph(Path(folder)), threads=1)


class Watched:
    """A function that writes down how much memory its process has had, and dies once, if asked to,
    at the batch that holds the row `at`."""

    def __init__(self, function: Function, diary: str, at: int | None) -> None:
        self.function, self.diary, self.at = function, Path(diary), at

    def __call__(self, table: pa.Table) -> pa.Table:
        flag = self.diary / "died"
        if self.at is not None and self.at in table["id"].to_pylist() and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        made = self.function(table)
        (self.diary / f"{os.getpid()}.mb").write_text(str(peak_mb()))
        return made


def peak_mb() -> float:
    told = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    return int(told[1]) / 1024 if told else 0.0


@contextmanager
def arrow(folder: Path, rows: int) -> Iterator[Engine]:
    """Batch after batch of a parquet file in one process."""
    batch = batch_of(folder)

    def run(function: Function) -> pa.Table:
        with pq.ParquetFile(folder / "rows.parquet") as file:
            parts = file.iter_batches(batch)
            return pa.concat_tables([function(pa.Table.from_batches([part])) for part in parts])

    yield run


@contextmanager
def duckdb(folder: Path, rows: int) -> Iterator[Engine]:
    """A function over a struct of a row, as `Stage.register` makes it."""
    duck = importlib.import_module("duckdb")
    size = Stage(folder / "release", home=folder).z_type().list_size
    names = pq.read_schema(folder / "rows.parquet").names

    def run(function: Function) -> pa.Table:
        def privatize(row: Any) -> Any:
            whole = row.combine_chunks() if isinstance(row, pa.ChunkedArray) else row
            return function(pa.table(list(whole.flatten()), names=names))["z"].combine_chunks()

        with duck.connect() as connection:
            connection.execute("SET threads = 2")
            connection.execute(f"CREATE VIEW people AS FROM '{folder / 'rows.parquet'}'")
            people = connection.table("people")
            kind = duck.struct_type(dict(zip(people.columns, people.types, strict=True)))
            connection.create_function(
                "privatize", privatize, [kind], duck.array_type("FLOAT", size), type="arrow"
            )
            return connection.sql("SELECT id, privatize(people) AS z FROM people").to_arrow_table()

    yield run


@contextmanager
def hugging_face(folder: Path, rows: int) -> Iterator[Engine]:
    """`map` by two processes."""
    datasets = importlib.import_module("datasets")
    datasets.disable_progress_bars()
    source = datasets.Dataset(pq.read_table(folder / "rows.parquet")).with_format("arrow")

    def run(function: Function) -> pa.Table:
        options = {"batched": True, "batch_size": batch_of(folder), "num_proc": 2}
        options |= {"remove_columns": source.column_names, "load_from_cache_file": False}
        return source.map(function, new_fingerprint=f"f{time.monotonic_ns()}", **options).data.table

    yield run


@contextmanager
def ray(folder: Path, rows: int) -> Iterator[Engine]:
    """Ray Data on two nodes of one core each."""
    from scale import cluster

    with cluster():
        package, data = importlib.import_module("ray"), importlib.import_module("ray.data")
        data.DataContext.get_current().enable_progress_bars = False
        table, batch = pq.read_table(folder / "rows.parquet"), batch_of(folder)
        size = max(batch, min(4 * batch, rows // 4))
        blocks = data.from_arrow([table.slice(at, size) for at in range(0, rows, size)])
        blocks = blocks.materialize()

        def run(function: Function) -> pa.Table:
            done = blocks.map_batches(function, batch_format="pyarrow", batch_size=batch)
            return pa.concat_tables(package.get(done.to_arrow_refs()))

        yield run


@contextmanager
def spark(folder: Path, rows: int) -> Iterator[Engine]:
    """Two Python workers, each of which may fail twice more. Lists go in and out with a free size,
    which is all that Spark has."""
    from pyspark.sql import SparkSession
    from pyspark.sql.types import ArrayType, FloatType, LongType, StructField, StructType

    os.environ["PYSPARK_PYTHON"] = sys.executable
    fields = [StructField("id", LongType()), StructField("z", ArrayType(FloatType()))]
    settings = {
        "ui.enabled": "false",
        "driver.bindAddress": "127.0.0.1",
        "driver.host": "127.0.0.1",
        "driver.memory": "2g",
        "sql.warehouse.dir": str(folder / "warehouse"),
        "sql.execution.arrow.maxRecordsPerBatch": str(batch_of(folder)),
        "sql.files.maxPartitionBytes": str((folder / "rows.parquet").stat().st_size // 4 + 1),
    }
    builder = SparkSession.builder.master("local[2,3]")
    for key, value in settings.items():
        builder = builder.config(f"spark.{key}", value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    frame = session.read.parquet(str(folder / "rows.parquet"))

    def run(function: Function) -> pa.Table:
        def batches(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for part in parts:
                made = function(pa.Table.from_batches([part]))
                z = made["z"].cast(pa.list_(pa.float32()))
                yield from made.set_column(1, "z", z).to_batches()

        done = frame.mapInArrow(batches, StructType(fields))
        done.write.mode("overwrite").parquet(str(folder / "spark"))
        return pq.read_table(folder / "spark")

    try:
        yield run
    finally:
        session.stop()


@contextmanager
def scikit_learn(folder: Path, rows: int) -> Iterator[Engine]:
    """`Privatizer.transform` of a frame; the bare function as a FunctionTransformer. Its noise is
    fresh, but for a seed."""
    from sklearn.preprocessing import FunctionTransformer

    from privet.release.release import Release
    from privet.sklearn import Privatizer

    table = pq.read_table(folder / "rows.parquet")
    x = table["vector"].combine_chunks().flatten().to_numpy().reshape(rows, -1)
    frame = pd.DataFrame(x, columns=[f"v{i}" for i in range(x.shape[1])])
    ours = Privatizer(random_state=0).fit(frame[:500], np.arange(500) % 2)
    ours.release_ = Release.load(folder / "release")

    def run(function: Function) -> pa.Table:
        if not isinstance(function, Bare):
            z = np.asarray(ours.transform(frame), dtype=np.float32)
        else:

            def through(some: pd.DataFrame) -> Any:
                cells = pa.array(some.to_numpy(dtype=np.float32).ravel())
                lists = pa.FixedSizeListArray.from_arrays(cells, x.shape[1])
                made = function(pa.table({"id": table["id"], "vector": lists}))
                return made["z"].combine_chunks().flatten().to_numpy().reshape(rows, -1)

            z = np.asarray(FunctionTransformer(through).transform(frame))
        lists = pa.FixedSizeListArray.from_arrays(pa.array(z.ravel()), z.shape[1])
        return pa.table({"id": table["id"], "z": lists})

    yield run


ENGINES = {"arrow": arrow, "duckdb": duckdb, "hugging_face": hugging_face}
ENGINES |= {"ray": ray, "spark": spark, "scikit_learn": scikit_learn}
# Engines that do a task again when its worker has died, and those whose caller has to.
RETRIES, FAILS = ("ray", "spark"), ("hugging_face",)


def measure(name: str, folder: Path, rows: int, turns: int) -> dict[str, Any]:
    stage = Stage(folder / "release", id="id", keep="id", accept="id", home=folder)
    works = {"stage": stage, "bare": Bare(str(folder / "release"))}
    table = pq.read_table(folder / "rows.parquet")
    expected = sorted_by_id(stage(table))
    works["bare"](table.slice(0, 1))  # processes that are forked find both models loaded
    diary = folder / f"diary-{name}"
    diary.mkdir()
    with ENGINES[name](folder, rows) as run:
        first = [run(work) for work in works.values()]
        if name == "scikit_learn":  # whose noise is not the key's
            expected = sorted_by_id(first[0])
        taken = [{key: costs(run, work) for key, work in works.items()} for _ in range(turns)]
        at = rows // 2 if name in RETRIES + FAILS else None
        failed = 0
        try:
            again = run(Watched(stage, str(diary), at))
        except Exception:  # whatever an engine says about a dead worker
            failed = 1
            again = run(Watched(stage, str(diary), None))
        return {
            "engine": name,
            "rows": rows,
            "turns": taken,
            "rows_per_second": round(rows / statistics.median(t["stage"][0] for t in taken)),
            "rows_per_processor_second": round(
                rows / statistics.median(t["stage"][1] for t in taken)
            ),
            "over_bare": ratios(taken, 0),
            "over_bare_processor": ratios(taken, 1),
            "peak_mb": round(
                max([float(p.read_text()) for p in diary.glob("*.mb")], default=peak_mb())
            ),
            "killed": (diary / "died").exists(),
            "failed": failed,
            **compared(again, expected),
        }


def compared(again: pa.Table, expected: pa.Table) -> dict[str, Any]:
    ids = again["id"].to_numpy()
    wanted = expected["id"].to_numpy()
    bits = [numbers(sorted_by_id(table)) for table in (again, expected)]
    same = len(ids) == len(wanted) and np.array_equal(*bits)
    return {
        "lost": int((~np.isin(wanted, ids)).sum()),
        "doubled": len(ids) - len(np.unique(ids)),
        "same_bytes": bool(same),
    }


def sorted_by_id(table: pa.Table) -> pa.Table:
    return table.select(["id", "z"]).sort_by("id")


def numbers(table: pa.Table) -> Any:
    """The bits of z, row after row."""
    return table["z"].combine_chunks().flatten().to_numpy().view(np.uint32)


def ratios(taken: list[dict[str, Any]], which: int) -> dict[str, float]:
    each = [turn["bare"][which] / turn["stage"][which] for turn in taken]
    return {
        "median": round(statistics.median(each), 3),
        "least": round(min(each), 3),
        "most": round(max(each), 3),
    }


def costs(run: Engine, work: Function) -> tuple[float, float]:
    """Seconds, and processor seconds of this process and all that it has started."""
    start, worked = time.perf_counter(), processor_seconds()
    run(work)
    return time.perf_counter() - start, processor_seconds() - worked


def processor_seconds() -> float:
    """Of this process and its descendants; of those that have ended, as their parents were told."""
    parents: dict[int, tuple[int, float]] = {}
    tick = os.sysconf("SC_CLK_TCK")
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(folder.name)] = int(words[1]), sum(map(int, words[11:15])) / tick
    ours, grew = {os.getpid()}, True
    while grew:
        more = {pid for pid, (parent, _) in parents.items() if parent in ours} - ours
        ours, grew = ours | more, bool(more)
    return sum(parents[pid][1] for pid in ours if pid in parents)


def main() -> None:
    engine, where, many, often = sys.argv[1:]
    sys.stdout.write(json.dumps(measure(engine, Path(where), int(many), int(often))) + "\n")


if __name__ == "__main__":
    # By its name, under which workers find it too: they have another __main__.
    sys.path.insert(0, str(Path(__file__).parent))
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    importlib.import_module("engine_runs").main()
