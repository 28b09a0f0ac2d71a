"""How much an adversary gains on a private attribute: it maximises that, a channel minimises it.

    EntropyGain         H(u) - CE(f(x~), u)
                        in nats; at most H(u), and for every f at most I(u; x~)
    VariationGain       mean over classes c of E_{u = c} tanh f_c(x~) - E_{u != c} tanh f_c(x~)
                        at most 2: twice the total variation
    SquaredErrorGain    1 - E (f(x~) - u)^2 / Var(u)
                        of a number; at most 1

Each is 0 or below for an adversary that knows no more than the frequencies. Records whose label is
missing are not counted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from privet.data.dataset import Array, Attribute
from privet.methods.known_labels import class_figures, cross_entropy, one_hot_known

# Weight of the mean squared score in the loss of a total variation's adversary.
SCORE_PENALTY = 0.05


class AdversaryGain(ABC):
    """The gain of an adversary's scores on one attribute: (n, classes), or (n, 1) of a number."""

    @abstractmethod
    def __call__(self, scores: Tensor, truth: Tensor) -> Tensor:
        """The gain on a batch."""

    def loss(self, scores: Tensor, truth: Tensor) -> Tensor:
        """What the adversary minimises."""
        return -self(scores, truth)

    def figures(self, scores: Tensor, truth: Tensor) -> dict[str, Any]:
        """How well the attribute was read, for a card."""
        return class_figures(scores, truth)


class EntropyGain(AdversaryGain):
    """Entropy less cross-entropy. `labels` are those of *fit*: guessing is knowing their
    frequencies."""

    def __init__(self, labels: Array, classes: int) -> None:
        share = np.bincount(labels[labels >= 0], minlength=classes) / max(1, (labels >= 0).sum())
        self.entropy = float(-(share[share > 0] * np.log(share[share > 0])).sum())

    def __call__(self, scores: Tensor, truth: Tensor) -> Tensor:
        return self.entropy - cross_entropy(scores, truth)


class VariationGain(AdversaryGain):
    """Twice the total variation between a class and the others, as far as the scores show it."""

    def __call__(self, scores: Tensor, truth: Tensor) -> Tensor:
        inside = one_hot_known(truth, scores.shape[1])
        outside = (truth >= 0).unsqueeze(1).float() - inside
        within, beyond = inside.sum(0), outside.sum(0)
        f = scores.tanh()
        mean_inside = (f * inside).sum(0) / within.clamp(min=1)
        mean_outside = (f * outside).sum(0) / beyond.clamp(min=1)
        both = ((within > 0) & (beyond > 0)).float()
        return ((mean_inside - mean_outside) * both).sum() / both.sum().clamp(min=1)

    def loss(self, scores: Tensor, truth: Tensor) -> Tensor:
        """The best f is a sign, at which tanh has no slope left that a channel could follow: large
        scores cost a little."""
        return SCORE_PENALTY * scores.square().mean() - self(scores, truth)


class SquaredErrorGain(AdversaryGain):
    """The share of a number's variance that is explained. `labels` are those of *fit*."""

    def __init__(self, labels: Array) -> None:
        numbers = labels[np.isfinite(labels)]
        self.mean, self.std = float(numbers.mean()), float(numbers.std()) or 1.0

    def __call__(self, scores: Tensor, truth: Tensor) -> Tensor:
        known = torch.isfinite(truth)
        wanted = ((truth - self.mean) / self.std).nan_to_num().float()
        return 1 - ((scores[:, 0] - wanted).square() * known).sum() / known.sum().clamp(min=1)

    def figures(self, scores: Tensor, truth: Tensor) -> dict[str, Any]:
        known = torch.isfinite(truth)
        wanted, guess = truth[known].double(), scores[known, 0].double() * self.std + self.mean
        error, spread = (guess - wanted).square().mean(), (wanted - wanted.mean()).square().mean()
        return {
            "r2": float(1 - error / spread.clamp(min=1e-30)),
            "rmse": float(error.sqrt()),
            "n": int(known.sum()),
        }


def adversary_gain(attribute: Attribute, labels: Array, form: str) -> AdversaryGain:
    """The gain for an attribute, from its labels in *fit* and the form wanted for classes."""
    if not attribute.is_class:
        return SquaredErrorGain(labels)
    return VariationGain() if form == "variation" else EntropyGain(labels, attribute.classes)
