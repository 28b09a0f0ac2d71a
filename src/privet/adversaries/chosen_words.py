"""Was this name in it? For chosen words, one figure each: how well an adversary tells texts with
the word from texts without it, from their embeddings.

Linear and perceptron heads learn from *attack*, the head and the threshold are chosen on *select*
for each word by itself, and the balanced accuracy is counted on *test*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from privet.adversaries.inversion import HEADS, TextPart, learn_head, marked_parts
from privet.core.errors import PrivetError
from privet.data.schema import split_words
from privet.evidence.figures import Figure, Rebuilt
from privet.evidence.leakage import auc, balanced_figure, best_threshold

# Texts with the word that every part needs.
FEWEST_TEXTS = 5


def chosen_words(
    parts: Mapping[str, TextPart],
    words: Sequence[str],
    title: str,
    *,
    epochs: int = 30,
    seed: int = 0,
) -> Rebuilt:
    """A figure per word, as `word NAME`.

    Parameters:
        parts: Embeddings of *attack*, *select* and *test*, their texts and people.
        words: The words to ask for; capitals do not count.
        title: What the attack is called in the audit.
        epochs, seed: Of the heads.
    """
    asked = list(dict.fromkeys(word.lower() for word in words))
    for word in asked:
        if split_words(word) != [word]:
            raise PrivetError(f"'{word}' is not one word: give single words, with commas.")
    data = marked_parts(parts, asked)
    for at, word in enumerate(asked):
        for name, part in data.items():
            found = int(part.words[:, at].sum())
            if not FEWEST_TEXTS <= found <= len(part.words) - FEWEST_TEXTS:
                raise PrivetError(
                    f"The word '{word}' is in {found} of {len(part.words)} texts of the {name} part"
                    f": at least {FEWEST_TEXTS} with it and without it are needed to ask for it."
                )
    torch.manual_seed(seed)
    heads = [learn_head(data["attack"], data["select"], hidden, epochs) for hidden in HEADS]
    shares = {part: [head(data[part].x) for head in heads] for part in ("select", "test")}
    figures: dict[str, Figure] = {}
    for at, word in enumerate(asked):
        truth = {part: data[part].words[:, at].astype(np.int64) for part in shares}
        scores = [auc(truth["select"], one[:, at]) or 0.5 for one in shares["select"]]
        best = int(np.argmax(scores))
        threshold = best_threshold(truth["select"], shares["select"][best][:, at])
        guesses = (shares["test"][best][:, at] > threshold).astype(np.int64)
        people = data["test"].people
        figures[f"word {word}"] = balanced_figure(truth["test"], guesses, 2, "lower", people)
    worst = max(figures.values(), key=lambda figure: figure.value)
    return Rebuilt(
        "share right, balanced, of the word easiest to tell",
        worst.value,
        worst.n,
        decoder=title,
        figures=figures,
    )
