"""What an epsilon does to words: how often each stays itself, how many words it can become, and
which epsilon gives a wanted share.

A noisy point v + z / epsilon lies in the cell of v, the points that are nearest to v, exactly where

    epsilon > max over w of  2 z . (w - v) / |w - v|^2,

so one draw of z tells for every epsilon at once whether the word stays: the share that stays is the
distribution function of these critical values, and the epsilon for a wanted share is their
quantile. The two statistics, N_w and S_w, are those of Feyisetan, Balle, Drake and Diethe (WSDM
2020).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from privet.core.errors import PrivetError
from privet.data.dataset import Array
from privet.data.word_vectors import Vocabulary
from privet.language.private_words.mechanism import PrivateWords, check_epsilon, unit_noise
from privet.nets.device import pick

TARGETS = ("stay", "distinct")


@dataclass(frozen=True, eq=False)
class Statistics:
    """Of some words, each changed `draws` times."""

    epsilon: float
    draws: int
    words: tuple[str, ...]
    count: Array
    """How often each occurs in the texts."""
    stays: Array
    """N_w: the share of draws in which the word stays itself."""
    distinct: Array
    """S_w: how many words it became."""
    distance: Array
    """How far away the words it became lie, on average."""
    critical: Array
    """(words, draws): the epsilon above which the word would have stayed in that draw."""
    examples: tuple[tuple[str, ...], ...]
    """The words it became most often, itself left out."""

    @property
    def stay(self) -> float:
        """The share of words of the texts that stay."""
        return float(np.average(self.stays, weights=self.count))

    @property
    def support(self) -> float:
        """How many words one becomes, over the words of the texts."""
        return float(np.average(self.distinct, weights=self.count))

    def stay_at(self, epsilons: Array) -> Array:
        """The share of words of the texts that would stay at other epsilons, from the same
        draws."""
        order, shares = self._by_critical()
        return np.concatenate([[0.0], shares])[np.searchsorted(order, epsilons, side="left")]

    def epsilon_for(self, stay: float) -> float:
        """The least epsilon at which that share of the words of the texts stays."""
        order, shares = self._by_critical()
        return float(order[min(int(np.searchsorted(shares, stay)), len(order) - 1)])

    def _by_critical(self) -> tuple[Array, Array]:
        weights = np.repeat(
            self.count / self.count.sum() / self.critical.shape[1], self.critical.shape[1]
        )
        order = np.argsort(self.critical, axis=None)
        return self.critical.ravel()[order], np.cumsum(weights[order])


def statistics(
    words: PrivateWords, codes: Array, most: int = 500, draws: int = 100, seed: int = 0
) -> Statistics:
    """Statistics of the most frequent known words among `codes`, at most `most` of them."""
    found, often = frequent(codes[codes > 0], most, len(words.vocabulary))
    if not len(found):
        raise PrivetError("The texts have no words with a vector: nothing can be said about them.")
    d = words.vocabulary.dimension
    became = words.change(np.repeat(found, draws), seed).reshape(len(found), draws)
    noise = unit_noise(len(found) * draws, d, seed + 1).reshape(len(found), draws, d)
    critical = critical_epsilons(words.vocabulary, found, noise, words.device)
    points = words.vocabulary.points
    return Statistics(
        words.epsilon,
        draws,
        tuple(words.vocabulary.written[found]),
        often.astype(float),
        (became == found[:, None]).mean(1),
        distinct(became),
        np.linalg.norm(points[became] - points[found][:, None], axis=2).mean(1),
        critical,
        tuple(
            _commonest(row, code, words.vocabulary) for row, code in zip(became, found, strict=True)
        ),
    )


def distinct(codes: Array) -> Array:
    """How many different codes each row has."""
    return np.asarray(1 + (np.diff(np.sort(codes, axis=1), axis=1) != 0).sum(1))


def frequent(codes: Array, most: int, size: int) -> tuple[Array, Array]:
    """The commonest codes and how often they occur."""
    counts = np.bincount(codes, minlength=size)
    order = np.argsort(-counts, kind="stable")[:most]
    order = order[counts[order] > 0]
    return order, counts[order]


def critical_epsilons(
    vocabulary: Vocabulary, codes: Array, noise: Array, device: str = "cpu"
) -> Array:
    """(words, draws): the epsilon above which each word of `codes` stays itself, for unit noise
    (words, draws, d).

    A word with the very same vector does not count as another.
    """
    where = pick(device)
    points = torch.from_numpy(vocabulary.points).to(where)
    out = np.empty(noise.shape[:2])
    for row, (code, z) in enumerate(zip(codes.tolist(), noise, strict=True)):
        away = points - points[code]
        away *= 2 / away.square().sum(1, keepdim=True).clamp(min=1e-12)  # a row of zeros stays one
        out[row] = (
            (torch.from_numpy(z).to(where) @ away.T).amax(1).clamp(min=0).double().cpu().numpy()
        )
    return out


def suggest(
    words: PrivateWords, codes: Array, target: str, most: int = 200, draws: int = 100, seed: int = 0
) -> tuple[float, Statistics]:
    """The epsilon for a target such as `stay=0.3` (share of words that stay) or `distinct=40`
    (words that one becomes in `draws` draws)."""
    name, wanted = read_target(target, draws)
    found = statistics(words, codes, most, draws, seed)
    if name == "stay":
        epsilon = found.epsilon_for(wanted)
    else:
        often, counts = frequent(codes[codes > 0], most, len(words.vocabulary))
        repeated = np.repeat(often, draws)

        def support(epsilon: float) -> float:
            became = (
                replace(words, epsilon=epsilon).change(repeated, seed).reshape(len(often), draws)
            )
            return float(np.average(distinct(became), weights=counts))

        epsilon = _bisect(support, wanted, words.epsilon)
    check_epsilon(epsilon)
    return epsilon, statistics(replace(words, epsilon=epsilon), codes, most, draws, seed)


def read_target(target: str, draws: int = 100) -> tuple[str, float]:
    """
    >>> read_target("stay=0.3")
    ('stay', 0.3)
    """
    name, _, value = target.partition("=")
    try:
        wanted = float(value)
    except ValueError:
        wanted = float("nan")
    high = 1 if name == "stay" else draws
    if name not in TARGETS or not (0 if name == "stay" else 1) < wanted < high:
        raise PrivetError(
            f"--target {target} is not a target: say stay=0.3 for a share of words that stay themselves, between 0 and 1, or distinct=40 "
            f"for how many words one becomes in {draws} draws."
        )
    return name, wanted


def _bisect(
    support: Callable[[float], float], wanted: float, start: float, rounds: int = 6
) -> float:
    """The epsilon at which `support`, which falls as epsilon grows, is `wanted`; on a logarithmic
    scale, from a bracket around `start`."""
    low, high = start, start
    for _ in range(rounds):
        if support(low) >= wanted:
            break
        low /= 2
    for _ in range(rounds):
        if support(high) <= wanted:
            break
        high *= 2
    for _ in range(rounds):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if support(middle) > wanted else (low, middle)
    return float(np.sqrt(low * high))


def _commonest(row: Array, code: int, vocabulary: Vocabulary, shown: int = 5) -> tuple[str, ...]:
    others, counts = np.unique(row[row != code], return_counts=True)
    return tuple(vocabulary.written[others[np.argsort(-counts, kind="stable")[:shown]]])
