"""Losses and figures of scores about attributes, over the records whose label is known.

A label of -1 is missing and counts for nothing. Several attributes are read from one row of scores,
in which the scores of each stand side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from privet.data.dataset import Attribute
from privet.train.feed import Feed


def one_hot_known(truth: Tensor, classes: int) -> Tensor:
    """Labels as zeros and ones, (n, classes); all zeros where a label is missing."""
    return F.one_hot(truth.clamp(min=0), classes).float() * (truth >= 0).unsqueeze(1)


def cross_entropy(scores: Tensor, truth: Tensor, weight: Tensor | None = None) -> Tensor:
    """Mean over the known records; 0 where there are none. `weight` has a factor per class."""
    total = F.cross_entropy(scores, truth, weight, ignore_index=-1, reduction="sum")
    return total / (truth >= 0).sum().clamp(min=1)


def accuracy(scores: Tensor, truth: Tensor) -> Tensor:
    """Share of the known records whose highest score is that of their class."""
    return (scores.argmax(1) == truth).sum() / (truth >= 0).sum().clamp(min=1)


def split_scores(scores: Tensor, attributes: Sequence[Attribute]) -> tuple[Tensor, ...]:
    """The scores of each attribute: one per class, or one for a number."""
    return torch.split(scores, [max(1, attribute.classes) for attribute in attributes], dim=1)


def mean_loss_and_accuracy(
    scores: Tensor, labels: dict[str, Tensor], attributes: Sequence[Attribute]
) -> tuple[Tensor, Tensor]:
    """Cross-entropy and accuracy, each the mean over the attributes."""
    pairs = [
        (score, labels[attribute.name])
        for attribute, score in zip(attributes, split_scores(scores, attributes), strict=True)
    ]
    loss = torch.stack([cross_entropy(score.float(), truth) for score, truth in pairs]).mean()
    return loss, torch.stack([accuracy(*pair) for pair in pairs]).mean().detach()


@torch.no_grad()
def accuracy_on_both(
    feed: Feed,
    attribute: Attribute,
    raw: Callable[[Tensor], Tensor],
    released: Callable[[Tensor], Tensor],
) -> dict[str, Any]:
    """Accuracy of the scores that a service gives to raw and to released records of *select*."""
    truth = feed.labels[attribute.name]
    scores = [torch.stack([raw(batch.x), released(batch.x)], 1) for batch in feed.in_order()]
    right = torch.cat(scores).argmax(2) == truth.unsqueeze(1)
    n = int((truth >= 0).sum())
    shares = {
        name: int(right[:, i].sum()) / max(n, 1) for i, name in enumerate(("raw", "released"))
    }
    return {**shares, "n": n, "part": "select"}


def class_figures(scores: Tensor, truth: Tensor) -> dict[str, Any]:
    """Accuracy, balanced accuracy and number of known records, for a card."""
    from privet.evidence.leakage import accuracy, balanced_accuracy  # SciPy is slow to import

    known = (truth >= 0).cpu().numpy()
    labels, guesses = truth.cpu().numpy()[known], scores.argmax(1).cpu().numpy()[known]
    return {
        "accuracy": accuracy(labels, guesses),
        "balanced": balanced_accuracy(labels, guesses),
        "n": int(known.sum()),
    }
