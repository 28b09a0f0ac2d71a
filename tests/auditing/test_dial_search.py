"""The search of a dial for a target: what it tries, what it chooses, and that it can be killed."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from privet import METHODS, Run, learn
from privet.adversaries.linear import Logistic
from privet.auditing import dial_search
from privet.auditing.batteries import BATTERIES, Battery
from privet.auditing.dial_search import DialSearch, Trial, beyond, next_place, value_at
from privet.auditing.panel import Panel, PanelReading
from privet.core.errors import PrivetError
from privet.data.dataset import Dataset
from privet.methods.noisy import Noisy
from privet.methods.veil import Veil
from privet.train.game import Game
from small import small

RUN = Run(progress=False, device="cpu", resume=True)
ONE = Battery((Logistic(strengths=(1e-2,)),), reread=False, name="one")
QUICK = {"width": 0.05, "lessons": 1, "epochs": 1, "dims": 4, "batch": 32}


@pytest.fixture(scope="module")
def rows() -> Dataset:
    return small("table", 1200)


def search(data: Dataset, target: float, folder: Path, method=None, **run) -> DialSearch:
    method = method or Noisy()
    how = replace(RUN, folder=folder, **run)
    return DialSearch(method, method.problem(data, "u", run=how), target, ONE, how)


@pytest.mark.parametrize("edge", [-1.0, 0.3, 1.1, 2.0, 3.7, 5.2])
def test_halving_finds_the_edge(edge: float) -> None:
    """Of a leak that falls along the sweep, the most useful place that meets the target, up to the
    resolution; or none where there is none."""
    missed = met = None
    for _ in range(dial_search.MOST_TRIALS):
        place = next_place(4, 1, missed, met)
        if place is None:
            break
        if place >= edge:
            met = place
        else:
            missed = place
    if edge > 5:
        assert met is None
    else:
        assert met is not None and 0 <= met - max(edge, 0) <= dial_search.RESOLUTION


def test_every_method_with_a_dial_has_places_within_its_ranges() -> None:
    for kind in METHODS.values():
        if not kind.dial:
            continue
        low, high = kind.ranges.get(kind.dial, (-math.inf, math.inf))
        places = np.arange(0, len(kind.sweep) - 1 + beyond(kind) + 0.01, 0.5)
        values = [value_at(kind.sweep, place) for place in places]
        assert all(low <= value <= high for value in values), kind.name
        rising = np.diff(values) > 0
        assert rising.all() or not rising.any(), kind.name
    assert value_at(Veil.sweep, 4 + beyond(Veil)) > 1  # rows need more than pictures


def test_the_most_useful_release_that_meets_the_target_wins(rows: Dataset, tmp_path: Path) -> None:
    tried = search(rows, 0.7, tmp_path)
    release = tried.play()
    found = release.card["search"]
    leaks = {one["value"]: one["leak"] for one in found["trials"]}
    chosen = release.card["settings"]["sigma"]
    assert leaks[chosen] <= 0.7 and chosen == min(v for v, leak in leaks.items() if leak <= 0.7)
    assert all(leak > 0.7 for value, leak in leaks.items() if value < chosen)
    assert any(value < chosen for value in leaks), "the panel reads nothing at all: no search"
    tried.clear()
    assert not (tmp_path / dial_search.TRIALS).exists()


def test_nobody_looks_at_test(rows: Dataset) -> None:
    method = Noisy(sigma=20.0)
    release = method.fit(rows, "u", run=replace(RUN, resume=False))
    shuffled = rows.labels["u"].copy()
    test = rows.part_of == 3
    shuffled[test] = 1 - shuffled[test]
    other = replace(rows, labels={**rows.labels, "u": shuffled})
    readings = [
        Panel(data, [data.attribute("u")], ONE, 0, torch.device("cpu"), False).read(release)
        for data in (rows, other)
    ]
    assert readings[0] == readings[1]


def test_a_search_that_was_killed_ends_in_the_same_release(
    rows: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped in learning, in attacking, and between a trial and the next; every trial is learned
    once."""
    method = Veil(**QUICK)
    whole = search(rows, 0.75, tmp_path / "whole", method).play()
    calls = {"rounds": 0, "read": 0}
    round_, read, rounds = Game._round, Panel.read, 0

    def counting(*args):
        calls["rounds"] += 1
        return round_(*args)

    monkeypatch.setattr(Game, "_round", counting)
    search(rows, 0.75, tmp_path / "count", method).play()
    rounds = calls["rounds"]
    stops = {"rounds": [rounds // 3, rounds - 2], "read": [1]}

    def broken(name, real):
        def call(*args):
            calls[name] += 1
            if calls[name] in stops[name]:
                stops[name].remove(calls[name])
                raise KeyboardInterrupt
            return real(*args)

        return call

    calls["rounds"] = 0
    monkeypatch.setattr(Game, "_round", broken("rounds", round_))
    monkeypatch.setattr(Panel, "read", broken("read", read))
    again, interrupted = None, 0
    while again is None:
        try:
            again = search(rows, 0.75, tmp_path / "killed", method, rounds_between=1).play()
        except KeyboardInterrupt:
            interrupted += 1
            assert interrupted < 5
    assert interrupted == 3
    assert calls["rounds"] <= rounds + 3
    assert again.card["search"] == whole.card["search"]
    for key, value in whole.module.state_dict().items():
        assert value.equal(again.module.state_dict()[key]), key
    assert again.graph == whole.graph


def test_trials_of_other_work_are_refused(rows: Dataset, tmp_path: Path) -> None:
    search(rows, 0.7, tmp_path).trial(20.0)
    with pytest.raises(PrivetError, match="other data, settings or attackers"):
        search(rows, 0.7, tmp_path, Noisy(seed=1)).trial(20.0)
    with pytest.raises(PrivetError, match="--resume"):
        search(rows, 0.7, tmp_path, resume=False)


def test_a_target_that_cannot_be_met_says_so(
    rows: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Panel, "read", lambda self, release: PanelReading(0.8, "me", "u"))
    with pytest.raises(PrivetError, match=r"least that was read is 0\.800.*by me"):
        search(rows, 0.7, tmp_path).play()


@pytest.mark.parametrize("target", [0.5, 0.4, 1.0])
def test_a_target_at_chance_is_refused(rows: Dataset, tmp_path: Path, target: float) -> None:
    with pytest.raises(PrivetError, match="cannot be met"):
        search(rows, target, tmp_path)


def test_learn_searches_and_leaves_the_release_alone(
    rows: Dataset,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(BATTERIES, "quick", replace(ONE, name="quick"))
    out = tmp_path / "r"
    settings = [f"{key}={value}" for key, value in QUICK.items()]
    learn(
        "veil",
        rows,
        "u",
        out=out,
        target=0.8,
        battery="quick",
        settings=settings,
        run=Run(progress=False, device="cpu"),
    )
    assert {path.name for path in out.iterdir()} == {
        "card.json",
        "decoder.onnx",
        "release.onnx",
        "weights.safetensors",
    }
    card = json.loads((out / "card.json").read_text())
    assert card["search"]["target"] == 0.8 and card["search"]["battery"] == "quick"
    trials = [Trial(**one) for one in card["search"]["trials"]]
    assert card["settings"]["beta"] in [one.value for one in trials]
    said = capfd.readouterr().err
    assert "Trial 1: beta" in said and "lost" in said and "read at" in said


def test_a_battery_that_cannot_look_says_so(rows: Dataset) -> None:
    release = Noisy(sigma=20.0).fit(rows, "u", run=replace(RUN, resume=False))
    nobody = Battery((), reread=False, name="nobody")
    panel = Panel(rows, [rows.attribute("u")], nobody, 0, torch.device("cpu"), False)
    with pytest.raises(PrivetError, match="No attacker of the battery 'nobody'"):
        panel.read(release)
