"""Regularisers: privacy terms that keep the hidden state h of a text from revealing its author.

With weight w, the model minimises ::

    none          L = mean -log p(next token)
    adversarial   L + w KL(uniform || D(h)), where the discriminator D minimises -log D(h)[author]
    triplet       L + w mean over (a, p, n) of max(0, |h_a - h_n| - |h_a - h_p| + margin)

where texts a and p are by the same author and n by another one: the usual triplet loss with its
sign reversed, which pushes an author's texts apart and pulls those of different authors together.
All triplets in a batch count, so that no text is read twice for it. Both terms see h after layer
normalisation: its size is no place to hide, nor a way to meet a margin.

Source: Mireshghallah, Inan, Hasegawa, Rühle, Berg-Kirkpatrick and Sim, Privacy regularization:
Joint privacy-utility optimization in language models, NAACL (2021).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from privet.language.models.networks import LanguageModel, mean_loss
from privet.language.models.settings import Settings
from privet.train.feed import Batch
from privet.train.game import Move, Phase, Player

# Name of the labels: codes of the known authors, from 0.
AUTHOR = "author"


def discriminator(width: int, authors: int) -> nn.Module:
    """A classifier of authors from h, whatever its size: a model that only makes h smaller has
    hidden nothing."""
    return nn.Sequential(
        nn.LayerNorm(width), nn.Linear(width, 128), nn.ReLU(), nn.Linear(128, authors)
    )


def divergence_from_uniform(logits: Tensor) -> Tensor:
    """KL(uniform || softmax(logits)), mean over the batch, in nats; 0 where the discriminator
    cannot tell authors apart.

    >>> round(float(divergence_from_uniform(torch.zeros(2, 5))), 6)
    0.0
    """
    return -F.log_softmax(logits.float(), 1).mean() - math.log(logits.shape[1])


def reversed_triplet_loss(h: Tensor, author: Tensor, margin: float) -> Tensor:
    """The mean over all triplets of a batch; 0 where no author has two texts in it. Distances are
    divided by the square root of the width.

    >>> h = torch.tensor([[0.0], [0.0], [3.0]])    # two texts of one author, and another author's
    >>> round(float(reversed_triplet_loss(h, torch.tensor([0, 0, 1]), margin=1.0)), 3)
    4.0
    """
    h = h.float()
    # Differences, not products: half precision would lose near distances. The root has no slope at
    # 0, where texts are their own neighbours.
    distance = ((h[:, None] - h).square().mean(2) + 1e-12).sqrt()
    same = author[:, None] == author
    pairs = same & ~torch.eye(len(h), dtype=torch.bool, device=h.device)
    triplets = pairs[:, :, None] & ~same[:, None, :]
    excess = (distance[:, None, :] - distance[:, :, None] + margin).clamp(min=0)
    return (excess * triplets).sum() / triplets.sum().clamp(min=1)


def regularized_training(
    model: LanguageModel,
    settings: Settings,
    authors: int,
    epochs: float,
    after: Callable[[], Mapping[str, float]] = dict,
) -> tuple[dict[str, nn.Module], Phase]:
    """The modules that are trained, and the phase of a game that trains them: one forward and one
    backward pass per step for model and discriminator alike; `after` is called at the end of every
    epoch."""
    modules: dict[str, nn.Module] = {"model": model}
    if settings.regularizer == "adversarial":
        modules["discriminator"] = discriminator(settings.width, authors)

    def step(batch: Batch) -> Move:
        scores, h = model(batch.x)
        loss, author = mean_loss(scores, batch.x), batch.labels[AUTHOR]
        figures = {"perplexity": loss.detach().exp()}
        if settings.regularizer == "triplet":
            term = reversed_triplet_loss(F.layer_norm(h, h.shape[1:]), author, settings.margin)
            return Move(loss + settings.weight * term, {**figures, "triplet": term.detach()})
        if settings.regularizer == "adversarial":
            judge = modules["discriminator"]
            # The model's gradient does not change the discriminator, nor the other way round.
            frozen = {name: value.detach() for name, value in judge.named_parameters()}
            hiding = divergence_from_uniform(functional_call(judge, frozen, (h,)))
            logits = judge(h.detach())
            guessing = F.cross_entropy(logits.float(), author)
            right = (logits.argmax(1) == author).float().mean()
            total = loss + settings.weight * hiding + guessing
            return Move(total, {**figures, "author guessed": right})
        return Move(loss, figures)

    phase = Phase(
        "language model",
        epochs,
        [Player(name, module, step, lr=settings.lr) for name, module in modules.items()],
        fused=step,
        schedule=lambda done: 1 - 0.9 * done,
        after=after,
    )
    return modules, phase
