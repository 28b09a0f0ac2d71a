"""Tokens: nothing is lost that can be kept, and a digit is always a digit."""

from __future__ import annotations

import sys

import pytest
from tokenizers import decoders

from privet.core.errors import PrivetError
from privet.data.schema import UNKNOWN
from privet.language.models.canaries import Pattern
from privet.language.models.tokens import (
    DIGIT,
    FIRST,
    SubwordTokenizer,
    WordTokenizer,
    learn_tokenizer,
    tokenizer_from_json,
    words_of,
)

AFTER_BYTES = FIRST + 256
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
    assert WordTokenizer.learn(TEXTS, 1000).encode("mat") == [UNKNOWN]
    assert UNKNOWN not in WordTokenizer.learn(TEXTS, 1000, always=["mat"]).encode(
        "mat the cat שלום 🙂"
    )


def test_subwords_write_every_script_and_bytes_come_back() -> None:
    tokenizer = SubwordTokenizer.learn(TEXTS, AFTER_BYTES + 30)
    text = "an unseen wörd, 🏳️‍🌈 emoji שלום"
    codes = tokenizer.encode(text)
    assert UNKNOWN not in codes and AFTER_BYTES < tokenizer.vocabulary <= AFTER_BYTES + 30
    tokenizer.bpe.decoder = decoders.ByteLevel()
    assert tokenizer.bpe.decode([code - FIRST for code in codes]) == "".join(
        f" {word}" for word in words_of(text)
    )
    assert tokenizer.encode("\ud800") == tokenizer.encode("?")


def test_merging_makes_texts_shorter_and_learning_again_gives_the_same() -> None:
    tokenizer = SubwordTokenizer.learn(["aaaa aaaa baab"], AFTER_BYTES + 5)
    assert len(tokenizer.encode("aaaa")) < len(" aaaa")
    assert max(tokenizer.encode("aaaaaaaaa")) < tokenizer.vocabulary
    again = SubwordTokenizer.learn(["aaaa aaaa baab"], AFTER_BYTES + 5)
    assert again.to_json() == tokenizer.to_json()


def test_a_vocabulary_smaller_than_the_bytes_has_no_merges() -> None:
    assert SubwordTokenizer.learn(TEXTS, 5).vocabulary == AFTER_BYTES


def test_without_the_package_subwords_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(PrivetError, match=r"privet\[language\]"):
        SubwordTokenizer.learn(TEXTS, 300)


def test_an_earlier_tokenizer_is_refused_in_one_sentence() -> None:
    with pytest.raises(PrivetError, match="train it again"):
        tokenizer_from_json({"kind": "subword", "merges": [[45, 46]]})


def test_a_canary_that_cannot_be_written_is_refused() -> None:
    tokenizer = WordTokenizer.learn(TEXTS, 1000)
    with pytest.raises(PrivetError, match="does not know 'zebra'"):
        Pattern("the zebra # #").check(tokenizer, 64)
    with pytest.raises(PrivetError, match="shorten it"):
        Pattern("the cat # # # #").check(tokenizer, 4)
    with pytest.raises(PrivetError, match="nothing random"):
        Pattern("the cat")
    with pytest.raises(PrivetError, match="no tokenizer 'letters'"):
        learn_tokenizer("letters", TEXTS, 100)
