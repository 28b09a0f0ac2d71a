"""Perplexity of held-out texts: of everybody, and of groups for which a model may be worse.

The groups are the attributes of authors that have few values (gender, bands of age) and how much an
author has written: the third of authors whose training texts have the fewest words, against the
others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from privet.data.dataset import Array
from privet.evidence.figures import Figure
from privet.evidence.person_intervals import bootstrap_people
from privet.language.models.corpus import Corpus

# A group with fewer authors is not shown.
FEWEST_AUTHORS = 3
WORDS_WRITTEN = "words written"


@dataclass(frozen=True)
class Group:
    """The perplexity of the authors whose attribute `by` has this value."""

    by: str
    value: str
    perplexity: Figure


def perplexity_of(nats: Array, tokens: Array, author: Array) -> Figure:
    """exp of -log p per token over all rows, with an interval over authors."""
    who = np.unique(author, return_inverse=True)[1]
    of_author = _perplexity(np.bincount(who, nats), np.bincount(who, tokens))
    low, high = bootstrap_people(
        author,
        np.c_[nats, tokens],
        lambda sums: _perplexity(sums[:, 0], sums[:, 1]),
        bounds=(1.0, np.inf),
        unseen=(float(of_author.min()), float(of_author.max())),
    )
    return Figure(
        float(_perplexity(nats.sum(), tokens.sum())),
        low,
        high,
        len(of_author),
        float("nan"),
        unit="perplexity",
        interval="bootstrap over authors 95 %",
        measure="perplexity of held-out texts",
        note="Chance has no meaning here.",
    )


def _perplexity(nats: Array, tokens: Array) -> Array:
    return np.asarray(np.exp(np.minimum(nats / np.maximum(tokens, 1), 50)))


def group_perplexities(
    corpus: Corpus, text: Array, nats: Array, tokens: Array, learned: Mapping[int, int]
) -> tuple[Group, ...]:
    """Perplexity by group, of rows from the texts `text`; `learned` has the training tokens of
    every known author."""
    written = np.array([learned.get(int(author), -1) for author in corpus.author])
    border = sorted(learned.values())[len(learned) // 3] if learned else 0
    fewest = np.where(written < 0, -1, written >= border)
    columns = {
        **corpus.groups,
        WORDS_WRITTEN: (("the third with the fewest", "the others"), fewest),
    }
    groups = []
    for by, (names, codes) in columns.items():
        for code, name in enumerate(names):
            member = codes[text] == code
            author = corpus.author[text[member]]
            if len(np.unique(author)) >= FEWEST_AUTHORS:
                figure = perplexity_of(nats[member], tokens[member], author)
                groups.append(Group(by, name, figure))
    return tuple(groups)


def largest_gap(groups: Sequence[Group]) -> float:
    """How much higher the perplexity of an attribute's worst group is than that of its best, as a
    share of the best; of the attribute where it is largest."""
    values: dict[str, list[float]] = {}
    for group in groups:
        values.setdefault(group.by, []).append(group.perplexity.value)
    return max((max(one) / min(one) - 1 for one in values.values()), default=0.0)
