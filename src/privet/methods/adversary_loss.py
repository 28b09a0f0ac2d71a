"""How much an adversary tells of a private attribute: what it makes large, and what a channel makes
small.

    EntropyGain      H(u) - CE(f(x~), u)                                      nats; at most H(u), and for every f at most I(u; x~)
    VariationGain    mean over classes c of E_{u = c} tanh f_c(x~) - E_{u != c} tanh f_c(x~)      at most 2: twice the total variation
    SquaredErrorGain      1 - E (f(x~) - u)^2 / Var(u)                             of a number; at most 1

Each is 0 or below for an adversary that knows no more than the frequencies. Records whose label is
missing are not counted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from privet.data.dataset import Array, Attribute

LEASH = 0.05
"""Weight of the mean squared score in the loss of a total variation's adversary."""


class AdversaryGain(ABC):
    @abstractmethod
    def __call__(self, scores: Tensor, truth: Tensor) -> Tensor:
        """What scores (n, classes), or (n, 1) of a number, tell of a batch."""

    def loss(self, scores: Tensor, truth: Tensor) -> Tensor:
        """What the adversary makes small."""
        return -self(scores, truth)

    @abstractmethod
    def says(self, scores: Tensor, truth: Tensor) -> dict[str, Any]:
        """The same for people to read."""


class _Classes(AdversaryGain):
    def says(self, scores: Tensor, truth: Tensor) -> dict[str, Any]:
        known = truth >= 0
        right = (scores.argmax(1) == truth)[known].float()
        recalls = [right[truth[known] == c].mean().item() for c in torch.unique(truth[known])]
        return {
            "accuracy": right.mean().item(),
            "balanced": sum(recalls) / max(1, len(recalls)),
            "n": int(known.sum()),
        }


class EntropyGain(_Classes):
    def __init__(self, labels: Array, classes: int) -> None:
        """`labels` are those of *fit*: guessing means knowing their frequencies."""
        share = np.bincount(labels[labels >= 0], minlength=classes) / max(1, (labels >= 0).sum())
        self.entropy = float(-(share[share > 0] * np.log(share[share > 0])).sum())

    def __call__(self, scores: Tensor, truth: Tensor) -> Tensor:
        lost = F.cross_entropy(scores, truth, ignore_index=-1, reduction="sum") / (
            truth >= 0
        ).sum().clamp(min=1)
        return self.entropy - lost


class VariationGain(_Classes):
    def __call__(self, scores: Tensor, truth: Tensor) -> Tensor:
        known = truth >= 0
        inside = F.one_hot(truth.clamp(min=0), scores.shape[1]).float() * known.unsqueeze(1)
        outside = known.unsqueeze(1).float() - inside
        f = scores.tanh()
        apart = (f * inside).sum(0) / inside.sum(0).clamp(min=1) - (f * outside).sum(
            0
        ) / outside.sum(0).clamp(min=1)
        there = ((inside.sum(0) > 0) & (outside.sum(0) > 0)).float()
        return (apart * there).sum() / there.sum().clamp(min=1)

    def loss(self, scores: Tensor, truth: Tensor) -> Tensor:
        """The best f is a sign, at which tanh has no slope left that a channel could follow: large
        scores cost a little."""
        return LEASH * scores.square().mean() - self(scores, truth)


class SquaredErrorGain(AdversaryGain):
    def __init__(self, labels: Array) -> None:
        numbers = labels[np.isfinite(labels)]
        self.mean, self.std = float(numbers.mean()), float(numbers.std()) or 1.0

    def __call__(self, scores: Tensor, truth: Tensor) -> Tensor:
        known = torch.isfinite(truth)
        wanted = ((truth - self.mean) / self.std).nan_to_num().float()
        return 1 - ((scores[:, 0] - wanted).square() * known).sum() / known.sum().clamp(min=1)

    def says(self, scores: Tensor, truth: Tensor) -> dict[str, Any]:
        known = torch.isfinite(truth)
        wanted, guess = truth[known].double(), scores[known, 0].double() * self.std + self.mean
        error, spread = (guess - wanted).square().mean(), (wanted - wanted.mean()).square().mean()
        return {
            "r2": float(1 - error / spread.clamp(min=1e-30)),
            "rmse": float(error.sqrt()),
            "n": int(known.sum()),
        }


def adversary_gain(attribute: Attribute, labels: Array, form: str) -> AdversaryGain:
    """The measure for an attribute, given its labels in *fit* and the form that is wanted for
    classes."""
    if not attribute.is_class:
        return SquaredErrorGain(labels)
    return VariationGain() if form == "variation" else EntropyGain(labels, attribute.classes)
