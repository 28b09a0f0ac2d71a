"""Services whose answer is a mask: a U-Net that marks where something is, taught here, and how well
a mask is met.

    Dice = 2 |A and B| / (|A| + |B|),    1 where both are empty
    loss = BCE(scores, truth) + 1 - soft Dice,   soft: with probabilities in place of what is marked

Dice, Measures of the amount of ecologic association between species, Ecology 26 (1945); as a loss,
Milletari, Navab and Ahmadi, V-Net, 3DV 2016. The counterpart, for masks, of service.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from privet.data.dataset import Attribute
from privet.methods.method import Problem
from privet.methods.services.service import Service
from privet.nets.convolutions import prepare
from privet.nets.unet import segmenter
from privet.train.feed import Batch
from privet.train.game import Move, Phase, Player


def dice(marked: Tensor, truth: Tensor) -> Tensor:
    """Per picture, how well what is marked, (n, height, width), meets the truth.

    >>> marked, truth = [[[1, 1, 0, 0]], [[0, 0, 0, 0]]], [[[1, 0, 0, 0]], [[0, 0, 0, 0]]]
    >>> dice(torch.tensor(marked), torch.tensor(truth))
    tensor([0.6667, 1.0000])
    """
    a, b = marked.flatten(1).float(), truth.flatten(1).float()
    both, total = (a * b).sum(1), a.sum(1) + b.sum(1)
    return torch.where(total > 0, 2 * both / total.clamp(min=1e-9), torch.ones_like(both))


def mask_loss(scores: Tensor, truth: Tensor) -> Tensor:
    """BCE + 1 - soft Dice of scores (n, 1, height, width) against a mask of zeros and ones (n,
    height, width)."""
    scores, truth = scores.squeeze(1).float(), truth.float()
    entropy = F.binary_cross_entropy_with_logits(scores, truth)
    return entropy + 1 - dice(torch.sigmoid(scores), truth).mean()


def new_service(problem: Problem, attribute: Attribute, width: float = 0.5) -> Service:
    """A service of our own for one mask, to be taught by `teaching_phase` first."""
    return Service(attribute, segmenter(cast(Sequence[int], problem.schema.shape), width))


def teaching_phase(service: Service, epochs: float, lr: float = 2e-3) -> Phase:
    """The phase of a game in which a service learns its mask from raw pictures, mirrored at
    random."""
    name = service.attribute.name

    def learn(batch: Batch) -> Move:
        service.module.train()
        x, truth = mirrored(prepare(batch.x), batch.labels[name])
        scores = service.module(x)
        met = dice(scores.squeeze(1).detach() > 0, truth).mean()
        return Move(mask_loss(scores, truth), {f"{name} Dice": met})

    player = Player(f"service of {name}", service.module, learn, lr, decay=1e-2)
    return Phase(f"teaching {name}", epochs, [player], schedule=cosine, steady=True)


def mirrored(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Every other picture, at random, seen in a mirror together with its mask."""
    turned = torch.rand(len(x), 1, 1, device=x.device) < 0.5
    return torch.where(turned.unsqueeze(3), x.flip(3), x), torch.where(turned, mask.flip(2), mask)


def cosine(done: float) -> float:
    """A learning rate that falls to nothing along half a cosine (Loshchilov and Hutter, SGDR, ICLR
    2017)."""
    return (1 + math.cos(math.pi * done)) / 2
