"""A bigram language model as what an attacker expects of a text: counted on other people's texts,
smoothed by absolute discounting.

    p(b | a) = max(c(a b) - D, 0) / c(a) + D N(a) / c(a) p(b),     p(b) ~ c(b) + 1/10,

c how often a pair or a word occurs, N(a) how many words follow a. Source: Ney, Essen and Kneser, On
structuring probabilistic dependences in stochastic language modelling, Computer Speech and Language
8 (1994), 1-38.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privet.data.dataset import Array

DISCOUNT = 0.75


@dataclass(frozen=True, eq=False)
class Bigrams:
    size: int
    """Words; the code `size` stands before the first word of a text."""
    log_word: Array
    """(size,): log p(b)."""
    keys: Array
    """a (size + 1) + b of the pairs that occur, in order, and one key beyond all."""
    share: Array
    """max(c(a b) - D, 0) / c(a) of each."""
    rest: Array
    """(size + 1,): D N(a) / c(a), and 1 where a was never seen."""

    @staticmethod
    def learn(codes: Array, lengths: Array, size: int) -> Bigrams:
        starts = np.cumsum(lengths) - lengths
        before = np.concatenate([[size], codes[:-1]]) if len(codes) else codes
        before[starts[lengths > 0]] = size
        keys, counts = np.unique(before * (size + 1) + codes, return_counts=True)
        first = keys // (size + 1)
        seen, follow = np.bincount(first, counts, size + 1), np.bincount(first, minlength=size + 1)
        once = np.maximum(seen, 1)
        word = np.bincount(codes, minlength=size) + 0.1
        return Bigrams(
            size,
            np.log(word / word.sum()),
            np.append(keys, np.iinfo(np.int64).max),
            np.append((counts - DISCOUNT) / once[first], 0.0),
            np.where(seen > 0, DISCOUNT * follow / once, 1.0),
        )

    def log(self, before: Array, word: Array) -> Array:
        """log p(word | before), of arrays that broadcast."""
        asked = before * (self.size + 1) + word
        place = np.searchsorted(self.keys, asked)
        seen = np.where(self.keys[place] == asked, self.share[place], 0.0)
        return np.asarray(np.log(seen + self.rest[before] * np.exp(self.log_word[word])))
