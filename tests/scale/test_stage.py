"""A release inside somebody else's engine: the same numbers everywhere, no row lost or doubled,
also where a worker dies."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import privet
from privet.core.errors import PrivetError
from privet.scale import stage as module
from privet.scale.stage import Stage

ROWS = 600


@pytest.fixture(scope="module")
def people() -> pa.Table:
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], ROWS)
    return pa.table(
        {
            "id": [f"p{k}" for k in range(ROWS)],
            "age": (40 + 9 * rng.standard_normal(ROWS) + 4 * (sex == "m")).round(),
            "trade": rng.choice(["care", "office", "building"], ROWS),
            "sex": sex,
            "income": rng.choice(["low", "high"], ROWS),
        }
    )


@pytest.fixture(scope="module")
def folder(people: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("stage")
    frame = people.drop_columns(["id"]).to_pandas()
    data = privet.Dataset.from_frame(frame)
    method = privet.Hedge(epochs=1, width=0.1)
    release = method.fit(data, "sex", "income", run=privet.Run(progress=False))
    release.save(where / "r")
    return where


@pytest.fixture(scope="module")
def stage(folder: Path) -> Stage:
    return Stage(folder / "r", id="id", keep="id", accept="id", home=folder)


@pytest.fixture(scope="module")
def expected(stage: Stage, people: pa.Table) -> dict[str, list[float]]:
    return by_id(stage(people))


def by_id(table: Any) -> dict[str, list[float]]:
    columns = table.to_pydict()
    assert len(set(columns["id"])) == len(columns["id"]), "no row is doubled"
    return dict(zip(columns["id"], map(list, columns["z"]), strict=True))


def test_batches_order_and_repetition_change_nothing(
    stage: Stage, people: pa.Table, expected: dict[str, list[float]]
) -> None:
    order = np.random.default_rng(1).permutation(ROWS)
    for size in (1, 7, 600):
        parts = [
            by_id(stage(people.take(pa.array(order[at : at + size]))))
            for at in range(0, 60 if size == 1 else ROWS, size)
        ]
        merged = {name: z for part in parts for name, z in part.items()}
        assert merged == {name: expected[name] for name in merged}


def test_what_goes_in_comes_out_in_the_same_form(stage: Stage, people: pa.Table) -> None:
    assert isinstance(stage(people), pa.Table)
    assert isinstance(stage(people.to_batches()[0]), pa.RecordBatch)
    assert isinstance(stage(people.to_pandas()), pd.DataFrame)
    assert isinstance(stage(people.to_pydict()), dict)
    assert stage(people.slice(0, 0)).schema == stage(people).schema == stage.schema(people.schema)
    assert pa.types.is_fixed_size_list(stage(people)["z"].type)


def test_it_is_what_apply_writes(
    folder: Path, stage: Stage, people: pa.Table, expected: dict[str, list[float]]
) -> None:
    import pyarrow.parquet as pq

    pq.write_table(people, folder / "people.parquet")
    options = privet.ApplyOptions(id="id", home=folder, force=True)
    written = privet.apply(
        folder / "r",
        folder / "people.parquet",
        folder / "out.parquet",
        keep="id",
        accept="id",
        options=options,
    )
    assert by_id(pq.read_table(written)) == expected


def test_equal_records_differ_by_their_id_and_by_nothing_else(
    folder: Path, people: pa.Table
) -> None:
    twins = pa.concat_tables([people.slice(0, 1)] * 2).set_column(0, "id", pa.array(["a", "b"]))
    with_id = Stage(folder / "r", id="id", home=folder)(twins)["z"].to_pylist()
    without = Stage(folder / "r", home=folder)(twins)["z"].to_pylist()
    assert with_id[0] != with_id[1] and without[0] == without[1]
    fresh = Stage(folder / "r", fresh=True, home=folder)
    assert fresh(twins)["z"].to_pylist() != fresh(twins)["z"].to_pylist()


def test_kept_columns_are_judged(folder: Path) -> None:
    with pytest.raises(PrivetError, match="is what the release hides"):
        Stage(folder / "r", keep="sex", home=folder)
    with pytest.raises(PrivetError, match="No audit of this release has judged"):
        Stage(folder / "r", keep="age", home=folder)


def test_a_column_that_is_not_there_is_named(stage: Stage, people: pa.Table) -> None:
    with pytest.raises(PrivetError, match="'id'"):
        stage(people.drop_columns(["id"]))
    gaps = people.set_column(0, "id", pa.array([None] * ROWS, pa.string()))
    with pytest.raises(PrivetError, match="gaps"):
        stage(gaps)


def test_it_can_be_sent_to_a_worker(
    stage: Stage, people: pa.Table, expected: dict[str, list[float]]
) -> None:
    """By the engine's own means, which pickle functions."""
    for protocol in (4, 5):
        copied = pickle.loads(pickle.dumps(stage, protocol))  # noqa: S301
        assert by_id(copied(people)) == expected
    buffers: list[pickle.PickleBuffer] = []
    sent = pickle.dumps(stage, 5, buffer_callback=buffers.append)
    assert len(buffers) == 1 and stage.graph not in sent, "memory that is shared is not copied"
    copied = pickle.loads(sent, buffers=[bytes(buffers[0])])  # noqa: S301
    again = pickle.loads(pickle.dumps(copied))  # noqa: S301
    assert by_id(again(people)) == expected


def test_a_process_loads_the_model_once(
    folder: Path, people: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many batches, threads and copies of the stage there are."""
    made, load = [], module.session

    def counted(graph: bytes, threads: int) -> Any:
        made.append(len(graph))
        return load(graph, threads)

    monkeypatch.setattr(module, "session", counted)
    monkeypatch.setattr(module, "_SESSIONS", {})
    stage = Stage(folder / "r", home=folder)
    assert not made, "a stage that is only sent away loads nothing"
    copies = [pickle.loads(pickle.dumps(stage)) for _ in range(4)]  # noqa: S301
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda one: [one(people.slice(at, 50)) for at in (0, 50)], copies * 2))
    assert len(made) == 1
    assert b"InferenceSession" not in pickle.dumps(copies[0])


def test_vectors_in_a_column_of_lists(tmp_path: Path) -> None:
    """What a vector store exports; z does not depend on how long a list may be."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((80, 4)).astype(np.float32)
    frame = pd.DataFrame(x, columns=[f"v{i}" for i in range(4)]).assign(
        sex=np.where(x[:, 0] > 0, "f", "m")
    )
    run = privet.Run(progress=False)
    privet.LEACE().fit(privet.Dataset.from_frame(frame), "sex", run=run).save(tmp_path / "r")
    stage = Stage(tmp_path / "r", home=tmp_path)
    by_name = stage(pa.Table.from_pandas(frame))
    for kind in (pa.list_(pa.float32()), pa.list_(pa.float32(), 4)):
        lists = pa.table({"id": list(range(80)), "vector": pa.array(list(x), kind)})
        assert stage(lists).equals(by_name)


def test_duckdb(stage: Stage, people: pa.Table, expected: dict[str, list[float]]) -> None:
    """The same bytes when a query is asked again, by several threads, of rows in another order."""
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("people", people)
        stage.register(connection, "privatize", "people")
        query = "SELECT id, privatize(people) AS z FROM people"
        for threads, order in ((1, ""), (1, ""), (2, ""), (2, " ORDER BY trade, id")):
            connection.execute(f"SET threads = {threads}")
            rows = connection.sql(query + order).fetchall()
            assert len(rows) == ROWS and {name: list(z) for name, z in rows} == expected


def test_hugging_face_datasets(
    stage: Stage, people: pa.Table, expected: dict[str, list[float]], tmp_path: Path
) -> None:
    """The same bytes when a map is done again, in other batches."""
    datasets = pytest.importorskip("datasets")
    source = datasets.Dataset(people).with_format("arrow")
    for turn, size in enumerate((100, 100, 33)):
        released = source.map(
            stage,
            batched=True,
            batch_size=size,
            remove_columns=source.column_names,
            cache_file_name=str(tmp_path / f"{turn}.arrow"),
            load_from_cache_file=False,
        )
        assert by_id(released.data.table) == expected


@pytest.mark.system
def test_hugging_face_with_a_worker_that_dies(
    stage: Stage, people: pa.Table, expected: dict[str, list[float]], tmp_path: Path
) -> None:
    """Its map ends with an error; asked again, it gives the same bytes."""
    datasets = pytest.importorskip("datasets")
    source = datasets.Dataset(people).with_format("arrow")
    flag = tmp_path / "died"

    def dies_once(batch: pa.Table) -> pa.Table:
        if "p300" in batch["id"].to_pylist() and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return stage(batch)

    options = {"batched": True, "batch_size": 100, "num_proc": 2, "load_from_cache_file": False}
    options |= {"remove_columns": source.column_names, "new_fingerprint": "released"}
    with pytest.raises(RuntimeError, match="died"):
        source.map(dies_once, **options)
    assert by_id(source.map(dies_once, **options).data.table) == expected


@pytest.mark.system
def test_ray_data_with_a_worker_that_dies(
    stage: Stage, people: pa.Table, expected: dict[str, list[float]], tmp_path: Path
) -> None:
    ray = pytest.importorskip("ray")
    # Its own cluster: without an address, ray joins one that another test has started.
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    flag = tmp_path / "died"

    def dies_once(batch: pa.Table) -> pa.Table:
        if "p300" in batch["id"].to_pylist() and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return stage(batch)

    try:
        blocks = ray.data.from_arrow([people.slice(at, 100) for at in range(0, ROWS, 100)])
        plain = blocks.map_batches(stage, batch_format="pyarrow")
        assert by_id(pa.concat_tables(ray.get(plain.to_arrow_refs()))) == expected
        again = blocks.map_batches(dies_once, batch_format="pyarrow")
        assert by_id(pa.concat_tables(ray.get(again.to_arrow_refs()))) == expected
        assert flag.exists(), "a worker did die"
    finally:
        ray.shutdown()


@pytest.mark.system
def test_spark_with_a_worker_that_dies(
    stage: Stage,
    people: pa.Table,
    expected: dict[str, list[float]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)

    if shutil.which("java") is None:
        pytest.skip("Spark needs Java: on Debian, install the package default-jre-headless")
    from pyspark.sql import SparkSession

    spark = (
        # Two workers that may fail once more each.
        SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(tmp_path / "warehouse"))
        .getOrCreate()
    )
    flag = tmp_path / "died"

    def dies_once(batches: Any) -> Any:
        for batch in batches:
            if "p300" in batch.column("id").to_pylist() and not flag.exists():
                flag.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield from stage.batches([batch])

    try:
        frame = spark.createDataFrame(people.to_pandas()).repartition(4)
        for run in (stage.batches, dies_once):
            released = frame.mapInArrow(run, stage.spark_schema(frame)).toPandas()
            assert len(released) == ROWS
            given = dict(zip(released["id"], map(list, released["z"]), strict=True))
            assert given == expected
        assert flag.exists(), "a worker did die"
    finally:
        spark.stop()
