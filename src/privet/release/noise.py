"""Noise laws: what a release adds, and how it is drawn where the data is.

The law is in the card and the exported graph takes unit noise as an input, so that the graph is
deterministic and whoever runs it draws the noise: from a secret key (`privet.release.keyed_noise`)
or from the operating system's generator. Noise that can be predicted can be subtracted.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from privet.core.errors import unknown
from privet.data.dataset import Array

if TYPE_CHECKING:
    import torch

# Inverse distribution functions of the unit laws.
UNIT: dict[str, Callable[[Array], Array]] = {
    "gaussian": ndtri,
    "laplace": lambda p: np.where(p < 0.5, np.log(2 * p), -np.log(2 - 2 * p)),
    "uniform": lambda p: p,
}

# Numbers drawn at once.
PIECE = 1 << 16


def quantiles(law: str, words: Array) -> Array:
    """Unit noise of a law from random words, 52 of the 64 bits of each."""
    uniform = (
        (words >> np.uint64(12)).astype(np.float64) + 0.5
    ) * 2.0**-52  # neither 0 nor 1, which have no finite quantile
    return UNIT[law](uniform)


@dataclass(frozen=True)
class Noise:
    """The law of the noise that a release adds, drawn where the data is.

    Parameters:
        shape: Shape per record; None for the axis that follows the record's length.
        scale: What the unit noise is multiplied with inside the network, where that is one number.
    """

    law: str
    shape: tuple[int | None, ...]
    scale: float

    def __post_init__(self) -> None:
        if self.law not in UNIT:
            raise unknown("noise law", self.law, UNIT)

    def draw(self, n: int, length: int = 0, seed: int | None = None, skip: int = 0) -> Array:
        """Unit noise for n records, fresh for each. A seed is for tests and for repeating a figure,
        not for releasing; with one, `skip` leaves out the noise of so many records before them."""
        shape = (n, *(length if size is None else size for size in self.shape))
        unit: Array = np.empty(int(np.prod(shape)), dtype=np.float32)
        random = (
            os.urandom
            if seed is None
            else np.random.Generator(advanced(seed, skip * len(unit) // max(n, 1))).bytes
        )
        # In pieces that fit a processor's cache: the numbers in between are four times as large as
        # what they become.
        for start in range(0, len(unit), PIECE):
            piece = unit[start : start + PIECE]
            piece[:] = quantiles(self.law, np.frombuffer(random(8 * len(piece)), dtype=np.uint64))
        return unit.reshape(shape)

    def sample(self, n: int, length: int, device: torch.device) -> torch.Tensor:
        """The same law from torch's generator, on the device: fast, for adversaries, and not for
        releasing."""
        import torch

        shape = (n, *(length if size is None else size for size in self.shape))
        if self.law == "gaussian":
            return torch.randn(shape, device=device)
        uniform = torch.rand(shape, device=device).clamp(2.0**-24, 1 - 2.0**-24)
        return (
            uniform
            if self.law == "uniform"
            else torch.where(uniform < 0.5, (2 * uniform).log(), -(2 - 2 * uniform).log())
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(value: dict[str, Any]) -> Noise:
        return Noise(value["law"], tuple(value["shape"]), value["scale"])


def advanced(seed: int, words: int) -> np.random.PCG64:
    """The generator of `np.random.default_rng(seed)` after so many words of 64 bits."""
    bits = np.random.PCG64(seed)
    bits.advance(words)
    return bits
