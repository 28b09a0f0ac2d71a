"""What a trained model says about rows of tokens, batch by batch: how unlikely they are, and the
hidden states it has of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from privet.data.dataset import Array
from privet.data.schema import PAD
from privet.language.models.networks import LanguageModel, Scores, last_state, losses

TOKENS = {"cpu": 1 << 12, "cuda": 1 << 16}
"""Tokens in one batch."""


def scores_of(model: LanguageModel) -> Scores:
    """Scores of the next token, without the hidden state."""
    return lambda ids: model.scores(model.states(ids))


def nats(scores: Scores, ids: Array, device: torch.device, counted: Array | None = None) -> Array:
    """-log p (n,) of each row given its first token; where `counted` (vocabulary,) is given, of the
    tokens it names alone."""
    weight = None if counted is None else torch.as_tensor(counted, device=device)
    found = []
    with torch.inference_mode():
        for batch in batches(ids, device):
            each = losses(scores(batch), batch)
            found.append(
                (each if weight is None else each * weight[batch[:, 1:]]).sum(1).double().cpu()
            )
    return torch.cat(found).numpy() if found else np.zeros(0)


def hidden(model: LanguageModel, ids: Array, device: torch.device) -> Tensor:
    """The hidden state (n, width) of each row."""
    with torch.inference_mode():
        return torch.cat(
            [last_state(model.states(batch), batch).float() for batch in batches(ids, device)]
        ).clone()


def batches(ids: Array, device: torch.device) -> Iterator[Tensor]:
    """Rows in their order, some at a time, cut to the longest of them."""
    size = max(1, TOKENS.get(device.type, TOKENS["cpu"]) // max(ids.shape[1], 1))
    for start in range(0, len(ids), size):
        rows = torch.as_tensor(ids[start : start + size], device=device)
        yield rows[:, : max(2, int((rows != PAD).sum(1).max()))]
