"""A real cluster of two nodes on loopback: a killed worker loses nothing, and a file is released
byte for byte as on one machine."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scale_work
from safetensors.numpy import load_file

from privet.cli.main import main
from privet.core.errors import PrivetError
from privet.data.sources import load
from privet.methods.registry import METHODS
from privet.release.apply import ApplyOptions, apply
from privet.scale import ray_cells as cells
from privet.scale.cluster import connected
from privet.scale.ray_apply import spread
from privet.studies.compare import Comparison, run_study
from privet.studies.study import Study
from privet.train.game import Run
from small import small

pytestmark = pytest.mark.system

SMALL = 80 * 2**20
SETTINGS = {"width": 0.05, "warmup": 1, "epochs": 2, "batch": 16, "noise": 0.3}


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scale")


@pytest.fixture(scope="module")
def address(room: Path) -> Iterator[str]:
    """Two nodes, each with a raylet, an object store and an address of its own, for all tests of
    this file."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    before = dict(os.environ)
    os.environ |= {
        "PYTHONPATH": os.pathsep.join(
            [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        ),
        "RAY_USAGE_STATS_ENABLED": "0",
        scale_work.DIARY: str(room / "diary.jsonl"),
    }
    head = {
        "num_cpus": 1,
        "object_store_memory": SMALL,
        "include_dashboard": False,
        "node_ip_address": "127.0.0.2",
    }
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        cluster.add_node(num_cpus=1, object_store_memory=SMALL, node_ip_address="127.0.0.3")
        with connected(cluster.address) as ray:
            assert len({node["NodeManagerAddress"] for node in ray.nodes()}) == 2
            yield cluster.address
    finally:
        cluster.shutdown()
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="module")
def records(room: Path) -> Path:
    data = small("table", 500)
    frame = data.records.assign(u=data.labels["u"], y=data.labels["y"])
    frame.to_parquet(room / "records.parquet", index=False)
    return room / "records.parquet"


def go(
    address: str, records: Path, out: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> Comparison:
    monkeypatch.setattr(cells, "WORK", "scale_work:do")
    monkeypatch.setattr(cells, "CHECKPOINT_SECONDS", 0.1)
    tiprdc = name == "tiprdc"
    study = Study.of(
        str(records),
        ["u"],
        ["y"],
        methods=[name],
        budgets={name: [0.5]} if tiprdc else None,
        settings={name: SETTINGS} if tiprdc else None,
    )
    with cells.worker_pool(address) as pool:
        assert pool.workers == 2
        words = {"workers": pool.workers, "device": pool.device}
        return run_study(study, out, start_worker=pool.start_worker, **words)


def diary(room: Path) -> list[dict]:
    path = room / "diary.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="module")
def apart(address: str, records: Path, room: Path) -> tuple[Comparison, Path]:
    """A comparison on nodes that share no disk, in which the process that learns is killed after
    its first checkpoint."""
    out, killed = room / "apart", threading.Event()

    def kill_the_learner() -> None:
        end = time.monotonic() + 600
        while time.monotonic() < end and not killed.is_set():
            time.sleep(0.02)
            if any(out.glob("cells/*/release/checkpoint.safetensors")):
                os.kill(
                    next(note["pid"] for note in diary(room) if note["do"] == "learn"),
                    signal.SIGKILL,
                )
                killed.set()

    thread = threading.Thread(target=kill_the_learner)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(cells, "leave_mark", lambda mark: None)  # nobody sees the asker's disk
        thread.start()
        found = go(address, records, out, "tiprdc", monkeypatch)
    thread.join()
    assert killed.is_set()
    return found, out


@pytest.fixture(scope="module")
def release(apart: tuple[Comparison, Path]) -> Path:
    return next(p.parent / "release" for p in apart[1].glob("cells/*/learned.json"))


def test_a_killed_worker_loses_nothing_where_nodes_share_no_disk(apart, release, records, room):
    found, out = apart
    assert found.count("done") == len({row.cell.key for row in found.rows}) == 2
    notes = diary(room)
    assert [n["resumed"] for n in notes if n["do"] == "learn"] == [
        False,
        True,
    ], "it went on from the checkpoint that had come back"
    assert len({n["pid"] for n in notes}) >= 2
    assert not any(str(out) in n["folder"] for n in notes), "nobody worked in the asker's folder"
    assert not list(out.glob(".ray-*")) and not list(out.glob("cells/*/release/checkpoint*"))
    built = METHODS["tiprdc"].parse(
        [f"{key}={value}" for key, value in SETTINGS.items()], budget=0.5, seed=0
    )
    here = built.fit(
        load(str(records)), ["u"], [], without=["y"], run=Run(progress=False, device="cpu")
    )
    there = load_file(release / "weights.safetensors")
    assert here.module.state_dict().keys() == there.keys()
    for name, value in here.module.state_dict().items():
        assert np.array_equal(there[name], value.numpy()), f"{name} is not what nobody disturbed"


def test_on_a_shared_disk_tasks_work_in_place_and_nothing_is_done_twice(
    address, records, room, monkeypatch
):
    out, before = room / "shared", len(diary(room))
    assert go(address, records, out, "leace", monkeypatch).count("done") == 2
    notes = diary(room)[before:]
    assert [(n["method"], n["do"]) for n in notes if n["method"] == "raw"] == [("raw", "attack")]
    assert all(str(out) in n["folder"] for n in notes) and not list(out.glob(".ray-*"))
    assert go(address, records, out, "leace", monkeypatch).count("done") == 2
    assert len(diary(room)) == before + len(notes), "the second time everything was found"


def rows(path: Path, n: int) -> Path:
    data = small("table", n, seed=3)
    frame = data.records.assign(
        id=np.arange(n),
        name=pd.Series([None if i % 7 else f"r{i}" for i in range(n)]),
        u=data.labels["u"],
    )
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=1700)
    return path


def test_a_file_is_released_byte_for_byte_as_on_one_machine(address, release, room):
    """With noise from the campaign's key, shuffled."""
    given = rows(room / "rows.parquet", 9001)
    options = ApplyOptions(campaign="survey", id="id")
    here = apply(release, [given], room / "here.parquet", ["name"], progress=False, options=options)
    there = apply(
        release,
        [given],
        room / "there.parquet",
        ["name"],
        progress=False,
        spread=partial(spread, address),
        options=options,
    )
    assert here.read_bytes() == there.read_bytes()
    other = apply(
        release,
        [given],
        room / "other.parquet",
        ["id", "name"],
        seed=6,
        progress=False,
        spread=partial(spread, address),
        options=ApplyOptions(ordered=True),
    )
    assert pq.read_table(other)["id"].to_pylist() == list(range(9001))
    assert pq.read_table(other)["z"] != pq.read_table(here)["z"]


def test_what_a_node_refuses_is_one_sentence_here(address, release, room):
    given = rows(room / "some.parquet", 300)
    with pytest.raises(PrivetError, match="'nosuch'"):
        apply(
            release,
            [given],
            room / "x.parquet",
            ["nosuch"],
            progress=False,
            spread=partial(spread, address),
        )
    assert not (room / "x.parquet").exists()
    pd.DataFrame({"a": [1]}).to_csv(room / "some.csv")
    with pytest.raises(PrivetError, match="parquet file or pictures"):
        apply(
            release,
            [room / "some.csv"],
            room / "x.parquet",
            progress=False,
            spread=partial(spread, address),
        )


def command(monkeypatch, capsys, *words: str) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["privet", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, capsys.readouterr().err


def _ways(records: Path, release: Path, room: Path, ray: str) -> list[list[str]]:
    compare = [
        "compare",
        "--data",
        str(records),
        "--private",
        "u",
        "--utility",
        "y",
        "--methods",
        "leace",
        "--out",
        str(room / "no"),
    ]
    return [
        [*compare, "--ray", ray],
        ["apply", str(release), str(records), "--out", str(room / "no"), "--ray", ray],
    ]


def test_bad_addresses_are_one_sentence_in_bounded_time(
    records, release, room, monkeypatch, capsys
):
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    started = time.monotonic()
    for said, word in (
        (f"127.0.0.1:{port}", "Nobody answers at"),
        ("ray://x", "HOST:PORT"),
        ("nowhere", "HOST:PORT"),
    ):
        for words in _ways(records, release, room, said):
            code, err = command(monkeypatch, capsys, *words)
            assert code == 2 and word in err and len(err.strip().splitlines()) == 1, err
    assert time.monotonic() - started < 300 and not (room / "no").exists()


def test_something_else_at_the_address_is_not_waited_for(monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    monkeypatch.setattr("ray.init", lambda **words: time.sleep(60))
    monkeypatch.setattr("privet.scale.cluster.CLUSTER_SECONDS", 0.2)
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        pytest.raises(PrivetError, match="not as a Ray cluster"),
    ):
        connected(f"127.0.0.1:{other.getsockname()[1]}").__enter__()


def test_without_ray_the_extra_is_named(records, release, room, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    for words in _ways(records, release, room, "auto"):
        code, err = command(monkeypatch, capsys, *words)
        assert code == 2 and "privet[ray]" in err and len(err.strip().splitlines()) == 1, err
