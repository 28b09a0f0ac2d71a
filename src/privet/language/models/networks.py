"""Networks that predict the next token, and the likelihoods and hidden states they give to texts.

`LSTM` is that of the source of the regularisers; `GPT` replaces recurrence by causal attention
(Radford et al. 2019, pre-norm blocks). Neither shares its input and output embeddings: DP-SGD needs
the gradient of every text by itself.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.core.errors import refuse_if, unknown
from privet.data.dataset import Array
from privet.data.schema import PAD
from privet.language.models.settings import Settings

# Token ids (n, t) to logits of the token that follows each, (n, t, vocabulary): all that exposure
# and the tab attack need.
Scores = Callable[[Tensor], Tensor]
# Tokens that a trained model scores at a time.
BATCH_TOKENS = {"cpu": 1 << 12, "cuda": 1 << 16}


class LanguageModel(nn.Module, ABC):
    """A network that predicts the next token.

    Parameters:
        settings: Width, layers, dropout and the length of a row.
        vocabulary: Number of token codes.
    """

    name: ClassVar[str]

    def __init__(self, settings: Settings, vocabulary: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.embedding = nn.Embedding(vocabulary, settings.width, padding_idx=PAD)

    @abstractmethod
    def states(self, ids: Tensor) -> Tensor:
        """The state (n, t, width) after every token."""

    @abstractmethod
    def scores(self, states: Tensor) -> Tensor:
        """Logits of the token that follows each state."""

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (n, t, vocabulary) of the token after each, and the hidden state (n, width) at the
        end of the text."""
        states = self.states(ids)
        return self.scores(states), last_state(states, ids)


class LSTM(LanguageModel):
    """A recurrent network; `lstm` is the class of its cells, nn.LSTM or Opacus' replacement."""

    name = "lstm"

    def __init__(self, settings: Settings, vocabulary: int, lstm: Any = nn.LSTM) -> None:
        super().__init__(settings, vocabulary)
        width = settings.width
        self.lstm = lstm(width, width, num_layers=settings.layers, batch_first=True)
        self.drop = nn.Dropout(settings.dropout)
        self.out = nn.Linear(width, vocabulary)
        nn.init.normal_(self.embedding.weight, std=0.1)

    def states(self, ids: Tensor) -> Tensor:
        return cast(Tensor, self.lstm(self.drop(self.embedding(ids)))[0])

    def scores(self, states: Tensor) -> Tensor:
        return cast(Tensor, self.out(self.drop(states)))


class GPT(LanguageModel):
    """A transformer with causal attention."""

    name = "gpt"

    def __init__(self, settings: Settings, vocabulary: int, lstm: Any = None) -> None:
        super().__init__(settings, vocabulary)
        width = settings.width
        refuse_if(
            width % _heads(width),
            f"A width of {width} cannot be divided among {_heads(width)} heads: take a "
            "multiple of 64.",
        )
        self.place = nn.Embedding(settings.longest + 1, width)
        self.blocks = nn.ModuleList(_Block(width, settings.dropout) for _ in range(settings.layers))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, vocabulary)
        for embedding in (self.embedding, self.place):
            nn.init.normal_(embedding.weight, std=0.02)

    def states(self, ids: Tensor) -> Tensor:
        # One row of places per text, not one for all: DP-SGD needs each text's own gradient.
        places = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        x = self.embedding(ids) + self.place(places)
        for block in self.blocks:
            x = block(x)
        return cast(Tensor, self.norm(x))

    def scores(self, states: Tensor) -> Tensor:
        return cast(Tensor, self.out(states))


def _heads(width: int) -> int:
    return max(1, width // 64)


class _Block(nn.Module):
    """Attention, then two linear layers, each added to its input."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.ask, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n, t, width = x.shape
        heads = self.ask(self.before(x)).view(n, t, 3, _heads(width), -1)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.drop(self.mix(seen.transpose(1, 2).reshape(n, t, width)))
        return x + cast(Tensor, self.drop(self.narrow(F.gelu(self.wide(self.between(x))))))


NETWORKS: dict[str, type[LSTM] | type[GPT]] = {network.name: network for network in (LSTM, GPT)}


def build_network(settings: Settings, vocabulary: int, lstm: Any = nn.LSTM) -> LanguageModel:
    """The network that `settings.model` names."""
    if settings.model not in NETWORKS:
        raise unknown("language model", settings.model, NETWORKS)
    return NETWORKS[settings.model](settings, vocabulary, lstm)


def last_state(states: Tensor, ids: Tensor) -> Tensor:
    """The state after the last token that is not padding."""
    end = (ids != PAD).sum(1).clamp(min=1) - 1
    return states[torch.arange(len(ids), device=ids.device), end]


def losses(scores: Tensor, ids: Tensor) -> Tensor:
    """-log p of every token but the first, (n, t - 1), in nats; 0 for padding."""
    flat = F.cross_entropy(
        scores[:, :-1].flatten(0, 1).float(),
        ids[:, 1:].flatten(),
        ignore_index=PAD,
        reduction="none",
    )
    return flat.view(len(ids), -1)


def mean_loss(scores: Tensor, ids: Tensor) -> Tensor:
    """-log p per token: the logarithm of the perplexity."""
    return losses(scores, ids).sum() / (ids[:, 1:] != PAD).sum().clamp(min=1)


def perplexity(nats: float) -> float:
    """exp, without overflow."""
    return math.exp(min(nats, 50.0))


def scores_of(model: LanguageModel) -> Scores:
    """Logits of the next token, without the hidden state."""
    return lambda ids: model.scores(model.states(ids))


def row_nats(
    scores: Scores, ids: Array, device: torch.device, counted: Array | None = None
) -> Array:
    """-log p (n,) of each row given its first token; with `counted` (vocabulary,), of the tokens
    that it marks alone."""
    weight = None if counted is None else torch.as_tensor(counted, device=device)
    totals = [torch.zeros(0, dtype=torch.float64)]
    with torch.inference_mode():
        for batch in batches(ids, device):
            nats = losses(scores(batch), batch)
            nats = nats if weight is None else nats * weight[batch[:, 1:]]
            totals.append(nats.sum(1).double().cpu())
    return torch.cat(totals).numpy()


def row_perplexity(model: LanguageModel, ids: Array, device: torch.device) -> float:
    """The perplexity of all rows together."""
    nats = float(row_nats(scores_of(model), ids, device).sum())
    return perplexity(nats / max(int((ids[:, 1:] != PAD).sum()), 1))


def hidden_states(model: LanguageModel, ids: Array, device: torch.device) -> Tensor:
    """The hidden state (n, width) at the end of each row."""
    with torch.inference_mode():
        parts = [last_state(model.states(batch), batch).float() for batch in batches(ids, device)]
        return torch.cat(parts).clone()


def batches(ids: Array, device: torch.device) -> Iterator[Tensor]:
    """Rows in their order, some at a time, cut to the longest of them."""
    size = max(1, BATCH_TOKENS.get(device.type, BATCH_TOKENS["cpu"]) // max(ids.shape[1], 1))
    for start in range(0, len(ids), size):
        rows = torch.as_tensor(ids[start : start + size], device=device)
        yield rows[:, : max(2, int((rows != PAD).sum(1).max()))]
