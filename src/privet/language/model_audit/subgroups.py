"""Perplexity on texts that were kept back: of everybody, and of those for whom a model may be
worse.

The groups are the attributes of authors that have few values (gender, bands of age) and how much an
author has written: the third of authors whose training texts have the fewest words, against the
others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from privet.data.dataset import Array
from privet.evidence.figures import Figure
from privet.evidence.person_intervals import bootstrap_people
from privet.language.models.corpus import Corpus

LEAST = 3
"""Authors in a group, below which it is not shown."""
WRITTEN = "words written"


@dataclass(frozen=True)
class Group:
    by: str
    value: str
    perplexity: Figure


def perplexity_of(nats: Array, tokens: Array, author: Array) -> Figure:
    """exp of -log p per token over all rows, with an interval over authors."""
    assert len(nats) == len(tokens) == len(author), "One author per row."
    who = np.unique(author, return_inverse=True)[1]
    own = np.exp(np.minimum(np.bincount(who, nats) / np.maximum(np.bincount(who, tokens), 1), 50))

    def value(sums: Array) -> Array:
        return np.exp(np.minimum(sums[:, 0] / sums[:, 1], 50))

    low, high = bootstrap_people(
        author,
        np.c_[nats, tokens],
        value,
        bounds=(1.0, np.inf),
        unseen=(float(own.min()), float(own.max())),
    )
    whole = float(np.exp(min(float(nats.sum()) / max(float(tokens.sum()), 1.0), 50.0)))
    return Figure(
        whole,
        low,
        high,
        len(own),
        float("nan"),
        unit="perplexity",
        interval="bootstrap over authors 95 %",
        measure="perplexity of held-out texts",
        note="Chance has no meaning here.",
    )


def written(corpus: Corpus, tokens: Mapping[int, int]) -> Array:
    """Per text 0 for the third of known authors with the fewest training tokens, 1 for the others,
    -1 for those not known."""
    sizes = np.array([tokens.get(int(author), -1) for author in corpus.author])
    each = np.array(sorted(tokens.values()))
    border = each[len(each) // 3] if len(each) else 0
    return np.where(sizes < 0, -1, (sizes >= border).astype(np.int64))


def groups(
    corpus: Corpus, text: Array, nats: Array, tokens: Array, learned: Mapping[int, int]
) -> list[Group]:
    """Perplexity by group, of rows from the texts `text`; `learned` has the training tokens of
    every known author."""
    columns = {
        **corpus.groups,
        WRITTEN: (("the third with the fewest", "the others"), written(corpus, learned)),
    }
    found = []
    for by, (names, codes) in columns.items():
        own = codes[text]
        for code, name in enumerate(names):
            among = own == code
            if len(np.unique(corpus.author[text[among]])) >= LEAST:
                found.append(
                    Group(
                        by,
                        name,
                        perplexity_of(nats[among], tokens[among], corpus.author[text[among]]),
                    )
                )
    return found


def gap(found: list[Group]) -> float:
    """How much worse the worst group of any attribute fares than the best one of the same, as a
    share of the best."""
    by: dict[str, list[float]] = {}
    for group in found:
        by.setdefault(group.by, []).append(group.perplexity.value)
    return max((max(own) / min(own) - 1 for own in by.values() if len(own) > 1), default=0.0)
