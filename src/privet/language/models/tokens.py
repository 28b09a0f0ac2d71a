"""Tokens: texts to numbers, by words or by pieces of words, learned on the texts that the model
learns from.

Both kinds share the first codes: padding, unknown, the border between texts, and the ten digits. A
digit is always a token of its own, so that a number is a sequence whose chance is the product of
its digits'.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from privet.core.errors import PrivetError, unknown
from privet.data.dataset import Array
from privet.data.schema import PAD, UNKNOWN, split_words

END = 2
"""Stands before and after every text."""
DIGIT = 3
"""Code of the digit 0; the others follow."""
FIRST = DIGIT + 10
"""First code of what was learned, or of the 256 bytes."""
BYTES = FIRST + 256
"""First code after the bytes."""

_PARTS = re.compile(r"[0-9]|[^0-9]+")


def words_of(text: str) -> list[str]:
    """Lower-case words, marks and single digits.

    >>> words_of("Room 42b, שלום 🙂")
    ['room', '4', '2', 'b', ',', 'שלום', '🙂']
    """
    return [part for word in split_words(text) for part in _PARTS.findall(word)]


class Tokenizer(ABC):
    kind: ClassVar[str]

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, ...]] = {}

    @property
    @abstractmethod
    def vocabulary(self) -> int:
        """How many codes there are."""

    @abstractmethod
    def look_up(self, word: str) -> tuple[int, ...]:
        """The codes of a word that is not a digit."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """What `tokenizer_from_json` makes it from again."""

    def word(self, word: str) -> tuple[int, ...]:
        """The codes of one of `words_of`."""
        found = self._known.get(word)
        if found is None:
            digit = len(word) == 1 and word in "0123456789"
            found = self._known[word] = (DIGIT + int(word),) if digit else self.look_up(word)
        return found

    def encode(self, text: str) -> list[int]:
        return [code for word in words_of(text) for code in self.word(word)]

    def require(self, text: str, what: str) -> list[int]:
        """The codes of a text, or a sentence why the tokenizer cannot write it."""
        lost = [word for word in words_of(text) if UNKNOWN in self.word(word)]
        if lost:
            raise PrivetError(
                f"The {what} '{text}' cannot be represented: the tokenizer does not know '{lost[0]}'. Use words of the texts."
            )
        return self.encode(text)


class Words(Tokenizer):
    """One code per word; the rarest are unknown."""

    kind = "word"

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__()
        self.words = tuple(words)
        self._code = {word: FIRST + place for place, word in enumerate(self.words)}

    @property
    def vocabulary(self) -> int:
        return FIRST + len(self.words)

    def look_up(self, word: str) -> tuple[int, ...]:
        return (self._code.get(word, UNKNOWN),)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "words": list(self.words)}

    @staticmethod
    def learn(texts: Iterable[str], vocabulary: int, always: Sequence[str] = ()) -> Words:
        """The words used more than once, the most frequent first; those in `always` whatever their
        number."""
        sure = list(
            dict.fromkeys(
                word for text in always for word in words_of(text) if word not in "0123456789"
            )
        )
        counts = Counter(
            word for text in texts for word in words_of(text) if word not in "0123456789"
        )
        rest = [word for word, n in counts.most_common() if n > 1 and word not in set(sure)]
        return Words((sure + rest)[: max(vocabulary - FIRST, 0)])


class Subwords(Tokenizer):
    """Byte-pair encoding: a word is its UTF-8 bytes after a blank, and the pairs seen most often
    are one code each.

    Every text of every script can be written, since every byte can. Source: Sennrich, Haddow and
    Birch, Neural machine translation of rare words with subword units, ACL (2016); on bytes:
    Radford et al., Language models are unsupervised multitask learners (2019).
    """

    kind = "subword"

    def __init__(self, merges: Sequence[tuple[int, int]]) -> None:
        super().__init__()
        self.merges = tuple((int(left), int(right)) for left, right in merges)
        self._rank = {pair: place for place, pair in enumerate(self.merges)}

    @property
    def vocabulary(self) -> int:
        return BYTES + len(self.merges)

    def look_up(self, word: str) -> tuple[int, ...]:
        codes = _bytes(word)
        while len(codes) > 1:
            rank, at = min(
                (self._rank.get(pair, len(self._rank)), i) for i, pair in enumerate(pairwise(codes))
            )
            if rank == len(self._rank):
                break
            codes = [*codes[:at], BYTES + rank, *codes[at + 2 :]]
        return tuple(codes)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "merges": [list(pair) for pair in self.merges]}

    @staticmethod
    def learn(texts: Iterable[str], vocabulary: int, always: Sequence[str] = ()) -> Subwords:
        """The pairs that occur most often, each counted once the earlier ones are merged; `always`
        is not needed, bytes suffice."""
        counts = Counter(
            word for text in texts for word in words_of(text) if word not in "0123456789"
        )
        lines, often = (
            [_bytes(word) for word in counts],
            np.fromiter(counts.values(), dtype=np.int64, count=len(counts)),
        )
        codes = np.array([code for line in lines for code in line], dtype=np.int64)
        word = np.repeat(np.arange(len(lines)), [len(line) for line in lines])
        merges: list[tuple[int, int]] = []
        for code in range(BYTES, vocabulary):
            beside = np.flatnonzero(word[:-1] == word[1:])
            pairs, place = np.unique(
                codes[beside] * vocabulary + codes[beside + 1], return_inverse=True
            )
            if not len(pairs):
                break
            weight = np.bincount(place, often[word[beside]])
            best = int(weight.argmax())
            if weight[best] < 2:
                break
            left, right = divmod(int(pairs[best]), vocabulary)
            merges.append((left, right))
            at = _apart(beside[place == best])
            codes[at] = code
            keep = np.ones(len(codes), dtype=bool)
            keep[at + 1] = False
            codes, word = codes[keep], word[keep]
        return Subwords(merges)


TOKENIZERS: dict[str, type[Words] | type[Subwords]] = {
    kind.kind: kind for kind in (Words, Subwords)
}


def learn_tokenizer(
    kind: str, texts: Iterable[str], vocabulary: int, always: Sequence[str] = ()
) -> Tokenizer:
    if kind not in TOKENIZERS:
        raise unknown("tokenizer", kind, TOKENIZERS)
    return TOKENIZERS[kind].learn(texts, vocabulary, always)


def tokenizer_from_json(value: dict[str, Any]) -> Tokenizer:
    return (
        Words(value["words"])
        if value["kind"] == Words.kind
        else Subwords([(left, right) for left, right in value["merges"]])
    )


def padded(lines: Sequence[Sequence[int]]) -> Array:
    """Sequences as rows of one array, filled up with PAD."""
    lengths = np.fromiter((len(line) for line in lines), dtype=np.int64, count=len(lines))
    ids = np.full((len(lines), int(lengths.max(initial=1))), PAD, dtype=np.int64)
    ids[np.arange(ids.shape[1]) < lengths[:, None]] = np.fromiter(
        (code for line in lines for code in line), dtype=np.int64
    )
    return ids


def _bytes(word: str) -> list[int]:
    return [FIRST + byte for byte in (" " + word).encode("utf-8", errors="replace")]


def _apart(at: Array) -> Array:
    """Of places that may follow each other directly, as in 'aaa', every second of a run: a token is
    merged once."""
    run = np.cumsum(np.diff(at, prepend=-2) != 1)
    within = np.arange(len(at)) - np.searchsorted(run, run)
    return np.asarray(at[within % 2 == 0])
