"""Language models: the chance of the next token, and one hidden state per text.

`LSTM` is the source's; `GPT` is the same thing with causal attention (Radford et al. 2019, pre-norm
blocks). Neither shares its input and output embeddings, so that the gradient of one text can be
told from that of another (DP-SGD needs it).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.core.errors import PrivetError, unknown
from privet.data.schema import PAD

Scores = Callable[[Tensor], Tensor]
"""Token ids (n, t) to scores of the token that follows each, (n, t, vocabulary): all that exposure
and the tab attack ask for."""


class LanguageModel(nn.Module, ABC):
    name: ClassVar[str]
    vocabulary: int

    @abstractmethod
    def states(self, ids: Tensor) -> Tensor:
        """A state (n, t, width) after every token, that knows the tokens up to it."""

    @abstractmethod
    def scores(self, states: Tensor) -> Tensor:
        """Of the token that follows each state."""

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (n, t, vocabulary) of the token after each, and the hidden state (n, width) once
        the whole text was read."""
        states = self.states(ids)
        return self.scores(states), last_state(states, ids)


class LSTM(LanguageModel):
    name = "lstm"

    def __init__(
        self,
        vocabulary: int,
        width: int,
        layers: int,
        dropout: float,
        longest: int,
        cell: Any = nn.LSTM,
    ) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=PAD)
        self.lstm = cell(width, width, num_layers=layers, batch_first=True)
        self.drop = nn.Dropout(dropout)
        self.out = nn.Linear(width, vocabulary)
        for embedding in (self.embedding,):
            nn.init.normal_(embedding.weight, std=0.1)

    def states(self, ids: Tensor) -> Tensor:
        found: Tensor = self.lstm(self.drop(self.embedding(ids)))[0]
        return found

    def scores(self, states: Tensor) -> Tensor:
        found: Tensor = self.out(self.drop(states))
        return found


class GPT(LanguageModel):
    name = "gpt"

    def __init__(
        self,
        vocabulary: int,
        width: int,
        layers: int,
        dropout: float,
        longest: int,
        cell: Any = None,
    ) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=PAD)
        self.place = nn.Embedding(longest + 1, width)
        self.blocks = nn.ModuleList(_Block(width, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, vocabulary)
        for embedding in (self.embedding, self.place):
            nn.init.normal_(embedding.weight, std=0.02)

    def states(self, ids: Tensor) -> Tensor:
        # One row of places per text, not one for all: the gradient of a text must be its own.
        x = self.embedding(ids) + self.place(
            torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        )
        for block in self.blocks:
            x = block(x)
        found: Tensor = self.norm(x)
        return found

    def scores(self, states: Tensor) -> Tensor:
        found: Tensor = self.out(states)
        return found


class _Block(nn.Module):
    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.heads = max(1, width // 64)
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.ask, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n, t, width = x.shape
        query, key, value = (
            self.ask(self.before(x))
            .view(n, t, 3, self.heads, width // self.heads)
            .permute(2, 0, 3, 1, 4)
        )
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.drop(self.mix(seen.transpose(1, 2).reshape(n, t, width)))
        found: Tensor = x + self.drop(self.narrow(F.gelu(self.wide(self.between(x)))))
        return found


MODELS: dict[str, type[LSTM] | type[GPT]] = {model.name: model for model in (LSTM, GPT)}

Name = Literal["lstm", "gpt"]


def build(
    name: str,
    vocabulary: int,
    width: int,
    layers: int,
    dropout: float,
    longest: int,
    cell: Any = nn.LSTM,
) -> LanguageModel:
    if name not in MODELS:
        raise unknown("language model", name, MODELS)
    if name == "gpt" and width % max(1, width // 64):
        raise PrivetError(
            f"A width of {width} cannot be divided among {width // 64} heads: take a multiple of 64."
        )
    return MODELS[name](vocabulary, width, layers, dropout, longest, cell)


def last_state(states: Tensor, ids: Tensor) -> Tensor:
    """The state after the last token that is there."""
    end = (ids != PAD).sum(1).clamp(min=1) - 1
    return states[torch.arange(len(ids), device=ids.device), end]


def losses(scores: Tensor, ids: Tensor) -> Tensor:
    """-log p of every token but the first, (n, t - 1), in nats; 0 where there is none."""
    flat = F.cross_entropy(
        scores[:, :-1].flatten(0, 1).float(),
        ids[:, 1:].flatten(),
        ignore_index=PAD,
        reduction="none",
    )
    return flat.view(len(ids), -1)


def mean_loss(scores: Tensor, ids: Tensor) -> Tensor:
    """-log p per token: the logarithm of the perplexity."""
    found: Tensor = losses(scores, ids).sum() / (ids[:, 1:] != PAD).sum().clamp(min=1)
    return found


def perplexity(nats: float) -> float:
    """exp, without overflow."""
    return math.exp(min(nats, 50.0))
