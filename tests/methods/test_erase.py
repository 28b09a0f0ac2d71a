"""Erase takes out what its people show, and no more; Metric's noise has the law it names."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch

import privet
from privet import LEACE, ApplyOptions, Erase, Metric, Run
from privet.methods.dp import accuracy_bound
from privet.methods.erase import whole_people

QUIET = Run(progress=False, device="cpu")


def frame_of(x, u, person=None):
    person = np.arange(len(x)) if person is None else person
    split = np.array(["fit", "fit", "attack", "select", "test"])[person % 5]
    columns = pd.DataFrame(x, columns=[f"v{i}" for i in range(x.shape[1])])
    return columns.assign(u=u.astype(str), person=person, split=split)


def fitted(method, frame):
    """The release, and what it gives of all rows in their own units."""
    release = method.fit(frame, "u", run=QUIET)
    names = [column.name for column in release.schema.columns]
    assert names == [c for c in frame if c.startswith("v")]
    mean, std = (
        np.array([getattr(c, key) for c in release.schema.columns]) for key in ("mean", "std")
    )
    x = frame[names].to_numpy()
    return release, mean + std * release(((x - mean) / std).astype(np.float32), seed=1)


def drawn(n, d, shift=0.0, seed=0):
    random = np.random.default_rng(seed)
    u = np.arange(n) // 5 % 2
    x = random.normal(size=(n, d))
    x[:, 0] += shift * u
    return x, u


def moved(method, frame):
    release, z = fitted(method, frame)
    x = frame[[c for c in frame if c.startswith("v")]].to_numpy()
    return release, float(np.square(z - x).sum(1).mean())


def test_a_plain_difference_is_taken_out_as_leace_does():
    x, u = drawn(4000, 12, shift=2.0)
    release, z = fitted(Erase(), frame_of(x, u))
    _, by_leace = fitted(LEACE(), frame_of(x, u))
    assert release.card["kept"] > 0.95
    gap = np.abs(z[u == 1].mean(0) - z[u == 0].mean(0))
    assert gap.max() < 0.15 < np.abs(x[u == 1].mean(0) - x[u == 0].mean(0)).max()
    assert np.square(z - by_leace).mean() < 0.02


def test_what_is_error_alone_is_trusted_little():
    shares = [Erase().fit(frame_of(*drawn(500, 100, seed=s)), "u", run=QUIET).card["kept"]
              for s in range(3)]  # fmt: skip
    assert np.mean(shares) < 0.2


def test_copies_of_a_persons_records_are_no_further_people():
    x, u = drawn(400, 30, shift=0.5)
    once = Erase().fit(frame_of(x, u), "u", run=QUIET)
    person = np.tile(np.arange(400), 6)
    copies = frame_of(np.tile(x, (6, 1)), np.tile(u, 6), person)
    several = Erase().fit(copies, "u", run=QUIET)
    as_people = frame_of(np.tile(x, (6, 1)), np.tile(u, 6))
    as_people["split"] = copies["split"]
    deceived = Erase().fit(as_people, "u", run=QUIET)
    assert several.card["kept"] == pytest.approx(once.card["kept"], abs=1e-3)
    assert deceived.card["kept"] > several.card["kept"] + 0.05


def test_directions_of_different_spread_are_taken_out_on_demand():
    x, u = drawn(3000, 10, shift=2.0)
    x[:, 3] *= np.where(u == 1, 3.0, 1.0)
    for directions, most in ((0, math.inf), (1, 0.3)):
        _, z = fitted(Erase(directions=directions), frame_of(x, u))
        deviations = [z[u == value, 3].std() for value in (0, 1)]
        assert abs(deviations[1] - deviations[0]) < most
        if not directions:
            assert deviations[1] > 2.5 * deviations[0]


def test_vectors_of_one_length_keep_it_and_others_are_left_alone():
    x, u = drawn(600, 16, shift=1.0)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    release, z = fitted(Erase(directions=2), frame_of(0.5 * unit, u))
    assert release.card["length"] == pytest.approx(0.5)
    np.testing.assert_allclose(np.linalg.norm(z, axis=1), 0.5, atol=1e-5)
    assert Erase().fit(frame_of(x, u), "u", run=QUIET).card["length"] is None


def test_a_vector_store_gets_vectors_of_the_same_length_and_scale_back(tmp_path):
    x, u = drawn(400, 16, shift=1.0)
    unit = (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)
    frame = pd.DataFrame({"vector": list(unit), "u": u})
    frame.to_parquet(tmp_path / "store.parquet")
    Erase().fit(privet.load(tmp_path / "store.parquet"), "u", run=QUIET).save(tmp_path / "r")
    options = ApplyOptions(form="vector", home=tmp_path, ordered=True)
    privet.apply(
        tmp_path / "r", tmp_path / "store.parquet", tmp_path / "z.parquet", options=options
    )
    z = np.stack(pq.read_table(tmp_path / "z.parquet")["vector"].to_pylist())
    assert z.shape == unit.shape
    np.testing.assert_allclose(np.linalg.norm(z, axis=1), 1.0, atol=1e-4)
    assert (z * unit).sum(1).mean() > 0.8


def test_pieces_hold_whole_people(monkeypatch):
    monkeypatch.setattr("privet.methods.erase.CHUNK", 10)
    who = np.random.default_rng(0).integers(0, 30, 200)
    pieces = list(whole_people(who))
    assert sorted(np.concatenate(pieces)) == list(range(200)) and len(pieces) > 5
    seen = [set(who[piece]) for piece in pieces]
    assert sum(map(len, seen)) == len(set(who))


def test_metric_noise_has_a_uniform_direction_and_a_gamma_length():
    x, u = drawn(2000, 8)
    release, z = fitted(Metric(epsilon=4.0), frame_of(x, u))
    apart = z - x * np.minimum(1, release.card["radius"] / np.linalg.norm(x, axis=1, keepdims=True))
    lengths = np.linalg.norm(apart, axis=1)
    assert abs(lengths.mean() - 8 / 4) < 4 * math.sqrt(8) / 4 / math.sqrt(len(x))
    assert abs(lengths.std() - math.sqrt(8) / 4) < 0.1
    assert np.abs((apart / lengths[:, None]).mean(0)).max() < 4 / math.sqrt(8 * len(x))


def test_metric_shortens_records_so_that_its_epsilon_holds():
    x, u = drawn(500, 4)
    frame = frame_of(x, u)
    release = Metric(epsilon=2.0).fit(frame, "u", run=QUIET)
    radius, claim = release.card["radius"], release.card["certificate"]
    assert radius == pytest.approx(
        np.linalg.norm(x, axis=1)[frame["split"] == "fit"].max(), rel=1e-4
    )
    assert claim["bounds"]["u"] == accuracy_bound(4 * radius, 2)
    given = release.module.own(release.module(torch.full((1, 4), 1e3), torch.zeros(1, 3, 4)))
    assert float(given.norm()) <= radius * 1.05
