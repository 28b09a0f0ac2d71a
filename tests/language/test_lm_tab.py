"""The tab attack finds everything in a model that memorises by construction, and nothing in one
that cannot."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from letters import letters
from torch import Tensor

from privet.data.dataset import Array
from privet.language.model_audit.tab import (
    Prompts,
    completion_ranks,
    completion_rates,
    excess_over_reference,
    prompts,
)
from privet.language.models.corpus import TokenRows, build_corpus
from privet.language.models.networks import Scores
from privet.language.models.tokens import Tokenizer, learn_tokenizer

CPU = torch.device("cpu")


def lookup(ids: Array, vocabulary: int) -> Scores:
    """A model that has every beginning of every text by heart, and says nothing about others."""
    follows = {
        tuple(row[: j + 1]): row[j + 1]
        for row in ids.tolist()
        for j in range(len(row) - 1)
        if row[j + 1]
    }

    def scores(x: Tensor) -> Tensor:
        out = torch.zeros(*x.shape, vocabulary)
        for i, row in enumerate(x.tolist()):
            for j in range(len(row)):
                code = follows.get(tuple(row[: j + 1]))
                if code is not None:
                    out[i, j, code] = 5.0
        return out

    return scores


def unigram(ids: Array, vocabulary: int) -> Scores:
    """A model that cannot remember: it knows how often each word is used, and never what stands
    before."""
    often = torch.bincount(torch.as_tensor(ids).flatten(), minlength=vocabulary).float()
    return lambda x: often.expand(*x.shape, vocabulary).clone()


@pytest.fixture(scope="module", params=["word", "subword"])
def asked(request: pytest.FixtureRequest) -> tuple[TokenRows, Prompts, Tokenizer]:
    corpus = build_corpus(letters(), authors=8)
    where = corpus.select("known", "train")
    tokenizer = learn_tokenizer(request.param, corpus.texts[where], 320)
    pieces = corpus.token_rows(where, tokenizer, 40)
    return pieces, prompts(pieces, corpus.author[pieces.text]), tokenizer


def test_prompts_are_cut_before_words_of_one_author(
    asked: tuple[TokenRows, Prompts, Tokenizer],
) -> None:
    pieces, cut, tokenizer = asked
    spelled = {
        tuple(row[a:b]) for row, a, b in zip(cut.ids.tolist(), cut.start, cut.end, strict=True)
    }
    own = {tokenizer.word(word) for word in pieces.words if word.endswith("x")}
    assert spelled <= own and len(spelled) == 8


def test_a_model_that_memorises_every_beginning_finishes_all_in_one_try(
    asked: tuple[TokenRows, Prompts, Tokenizer],
) -> None:
    _, cut, tokenizer = asked
    # The row's number stands where the border did, so that no two rows begin alike.
    marked = cut.ids.copy()
    marked[:, 0] = np.arange(len(marked)) % (tokenizer.vocabulary - 3) + 3
    distinct = np.unique(marked[:, 0], return_index=True)[1]
    one = Prompts(marked[distinct], cut.start[distinct], cut.end[distinct], cut.author[distinct])
    place = completion_ranks(lookup(one.ids, tokenizer.vocabulary), one, CPU)
    assert (place == 0).all()
    assert completion_rates(place, one.author, (1, 5))[0].value == 1.0


def test_a_model_that_cannot_remember_finishes_none_early(
    asked: tuple[TokenRows, Prompts, Tokenizer],
) -> None:
    pieces, cut, tokenizer = asked
    scores = unigram(pieces.ids, tokenizer.vocabulary)
    figures = completion_rates(completion_ranks(scores, cut, CPU), cut.author, (1, 3))
    assert [figure.value for figure in figures] == [0.0, 0.0]
    constant = completion_ranks(lambda x: torch.zeros(*x.shape, tokenizer.vocabulary), cut, CPU)
    assert (constant >= 20).all()


def test_more_tries_never_hit_less_and_a_reference_like_the_model_leaves_no_excess() -> None:
    rng = np.random.default_rng(0)
    place, author = rng.integers(0, 30, 200), rng.integers(0, 10, 200)
    shares = [figure.value for figure in completion_rates(place, author, (1, 3, 10, 20))]
    assert shares == sorted(shares)
    assert excess_over_reference(place, place, author, 10).value == 0.0
    assert excess_over_reference(np.zeros(200), np.full(200, 99), author, 10).value == 1.0
