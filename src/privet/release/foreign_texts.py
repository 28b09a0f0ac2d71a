"""Texts in the file of a release: they are what is released, or they stand beside the vectors that
were made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privet.core.errors import PrivetError
from privet.data.dataset import PARTS, Array, Dataset
from privet.data.schema import learn_schema
from privet.data.schema_file import Layout
from privet.data.tables import read_parquet
from privet.data.vector_columns import depth
from privet.data.word_vectors import is_words
from privet.evidence.figures import Rebuilt
from privet.release.release import Release

# The column that is taken for the texts where none is named.
TEXT = "text"


def released_texts(
    path: Path,
    private: Sequence[str],
    utility: Sequence[str],
    layout: Layout,
    about: dict[str, Any],
    column: str | None = None,
) -> tuple[Release, Dataset]:
    """Texts that are already released, such as `privet words` writes them, and their labels. As
    with vectors, there is nothing to learn a release on, so *fit* people attack as well; the words
    that adversaries know are those of *fit*."""
    data = read_parquet(path, replace(layout, modality="text", x=column or layout.x))
    release = Release.identity(learn_schema(data, [*private, *utility]))
    release.card = {
        "method": str(about.get("method") or "released texts"),
        "settings": _settings(about),
        "private": list(private),
    }
    attacking = np.where(data.part_of == PARTS.index("fit"), PARTS.index("attack"), data.part_of)
    return release, replace(data, part_of=attacking.astype(data.part_of.dtype))


def holds_texts(
    path: Path,
    kinds: dict[str, Any],
    about: dict[str, Any],
    named: Sequence[str],
    column: str | None,
) -> bool:
    """Whether texts are what the file releases: no vectors, and a column of texts that is named,
    that `privet words` wrote, or that stands there without real numbers."""
    if any(depth(kind) for kind in kinds.values()):
        return False
    texts = [name for name, kind in kinds.items() if is_words(kind) and name not in named]
    if column is not None and column not in texts:
        raise PrivetError(
            f"{path.name} has no column of texts called '{column}'; it has:"
            f" {', '.join(texts) or 'none'}."
        )
    numbers = [
        name for name, kind in kinds.items() if pa.types.is_floating(kind) and name not in named
    ]
    return (
        column is not None
        or (bool(texts) and about.get("method") == "words")
        or (TEXT in texts and not numbers)
    )


def texts_beside(spec: Path | str, data: Dataset, column: str | None = None) -> Array | None:
    """The texts that vectors in a parquet file stand for, one for each of `data.records`; None
    where there are none."""
    path = Path(spec)
    if data.modality != "table" or path.suffix != ".parquet" or not path.is_file():
        if column is not None:
            raise PrivetError(
                f"--text names the texts beside vectors in a parquet file, and {data.name} is none"
                " with vectors."
            )
        return None
    kinds = {field.name: field.type for field in pq.read_schema(path)}
    there = [name for name, kind in kinds.items() if is_words(kind)]
    if column is not None and column not in there:
        raise PrivetError(
            f"{path.name} has no column of texts called '{column}'; it has:"
            f" {', '.join(there) or 'none'}."
        )
    name = column or TEXT
    if name not in there or not any(depth(kind) for kind in kinds.values()):
        return None
    lines = pq.read_table(path, columns=[name]).column(0).to_pylist()
    if len(lines) != len(data.records):
        raise PrivetError(
            f"{path.name} has {len(lines)} texts for {len(data.records)} vectors: there must be one"
            " for each."
        )
    return np.array(["" if line is None else line for line in lines], dtype=object)


def words_told(found: Sequence[Rebuilt]) -> list[str]:
    """What inversion found, in a sentence each."""
    return [
        f"{one.decoder[0].upper()}{one.decoder[1:]}: told with an F1 of {f.value:.3f} ({f.low:.3f}"
        f" to {f.high:.3f}); the same words for every text give {f.chance:.3f}."
        for one in found
        if (f := one.figures.get("f1_words")) is not None
    ]


def _settings(about: dict[str, Any]) -> dict[str, Any]:
    return {"epsilon": about["epsilon"]} if isinstance(about.get("epsilon"), int | float) else {}
