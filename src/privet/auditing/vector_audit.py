"""What an audit asks of vectors beside their attributes: whether search still works, and which
words were in the texts that they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from privet.adversaries.chosen_words import chosen_words
from privet.adversaries.inversion import TextPart, invert_parts
from privet.adversaries.multiset import invert_as_sets
from privet.adversaries.own_vectors import are_vectors, own_vectors
from privet.auditing.attribute_attack import Parts
from privet.core.errors import PrivetError
from privet.data.dataset import Array, Dataset
from privet.evidence.figures import Figure, Rebuilt, Source
from privet.evidence.retrieval import retrieval
from privet.release.release import Release


def search_quality(
    release: Release, data: Dataset, device: torch.device, seed: int = 0
) -> dict[str, Figure]:
    """What a search of released *test* vectors keeps of a search of raw ones; empty where records
    are no vectors, or nothing was done to them."""
    test = data.part("test")
    if not are_vectors(release, data) or len(test) < 2:
        return {}
    if release.network[0] in ("identity", "reshaped"):
        return {}
    torch.manual_seed(seed)
    raw, released, same = own_vectors(release, test, device)
    return retrieval(raw, released, test.people, same_space=same, seed=seed)


def words_of_vectors(
    sources: Mapping[Source, Parts],
    data: Dataset,
    texts: Sequence[str] | Array,
    words: Sequence[str] = (),
    seed: int = 0,
    as_sets: bool = True,
) -> list[Rebuilt]:
    """Which words were in the texts that vectors stand for, from released and from raw vectors: by
    a probability for each word, with `as_sets` by naming them as a set, which takes longer, and for
    chosen `words` one by one."""
    lines = np.asarray(texts, dtype=object)
    if len(lines) != len(data.records):
        raise PrivetError(
            f"{data.name} has {len(data.records)} records, and {len(lines)} texts were given: one "
            "for each."
        )
    rebuilt = []
    for source, seen in sources.items():
        parts = {
            part: TextPart(one.vectors(), lines[one.data.rows], one.people)
            for part, one in seen.items()
        }
        name = data.name
        rebuilt.append(invert_parts(parts, name, f"words from {source} vectors", seed=seed))
        if as_sets:
            title = f"words from {source} vectors, as a set"
            rebuilt.append(invert_as_sets(parts, name, title, seed=seed))
        if words:
            title = f"chosen words from {source} vectors"
            rebuilt.append(chosen_words(parts, words, title, seed=seed))
    return rebuilt
