"""What is asked of a model beside predicting: that the hidden state h of a text does not tell its
author.

With weight w, the model minimises ::

    none          L = mean -log p(next token)
    adversarial   L + w KL(uniform || D(h)),   where the discriminator D minimises  -log D(h)[author]
    triplet       L + w mean over (a, p, n) of max(0, |h_a - h_n| - |h_a - h_p| + margin)

where texts a and p are by the same author and n by another one: the usual triplet loss turned
round, which pushes an author's texts apart and pulls those of different authors together. All
triplets in a batch count, so that no text is read twice for it. Both terms look at h with its own
mean and deviation taken out (layer norm): its size is no place to hide, nor a way to meet a margin.

Source: Mireshghallah, Inan, Hasegawa, Rühle, Berg-Kirkpatrick and Sim, Privacy regularization:
Joint privacy-utility optimization in language models, NAACL (2021).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from privet.core.errors import unknown
from privet.language.models.networks import LanguageModel, mean_loss
from privet.train.feed import Batch
from privet.train.game import Move, Phase, Player

REGULARIZERS = ("none", "adversarial", "triplet", "dp")

AUTHOR = "author"
"""Name of the labels: codes of the known authors, from 0."""


class Lesson(NamedTuple):
    """What there is to learn, and how one step of it goes."""

    modules: dict[str, nn.Module]
    phase: Phase


def discriminator(width: int, authors: int) -> nn.Module:
    """Reads the author from h, whatever its size: a model that only makes h smaller has hidden
    nothing."""
    return nn.Sequential(
        nn.LayerNorm(width), nn.Linear(width, 128), nn.ReLU(), nn.Linear(128, authors)
    )


def to_uniform(answers: Tensor) -> Tensor:
    """KL(uniform || softmax(answers)), mean over the batch, in nats; 0 where the discriminator
    cannot tell anybody from anybody.

    >>> round(float(to_uniform(torch.zeros(2, 5))), 6)
    0.0
    """
    return -F.log_softmax(answers.float(), 1).mean() - math.log(answers.shape[1])


def reversed_triplets(h: Tensor, author: Tensor, margin: float) -> Tensor:
    """The mean over all triplets of a batch; 0 where no author has two texts in it. Distances are
    per root of the width.

    >>> h = torch.tensor([[0.0], [0.0], [3.0]])
    >>> round(float(reversed_triplets(h, torch.tensor([0, 0, 1]), margin=1.0)), 3)    # the same author's at 0, the other's at 3: 3 + 1
    4.0
    """
    h = h.float()
    # Differences, not products: half precision would lose near distances. The root has no slope at
    # 0, where texts are their own neighbours.
    far = ((h[:, None] - h).square().mean(2) + 1e-12).sqrt()
    same = author[:, None] == author
    other = ~same
    same = same & ~torch.eye(len(h), dtype=torch.bool, device=h.device)
    triplets = same[:, :, None] & other[:, None, :]
    over = (far[:, None, :] - far[:, :, None] + margin).clamp(min=0)
    return (over * triplets).sum() / triplets.sum().clamp(min=1)


def lesson(
    model: LanguageModel,
    regularizer: str,
    weight: float,
    *,
    authors: int,
    width: int,
    margin: float,
    lr: float,
    epochs: float,
    after: Callable[[], Mapping[str, float]] = dict,
) -> Lesson:
    """One forward and one backward pass per step for model and discriminator alike."""
    modules: dict[str, nn.Module] = {"model": model}
    if regularizer == "adversarial":
        modules["discriminator"] = discriminator(width, authors)
    elif regularizer not in ("none", "triplet"):
        raise unknown("regularizer", regularizer, REGULARIZERS)

    def step(batch: Batch) -> Move:
        scores, h = model(batch.x)
        loss = mean_loss(scores, batch.x)
        figures = {"perplexity": loss.detach().exp()}
        if regularizer == "triplet":
            apart = reversed_triplets(F.layer_norm(h, h.shape[1:]), batch.labels[AUTHOR], margin)
            return Move(loss + weight * apart, {**figures, "triplet": apart.detach()})
        if regularizer == "adversarial":
            judge = modules["discriminator"]
            # The model is judged by the discriminator as it stands, and the discriminator learns
            # from h as it stands.
            frozen = {name: value.detach() for name, value in judge.named_parameters()}
            fooled = to_uniform(functional_call(judge, frozen, (h,)))
            answers = judge(h.detach())
            told = F.cross_entropy(answers.float(), batch.labels[AUTHOR])
            right = (answers.argmax(1) == batch.labels[AUTHOR]).float().mean()
            return Move(loss + weight * fooled + told, {**figures, "author guessed": right})
        return Move(loss, figures)

    players = [
        Player(name, module, lambda batch: step(batch), lr=lr) for name, module in modules.items()
    ]
    return Lesson(
        modules,
        Phase(
            "language model",
            epochs,
            players,
            fused=step,
            schedule=lambda done: 1 - 0.9 * done,
            after=after,
        ),
    )
