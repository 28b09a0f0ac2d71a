"""The tab attack: type the beginning of a private sentence, press tab, and see whether the model
finishes it.

A prompt is a text cut before a private word. With k tries, each of the model's k likeliest next
tokens is completed greedily to a word; the private word is among these k completions if its first
token is among the k likeliest, and every further token is the likeliest one given those before it.
Hits by knowing the language, and not the author, are those of a reference model that never saw that
author.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from privet.data.dataset import Array
from privet.data.schema import UNKNOWN
from privet.evidence.figures import Figure
from privet.language.mean_figure import mean_figure
from privet.language.models.corpus import TokenRows
from privet.language.models.networks import Scores, batches
from privet.language.models.tokens import DIGIT

TRIES = (1, 3, 5, 10, 20)
PROMPTS_PER_AUTHOR = 20


@dataclass(frozen=True)
class Prompts:
    """Texts, and the private word of each that is to be completed.

    Parameters:
        ids: (n, t): whole texts; the model sees what stands before `start`.
        end: (n,): where the private word begins and ends.
    """

    ids: Array
    start: Array
    end: Array
    author: Array


def private_words(rows: TokenRows, author: Array) -> Array:
    """(row, start, end) of the words that one author alone uses in these rows: names above all.

    Digits, marks and words of one letter are not counted, nor words the tokenizer does not know,
    nor words with fewer than three tokens before them.
    """
    uses = np.stack([rows.word[rows.first], np.repeat(author, rows.first.sum(1))])
    one_author = np.bincount(np.unique(uses, axis=1)[0]) == 1
    proper = np.array([len(word) > 1 and word.isalpha() for word in rows.words], dtype=bool)
    wanted = rows.first & np.pad(one_author & proper, (0, 1))[rows.word]
    row, start = np.nonzero(wanted)
    place = np.arange(rows.ids.shape[1])
    goes_on = (rows.word[row] == rows.word[row, start][:, None]) & ~rows.first[row]
    over = (place > start[:, None]) & ~goes_on
    end = np.where(over.any(1), over.argmax(1), rows.ids.shape[1])
    whole = end - start == rows.sizes[rows.word[row, start]]
    inside = (place >= start[:, None]) & (place < end[:, None])
    known = ~((rows.ids[row] == UNKNOWN) & inside).any(1)
    return np.asarray(np.stack([row, start, end], 1)[known & whole & (start > 3)])


def prompts(
    rows: TokenRows, author: Array, each: int = PROMPTS_PER_AUTHOR, seed: int = 0
) -> Prompts:
    """Texts cut before words that their author alone uses, at most `each` of an author, drawn at
    random."""
    words = np.random.default_rng([seed, 6]).permutation(private_words(rows, author))
    words = words[np.argsort(author[words[:, 0]], kind="stable")]
    who = author[words[:, 0]]
    rank = np.arange(len(who)) - np.searchsorted(who, who)
    row, start, end = words[rank < each].T
    return Prompts(rows.ids[row], start, end, author[row])


def completion_ranks(scores: Scores, asked: Prompts, device: torch.device) -> Array:
    """For each prompt how many completions the model tries before the true one, or the size of the
    vocabulary where it never comes to it.

    Tokens that are no words - padding, unknown, the end - are not offered. A token just as likely
    as the true one goes first.
    """
    ranks, begin = [torch.zeros(0, dtype=torch.int64)], 0
    with torch.inference_mode():
        for ids in batches(asked.ids, device):
            n, t = ids.shape
            ends = (one[begin : begin + n] for one in (asked.start, asked.end))
            start, end = (torch.as_tensor(one, device=device) for one in ends)
            begin += n
            logits = scores(ids)[:, :-1].float()
            logits[..., :DIGIT] = -torch.inf
            true = logits.gather(2, ids[:, 1:, None])
            # Of the token at place j + 1, given the tokens up to j.
            rank = (logits >= true).sum(2) - 1
            place = torch.arange(1, t, device=device)
            inside = (place > start[:, None]) & (place < end[:, None])
            completed = ((rank == 0) | ~inside).all(1)
            first = rank[torch.arange(n, device=device), start - 1]
            ranks.append(torch.where(completed, first, logits.shape[2]).cpu())
    return torch.cat(ranks).numpy()


def completion_rates(
    ranks: Array, author: Array, tries: Sequence[int] = TRIES, reference: Array | None = None
) -> tuple[Figure, ...]:
    """Share of prompts whose word is among the first k completions, for each k. Chance is the share
    by the ranks of the `reference` model."""
    return tuple(
        mean_figure(
            ranks < k,
            author,
            f"private words among the first {k} completions",
            chance=0.0 if reference is None else float((reference < k).mean()),
            note="Chance is a model that never saw these authors.",
        )
        for k in tries
    )


def excess_over_reference(ranks: Array, reference: Array, author: Array, k: int) -> Figure:
    """How many more of the same prompts the model completes than the reference does."""
    return mean_figure(
        (ranks < k).astype(float) - (reference < k),
        author,
        f"private words completed within {k} tries, beyond the reference model",
        bounds=(-1.0, 1.0),
    )
