"""Donors: marginals made equal by transport, a bound that holds, and records that are records."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from privet import Run, certify
from privet.core.errors import PrivetError
from privet.methods.donors import Donors, grouped, shared_axes, transport
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


def centred(*columns: np.ndarray) -> torch.Tensor:
    rows = torch.as_tensor(np.column_stack(columns).astype(np.float64))
    return rows - rows.mean(0)


def weights(rows: torch.Tensor, sizes: list[int], dims: int) -> torch.Tensor:
    """How far each number, by its own deviation, moves a record along the axes."""
    return shared_axes(rows, sizes, dims).norm(dim=1) * rows.std(0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_what_no_other_column_tells_does_not_count(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    common, alone = rng.standard_normal(4000), scale * rng.standard_normal(4000)
    letters = np.eye(20)[rng.integers(0, 20, 4000)]  # Each tells all about all the others.
    a, b = (common + 0.5 * rng.standard_normal(4000) for _ in range(2))
    weight = weights(centred(a, b, alone, letters), [1, 1, 1, 20], 3)
    assert weight[:2].min() > 0.5 and weight[2:].max() < 0.05


@pytest.mark.parametrize("seed", range(3))
def test_a_column_of_many_rare_categories_counts_as_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    town, size = rng.integers(0, 40, 8000), rng.standard_normal(8000)
    # Two columns say the town, nearly always the same; two numbers say the size, less precisely.
    second = np.where(rng.random(8000) < 0.2, rng.integers(0, 40, 8000), town)
    sizes = [size + 0.6 * rng.standard_normal(8000) for _ in range(2)]
    rows = centred(np.eye(40)[town], np.eye(40)[second], *sizes)
    weight = weights(rows, [40, 40, 1, 1], 1)
    assert weight[80:].min() > 0.3 and weight[:80].max() < 0.03


def test_shared_axes_hide_as_the_others_do() -> None:
    data = small("table", 6000)
    release = Donors(target=0.64, donors=8, shared=2).fit(data, "u", run=QUIET)
    assert release.card["chosen"]["met"]
    found = certify(release, data, device="cpu").certificates[0]
    # Three deviations, as above.
    assert found.bound is not None and found.bound <= 0.64 + 0.042


def test_pictures_have_no_columns_to_share() -> None:
    with pytest.raises(PrivetError, match="no columns"):
        Donors(target=0.9, shared=2).fit(small("image", 200), "u", run=QUIET)


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
