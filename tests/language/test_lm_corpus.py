"""Whose texts go where, and what is said of data that cannot be used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from letters import letters

from privet.core.errors import PrivetError
from privet.data.schema import PAD
from privet.language.models.corpus import ROLES, SIDES, build_corpus, cut
from privet.language.models.tokens import END, WordTokenizer
from small import small


def test_sides_share_no_author_and_known_authors_have_texts_in_every_role() -> None:
    corpus = build_corpus(letters(40))
    sides = [set(corpus.authors(side)) for side in SIDES]
    assert sides[0] and sides[1] and sides[2]
    assert not sides[0] & sides[1] and not sides[1] & sides[2] and not sides[0] & sides[2]
    for role in ROLES:
        assert set(corpus.author[corpus.select("known", role)]) == sides[0]
    assert len(corpus.select("known")) == sum(len(corpus.select("known", role)) for role in ROLES)


def test_attributes_of_authors_make_groups() -> None:
    corpus = build_corpus(letters(40))
    assert set(corpus.groups) == {"gender", "age"}
    names, codes = corpus.groups["age"]
    assert len(names) == 3 and set(codes) == {0, 1, 2}


def test_so_many_authors_as_asked_for() -> None:
    assert [len(build_corpus(letters(40), authors=5).authors(side)) for side in SIDES] == [5, 5, 5]


def test_authors_may_be_a_column() -> None:
    data = letters(40)
    assert set(build_corpus(data, "author").authors("known")).isdisjoint(
        build_corpus(data, "author").authors("others")
    )


def test_cutting_loses_no_token_and_no_row_is_too_long() -> None:
    texts = ["one two three four five six seven", "one", "two three " * 9]
    tokenizer = WordTokenizer.learn(texts, 100, always=texts)
    pieces = cut(texts, np.array([4, 5, 6]), tokenizer, 5)
    assert pieces.ids.shape[1] <= 6 and (pieces.ids[:, 0] == END).all()
    for number, text in zip((4, 5, 6), texts, strict=True):
        own = pieces.ids[pieces.text == number, 1:]
        assert own[own != PAD].tolist() == [*tokenizer.encode(text), END]


def test_empty_texts_are_left_out_and_said() -> None:
    data = letters(24)
    data.records[::9] = " \n"
    corpus = build_corpus(data)
    assert "empty" in corpus.notes[0]
    assert all(str(text).strip() for text in corpus.texts)
    data.records[:] = ""
    with pytest.raises(PrivetError, match="empty"):
        build_corpus(data)


def test_emoji_and_right_to_left_scripts_are_texts() -> None:
    author = [one for one in range(12) for _ in range(5)]
    corpus = build_corpus(
        letters(texts=["🙂🏳️‍🌈 שלום", "مرحبا ٣", "🙂", "שלום 🙂", "नमस्ते"] * 12, author=author)
    )
    assert len(corpus.texts) == 60 and not corpus.notes


def test_an_author_with_one_text_is_learned_and_never_counted_on() -> None:
    author = [one for one in range(12) for _ in range(6)] + list(range(12, 24))
    corpus = build_corpus(letters(texts=["a text of some words"] * len(author), author=author))
    assert any("one text each" in note for note in corpus.notes)
    sizes = np.bincount(corpus.author)
    assert (sizes[corpus.author[corpus.select("known", "test")]] > 1).all()


def test_what_cannot_be_used_is_refused_in_one_sentence() -> None:
    with pytest.raises(PrivetError, match="one text"):
        build_corpus(letters(each=1))
    with pytest.raises(PrivetError, match="who wrote"):
        build_corpus(small("text"))
    with pytest.raises(PrivetError, match="by one author"):
        data = letters()
        build_corpus(
            replace(
                data,
                person=None,
                labels={**data.labels, "author": np.zeros(len(data), dtype=np.int64)},
            )
        )
    with pytest.raises(PrivetError, match="holds table"):
        build_corpus(small("table"))
    with pytest.raises(PrivetError, match="2 or more"):
        build_corpus(letters(), authors=1)
    with pytest.raises(PrivetError, match="no attribute 'writer'"):
        build_corpus(letters(), "writer")
