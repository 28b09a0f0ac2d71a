"""Parts in an object store: nothing is seen before it is whole, the manifest comes last, and work
is resumed there as on disk."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parts_of_rows import make_release, make_rows, write_rows
from privet.core.errors import PrivetError
from privet.core.stores import Store, _system
from privet.data.part_manifest import MANIFEST, UNFINISHED, check_part, find_manifest
from privet.data.schema_file import Layout
from privet.data.sources import load
from privet.release import part_folder, part_writing
from privet.release.apply import ApplyOptions
from privet.release.part_writing import Parts, apply_parts

pytestmark = pytest.mark.system
BY_ID = ApplyOptions(id="id")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    s3fs = pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(
        ip_address="127.0.0.1", port=0, verbose=False
    )
    import boto3

    server.start()
    host, port = server.get_host_and_port()
    given = {
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in given.items():
            patch.setenv(name, value)
        # Another test of this process may have left one for a server of its own.
        s3fs.S3FileSystem.clear_instance_cache()
        _system.cache_clear()
        client = boto3.client("s3")
        client.create_bucket(Bucket="shop")
        yield client
    s3fs.S3FileSystem.clear_instance_cache()
    _system.cache_clear()
    server.stop()


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Path:
    return make_release(tmp_path_factory.mktemp("s3") / "release")


@pytest.fixture(scope="module")
def inputs(client, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("in")
    for seed, name in enumerate(("a", "b")):
        path = write_rows(make_rows(600, seed), folder / f"{name}.parquet")
        client.upload_file(str(path), "shop", f"raw/{name}.parquet")
    return folder


def go(release: Path, given: str, out: object, **words: Any) -> Any:
    words = {"options": BY_ID, "parts": Parts(256), **words}
    return apply_parts(release, [given], str(out), ["id"], progress=False, **words)


def objects(client: Any, prefix: str) -> dict[str, bytes]:
    found = client.list_objects_v2(Bucket="shop", Prefix=prefix).get("Contents", [])
    keys = [one["Key"] for one in found]
    return {
        key.rpartition("/")[2]: client.get_object(Bucket="shop", Key=key)["Body"].read()
        for key in keys
    }


def test_parts_in_s3_are_those_on_disk(client, release, inputs, tmp_path):
    made = go(release, "s3://shop/raw/*.parquet", "s3://shop/shared")
    go(release, str(inputs / "*.parquet"), tmp_path / "here")
    there = objects(client, "shared/")
    here = {path.name: path.read_bytes() for path in (tmp_path / "here").iterdir()}
    assert there.keys() == here.keys() and len(made.parts) == 6
    assert all(there[name] == here[name] for name in there if name != MANIFEST)
    for part in made.parts:
        check_part(Store("s3://shop/shared"), part)


def test_what_was_lost_in_the_middle_is_resumed(client, release, inputs, monkeypatch):
    """The work ends when four objects are there; no object is half of one, and there is no manifest
    until the end."""
    make, made = part_writing.release_part, []

    def some(*args: Any, **words: Any) -> Any:
        if len(made) == 4:
            raise KeyboardInterrupt
        made.append(make(*args, **words))
        return made[-1]

    address = "s3://shop/killed"
    monkeypatch.setattr(part_folder, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(part_writing, "release_part", some)
    with pytest.raises(KeyboardInterrupt):
        go(release, "s3://shop/raw/*.parquet", address)
    assert set(objects(client, "killed/")) == {UNFINISHED, *(part.name for part in made)}
    monkeypatch.setattr(part_writing, "release_part", make)
    with pytest.raises(PrivetError, match="--resume"):
        go(release, "s3://shop/raw/*.parquet", address)
    again: list[str] = []
    monkeypatch.setattr(
        part_writing, "release_part", lambda *a, **k: again.append(a[3].name) or make(*a, **k)
    )
    whole = go(release, "s3://shop/raw/*.parquet", address, parts=Parts(256, True))
    assert len(again) == 2 and len(whole.parts) == 6
    wanted = {part.name: part.sha256 for part in find_manifest(Store("s3://shop/shared")).parts}
    assert {part.name: part.sha256 for part in whole.parts} == wanted
    assert UNFINISHED not in objects(client, "killed/")


def test_a_changed_object_is_made_again_and_a_changed_input_noticed(
    client, release, inputs, capsys
):
    go(release, "s3://shop/raw/a.parquet", "s3://shop/changed")
    before = objects(client, "changed/")
    client.put_object(Bucket="shop", Key="changed/part-00001.parquet", Body=b"PAR1 and the rest")
    go(release, "s3://shop/raw/a.parquet", "s3://shop/changed", parts=Parts(256, True))
    assert "part-00001.parquet is made again: its hash" in capsys.readouterr().err
    assert objects(client, "changed/") == before
    client.upload_file(str(inputs / "b.parquet"), "shop", "raw/c.parquet")
    go(release, "s3://shop/raw/c.parquet", "s3://shop/other")
    client.upload_file(str(inputs / "a.parquet"), "shop", "raw/c.parquet")
    go(release, "s3://shop/raw/c.parquet", "s3://shop/other", parts=Parts(256, True))
    assert capsys.readouterr().err.count("c.parquet was written again since") == 3
    client.delete_object(Bucket="shop", Key="raw/c.parquet")


def test_force_replaces_and_strangers_are_left_alone(client, release, inputs):
    go(release, "s3://shop/raw/a.parquet", "s3://shop/forced")
    forced = {"options": replace(BY_ID, force=True), "parts": Parts(1024)}
    go(release, "s3://shop/raw/a.parquet", "s3://shop/forced", **forced)
    assert set(objects(client, "forced/")) == {MANIFEST, "part-00000.parquet"}
    with pytest.raises(PrivetError, match="no part that Privet wrote"):
        go(release, "s3://shop/raw/a.parquet", "s3://shop/raw", **forced)


def test_parts_and_tables_are_read_from_there(client, release, inputs):
    go(release, "s3://shop/raw/*.parquet", "s3://shop/read")
    assert len(load("s3://shop/read", progress=False)) == 1200
    there = load("s3://shop/raw/*.parquet", Layout(people=120), progress=False)
    here = load(str(inputs), Layout(people=120), progress=False)
    people = [set(np.array(d.attributes["person"].values)) for d in (there, here)]
    assert people[0] == people[1] and len(there) == len(here)
    client.put_object(Bucket="shop", Key="read/part-00001.parquet", Body=b"PAR1 and the rest")
    with pytest.raises(PrivetError, match=r"part-00001.parquet .* is not the file"):
        load("s3://shop/read", progress=False)


@pytest.mark.parametrize(
    ("given", "out"),
    [
        ("s3://shop/raw/a.parquet", "s3://nosuch/x"),
        ("s3://shop/raw/nosuch.parquet", "s3://shop/x"),
        ("s3://shop/nosuch/*.parquet", "s3://shop/x"),
        ("nonsense://shop/raw/a.parquet", "s3://shop/x"),
    ],
)
def test_what_is_not_there_is_one_sentence(client, release, inputs, given, out):
    with pytest.raises(PrivetError) as caught:
        go(release, given, out)
    assert len(str(caught.value).splitlines()) == 1
    assert not objects(client, "x/")


def test_without_fsspec_the_extra_is_named(release, monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    _system.cache_clear()
    with pytest.raises(PrivetError, match=r"privet\[stores\]"):
        go(release, "s3://shop/raw/a.parquet", "s3://shop/x")
    _system.cache_clear()
