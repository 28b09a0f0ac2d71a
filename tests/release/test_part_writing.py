"""Folders of parts: the same records as in one file, the same bytes when work is resumed, and
nothing taken on trust from a manifest."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from parts_of_rows import make_release, make_rows, write_rows
from privet.cli.main import app
from privet.core.errors import PrivetError
from privet.core.stores import Store
from privet.data import row_ranges
from privet.data.part_manifest import MANIFEST, UNFINISHED, check_part, find_manifest
from privet.release import part_folder, part_writing
from privet.release.apply import ApplyOptions, apply
from privet.release.part_plan import find_inputs, part_rows, plan
from privet.release.part_writing import Parts, apply_parts


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Path:
    return make_release(tmp_path_factory.mktemp("parts") / "release")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return make_rows()


@pytest.fixture(scope="module")
def rows(tmp_path_factory, frame) -> Path:
    return write_rows(frame, tmp_path_factory.mktemp("rows") / "rows.parquet")


BY_ID = ApplyOptions(id="id")


def released(release, given, out, **words):
    words = {"keep": ["id", "town", "age"], "options": BY_ID, "parts": Parts(256), **words}
    given = given if isinstance(given, list) else [given]
    return apply_parts(release, given, out, progress=False, **words)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def as_set(tables) -> list[tuple]:
    """Records in an order of their own; gaps as a word, since no NaN equals another."""
    found = [
        (row.get("id"), row.get("town"), row.get("age"), tuple(row["z"]))
        for table in tables
        for row in table.to_pylist()
    ]
    return sorted(found, key=str)


def parts_of(folder: Path):
    return [pq.read_table(path) for path in sorted(folder.glob("part-*.parquet"))]


@pytest.mark.parametrize("by", ["id", None])
def test_the_parts_of_a_file_hold_the_records_of_one_file(release, rows, tmp_path, by):
    """Also without a column of ids: a row's number in its file is the same in a part."""
    options = ApplyOptions(id=by)
    whole = apply(
        release, [rows], tmp_path / "one.parquet", ["id"], progress=False, options=options
    )
    made = released(release, rows, tmp_path / "parts", keep=["id"], options=options)
    assert len(made.parts) == 8 and made.rows == 2000
    assert as_set(parts_of(tmp_path / "parts")) == as_set([pq.read_table(whole)])


@settings(max_examples=6, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6), cut=st.integers(1, 1999), size=st.sampled_from([256, 700, 4096]))
def test_with_ids_neither_order_nor_partition_changes_a_record(
    release, rows, frame, tmp_path_factory, seed, cut, size
):
    folder = tmp_path_factory.mktemp("cut")
    mixed = frame.sample(frac=1, random_state=seed)
    write_rows(mixed[:cut], folder / "in" / "b.parquet")
    write_rows(mixed[cut:], folder / "in" / "a.parquet", 77)
    wanted = apply(release, [rows], folder / "one.parquet", ["id"], progress=False, options=BY_ID)
    released(release, folder / "in", folder / "out", keep=["id"], parts=Parts(size))
    ours, theirs = as_set(parts_of(folder / "out")), as_set([pq.read_table(wanted)])
    assert [one[:3] for one in ours] == [one[:3] for one in theirs]
    # In other batches onnxruntime may round otherwise: a step of the grid at most.
    np.testing.assert_allclose([one[3] for one in ours], [one[3] for one in theirs], atol=2e-4)


def test_equal_rows_at_the_same_place_of_two_inputs_get_other_noise(release, frame, tmp_path):
    for name in ("a", "b"):
        write_rows(frame[:256], tmp_path / "in" / f"{name}.parquet")
    options = ApplyOptions(ordered=True)
    given = [str(tmp_path / "in" / "*.parquet")]
    released(release, given, tmp_path / "out", keep=[], options=options)
    one, two = ([tuple(z) for z in table["z"].to_pylist()] for table in parts_of(tmp_path / "out"))
    assert not set(one) & set(two)
    write_rows(frame[256:512], tmp_path / "in" / "0.parquet")  # sorted before both
    released(
        release, given, tmp_path / "out", keep=[], options=options, parts=Parts(256, resume=True)
    )
    again = parts_of(tmp_path / "out")
    assert [tuple(z) for z in again[0]["z"].to_pylist()] == one and len(again) == 3
    assert find_manifest(Store(tmp_path / "out")).parts[2].input == "0.parquet"


def test_the_order_within_a_part_does_not_follow_the_rows(release, rows, tmp_path):
    released(release, rows, tmp_path / "out")
    for at, table in enumerate(parts_of(tmp_path / "out")[:7]):
        places = np.array([int(name.split("-")[1]) for name in table["id"].to_pylist()])
        assert sorted(places) == list(range(256 * at, 256 * (at + 1)))
        correlation = np.corrcoef(places, np.arange(256))[0, 1]
        assert abs(correlation) < 5 / np.sqrt(256)


def test_all_parts_have_the_same_columns_whatever_is_missing_in_one(release, rows, tmp_path):
    released(release, rows, tmp_path / "out")
    schemas = {str(table.schema) for table in parts_of(tmp_path / "out")}
    assert len(schemas) == 1 and "age: int64" in schemas.pop()


def test_the_manifest_says_what_is_there_and_what_left(release, rows, tmp_path):
    made = released(release, rows, tmp_path / "out")
    store = Store(tmp_path / "out")
    assert store.names() == [MANIFEST, *(part.name for part in made.parts)]
    assert find_manifest(store) == made
    for part in made.parts:
        check_part(store, part)
    assert made.leaves.kept == ("id", "town", "age") and made.leaves.linked_by == ("person",)
    assert made.release["sha256"]["graph"][:16] == made.campaign
    text = (tmp_path / "out" / MANIFEST).read_text()
    assert str(tmp_path) not in text, "no path of this machine leaves"
    assert {part.input for part in made.parts} == {"rows.parquet"}


def test_killed_in_the_middle_it_resumes_to_the_same_bytes(release, rows, tmp_path):
    script = Path(__file__).parents[1] / "parts_of_rows.py"
    paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    out = tmp_path / "out"
    command = [sys.executable, str(script), str(release), str(rows), str(out)]
    assert subprocess.run(command, env=environment, check=False).returncode == -signal.SIGKILL
    there = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*.parquet")}
    assert 3 <= len(there) < 8 and not (out / MANIFEST).exists()
    (out / ".part-00007.parquet.abc").write_bytes(b"half")
    words = {"keep": ["town"]}
    with pytest.raises(PrivetError, match="--resume"):
        released(release, rows, out, **words)
    released(release, rows, out, parts=Parts(256, resume=True), **words)
    again = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*.parquet")}
    assert sum(again[name] == there[name] for name in there) >= len(there) - 1
    released(release, rows, tmp_path / "undisturbed", **words)
    assert contents(out) == contents(tmp_path / "undisturbed")


def test_a_changed_part_is_noticed_said_and_made_again(release, rows, tmp_path, capsys):
    released(release, rows, tmp_path / "out")
    before = contents(tmp_path / "out")
    path = tmp_path / "out" / "part-00002.parquet"
    path.write_bytes(before[path.name][:-9] + b"x" + before[path.name][-8:])
    (tmp_path / "out" / "part-00004.parquet").unlink()
    with pytest.raises(PrivetError, match=r"part-00002.parquet .* is not the file"):
        check_part(Store(tmp_path / "out"), find_manifest(Store(tmp_path / "out")).parts[2])
    released(release, rows, tmp_path / "out", parts=Parts(256, resume=True))
    said = capsys.readouterr().err
    assert "part-00002.parquet is made again: its hash" in said
    assert "part-00004.parquet is made again: it is missing" in said
    assert contents(tmp_path / "out") == before


def test_an_input_that_was_written_again_is_released_again(release, frame, tmp_path, capsys):
    for name in ("a", "b"):
        write_rows(frame[:512], tmp_path / "in" / f"{name}.parquet")
    released(release, tmp_path / "in", tmp_path / "out")
    before = contents(tmp_path / "out")
    write_rows(frame[512:1024], tmp_path / "in" / "b.parquet")
    more = {"parts": Parts(256, resume=True)}
    released(release, tmp_path / "in", tmp_path / "out", **more)
    said = capsys.readouterr().err
    assert said.count("made again: b.parquet was written again since") == 2
    after = contents(tmp_path / "out")
    same = [name for name in before if before[name] == after[name]]
    assert same == ["part-00000.parquet", "part-00001.parquet"]
    write_rows(frame[:300], tmp_path / "in" / "b.parquet")
    with pytest.raises(PrivetError, match=r"b.parquet has gained or lost rows"):
        released(release, tmp_path / "in", tmp_path / "out", **more)
    (tmp_path / "in" / "b.parquet").unlink()
    with pytest.raises(PrivetError, match="not among the inputs any more"):
        released(release, tmp_path / "in", tmp_path / "out", **more)


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"keep": ["id"]}, "keep"),
        ({"options": replace(BY_ID, campaign="other")}, "campaign"),
        ({"options": ApplyOptions()}, "id"),
        ({"parts": Parts(512, True)}, r"rows per part \(256\)"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_other_settings_do_not_go_on_with_the_same_folder(release, rows, tmp_path, changed, word):
    released(release, rows, tmp_path / "out")
    before = contents(tmp_path / "out")
    with pytest.raises(PrivetError, match=f"another {word}"):
        released(release, rows, tmp_path / "out", **{"parts": Parts(256, True), **changed})
    with pytest.raises(PrivetError, match="replace them with --force"):
        released(release, rows, tmp_path / "out")
    assert contents(tmp_path / "out") == before


def test_force_leaves_nothing_of_what_was_there(release, rows, tmp_path):
    released(release, rows, tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    forced = {"parts": Parts(1024), "options": replace(BY_ID, force=True)}
    made = released(release, rows, tmp_path / "out", **forced)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {MANIFEST, "notes.txt", *(part.name for part in made.parts)}
    assert len(made.parts) == 2


def test_a_key_that_was_forgotten_is_noticed(release, rows, tmp_path):
    options = replace(BY_ID, campaign="gone", home=tmp_path / "home")
    released(release, rows, tmp_path / "out", options=options)
    next((tmp_path / "home").rglob("gone.key")).unlink()
    with pytest.raises(PrivetError, match="another key"):
        released(release, rows, tmp_path / "out", options=options, parts=Parts(256, True))


def test_where_it_cannot_begin_nothing_is_left(release, rows, tmp_path, monkeypatch):
    out = tmp_path / "out"
    for wrong, said in (
        ({"keep": ["nosuch"]}, "nosuch"),
        ({"options": ApplyOptions(id="nosuch")}, "nosuch"),
        ({"options": ApplyOptions(per="person")}, "one file"),
        ({"options": ApplyOptions(fresh=True), "parts": Parts(256, True)}, "--fresh"),
        ({"options": ApplyOptions(id="town")}, "has gaps"),
    ):
        with pytest.raises(PrivetError, match=said):
            released(release, rows, out, **wrong)
        assert not out.exists()
    (tmp_path / "in.csv").write_text("a,b\n1,2\n")
    with pytest.raises(PrivetError, match="save it as parquet"):
        released(release, tmp_path / "in.csv", out)
    with pytest.raises(PrivetError, match="No file matches"):
        released(release, str(tmp_path / "none-*.parquet"), out)
    with pytest.raises(PrivetError, match="no part that Privet wrote"):
        released(release, rows, rows.parent)
    assert list(rows.parent.iterdir()) == [rows]


def test_an_input_that_changes_meanwhile_is_not_put_into_place(
    release, frame, tmp_path, monkeypatch
):
    given = write_rows(frame, tmp_path / "in.parquet")
    write = part_writing.write_parquet

    def change(path, about, tables):
        write(path, about, tables)
        os.utime(given, ns=(1, 1))

    monkeypatch.setattr(part_writing, "write_parquet", change)
    with pytest.raises(PrivetError, match="changed while it was released"):
        released(release, given, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_one_large_row_group_is_read_once(release, frame, tmp_path, monkeypatch):
    """And once more, its first rows, for what its columns are. Every part used to read the group
    from its beginning."""
    given, read = tmp_path / "in.parquet", []
    many = pd.concat([frame] * -(-2048 // len(frame)), ignore_index=True)[:2048]
    many.assign(id=[f"p{k}" for k in range(2048)]).to_parquet(given, row_group_size=2048)
    opened = row_ranges.opened_parquet

    class Counted(pq.ParquetFile):
        def iter_batches(self, *args, **words):
            for batch in super().iter_batches(*args, **words):
                read.append(len(batch))
                yield batch

    monkeypatch.setattr(pq, "ParquetFile", Counted)
    made = released(release, given, tmp_path / "out")
    assert len(made.parts) == 8 and isinstance(opened(given), Counted)
    assert sum(read) == 2 * 2048
    # A part that is missing in the middle is made without those after it.
    (tmp_path / "out" / made.parts[3].name).unlink()
    again = released(release, given, tmp_path / "out", parts=Parts(256, resume=True))
    assert again == made


HOSTILE = [
    ("../part-00000.parquet", {"name": "../part-00000.parquet"}),
    ("an absolute path", {"name": "/etc/passwd"}),
    ("a name of its own", {"name": "people.parquet"}),
    ("digits of another script", {"name": "part-0000٣.parquet"}),
    ("rows", {"rows": 2**60}),
    ("a negative start", {"start": -1}),
    ("no hash", {"sha256": "x" * 64}),
    ("a truth value", {"rows": True}),
    ("a list", {"name": ["part-00000.parquet"]}),
]


@pytest.mark.parametrize("changed", [c for _, c in HOSTILE], ids=[name for name, _ in HOSTILE])
def test_a_hostile_entry_is_refused_in_a_sentence(tmp_path, release, rows, changed):
    released(release, rows, tmp_path / "out")
    path = tmp_path / "out" / MANIFEST
    value = json.loads(path.read_text())
    value["parts"][1] |= changed
    path.write_text(json.dumps(value))
    for words in ({"parts": Parts(256, True)}, {"options": replace(BY_ID, force=True)}):
        with pytest.raises(PrivetError, match="not what Privet writes"):
            released(release, rows, tmp_path / "out", **words)
    assert len(list((tmp_path / "out").glob("part-*.parquet"))) == 8, "nothing was removed"


@pytest.mark.parametrize(
    "content",
    [
        b"[1]",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b'{"version": 99}',
        b'{"version": ' + b"9" * 5000 + b"}",
        b"null",
    ],
    ids=lambda content: str(content[:12]),
)
def test_a_manifest_that_is_something_else_is_one_sentence(tmp_path, content):
    (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(PrivetError):
        find_manifest(Store(tmp_path))


def test_a_name_twice_and_a_manifest_without_end_are_refused(tmp_path, release, rows, monkeypatch):
    released(release, rows, tmp_path / "out")
    path = tmp_path / "out" / MANIFEST
    value = json.loads(path.read_text())
    value["parts"].append(value["parts"][0])
    path.write_text(json.dumps(value))
    with pytest.raises(PrivetError, match="twice"):
        find_manifest(Store(tmp_path / "out"))
    value["parts"][-1] = {**value["parts"][0], "name": "part-00099.parquet"}
    path.write_text(json.dumps(value))
    with pytest.raises(PrivetError, match="two parts of the same rows"):
        released(release, rows, tmp_path / "out", parts=Parts(256, True))
    monkeypatch.setattr("privet.data.part_manifest.MOST_BYTES", 100)
    with pytest.raises(PrivetError, match="more than 100 bytes"):
        find_manifest(Store(tmp_path / "out"))


@given(st.integers(1, 10**7), st.integers(1, 10**5))
def test_parts_are_whole_batches(asked, numbers):
    assert asked <= part_rows(asked, numbers) < asked + 256
    assert part_rows(asked, numbers) % 256 == part_rows(None, numbers) % 256 == 0


def test_names_of_inputs_are_told_apart_below_what_was_given(tmp_path, frame):
    for year in ("year=1", "year=2"):
        write_rows(frame[:10], tmp_path / year / "x.parquet")
    found = find_inputs([str(tmp_path / "*" / "x.parquet")])
    assert [one.name for one in found] == ["year=1/x.parquet", "year=2/x.parquet"]
    assert [job.name for job in plan(found, 256, None)] == [
        "part-00000.parquet",
        "part-00001.parquet",
    ]
    with pytest.raises(PrivetError, match=r"Two inputs are called x.parquet"):
        find_inputs(sorted(tmp_path.glob("*/x.parquet")))


def test_the_command(release, frame, tmp_path):
    write_rows(frame[:600], tmp_path / "in" / "a.parquet")
    words = ["apply", str(release), str(tmp_path / "in" / "*.parquet"), "--out"]
    words += [str(tmp_path / "out"), "--id", "id", "--keep", "y", "--accept", "y"]
    run = CliRunner().invoke
    for more, code, said in (
        (["--resume"], 2, "--resume and --rows-per-part go with --parts"),
        (["--parts", "--rows-per-part", "300"], 0, "Released:"),
        (["--parts", "--rows-per-part", "300"], 2, "--resume"),
        (["--parts", "--rows-per-part", "300", "--resume"], 0, "Released:"),
    ):
        done = run(app, [*words, *more])
        shown = done.output + (str(done.exception) if done.exception else "")
        assert said in " ".join(shown.split()), shown
        assert (done.exit_code == 0) == (code == 0)
    assert len(list((tmp_path / "out").glob("part-*"))) == 2
    assert not (tmp_path / "out" / UNFINISHED).exists() and part_folder.SAVE_SECONDS > 0
