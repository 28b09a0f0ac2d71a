"""What an epsilon does to words: how often each stays itself, how many words it can become, and
which epsilon gives a wanted share.

A noisy point v + z / epsilon lies in the cell of v, the points that are nearest to v, exactly where

    epsilon > max over w of  2 z . (w - v) / |w - v|^2,

so one draw of z decides for every epsilon at once whether the word stays: the share that stays is
the distribution function of these critical values, and the epsilon for a wanted share is their
quantile. The two statistics, N_w and S_w, are those of Feyisetan, Balle, Drake and Diethe (WSDM
2020).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from privet.core.errors import refuse_if
from privet.data.dataset import Array
from privet.data.word_vectors import Vocabulary
from privet.evidence.sentences import say
from privet.language.private_words.mechanism import PrivateWords, check_epsilon, unit_noise
from privet.nets.device import pick


@dataclass(frozen=True, eq=False)
class WordStatistics:
    """What happens to some words, each changed `draws` times.

    Parameters:
        count: How often each occurs in the texts.
        stays: N_w: the share of draws in which the word stays itself.
        distinct: S_w: how many words it became.
        distance: The mean distance of the words it became.
        critical: (words, draws): the epsilon above which the word would have stayed in that draw.
        examples: The words it became most often, without itself.
    """

    epsilon: float
    draws: int
    words: tuple[str, ...]
    count: Array
    stays: Array
    distinct: Array
    distance: Array
    critical: Array
    examples: tuple[tuple[str, ...], ...]

    @property
    def stay(self) -> float:
        """The share of words of the texts that stay."""
        return float(np.average(self.stays, weights=self.count))

    @property
    def support(self) -> float:
        """How many words one becomes, over the words of the texts."""
        return float(np.average(self.distinct, weights=self.count))

    @property
    def sentence(self) -> str:
        return say(
            "words_stay",
            epsilon=f"{self.epsilon:.4g}",
            stay=f"{self.stay:.0%}",
            support=f"{self.support:.0f}",
            draws=self.draws,
        )

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
        """Critical values in ascending order, and the share of words that stays above each."""
        draws = self.critical.shape[1]
        weights = np.repeat(self.count / self.count.sum() / draws, draws)
        order = np.argsort(self.critical, axis=None)
        return self.critical.ravel()[order], np.cumsum(weights[order])


def word_statistics(
    words: PrivateWords, codes: Array, most: int = 500, draws: int = 100, seed: int = 0
) -> WordStatistics:
    """Statistics of the most frequent known words among `codes`, at most `most` of them."""
    frequent, count = most_frequent(codes, most)
    refuse_if(
        not len(frequent), "The texts have no words with a vector: nothing can be said about them."
    )
    vocabulary, shape = words.vocabulary, (len(frequent), draws)
    became = words.change(np.repeat(frequent, draws), seed).reshape(shape)
    noise = unit_noise(len(frequent) * draws, vocabulary.dimension, seed + 1).reshape(*shape, -1)
    moved = vocabulary.points[became] - vocabulary.points[frequent][:, None]
    return WordStatistics(
        words.epsilon,
        draws,
        tuple(vocabulary.word_of_code[frequent]),
        count.astype(float),
        (became == frequent[:, None]).mean(1),
        distinct(became),
        np.linalg.norm(moved, axis=2).mean(1),
        critical_epsilons(vocabulary, frequent, noise, words.device),
        tuple(
            tuple(vocabulary.word_of_code[most_frequent(row[row != code], 5, least=0)[0]])
            for row, code in zip(became, frequent, strict=True)
        ),
    )


def distinct(codes: Array) -> Array:
    """How many different codes each row has."""
    return np.asarray(1 + (np.diff(np.sort(codes, axis=1), axis=1) != 0).sum(1))


def most_frequent(codes: Array, most: int, least: int = 1) -> tuple[Array, Array]:
    """The commonest codes from `least` on, and how often they occur."""
    present, counts = np.unique(codes[codes >= least], return_counts=True)
    order = np.argsort(-counts, kind="stable")[:most]
    return present[order], counts[order]


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
        critical = (torch.from_numpy(z).to(where) @ away.T).amax(1).clamp(min=0)
        out[row] = critical.double().cpu().numpy()
    return out


def suggest_epsilon(
    words: PrivateWords, codes: Array, target: str, most: int = 200, draws: int = 100, seed: int = 0
) -> tuple[float, WordStatistics]:
    """The epsilon for a target such as `stay=0.3` (share of words that stay) or `distinct=40`
    (words that one becomes in `draws` draws), and what it does."""
    name, wanted = read_target(target, draws)

    def support(epsilon: float) -> float:
        frequent, counts = most_frequent(codes, most)
        became = replace(words, epsilon=epsilon).change(np.repeat(frequent, draws), seed)
        return float(np.average(distinct(became.reshape(-1, draws)), weights=counts))

    if name == "stay":
        epsilon = word_statistics(words, codes, most, draws, seed).epsilon_for(wanted)
    else:
        epsilon = _bisect(support, wanted, words.epsilon)
    check_epsilon(epsilon)
    return epsilon, word_statistics(replace(words, epsilon=epsilon), codes, most, draws, seed)


def read_target(target: str, draws: int = 100) -> tuple[str, float]:
    """The name and the number of a target.

    >>> read_target("stay=0.3")
    ('stay', 0.3)
    """
    name, _, value = target.partition("=")
    low, high = {"stay": (0, 1), "distinct": (1, draws)}.get(name, (0, 0))
    try:
        wanted = float(value)
    except ValueError:
        wanted = float("nan")
    refuse_if(
        not low < wanted < high,
        f"--target {target} is not a target: say stay=0.3 for a share of words that stay "
        "themselves, between 0 and 1, or distinct=40 for how many words one becomes in "
        f"{draws} draws.",
    )
    return name, wanted


def _bisect(
    support: Callable[[float], float], wanted: float, start: float, rounds: int = 6
) -> float:
    """The epsilon at which `support`, which falls as epsilon grows, is `wanted`; on a logarithmic
    scale, from a bracket around `start`."""
    low, high = start, start
    while low > start / 2**rounds and support(low) < wanted:
        low /= 2
    while high < start * 2**rounds and support(high) > wanted:
        high *= 2
    for _ in range(rounds):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if support(middle) > wanted else (low, middle)
    return float(np.sqrt(low * high))
