"""Tokens: nothing is lost that can be kept, and a digit is always a digit."""

from __future__ import annotations

import pytest

from privet.core.errors import PrivetError
from privet.data.schema import UNKNOWN
from privet.language.models.canaries import Pattern
from privet.language.models.tokens import (
    BYTES,
    DIGIT,
    FIRST,
    Subwords,
    Words,
    learn_tokenizer,
    tokenizer_from_json,
    words_of,
)

TEXTS = [
    "the cat sat on the mat",
    "the cat ate the rat 12",
    "שלום עולם 🙂 שלום",
    "مرحبا بالعالم مرحبا 🙂",
]


@pytest.mark.parametrize("kind", ["word", "subword"])
def test_digits_are_tokens_of_their_own(kind: str) -> None:
    tokenizer = learn_tokenizer(kind, TEXTS, 300)
    assert tokenizer.encode("2026") == [DIGIT + 2, DIGIT, DIGIT + 2, DIGIT + 6]


@pytest.mark.parametrize("kind", ["word", "subword"])
def test_a_tokenizer_is_the_same_after_json(kind: str) -> None:
    tokenizer = learn_tokenizer(kind, TEXTS, 300)
    again = tokenizer_from_json(tokenizer.to_json())
    assert again.vocabulary == tokenizer.vocabulary
    assert [again.encode(text) for text in TEXTS] == [tokenizer.encode(text) for text in TEXTS]


def test_words_seen_once_are_unknown_unless_they_are_needed() -> None:
    assert Words.learn(TEXTS, 1000).encode("mat") == [UNKNOWN]
    assert UNKNOWN not in Words.learn(TEXTS, 1000, always=["mat"]).encode("mat the cat שלום 🙂")


def test_subwords_write_every_script_and_bytes_come_back() -> None:
    tokenizer = Subwords.learn(TEXTS, BYTES + 30)
    text = "an unseen wörd, 🏳️‍🌈 emoji שלום"
    assert UNKNOWN not in tokenizer.encode(text)

    def raw(code: int) -> bytes:
        return (
            bytes([code - FIRST])
            if code < BYTES
            else b"".join(map(raw, tokenizer.merges[code - BYTES]))
        )

    assert b"".join(raw(code) for code in tokenizer.encode(text)).decode() == "".join(
        f" {word}" for word in words_of(text)
    )


def test_merging_makes_texts_shorter_and_never_merges_twice() -> None:
    tokenizer = Subwords.learn(["aaaa aaaa baab"], BYTES + 5)
    assert len(tokenizer.encode("aaaa")) < len(" aaaa")
    assert max(tokenizer.encode("aaaaaaaaa")) < tokenizer.vocabulary


def test_a_canary_that_cannot_be_written_is_refused() -> None:
    tokenizer = Words.learn(TEXTS, 1000)
    with pytest.raises(PrivetError, match="does not know 'zebra'"):
        Pattern("the zebra # #").check(tokenizer, 64)
    with pytest.raises(PrivetError, match="shorten it"):
        Pattern("the cat # # # #").check(tokenizer, 4)
    with pytest.raises(PrivetError, match="nothing random"):
        Pattern("the cat")
    with pytest.raises(PrivetError, match="no tokenizer 'letters'"):
        learn_tokenizer("letters", TEXTS, 100)
