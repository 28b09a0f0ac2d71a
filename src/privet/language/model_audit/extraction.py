"""Extraction: the model writes freely, and its texts are compared with those it has learned from.

A text counts as repeated where RUN words (tokens) in a row stand so in a text that the model was
trained on. Chance: the same count against texts of authors whom the model has never seen, which
shows the runs that everybody writes.

Source: Carlini and others, Extracting training data from large language models, USENIX Security
(2021): untargeted generation from the k likeliest tokens.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import torch

from privet.data.dataset import Array
from privet.data.schema import PAD, UNKNOWN
from privet.evidence.figures import Figure
from privet.language.mean_figure import mean_figure
from privet.language.models.networks import LanguageModel
from privet.language.models.tokens import END

# Words in a row that count as repeated.
RUN = 8
# Of the likeliest tokens, so many are drawn from.
TOP = 40
# Texts that an audited model writes, and their tokens at most.
WRITTEN, TOKENS = 1000, 64

Run = tuple[Hashable, ...]


@torch.inference_mode()
def written_rows(
    model: LanguageModel, device: torch.device, number: int = WRITTEN, seed: int = 0
) -> Array:
    """Token ids (number, at most TOKENS) that the model writes after END, each drawn of the TOP
    likeliest; PAD once the text has ended. The unknown word is never written."""
    generator = torch.Generator(device).manual_seed(seed)
    ids = torch.full((number, 1), END, device=device)
    for _ in range(TOKENS):
        scores = model.scores(model.states(ids)[:, -1]).float()
        scores[:, [PAD, UNKNOWN]] = -torch.inf
        likeliest, codes = scores.topk(min(TOP, scores.shape[1]), dim=1)
        drawn = torch.multinomial(likeliest.softmax(1), 1, generator=generator)
        ended = (ids.shape[1] > 1) & ((ids[:, -1:] == END) | (ids[:, -1:] == PAD))
        ids = torch.cat([ids, codes.gather(1, drawn).masked_fill(ended, PAD)], 1)
    return np.asarray(ids[:, 1:].cpu().numpy())


def texts_of(ids: Array) -> list[list[int]]:
    """The tokens of each row, without its borders and padding."""
    return [row[(row != PAD) & (row != END)].tolist() for row in ids]


def runs_of(texts: Iterable[Sequence[Hashable]]) -> set[Run]:
    """All runs of RUN words of these texts."""
    return {tuple(text[i : i + RUN]) for text in texts for i in range(len(text) - RUN + 1)}


def longest_run(words: Sequence[Hashable], runs: set[Run]) -> tuple[int, int]:
    """Length and place of the longest stretch of `words` all of whose runs are among `runs`.

    >>> longest_run("x a b c d e f g h i".split(), {tuple("abcdefgh"), tuple("bcdefghi")})
    (9, 1)
    """
    best, here = (0, 0), 0
    for place in range(len(words) - RUN + 1):
        here = here + 1 if tuple(words[place : place + RUN]) in runs else 0
        if here and here + RUN - 1 > best[0]:
            best = (here + RUN - 1, place - here + 1)
    return best


def repeated_figure(
    written: Sequence[Sequence[Hashable]], seen: set[Run], others: set[Run], unit: str = "words"
) -> tuple[Figure, Run]:
    """The share of written texts with a run of a text that the model has `seen`, and the longest
    such run; `others` are the runs of texts that it has not."""
    stretches = [longest_run(words, seen) for words in written]
    hits = np.array([length >= RUN for length, _ in stretches], dtype=float)
    chance = [longest_run(words, others)[0] >= RUN for words in written]
    figure = mean_figure(
        hits,
        np.arange(len(written)),
        f"written texts that repeat {RUN} {unit} in a row of a text the model has seen",
        over="written texts",
        chance=float(np.mean(chance)) if chance else 0.0,
        note="Chance: runs of texts of authors whom the model has not seen.",
    )
    longest: Run = ()
    for words, (length, start) in zip(written, stretches, strict=True):
        if length > len(longest):
            longest = tuple(words[start : start + length])
    return figure, longest
