"""A release of one symbol out of K: the nearest word of a codebook, now and then replaced by a
symbol drawn at random.

    s(x) = argmin_j |c(x) - b_j|^2,   z = s(x) with probability 1 - flip, else uniform on 1 .. K

Warner, Randomized response: a survey technique for eliminating evasive answer bias, JASA 60 (1965),
63-69, for K answers as in Kairouz, Bonawitz and Ramage, Discrete distribution estimation under
local privacy, ICML (2016). The symbol leaves as K numbers, one of them 1, so that whoever reads
vectors can read it. Both draws are inputs of the graph: whether to replace, and by what.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from privet.data.schema import Schema
from privet.nets.code import Code

# Draws are float32: so much, at most, is each of a symbol's probabilities off.
ROUNDING = 2.0**-23


class Quantiser(nn.Module):
    """Scores of K symbols for a record: minus the squared distance from its code to each word of a
    codebook."""

    def __init__(self, code: Code, symbols: int) -> None:
        super().__init__()
        self.code, self.shape = code, (symbols,)
        self.book = nn.Parameter(2 * torch.rand(symbols, *code.shape) - 1)

    def forward(self, x: Tensor) -> Tensor:
        code: Tensor = self.code(x)
        return -(code.unsqueeze(1) - self.book).square().sum(2)


class Symbols(nn.Module):
    """One symbol out of K, replaced by one drawn at random with probability `flip`."""

    flip: Tensor

    def __init__(self, body: nn.Module, flip: float) -> None:
        """`body` gives a score per symbol; the highest is the record's own."""
        super().__init__()
        self.body, self.shape = body, tuple(body.shape)  # type: ignore[arg-type]
        self.register_buffer("flip", torch.tensor(float(flip)))

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        return self.drown(self.body(x), noise, x)

    def drown(self, scores: Tensor, noise: Tensor, x: Tensor) -> Tensor:
        """What is released of scores that are known already."""
        size = scores.shape[1]
        other = (
            (noise[:, 1] * size).long().clamp(max=size - 1)
        )  # in float32 a draw below 1 may be 1
        symbol = torch.where(noise[:, 0] < self.flip, other, scores.argmax(1))
        return (symbol.unsqueeze(1) == torch.arange(size, device=symbol.device)).float()


def random_symbols(
    schema: Schema, symbols: int, dims: int, flip: float, width: float = 1.0, dropout: float = 0.0
) -> Symbols:
    """One of `symbols` symbols, replaced at random with probability `flip`."""
    return Symbols(Quantiser(Code(schema, dims, width, dropout), symbols), flip)
