"""Private words: every word of a text becomes a random one, more often a word of like meaning.

    M(w) = the word nearest to v(w) + z,   z of density ~ exp(-epsilon |z|)

that is, the direction of z is uniform and its length is distributed as Gamma(d, 1 / epsilon), with
d the length of the vectors. Moving a point by r changes the density by at most exp(epsilon r), and
choosing the nearest word depends on nothing else, so for all words w, w', u

    P(M(w) = u) <= exp(epsilon |v(w) - v(w')|) P(M(w') = u):

metric privacy. Words are changed independently, so of two texts with as many words the bounds
multiply: epsilon times the *sum* of the distances, word by word. How many words a text has is not
hidden.

Source: Feyisetan, Balle, Drake and Diethe, Privacy- and utility-preserving textual analysis via
calibrated multivariate perturbations, WSDM 2020; the distribution of the noise: Wu, Li, Kumar,
Chaudhuri, Jha and Naughton, Bolt-on differential privacy for scalable stochastic gradient
descent-based analytics, SIGMOD 2017.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.special import gammaincinv
from torch import Tensor, nn

from privet.core.errors import refuse_if
from privet.data.dataset import Array
from privet.data.schema import PAD, TextSchema
from privet.data.word_vectors import Vocabulary
from privet.nets.device import pick
from privet.release.noise import Noise
from privet.release.release import Release

# Points whose highest score is kept in the first pass; the second pass looks at one group only.
GROUP = 32
# Points looked up at a time.
ROWS = {"cpu": 384, "cuda": 8192}
# Words they are compared with at a time: on a CPU, scores that stay in a core's cache.
BLOCK = {"cpu": 1024, "cuda": 32768}
# Words whose noise is held in memory at a time.
WORDS_AT_ONCE = 1 << 14
# The score of a row that is no word.
NEVER = -1e30


def unit_noise(n: int, d: int, seed: int | None = None) -> Array:
    """n draws of density ~ exp(-|z|) in d dimensions, float32; from the operating system's
    generator where there is no seed."""
    seeds = [None] * 2 if seed is None else np.random.SeedSequence(seed).generate_state(2).tolist()
    direction = _normal(n * d, seeds[0]).reshape(n, d)
    uniform = Noise("uniform", (), 1.0).draw(n, seed=seeds[1]).astype(np.float64)
    length = gammaincinv(d, uniform.clip(2.0**-25, 1 - 2.0**-25))
    scale = (length / np.linalg.norm(direction, axis=1)).astype(np.float32)
    return np.asarray(direction * scale[:, None])


def _normal(count: int, seed: int | None) -> Array:
    """Normal numbers for directions, in single precision: five times as fast as by the inverse of
    their distribution function.

    Source: Box and Muller, A note on the generation of random normal deviates, Annals of
    Mathematical Statistics 29 (1958), 610-611.
    """
    half = -(-count // 2)
    raw = os.urandom(8 * half) if seed is None else np.random.default_rng(seed).bytes(8 * half)
    bits = (np.frombuffer(raw, dtype=np.uint32) >> np.uint32(8)).astype(np.float32)
    uniform = (bits + np.float32(0.5)) * np.float32(2.0**-24)
    length, angle = np.sqrt(-2 * np.log(uniform[:half])), np.float32(2 * np.pi) * uniform[half:]
    return np.concatenate([length * np.cos(angle), length * np.sin(angle)])[:count]


class NearestPoint:
    """Which of many points is nearest, exactly: |y - p|^2 is least where y . p - |p|^2 / 2 is
    largest, one matrix product.

    The product is made block by block into one buffer; only the highest score of every 32 points is
    kept, and the 32 with the highest of all are looked at again.

    Parameters:
        points: float32 (n, d).
        device: Where they are compared.
    """

    def __init__(self, points: Array, device: torch.device) -> None:
        kind, n = "cpu" if device.type == "cpu" else "cuda", len(points)
        self.rows, self.device = ROWS[kind], device
        self.block = min(BLOCK[kind], -(-n // GROUP) * GROUP)
        table = torch.zeros(-(-n // self.block) * self.block, points.shape[1] + 1)
        table[:n, :-1] = torch.from_numpy(points)
        table[:n, -1] = torch.from_numpy(-(points.astype(np.float64) ** 2).sum(1) / 2)
        table[n:, -1] = NEVER
        self.table = table.to(device)

    def __call__(self, y: Tensor) -> Tensor:
        """Rows (n, d) to the indices of the nearest points (n,)."""
        y = torch.cat([y.to(self.device), torch.ones(len(y), 1, device=self.device)], 1)
        return torch.cat([self._nearest(rows) for rows in torch.split(y, self.rows)])

    def _nearest(self, y: Tensor) -> Tensor:
        transposed, groups = y.T.contiguous(), self.block // GROUP
        scores = torch.empty(self.block, len(y), device=self.device)
        highest = torch.empty(len(self.table) // GROUP, len(y), device=self.device)
        blocks = torch.split(self.table, self.block)
        for block, best in zip(blocks, torch.split(highest, groups), strict=True):
            torch.mm(block, transposed, out=scores)
            torch.amax(scores.view(groups, GROUP, -1), 1, out=best)
        group = highest.max(0).indices
        close = self.table.view(len(highest), GROUP, y.shape[1]).index_select(0, group)
        return group * GROUP + (close * y.unsqueeze(1)).sum(2).argmax(1)


@dataclass(frozen=True, eq=False)
class PrivateWords:
    """The mechanism with its vocabulary.

    Parameters:
        epsilon: The smaller it is, the more words change.
        device: `cpu`, `cuda` or `auto`.

    >>> vectors = np.array([[0.0, 1], [0.1, 1], [5, -3]])
    >>> words = PrivateWords(Vocabulary.of(["tea", "coffee", "car"], vectors), epsilon=10.0)
    >>> words.privatize(["Tea, coffee; car!"], seed=5)
    ['tea tea car']
    """

    vocabulary: Vocabulary
    epsilon: float
    device: str = "cpu"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    @cached_property
    def nearest(self) -> NearestPoint:
        return NearestPoint(self.vocabulary.points, pick(self.device))

    def change(self, codes: Array, seed: int | None = None) -> Array:
        """One draw of the mechanism for every code. A seed is for tests and for repeating a figure,
        not for texts that leave."""
        out, points = np.empty(len(codes), dtype=np.int64), self.vocabulary.points
        for start in range(0, len(codes), WORDS_AT_ONCE):
            part = slice(start, start + WORDS_AT_ONCE)
            here = None
            if seed is not None:
                here = int(np.random.SeedSequence([seed, start]).generate_state(1)[0])
            noise = unit_noise(len(codes[part]), points.shape[1], here) / np.float32(self.epsilon)
            out[part] = self.nearest(torch.from_numpy(points[codes[part]] + noise)).cpu().numpy()
        return out

    def privatize(self, texts: Sequence[object], seed: int | None = None) -> list[str]:
        """The texts with every word changed."""
        codes, lengths = self.vocabulary.codes(texts)
        return self.vocabulary.texts(self.change(codes, seed), lengths)

    def release(self, private: Sequence[str] = (), longest: int = 64) -> Release:
        """The mechanism as a release of texts that an audit can attack: word ids to word ids, each
        text released once."""
        settings = {"epsilon": self.epsilon}
        card = {
            "method": "words",
            "title": f"private words, epsilon {self.epsilon:g}",
            "settings": settings,
            "private": list(private),
        }
        schema = TextSchema(self.vocabulary.words, longest)
        return Release(schema, ("words", settings), _WordsNetwork(self), None, card)


def check_epsilon(epsilon: float) -> None:
    """Raise an error where epsilon is no number above 0."""
    refuse_if(
        not (math.isfinite(epsilon) and epsilon > 0),
        f"An epsilon of {epsilon:g} is no amount of noise: give a number above 0; the smaller "
        "it is, the more words change (near 0 every word becomes any word).",
    )


class _WordsNetwork(nn.Module):
    """The mechanism for attackers, with noise from torch's generator, which they may know; texts
    that leave go through `change`."""

    def __init__(self, words: PrivateWords) -> None:
        super().__init__()
        self.register_buffer("points", torch.from_numpy(words.vocabulary.points), persistent=False)
        self.words, self.shape = words, (None,)
        self._nearest: NearestPoint | None = None

    def forward(self, x: Tensor) -> Tensor:
        points = self.get_buffer("points")
        if self._nearest is None or self._nearest.device != points.device:
            self._nearest = NearestPoint(self.words.vocabulary.points, points.device)
        is_word, out = x != PAD, x.clone()
        start = points[x[is_word] - 1]
        direction = torch.randn_like(start)
        shape = torch.full((len(start), 1), float(start.shape[1]), device=start.device)
        length = torch._standard_gamma(shape)
        noise = direction / direction.norm(dim=1, keepdim=True) * length / self.words.epsilon
        out[is_word] = self._nearest(start + noise) + 1
        return out
