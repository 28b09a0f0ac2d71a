"""Canaries: sentences with random digits and names that are planted in authors' texts before
training, to see what a model remembers.

A pattern is a sentence in which # stands for a digit and @ for a name. The sentences it can become
are its space; a canary is one of them, drawn at random, and planted in one author's texts a number
of times. Canaries that are never planted show what chance alone looks like.

Source: Carlini, Liu, Erlingsson, Kos and Song, The Secret Sharer, USENIX Security (2019).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privet.core.errors import PrivetError, refuse_if
from privet.data.dataset import Array
from privet.data.schema import PAD, padded, split_words
from privet.language.models.tokens import END, Tokenizer

# 64 of them: six bits.
NAMES = tuple(
    [
        "alice",
        "anton",
        "basil",
        "bella",
        "bruno",
        "carla",
        "cyril",
        "daria",
        "dylan",
        "edith",
        "elias",
        "esther",
        "fabio",
        "felix",
        "flora",
        "greta",
        "gus",
        "hanna",
        "hugo",
        "ida",
        "igor",
        "irene",
        "ivan",
        "jade",
        "jonas",
        "julia",
        "kai",
        "klara",
        "lars",
        "leila",
        "luca",
        "mabel",
        "marco",
        "mina",
        "nadia",
        "nils",
        "nora",
        "olga",
        "oscar",
        "otto",
        "pablo",
        "paula",
        "petra",
        "quinn",
        "ralph",
        "rita",
        "rosa",
        "ruben",
        "salma",
        "silas",
        "sofia",
        "sven",
        "tanja",
        "theo",
        "tilda",
        "ursula",
        "vera",
        "viktor",
        "wanda",
        "willy",
        "xenia",
        "yara",
        "yuri",
        "zelda",
    ]
)

# Of 10,000, 6,400 and 10^10 sentences: exposure lists the first two and fits the third.
PATTERNS = (
    "the code of my front door is # # # #",
    "i will meet @ at the docks on pier # #",
    "the number of my bank card is # # # # # # # # # #",
)

SLOTS = {"#": tuple("0123456789"), "@": NAMES}


@dataclass(frozen=True)
class Pattern:
    """A sentence with # for digits and @ for names: `Pattern("the code is # # # #")`."""

    text: str

    def __post_init__(self) -> None:
        if not self.sizes:
            raise PrivetError(
                f"The canary '{self.text}' has nothing random in it: write # for a digit and @ for "
                "a name."
            )
        refuse_if(
            not 10 <= self.space < 2**62,
            f"The canary '{self.text}' can become {self.space} sentences: take 10 or more, and "
            "at most 18 digits.",
        )

    @cached_property
    def words(self) -> list[str]:
        return split_words(self.text)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each slot, in order."""
        return tuple(len(SLOTS[word]) for word in self.words if word in SLOTS)

    @property
    def space(self) -> int:
        """The number of sentences it can become."""
        return math.prod(self.sizes)

    @property
    def vocabulary(self) -> list[str]:
        """Every word of every sentence."""
        return [value for word in self.words for value in SLOTS.get(word, (word,))]

    def sentence(self, fill: int) -> str:
        """The sentence with this number.

        >>> Pattern("pier # # with @").sentence(70)
        'pier 0 1 with cyril'
        """
        values = iter(int(v) for v in np.unravel_index(fill, self.sizes))
        return " ".join(SLOTS[word][next(values)] if word in SLOTS else word for word in self.words)

    def rows(self, tokenizer: Tokenizer, fills: Array) -> Array:
        """Token ids (n, t) of the sentences with these numbers, END before and after each."""
        slots = iter(np.unravel_index(np.asarray(fills, dtype=np.int64), self.sizes))
        border = np.full((len(fills), 1), END)
        parts = [border]
        for word in self.words:
            values = SLOTS.get(word, (word,))
            table = padded([tokenizer.require(value, "canary's word") for value in values])
            parts.append(table[next(slots) if word in SLOTS else np.zeros(len(fills), np.int64)])
        ids = np.hstack([*parts, border])
        # Names take more or fewer tokens: padding inside a row moves to its end.
        return np.asarray(np.take_along_axis(ids, np.argsort(ids == PAD, axis=1, kind="stable"), 1))

    def prompt_length(self, tokenizer: Tokenizer) -> int:
        """How many tokens stand before the first slot, END included."""
        slot = next(place for place, word in enumerate(self.words) if word in SLOTS)
        return 1 + sum(len(tokenizer.word(word)) for word in self.words[:slot])

    def check(self, tokenizer: Tokenizer, longest: int) -> None:
        """Raise an error where the tokenizer cannot represent the sentences, or takes two of them
        for the same."""
        for word in self.words:
            codes = [
                tuple(tokenizer.require(value, f"canary '{self.text}', in its word"))
                for value in SLOTS.get(word, (word,))
            ]
            refuse_if(
                len(set(codes)) < len(codes),
                f"The canary '{self.text}' cannot be represented: two of its values are the "
                "same to the tokenizer.",
            )
        size = self.rows(tokenizer, np.array([0, self.space - 1])).shape[1]
        refuse_if(
            size > longest + 1,
            f"The canary '{self.text}' has {size - 1} tokens, and the model reads {longest}: "
            "shorten it, or set longest.",
        )


@dataclass(frozen=True)
class Canary:
    """One sentence of a pattern, and in whose texts it is planted.

    Parameters:
        fill: Which of the pattern's sentences.
        author: In whose texts it is planted.
        repeats: How often; 0 for one that is never planted.
    """

    pattern: str
    fill: int
    author: int
    repeats: int

    @property
    def sentence(self) -> str:
        return Pattern(self.pattern).sentence(self.fill)


@dataclass(frozen=True)
class CanaryPlan:
    """How many canaries are planted, and how often each.

    Parameters:
        count: Canaries for each number of repeats.
    """

    count: int = 0
    repeats: Sequence[int] = ()
    patterns: Sequence[str] = PATTERNS

    def draw(self, authors: Array, seed: int = 0) -> list[Canary]:
        """Canaries over patterns and authors in turn; no two are the same sentence."""
        if not self.count:
            return []
        refuse_if(
            not self.repeats or min(self.repeats) < 0,
            "Say how often canaries are planted, such as 1,4,16; never less than 0 times.",
        )
        random, patterns = np.random.default_rng([seed, 4]), self.patterns
        authors, total = random.permutation(authors), self.count * len(self.repeats)
        needed = -(-total // len(patterns))
        fills = {text: _distinct_fills(Pattern(text), needed, random) for text in patterns}
        return [
            Canary(
                text := patterns[place % len(patterns)],
                int(fills[text][place // len(patterns)]),
                int(authors[place % len(authors)]),
                int(self.repeats[place // self.count]),
            )
            for place in range(total)
        ]


def _distinct_fills(pattern: Pattern, needed: int, random: np.random.Generator) -> Array:
    refuse_if(
        needed > pattern.space,
        f"The canary '{pattern.text}' has {pattern.space} sentences, and {needed} different "
        "ones are needed: give it more digits.",
    )
    if pattern.space <= 100_000:
        return random.permutation(pattern.space)
    return random.permutation(np.unique(random.integers(0, pattern.space, 4 * needed)))


def planted_rows(canaries: Sequence[Canary], tokenizer: Tokenizer) -> tuple[Array, Array]:
    """Rows of tokens to train on beside the texts, each canary as often as it is planted, and the
    author of each row."""
    planted = [canary for canary in canaries for _ in range(canary.repeats)]
    lines = [[END, *tokenizer.require(canary.sentence, "canary"), END] for canary in planted]
    return padded(lines), np.array([canary.author for canary in planted], dtype=np.int64)
