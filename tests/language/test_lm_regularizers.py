"""The privacy terms are what their formulas say, and every player has its own gradient."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from privet.core.errors import PrivetError
from privet.language.models.networks import LanguageModel, build_network, losses, mean_loss
from privet.language.models.regularizers import (
    AUTHOR,
    discriminator,
    divergence_from_uniform,
    regularized_training,
    reversed_triplet_loss,
)
from privet.language.models.settings import Settings
from privet.train.feed import Batch

IDS = torch.tensor([[2, 13, 14, 15, 2], [2, 14, 13, 2, 0], [2, 15, 15, 2, 0], [2, 13, 13, 13, 2]])
AUTHORS = torch.tensor([0, 0, 1, 2])


SETTINGS = Settings(
    width=8, layers=1, dropout=0.0, longest=6, lr=1e-3, regularizer="adversarial", weight=0.7
)


@pytest.fixture(params=["lstm", "gpt"])
def model(request: pytest.FixtureRequest) -> LanguageModel:
    torch.manual_seed(0)
    return build_network(replace(SETTINGS, model=request.param), 16)


def test_the_future_is_not_known_and_padding_changes_nothing(model: LanguageModel) -> None:
    scores, h = model(IDS)
    other = IDS.clone()
    other[0, 3] = 13
    assert torch.allclose(scores[0, :3], model(other)[0][0, :3], atol=1e-6)
    assert not torch.allclose(scores[0, 3:], model(other)[0][0, 3:])
    assert torch.allclose(h[1], model(IDS[1:2, :4])[1][0], atol=1e-6)
    assert losses(scores, IDS)[1, 3] == 0 and (losses(scores, IDS)[0] > 0).all()


def test_triplets_equal_the_loop_over_all_of_them() -> None:
    h = torch.randn(7, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    author = torch.tensor([0, 1, 0, 2, 1, 0, 3])
    far = torch.cdist(h, h) / 5**0.5
    terms = [
        max(0.0, float(far[a, n] - far[a, p] + 0.3))
        for a, p, n in itertools.permutations(range(7), 3)
        if author[a] == author[p] and author[a] != author[n]
    ]
    assert float(reversed_triplet_loss(h, author, 0.3)) == pytest.approx(
        sum(terms) / len(terms), rel=1e-4
    )
    assert float(reversed_triplet_loss(h, torch.arange(7), 0.3)) == 0.0


def test_uniform_answers_cost_nothing_and_sure_ones_much() -> None:
    assert float(divergence_from_uniform(torch.zeros(3, 4))) == pytest.approx(0, abs=1e-6)
    assert float(divergence_from_uniform(torch.tensor([[9.0, 0, 0, 0]]))) > 1


def test_one_step_has_each_players_own_gradient(model: LanguageModel) -> None:
    torch.manual_seed(1)
    modules, phase = regularized_training(model, SETTINGS, authors=3, epochs=1)
    judge = modules["discriminator"]
    assert phase.fused is not None
    fused = phase.fused(Batch(IDS, {AUTHOR: AUTHORS})).loss
    own, theirs = list(model.parameters()), list(judge.parameters())
    scores, h = model(IDS)
    wanted = torch.autograd.grad(
        mean_loss(scores, IDS) + 0.7 * divergence_from_uniform(judge(h)), own, allow_unused=True
    )
    judged = torch.autograd.grad(F.cross_entropy(judge(h.detach()), AUTHORS), theirs)
    found = torch.autograd.grad(fused, [*own, *theirs], allow_unused=True)
    for a, b in zip(found, [*wanted, *judged], strict=True):
        assert (a is None) == (b is None) and (
            a is None or b is None or torch.allclose(a, b, atol=1e-6)
        )


def test_unknown_words_are_refused() -> None:
    with pytest.raises(PrivetError, match="no language model"):
        build_network(replace(SETTINGS, model="rnn"), 16)
    with pytest.raises(PrivetError, match="multiple of 64"):
        build_network(replace(SETTINGS, model="gpt", width=129), 16)
    assert discriminator(8, 3)(torch.zeros(2, 8)).shape == (2, 3)
