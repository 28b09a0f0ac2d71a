"""Rivals of veil: each takes out what it promises to, and leaves the rest."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from sklearn.linear_model import LogisticRegression

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from veil_parts import rivals


def records(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Vectors in which u is linear in one direction and y in another."""
    torch.manual_seed(seed)
    u, y = torch.randint(0, 2, (2, 800))
    x = torch.randn(800, 10)
    x[:, 0] += 2.0 * u
    x[:, 1] += 3.0 * y
    return x, u, y


def read(z: torch.Tensor, labels: torch.Tensor) -> float:
    """How often a linear reader of one half is right on the other."""
    reader = LogisticRegression(max_iter=500).fit(z[:400], labels[:400])
    return float(reader.score(z[400:], labels[400:]))


ERASURES = {
    "inlp": lambda x, u: rivals.inlp(x, u, rounds=1),
    "linear": rivals.linear_erasure,
    "kernel": lambda x, u: rivals.kernel(x, u, features=64),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ERASURES)
def test_linear_readers_find_u_no_more_and_still_y(name: str, seed: int) -> None:
    x, u, y = records(seed)
    z = ERASURES[name](x, u)(x)
    assert read(x, u) > 0.78 and read(x, y) > 0.9
    # Three deviations of a share among 400.
    assert read(z, u) < 0.5 + 0.075 and read(z, y) > 0.8


def test_a_flow_gives_every_value_the_same_law() -> None:
    x, u, _ = records(0)
    torch.manual_seed(0)
    z = rivals.flow(x, u, dims=10, steps=60)(x)
    assert z.shape == x.shape and torch.isfinite(z).all()
    means = torch.stack([z[u == value].mean(0) for value in (0, 1)])
    before = torch.stack([x[u == value].mean(0) for value in (0, 1)])
    assert (means[0] - means[1]).norm() < 0.7 * (before[0] - before[1]).norm()
