"""Methods that aim at a bound choose state and noise on *attack* and *select*, not fit or test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from privet.data.dataset import PARTS, Dataset
from privet.methods.codebook import Codebook
from privet.methods.hedge import Hedge
from privet.train.game import Run
from small import small

QUICK: dict[str, Any] = {"width": 0.05, "batch": 128, "dropout": 0.0, "lr": 1e-9}
"""At this rate nothing is learned: what differs was chosen."""


def shuffled(data: Dataset, part: str) -> Dataset:
    """The same records and labels, but in one part the labels are dealt out anew."""
    rows = np.flatnonzero(data.part_of == PARTS.index(part))
    moved = np.random.default_rng(1).permutation(rows)
    labels = {name: column.copy() for name, column in data.labels.items()}
    for column in labels.values():
        column[rows] = column[moved]
    return replace(data, labels=labels)


def test_labels_of_the_others_change_the_choice_and_those_of_fit_and_test_do_not() -> None:
    def choice(data: Dataset) -> tuple[float, list[float]]:
        """The noise, and what each state was worth where states were compared."""
        method = Hedge(target=0.61, dims=1, epochs=3, memory=64, seed=5, **QUICK)
        release = method.fit(data, ["u"], ["y"], run=Run(device="cpu", progress=False))
        assert release.noise is not None
        return release.noise.scale, [
            epoch["score"] for epoch in release.card["history"] if "score" in epoch
        ]

    data = small("table", 1600)
    noise, worth = choice(data)
    assert len(worth) >= 2, "states are compared, or the test shows nothing"
    for part in ("fit", "test"):
        same_noise, same_worth = choice(shuffled(data, part))
        assert same_noise == pytest.approx(noise, rel=0.02) and same_worth == pytest.approx(
            worth, abs=2e-4
        ), part
    for part in ("attack", "select"):
        other_noise, other_worth = choice(shuffled(data, part))
        assert other_noise < 0.9 * noise, f"{part}: labels that go with nothing need less noise"
        assert all(abs(a - b) > 1e-3 for a, b in zip(worth, other_worth, strict=True)), part


def test_how_often_a_symbol_is_replaced_is_chosen_on_the_others() -> None:
    def flip(data: Dataset) -> float:
        method = Codebook(
            target=0.6, symbols=8, epochs=1, free=1.0, **QUICK
        )  # one epoch: no states to choose between
        release = method.fit(data, ["u"], ["y"], run=Run(device="cpu", progress=False))
        assert release.noise is not None
        return release.noise.scale

    data = small("table", 1600)
    usual = flip(data)
    for part in ("fit", "test"):
        assert flip(shuffled(data, part)) == pytest.approx(usual, rel=0.02), part
    assert flip(shuffled(data, "attack")) < 0.9 * usual
    assert flip(shuffled(data, "select")) != usual
