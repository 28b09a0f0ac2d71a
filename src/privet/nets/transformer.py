"""A small transformer encoder (Vaswani and others, 2017; normalised before each part) over vectors,
some of them padding."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

HEADS = 4


def positions(length: int, size: int, device: torch.device | None = None) -> Tensor:
    """sin(t / 10000^(2i/size)) and cos of the same, (length, size): the same for a place however
    long the text is."""
    angle = torch.arange(length, device=device)[:, None] * torch.exp(
        torch.arange(0, size, 2, device=device) * (-math.log(10_000.0) / size)
    )
    return torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)


class Layer(nn.Module):
    """x + attention(norm(x)), then x + W2 GELU(W1 norm(x))."""

    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.before, self.all_three, self.out = (
            nn.LayerNorm(size),
            nn.Linear(size, 3 * size),
            nn.Linear(size, size),
        )
        self.apart = nn.Sequential(
            nn.LayerNorm(size),
            nn.Linear(size, 4 * size),
            nn.GELU(),
            nn.Linear(4 * size, size),
            nn.Dropout(dropout),
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, where: Tensor | None) -> Tensor:
        n, length, size = x.shape
        query, key, value = (
            self.all_three(self.before(x))
            .view(n, length, 3, HEADS, size // HEADS)
            .permute(2, 0, 3, 1, 4)
        )
        mask = None if where is None else where[:, None, None, :]
        seen = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x = x + self.dropout(self.out(seen.transpose(1, 2).reshape(n, length, size)))
        return x + self.apart(x)  # type: ignore[no-any-return]


class Encoder(nn.Module):
    """Vectors (records, places, size) -> outputs; judged by each unit's mean and largest value over
    the places that count."""

    def __init__(self, size: int, outputs: int, layers: int = 2, dropout: float = 0.1) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(size, dropout) for _ in range(layers))
        self.after = nn.LayerNorm(size)
        self.head = nn.Sequential(nn.Dropout(dropout), nn.Linear(2 * size, outputs))

    def forward(self, x: Tensor, where: Tensor | None = None) -> Tensor:
        x = x + positions(x.shape[1], x.shape[2], x.device)
        for layer in self.layers:
            x = layer(x, where)
        x = self.after(x)
        if where is None:
            pooled = torch.cat([x.mean(1), x.amax(1)], dim=1)
            return self.head(pooled)  # type: ignore[no-any-return]
        here = where.unsqueeze(2)
        mean = (x * here).sum(1) / here.sum(1)
        top = x.masked_fill(~here, torch.finfo(x.dtype).min).amax(1)
        return self.head(torch.cat([mean, top], dim=1))  # type: ignore[no-any-return]
