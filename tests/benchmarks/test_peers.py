"""The leaderboard: files that peers exchange, and rows that are put together."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "peers"))

import board
import files
import mass_peer
import run
import tables
from cases import CASES
from contenders import PEERS, TITLES
from judges import attack_target, judge

SPLITS = ("fit", "attack", "select", "test")


@pytest.fixture
def raw(tmp_path: Path) -> files.Raw:
    """People whose first number says the private value, and whose second says the task."""
    random = np.random.default_rng(0)
    private, task = random.integers(0, 2, (2, 2000))
    x = np.column_stack([private, task]) + 0.2 * random.normal(size=(2000, 2))
    columns = {
        "private": np.array(["f", "m"])[private],
        "task": np.array(["no", "yes"])[task],
        "split": np.array(SPLITS)[np.arange(2000) % 4],
        "person": np.arange(2000),
    }
    files.write(tmp_path / "raw.parquet", "x", x, columns)
    return files.Raw(tmp_path)


def test_a_constant_release_tells_nothing_and_the_records_tell_all(raw: files.Raw) -> None:
    raw.release(np.ones((1500, 1)))
    assert judge(raw.folder, "adult")["found"] == 0.5
    raw.release(raw.x[raw.judged])
    row = judge(raw.folder, "adult")
    assert row["found"] > 0.95
    assert row["task_balanced"] > 0.95
    assert row["n"] == 500


def test_networks_see_windows_where_others_see_vectors() -> None:
    z = np.random.default_rng(0).normal(size=(300, 32)).astype(np.float32)
    names = ("train", "valid", "test")
    columns = {
        "task": np.array(["left", "middle", "right"])[np.arange(300) % 3],
        "split": np.array(names)[np.arange(300) // 100],
        "person": np.arange(300),
    }
    for shape, seen in (((2, 16), (100, 2, 16)), ((32,), (100, 32)), ((), (100, 32))):
        target = attack_target(z, columns, "task", "utility", shape)
        records = target.parts["attack"]
        assert next(iter(records.batches(100)))[0].shape == seen
        assert records.view.shape == seen[1:]
        assert records.vectors().shape == (100, 32)
    assert target.attribute.values == ("left", "middle", "right")


def test_mass_reads_lengths_that_no_rotation_changes(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(40, 2, 3, 64)).astype(np.float32)
    turned = np.einsum("ij,ncjt->ncit", np.linalg.qr(random.normal(size=(3, 3)))[0], x)
    columns = {
        "private": np.array(["f", "m"])[np.arange(40) % 2],
        "task": np.array(["no", "yes"])[np.arange(40) // 2 % 2],
        "split": np.array(SPLITS)[np.arange(40) % 4],
        "person": np.arange(40),
    }
    seen = []
    for windows in (x, turned):
        files.write(tmp_path / "raw.parquet", "x", windows.reshape(40, -1), columns)
        seen.append(mass_peer.as_they_read(files.Raw(tmp_path), "motionsense"))
    assert seen[0].shape == (40, 2, 128)
    np.testing.assert_allclose(seen[0], seen[1], atol=1e-5)


def test_conditional_entropy_of_what_is_known_and_of_what_is_not() -> None:
    hidden, other = np.arange(400) % 2, np.arange(400) // 2 % 2
    assert mass_peer.conditional_entropy(hidden, hidden) == 0
    assert mass_peer.conditional_entropy(other, hidden) == pytest.approx(np.log(2))


def test_people_learned_from_are_not_released(raw: files.Raw) -> None:
    raw.release(raw.x[raw.judged], own=0.6)
    z, columns = files.read(raw.folder / "released.parquet", "z")
    assert len(z) == 1500
    assert set(columns["split"]) == {"train", "valid", "test"}
    assert not set(columns["person"]) & set(raw.columns["person"][raw.fit])
    assert json.loads((raw.folder / "said.json").read_text()) == {"own": 0.6}


def test_equally_many_of_each_value() -> None:
    labels = np.array(["a"] * 90 + ["b"] * 10)
    rows = files.equally_many(labels, np.arange(100) > 4, 100)
    assert np.unique(labels[rows], return_counts=True)[1].tolist() == [10, 10]
    assert rows.min() > 4


def test_what_was_measured_later_is_added_and_a_row_run_again_has_not_failed(
    tmp_path: Path,
) -> None:
    store = tmp_path / "adult.jsonl"
    rows = [
        {"name": "leace", "seed": 0, "failed": "out of memory"},
        {"name": "leace", "seed": 0, "found": 0.8},
        {"name": "leace", "seed": 0, "art": 0.7},
        {"name": "inlp", "seed": 0, "failed": "no checkout"},
    ]
    store.write_text("".join(json.dumps(row) + "\n" for row in rows))
    merged = run.merged(store)
    assert merged["leace", 0] == {"name": "leace", "seed": 0, "found": 0.8, "art": 0.7}
    assert "failed" in merged["inlp", 0]


def measured(name: str, seed: int, found: float) -> dict[str, object]:
    row = {"name": name, "seed": seed, "found": found, "by": "trees", "n": 500}
    return {**row, "task": 0.8, "task_balanced": 0.7, "commit": "abc"}


def test_a_release_measured_for_fewer_seeds_keeps_its_row_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "RESULTS", tmp_path)
    earlier = [measured(name, seed, 0.6) for name in ("raw", "leace", "inlp") for seed in (0, 1)]
    board.write_board(CASES["adult"], earlier)
    later = [measured("raw", 0, 0.9), measured("leace", 0, 0.9), measured("leace", 1, 0.9)]
    board.write_board(CASES["adult"], later)
    rows = {row["release"]: row for row in tables.read(tmp_path / "peers-adult.json").rows}
    assert {name: float(rows[TITLES[name]]["found"]["value"]) for name in rows_of(rows)} == {
        "raw": 60.0,
        "leace": 90.0,
        "inlp": 60.0,
    }
    assert list(rows) == [TITLES[name] for name in ("raw", "leace", "inlp")]


def rows_of(rows: dict[str, object]) -> list[str]:
    return [name for name, title in TITLES.items() if title in rows]


def test_a_released_file_that_is_there_is_judged_without_its_peer(
    raw: files.Raw, tmp_path: Path
) -> None:
    folder = tmp_path / "adult" / "obliviator-seed0"
    folder.mkdir(parents=True)
    (tmp_path / "raw.parquet").rename(folder / "raw.parquet")
    files.Raw(folder).release(np.ones((1500, 1)), setting="3 iterations")
    run.main(["adult", "--work", str(tmp_path), "--only", "obliviator", "--seeds", "0",
              "--released"])  # fmt: skip
    row = run.merged(tmp_path / "adult.jsonl")["obliviator", 0]
    assert (row["found"], row["setting"]) == (0.5, "3 iterations")


def test_every_peer_has_its_script_and_a_case() -> None:
    folder = Path(run.__file__).parent
    for peer in PEERS.values():
        assert (folder / peer.script).is_file()
        assert set(peer.cases) <= set(CASES)
