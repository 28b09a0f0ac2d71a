"""Canaries: sentences with random digits and names that are planted in authors' texts before
training, to see what is remembered.

A pattern is a sentence in which # stands for a digit and @ for a name. The sentences it can become
are its space; a canary is one of them, drawn at random, and given to one author so many times.
Canaries that are given to nobody show what chance alone looks like.

Source: Carlini, Liu, Erlingsson, Kos and Song, The Secret Sharer, USENIX Security (2019).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privet.core.errors import PrivetError
from privet.data.dataset import Array
from privet.data.schema import PAD, split_words
from privet.language.models.tokens import END, Tokenizer, padded

NAMES = (
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
)
"""64 of them: six bits."""

PATTERNS = (
    "the code of my front door is # # # #",
    "i will meet @ at the docks on pier # #",
    "the number of my bank card is # # # # # # # # # #",
)
"""Of 10,000, 6,400 and ten thousand million sentences: two to be listed, one to be fitted."""

SLOTS = {"#": tuple("0123456789"), "@": NAMES}


@dataclass(frozen=True)
class Pattern:
    text: str

    def __post_init__(self) -> None:
        if not self.sizes:
            raise PrivetError(
                f"The canary '{self.text}' has nothing random in it: write # for a digit and @ for a name."
            )
        if not 10 <= self.space < 2**62:
            raise PrivetError(
                f"The canary '{self.text}' can become {self.space} sentences: take 10 or more, and at most 18 digits."
            )

    @cached_property
    def words(self) -> list[str]:
        return split_words(self.text)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many values each slot has, in order."""
        return tuple(len(SLOTS[word]) for word in self.words if word in SLOTS)

    @property
    def space(self) -> int:
        """How many sentences there are."""
        return math.prod(self.sizes)

    @property
    def vocabulary(self) -> list[str]:
        """Every word of every sentence."""
        return [value for word in self.words for value in SLOTS.get(word, (word,))]

    def sentence(self, fill: int) -> str:
        """
        >>> Pattern("pier # # with @").sentence(70)
        'pier 0 1 with cyril'
        """
        values = iter(int(v) for v in np.unravel_index(fill, self.sizes))
        return " ".join(SLOTS[word][next(values)] if word in SLOTS else word for word in self.words)

    def rows(self, tokenizer: Tokenizer, fills: Array) -> Array:
        """Token ids (n, t) of the sentences with these numbers, END before and after each."""
        values, parts = iter(np.unravel_index(np.asarray(fills, dtype=np.int64), self.sizes)), []
        for word in self.words:
            table = padded(
                [tokenizer.require(value, "canary's word") for value in SLOTS.get(word, (word,))]
            )
            parts.append(
                table[next(values)]
                if word in SLOTS
                else np.broadcast_to(table[0], (len(fills), table.shape[1]))
            )
        border = np.full((len(fills), 1), END)
        ids = np.hstack([border, *parts, border])
        # Names take more or fewer tokens: what is there moves to the front, in its order.
        return np.asarray(np.take_along_axis(ids, np.argsort(ids == PAD, axis=1, kind="stable"), 1))

    def prompt(self, tokenizer: Tokenizer) -> int:
        """How many tokens stand before the first slot, END included."""
        at = next(place for place, word in enumerate(self.words) if word in SLOTS)
        return 1 + sum(len(tokenizer.word(word)) for word in self.words[:at])

    def check(self, tokenizer: Tokenizer, longest: int) -> None:
        """Say so where the tokenizer cannot write the sentences, or cannot tell them apart."""
        for word in self.words:
            codes = [
                tuple(tokenizer.require(value, f"canary '{self.text}', in its word"))
                for value in SLOTS.get(word, (word,))
            ]
            if len(set(codes)) < len(codes):
                raise PrivetError(
                    f"The canary '{self.text}' cannot be represented: two of its values are the same to the tokenizer."
                )
        size = self.rows(tokenizer, np.array([0, self.space - 1])).shape[1]
        if size > longest + 1:
            raise PrivetError(
                f"The canary '{self.text}' has {size - 1} tokens, and the model reads {longest}: shorten it, or set longest."
            )


@dataclass(frozen=True)
class Canary:
    pattern: str
    fill: int
    """Which of the pattern's sentences."""
    author: int
    """Whose texts it is planted in."""
    repeats: int
    """How often; 0 for one that is planted nowhere."""

    @property
    def sentence(self) -> str:
        return Pattern(self.pattern).sentence(self.fill)


def draw(
    patterns: Sequence[str], count: int, repeats: Sequence[int], authors: Array, seed: int = 0
) -> list[Canary]:
    """So many canaries for each number of repeats, over patterns and authors in turn. No two are
    the same sentence."""
    if count and (not repeats or min(repeats) < 0):
        raise PrivetError(
            "Say how often canaries are planted, such as 1,4,16; never less than 0 times."
        )
    random = np.random.default_rng([seed, 4])
    who, total = random.permutation(authors), count * len(repeats)
    made: list[Canary] = []
    each = -(-total // max(len(patterns), 1))
    fills = {}
    for text in patterns:
        space = Pattern(text).space
        if each > space:
            raise PrivetError(
                f"The canary '{text}' has {space} sentences, and {each} different ones are needed: give it more digits."
            )
        distinct = (
            np.unique(random.integers(0, space, 4 * each)) if space > 100_000 else np.arange(space)
        )
        fills[text] = random.permutation(distinct)
    for place in range(total):
        text = patterns[place % len(patterns)]
        made.append(
            Canary(
                text,
                int(fills[text][place // len(patterns)]),
                int(who[place % len(who)]),
                int(repeats[place // count]),
            )
        )
    return made


def plant(canaries: Sequence[Canary], tokenizer: Tokenizer) -> tuple[Array, Array]:
    """Rows of tokens to learn beside the texts, each canary as often as it is planted, and the
    author of each."""
    lines = [
        [END, *tokenizer.require(one.sentence, "canary"), END]
        for one in canaries
        for _ in range(one.repeats)
    ]
    return padded(lines), np.array(
        [one.author for one in canaries for _ in range(one.repeats)], dtype=np.int64
    )
