"""Cloak's maps around VGG-16: the network of the paper, one noise for all shares, results as they
were counted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import privet
from privet import Run
from privet.methods.cloak import Cloak

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import cloak_maps
from cloak_parts.record import record
from cloak_parts.vgg import CloakedVgg
from tables import read

QUIET = Run(progress=False, device="cpu")


@pytest.fixture(scope="module")
def portraits():
    return privet.load("portraits:80", progress=False)


def networks(data, **settings):
    method = Cloak(**{"width": 0.02, "lessons": 1, "epochs": 1, "constants": 1} | settings)
    torch.manual_seed(0)
    return CloakedVgg(method.problem(data, ["beard"], ["smiling"], [], QUIET), method)


def test_the_service_is_vgg_16(portraits):
    problem = networks(portraits).problem
    with torch.device("meta"):
        (service,) = CloakedVgg.services(problem, 1.0)
    layers = list(service.module.modules())
    convolutions = [one.out_channels for one in layers if isinstance(one, nn.Conv2d)]
    linear = [one.out_features for one in layers if isinstance(one, nn.Linear)]
    pools = sum(isinstance(one, nn.MaxPool2d) for one in layers)
    assert convolutions == [64] * 2 + [128] * 2 + [256] * 3 + [512] * 6
    assert linear == [4096, 4096, 2] and pools == 5


def test_every_share_has_the_same_noise_and_the_frozen_service(portraits):
    cloaked = networks(portraits)
    cloaked.learn(QUIET)
    (service,) = cloaked.served
    before = [p.clone() for p in service.module.parameters()]
    few, most = (cloaked.suppress(share, QUIET).module for share in (0.9, 0.5))
    assert torch.equal(few.body.sigma, most.body.sigma)
    assert (few.body.keep <= most.body.keep).all(), "what is needed most is kept longest"
    assert most.body.keep.float().mean() == pytest.approx(0.5, abs=0.001)
    assert all(map(torch.equal, before, service.module.parameters()))
    again = networks(portraits)
    again.learn(QUIET)
    alone = again.suppress(0.5, QUIET).module
    assert torch.equal(alone.location, most.location), "constants depend on an earlier share"


def test_maps_are_measured_as_they_come_and_recorded(portraits, tmp_path, monkeypatch):
    monkeypatch.setattr(cloak_maps.privet, "load", lambda *_, **__: portraits)
    words = f"--data x --out {tmp_path} --tasks smiling hat --attacked smiling --shares 0.5 0.9"
    words += (
        " --width 0.02 --lessons 1 --epochs 1 --constants 1 --device cpu --reading 1 --reader 0.02"
    )
    for seconds, count in (("0", 0), ("1000", 4)):
        monkeypatch.setattr(sys, "argv", ["cloak_maps.py", *words.split(), "--seconds", seconds])
        assert cloak_maps.main() == 0
        if count == 0:
            assert not list(tmp_path.iterdir()), "nothing is begun when time is up"
    told = json.loads((tmp_path / "cloak_maps.json").read_text())
    assert [row["task"] for row in told["rows"]] == ["smiling"] * 2 + ["hat"] * 2
    assert [one["suppression"] for one in told["attackers"]] == [0.9, 0.5, None]
    for row in told["rows"]:
        assert row["raw"]["low"] <= row["raw"]["value"] <= row["raw"]["high"]
    maps = np.load(tmp_path / "maps.npz")
    assert set(maps) == {f"{t} {w}" for t in ("smiling", "hat") for w in ("sigma", "0.5", "0.9")}
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"cloak_maps.json", "maps.npz", "maps.png", "faces.png"}
    record([tmp_path / "cloak_maps.json"] * 2, "x", "a machine", tmp_path)
    services, attackers = read(tmp_path / "x.json"), read(tmp_path / "x-attackers.json")
    assert [row["suppressed"] for row in services.rows] == [50, 90, 50, 90]
    assert len(services.rows[0]["raw"]["seeds"]) == 2
    for row, one in zip(services.rows, told["rows"], strict=True):
        lost = 100 * (one["raw"]["value"] - one["released"]["value"])
        assert float(row["lost"]) == pytest.approx(lost, abs=0.051), "rounded once"
    assert [row["suppressed"] for row in attackers.rows] == ["nothing (raw)", 50, 90]
    worst = told["attackers"][0]["private"]["hat"]["worst"]["value"]
    assert float(attackers.rows[-1]["hat"]["value"]) == pytest.approx(worst, abs=0.06)
