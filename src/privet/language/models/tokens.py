"""Tokenizers: texts to codes, by words or by pieces of words, learned on the training texts.

Both kinds share the first codes: padding, unknown, the border between texts, and the ten digits. A
digit is always a token of its own, so that the probability of a number is the product of its
digits' probabilities.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from privet.core.errors import PrivetError, missing_extra, refuse_if, unknown
from privet.data.schema import UNKNOWN, split_words

# Stands before and after every text.
END = 2
# Code of the digit 0; the others follow.
DIGIT = 3
# First code that was learned.
FIRST = DIGIT + 10

_PARTS = re.compile(r"[0-9]|[^0-9]+")


def words_of(text: str) -> list[str]:
    """Lower-case words, punctuation marks and single digits.

    >>> words_of("Room 42b, שלום 🙂")
    ['room', '4', '2', 'b', ',', 'שלום', '🙂']
    """
    return [part for word in split_words(text) for part in _PARTS.findall(word)]


class Tokenizer(ABC):
    """Splits texts into words and words into codes.

    Parameters:
        vocabulary: Number of codes, those of padding, digits and the like included.
    """

    kind: ClassVar[str]

    def __init__(self, vocabulary: int) -> None:
        self.vocabulary = vocabulary
        self._cache: dict[str, tuple[int, ...]] = {
            str(digit): (DIGIT + digit,) for digit in range(10)
        }

    @abstractmethod
    def look_up(self, word: str) -> tuple[int, ...]:
        """The codes of a word that is not a digit."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """A value from which `tokenizer_from_json` makes the tokenizer again."""

    def word(self, word: str) -> tuple[int, ...]:
        """The codes of one of `words_of`."""
        if word not in self._cache:
            self._cache[word] = self.look_up(word)
        return self._cache[word]

    def encode(self, text: str) -> list[int]:
        """The codes of a text."""
        return [code for word in words_of(text) for code in self.word(word)]

    def require(self, text: str, what: str) -> list[int]:
        """The codes of a text; an error that names `what` where a word is unknown."""
        lost = [word for word in words_of(text) if UNKNOWN in self.word(word)]
        if lost:
            raise PrivetError(
                f"The {what} '{text}' cannot be represented: the tokenizer does not know "
                f"'{lost[0]}'. Use words of the texts."
            )
        return self.encode(text)


class WordTokenizer(Tokenizer):
    """One code per word; rare words are unknown.

    Parameters:
        words: Known words, in the order of their codes.
    """

    kind = "word"

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(FIRST + len(words))
        self._code = {word: FIRST + place for place, word in enumerate(words)}

    def look_up(self, word: str) -> tuple[int, ...]:
        return (self._code.get(word, UNKNOWN),)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "words": list(self._code)}

    @staticmethod
    def learn(texts: Iterable[str], vocabulary: int, always: Sequence[str] = ()) -> WordTokenizer:
        """The words of `always`, then those that occur more than once, the most frequent first."""
        required = dict.fromkeys(word for text in always for word in _learnable(text))
        counts = Counter(word for text in texts for word in _learnable(text))
        frequent = [word for word, n in counts.most_common() if n > 1 and word not in required]
        return WordTokenizer([*required, *frequent][: max(vocabulary - FIRST, 0)])


class SubwordTokenizer(Tokenizer):
    """Byte-pair encoding by the package `tokenizers`: a word is its UTF-8 bytes after a space, and
    the pairs that occur most often are merged into one code each.

    Texts of every script can be represented, since every byte has a code. Source: Sennrich, Haddow
    and Birch, Neural machine translation of rare words with subword units, ACL (2016); on bytes:
    Radford et al., Language models are unsupervised multitask learners (2019).

    Parameters:
        bpe: A trained `tokenizers.Tokenizer`; its id 0 has the code `FIRST`.
    """

    kind = "subword"

    def __init__(self, bpe: Any) -> None:
        super().__init__(FIRST + bpe.get_vocab_size())
        self.bpe = bpe

    def look_up(self, word: str) -> tuple[int, ...]:
        return tuple(FIRST + code for code in self.bpe.encode(_as_utf8(word)).ids)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "bpe": json.loads(self.bpe.to_str())}

    @staticmethod
    def learn(
        texts: Iterable[str], vocabulary: int, always: Sequence[str] = ()
    ) -> SubwordTokenizer:
        """The pairs that occur most often, at least twice. `always` needs no room: bytes suffice
        for it."""
        library = _library()
        bpe, split = library.Tokenizer(library.models.BPE()), library.pre_tokenizers
        bpe.pre_tokenizer = split.Sequence(
            [split.WhitespaceSplit(), split.ByteLevel(add_prefix_space=True, use_regex=False)]
        )
        trainer = library.trainers.BpeTrainer(
            vocab_size=max(vocabulary - FIRST, 0),
            min_frequency=2,
            initial_alphabet=split.ByteLevel.alphabet(),
            show_progress=False,
        )
        bpe.train_from_iterator((_as_utf8(" ".join(_learnable(text))) for text in texts), trainer)
        return SubwordTokenizer(bpe)


TOKENIZERS: dict[str, type[WordTokenizer] | type[SubwordTokenizer]] = {
    kind.kind: kind for kind in (WordTokenizer, SubwordTokenizer)
}


def learn_tokenizer(
    kind: str, texts: Iterable[str], vocabulary: int, always: Sequence[str] = ()
) -> Tokenizer:
    """A tokenizer of `kind` with at most `vocabulary` codes that knows every word of `always`."""
    if kind not in TOKENIZERS:
        raise unknown("tokenizer", kind, TOKENIZERS)
    return TOKENIZERS[kind].learn(texts, vocabulary, always)


def tokenizer_from_json(value: dict[str, Any]) -> Tokenizer:
    """The tokenizer that `to_json` wrote."""
    if value["kind"] == WordTokenizer.kind:
        return WordTokenizer(value["words"])
    refuse_if(
        "bpe" not in value, "This model splits words as an earlier version did: train it again."
    )
    return SubwordTokenizer(_library().Tokenizer.from_str(json.dumps(value["bpe"])))


def _learnable(text: str) -> list[str]:
    """The words of a text without digits, which have codes already."""
    return [word for word in words_of(text) if word not in "0123456789"]


def _library() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise missing_extra("tokenizers", "language", "Splitting words into pieces") from None
    return tokenizers


def _as_utf8(text: str) -> str:
    """The text with ? for lone surrogates, which have no UTF-8 form."""
    return text.encode("utf-8", errors="replace").decode()
