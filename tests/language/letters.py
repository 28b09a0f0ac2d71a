"""Small texts by known hands: every author has words of their own among those that all share."""

from __future__ import annotations

import numpy as np
import pandas as pd

from privet.data.attribute_codes import code
from privet.data.dataset import Dataset
from privet.data.splitting import assign

SHARED = (
    "we went to the sea and saw the old boat",
    "the rain came over the hill",
    "she read a long book by the fire",
    "they ate bread and fish",
)
SYLLABLES = ("ba", "ko", "li", "mu", "ne", "ro", "sa", "ti")


def own_word(author: int) -> str:
    """Letters alone, and a different word for everybody."""
    return "".join(SYLLABLES[(author // 8**k) % 8] for k in range(3)) + "x"


def letters(
    authors: int = 24,
    each: int = 8,
    seed: int = 0,
    texts: list[str] | None = None,
    author: list[int] | None = None,
) -> Dataset:
    """`each` texts by every author, or the ones that are given."""
    rng = np.random.default_rng(seed)
    if texts is None:
        author = [one for one in range(authors) for _ in range(each)]
        texts = [
            f"{rng.choice(SHARED)} . i like {own_word(one)} very much , {rng.choice(SHARED)} ."
            for one in author
        ]
    who = np.array(author)
    columns = {
        "author": pd.Series([f"a{one}" for one in who]),
        "gender": pd.Series(np.where(who % 2, "f", "m")),
        "age": pd.Series(20.5 + who % 31),
    }
    coded = {name: code(name, column) for name, column in columns.items()}
    part, notes = assign(len(texts), who, None, seed)
    attributes = {name: attribute for name, (attribute, _) in coded.items()}
    labels = {name: column for name, (_, column) in coded.items()}
    records = np.array(texts, dtype=object)
    return Dataset(
        "letters",
        "text",
        records,
        attributes,
        labels,
        part,
        np.arange(len(texts)),
        f"letters{seed}",
        who,
        notes,
    )
