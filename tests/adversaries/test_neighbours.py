"""Votes of the nearest are those counted one by one, for every k, whoever was asked before."""

from __future__ import annotations

import numpy as np
import torch

from privet.adversaries import neighbours
from privet.adversaries.neighbours import Neighbours, nearest
from privet.data.dataset import Attribute

THREE = Attribute("u", "categorical", ("a", "b", "c"))


def _vectors(n: int, seed: int) -> torch.Tensor:
    return torch.randn(n, 5, generator=torch.Generator().manual_seed(seed))


def test_votes_are_those_of_the_k_nearest():
    x, y = _vectors(200, 0), np.random.default_rng(0).integers(0, 3, 200)
    counts = (1, 4, 9)
    answers = list(Neighbours(counts=counts).candidates(x, y, THREE, 0))[:3]
    prior = np.bincount(y, minlength=3) / len(y)
    for z in (_vectors(30, 1), _vectors(20, 2), x[:10]):
        near = (z[:, None] - x).norm(dim=2).argsort(1).numpy()
        for k, answer in zip(sorted(counts, reverse=True), answers, strict=True):
            votes = np.eye(3)[y[near[:, :k]]].sum(1)
            np.testing.assert_allclose(answer(z), (votes + prior) / (k + 1), atol=1e-12)


def test_distances_are_measured_once_for_all_k(monkeypatch):
    asked = []

    def counted(z, among, k):
        asked.append((len(z), k))
        return nearest(z, among, k)

    monkeypatch.setattr(neighbours, "nearest", counted)
    z, other = _vectors(30, 1), _vectors(20, 2)
    answers = list(
        Neighbours(counts=(1, 4, 9)).candidates(
            _vectors(200, 0), np.zeros(200), Attribute("age", "number"), 0
        )
    )
    for answer in answers:
        answer(z)
    assert asked == [(30, 9), (30, 9)], "as they are, and whitened"
    answers[2](other)
    assert asked[2:] == [(20, 1)], "whoever is chosen asks for no more than its own k"
