"""Authors are found where states tell them and not where they do not; groups and gaps are counted
right."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from letters import letters

from privet.language.model_audit.authors import (
    ADVERSARIES,
    BOOSTING,
    HiddenStates,
    identify_authors,
    membership,
)
from privet.language.model_audit.subgroups import (
    WORDS_WRITTEN,
    group_perplexities,
    largest_gap,
    perplexity_of,
)
from privet.language.models.corpus import build_corpus


def states(strength: float, authors: int = 6) -> dict[str, HiddenStates]:
    """Two rows a text; each author has a direction of their own, as strong as said."""
    generator = torch.Generator().manual_seed(0)
    centre = torch.randn(authors, 8, generator=generator) * strength
    found, start = {}, 0
    for role, each in (("train", 5), ("attack", 1), ("select", 2), ("test", 6)):
        author = np.repeat(np.arange(authors), 2 * each)
        text = start + np.repeat(np.arange(authors * each), 2)
        start += authors * each
        found[role] = HiddenStates(
            centre[torch.as_tensor(author)] + torch.randn(len(author), 8, generator=generator),
            text,
            author,
        )
    return found


def test_authors_are_named_where_states_tell_them() -> None:
    found = identify_authors(states(6.0))
    assert not isinstance(found, str)
    assert (
        set(found.tried) == {one.title for one in (*ADVERSARIES, BOOSTING)}
        and min(found.tried.values()) > 0.5
    )
    assert (
        found.accuracy.value > 0.95
        and found.accuracy.chance == pytest.approx(1 / 6)
        and found.accuracy.n == 36
    )


def test_authors_are_not_named_where_states_tell_nothing() -> None:
    found = identify_authors(states(0.0), adversaries=ADVERSARIES[:2])
    assert not isinstance(found, str)
    assert found.accuracy.low <= found.accuracy.chance


def test_without_texts_to_choose_on_it_says_so() -> None:
    seen = states(1.0)
    del seen["select"]
    assert isinstance(identify_authors(seen), str)


def test_members_are_found_by_what_the_model_gains_on_their_texts() -> None:
    rng = np.random.default_rng(0)
    author = np.repeat(np.arange(60), 4)
    member = author < 30
    told = membership(member + 0.1 * rng.standard_normal(240), author, member, "texts")
    nothing = membership(rng.standard_normal(240), author, member, "texts")
    assert told["auc"].value == 1.0 and told["tpr"].value == 1.0
    assert nothing["auc"].is_chance


def test_perplexity_is_that_of_the_whole_and_groups_are_told_apart() -> None:
    corpus = build_corpus(letters(40))
    text = corpus.select("known", "test")
    worse = corpus.groups["gender"][1][text] == 1
    tokens = np.full(len(text), 10)
    nats = np.where(worse, 30.0, 20.0)
    whole = perplexity_of(nats, tokens, corpus.author[text])
    assert (
        whole.value == pytest.approx(np.exp(nats.sum() / tokens.sum()))
        and whole.low < whole.value < whole.high
    )
    learned = {int(a): 100 + int(a) for a in corpus.authors("known")}
    found = group_perplexities(corpus, text, nats, tokens, learned)
    by = {(one.by, one.value): one.perplexity.value for one in found}
    assert by["gender", "f"] == pytest.approx(np.exp(2)) and by["gender", "m"] == pytest.approx(
        np.exp(3)
    )
    assert largest_gap(found) >= np.e - 1 - 1e-9
    assert sum(one.perplexity.n for one in found if one.by == WORDS_WRITTEN) == len(learned)
