"""Donors: marginals made equal by transport, a bound that holds, and records that are records."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from privet import Run, certify
from privet.core.errors import PrivetError
from privet.methods.donors import Donors, grouped, transport
from privet.nets.donors import CellsToDonors
from small import small

QUIET = Run(progress=False, device="cpu")


def laws(to: np.ndarray, shares: np.ndarray, donors: int) -> np.ndarray:
    """How often each value gets each donor."""
    return np.stack([np.bincount(to, share, donors) for share in shares])


@pytest.mark.parametrize("seed", range(3))
def test_a_price_makes_all_values_get_all_donors_equally_often(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells, donors = rng.standard_normal((400, 2)), rng.standard_normal((8, 2))
    odds = 1 / (1 + np.exp(-2 * cells[:, 0]))
    shares = np.stack([odds / odds.sum(), (1 - odds) / (1 - odds).sum()])
    cost = np.square(cells[:, None] - donors).sum(2)
    mass = np.full(400, 1 / 400)
    success, lost = {}, {}
    for price in (0.0, 3.0, 100.0):
        to = transport(cost, mass, [shares], price)
        success[price] = laws(to, shares, 8).max(0).sum() / 2
        lost[price] = cost[np.arange(400), to].mean()
    assert (transport(cost, mass, [shares], 0.0) == cost.argmin(1)).all()
    assert success[0.0] > 0.7 and success[100.0] < 0.51
    assert success[0.0] >= success[3.0] >= success[100.0] - 0.005
    assert lost[0.0] <= lost[3.0] <= lost[100.0] + 1e-9


def test_no_group_is_empty_and_rows_that_are_the_same_stay_together() -> None:
    rng = np.random.default_rng(0)
    different = rng.standard_normal((12, 5))
    rows = torch.as_tensor(np.repeat(different, 10, 0))
    group = grouped(rows, 6, 0)
    assert len(torch.unique(group)) == 6
    assert (group.reshape(12, 10) == group.reshape(12, 10)[:, :1]).all()


@pytest.mark.parametrize("seed", range(3))
def test_what_is_promised_is_certified_on_others(seed: int) -> None:
    data = small("table", 6000, seed)
    release = Donors(target=0.64, donors=8, seed=seed).fit(data, "u", run=QUIET)
    assert release.card["chosen"]["met"]
    found = certify(release, data, device="cpu").certificates[0]
    # Three deviations of a balanced accuracy among 600 people of each value.
    assert found.bound is not None and found.bound <= 0.64 + 0.042
    # y has a plain trace of its own, and nobody named it.
    parts = ("attack", "test")
    z = {p: release(release.schema.inputs(data.part(p)), seed=1).argmax(1) for p in parts}
    y = {p: data.part(p).labels["y"] for p in parts}
    mostly = [(y["attack"][z["attack"] == k]).mean() > 0.5 for k in range(8)]
    assert (np.array(mostly)[z["test"]] == y["test"]).mean() > 0.75


def test_donors_are_rows_of_the_same_columns() -> None:
    data = small("table", 600)
    release = Donors(donors=4, target=0.9).fit(data, "u", run=QUIET)
    body = release.module.body
    assert isinstance(body, CellsToDonors)
    made = body.draw(torch.eye(4))
    start = 0
    for column in release.schema.columns:
        piece = made[:, start : start + column.size]
        if column.values:
            assert set(piece.unique().tolist()) <= {0.0, 1.0} and (piece.sum(1) == 1).all()
        start += column.size
    assert start == made.shape[1]


def test_donors_of_pictures_are_pictures() -> None:
    data = small("image", 200)
    body = Donors(donors=4, dims=4, target=0.9).fit(data, "u", run=QUIET).module.body
    made = body.draw(torch.eye(4))
    assert made.shape == (4, 3, 32, 32) and float(made.abs().max()) <= 1 + 1e-5


def test_a_target_below_guessing_is_refused() -> None:
    with pytest.raises(PrivetError, match="cannot be met"):
        Donors(target=0.5).fit(small("table", 200), "u", run=QUIET)
