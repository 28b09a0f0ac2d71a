"""Parts written by a real cluster of two nodes on loopback: the bytes of one machine, also where
workers are killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import dying_tasks
import pytest

import privet
from parts_of_rows import make_release, make_rows, write_rows
from privet.core.errors import PrivetError
from privet.core.stores import Store
from privet.data.part_manifest import MANIFEST, find_manifest
from privet.release.apply import ApplyOptions
from privet.release.part_writing import Parts, apply_parts
from privet.scale import ray_parts
from privet.scale.cluster import connected

pytestmark = pytest.mark.system

SMALL = 80 * 2**20
BY_ID = ApplyOptions(id="id")


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ray-parts")


@pytest.fixture(scope="module")
def address(room: Path) -> Iterator[str]:
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    before = dict(os.environ)
    (room / "deaths").mkdir()
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    os.environ |= {
        "PYTHONPATH": os.pathsep.join(paths),
        "RAY_USAGE_STATS_ENABLED": "0",
        dying_tasks.DIARY: str(room / "deaths"),
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
        with connected(cluster.address):
            yield cluster.address
    finally:
        cluster.shutdown()
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="module")
def release(room: Path) -> Path:
    return make_release(room / "release")


@pytest.fixture(scope="module")
def here(room: Path, release: Path) -> Path:
    """What one machine writes."""
    for seed, name in enumerate(("a", "b")):
        write_rows(make_rows(1000, seed), room / "in" / f"{name}.parquet")
    words = {"options": BY_ID, "parts": Parts(256), "progress": False}
    apply_parts(release, [room / "in"], room / "here", ["town"], **words)
    return room / "here"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def go(address: str, release: Path, given: object, out: Path, **words: object):
    words = {"options": BY_ID, "parts": Parts(256), **words}
    spread = partial(ray_parts.spread_parts, address)
    return apply_parts(release, [given], out, ["town"], progress=False, spread=spread, **words)


def test_workers_write_the_bytes_of_one_machine_also_where_some_are_killed(
    address, release, here, room, monkeypatch
):
    """One dies before its part is written and one after: both parts are made twice, and nothing
    else."""
    monkeypatch.setattr(ray_parts, "make_part", dying_tasks.make_part)
    go(address, release, room / "in", room / "there")
    assert contents(room / "there") == contents(here)
    done = [path.name.split()[0] for path in (room / "deaths").iterdir()]
    twice = {name for name in done if done.count(name) > 1}
    assert twice == {dying_tasks.BEFORE, dying_tasks.AFTER} and len(set(done)) == 8


def test_a_cluster_goes_on_with_what_one_machine_began(address, release, here, room):
    manifest = find_manifest(Store(here))
    out = room / "begun"
    out.mkdir()
    for name, content in contents(here).items():
        (out / name).write_bytes(content)
    (out / manifest.parts[5].name).unlink()
    (out / manifest.parts[2].name).write_bytes(b"")
    go(address, release, room / "in", out, parts=Parts(256, True))
    assert contents(out) == contents(here)


def test_the_verb_takes_a_cluster_and_parts(address, release, here, room):
    out = room / "verb"
    options = ApplyOptions(id="id")
    privet.apply(
        release,
        room / "in",
        out,
        keep="town",
        accept="town",
        options=options,
        ray=address,
        parts=Parts(256),
    )
    assert contents(out) == contents(here)


def test_what_a_node_refuses_is_one_sentence_and_what_is_done_stays(address, release, here, room):
    rows = make_rows(600, 5)
    write_rows(rows[:256], room / "gaps" / "a.parquet")
    rows.loc[400, "id"] = None
    write_rows(rows[256:], room / "gaps" / "b.parquet")
    with pytest.raises(PrivetError, match="'id' has gaps"):
        go(address, release, room / "gaps", room / "refused")
    names = {path.name for path in (room / "refused").iterdir()}
    assert MANIFEST not in names and not any(name.startswith(".") for name in names)
