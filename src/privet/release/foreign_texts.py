"""Texts in a parquet file of a release: they are what is released, or they stand beside vectors
that were made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privet.core.errors import PrivetError, refuse_if
from privet.data.dataset import Array, Dataset
from privet.data.schema import learn_schema
from privet.data.schema_file import Layout
from privet.data.tables import read_parquet
from privet.data.vector_columns import depth
from privet.data.word_vectors import text_columns
from privet.release.release import Release

# The column of texts where none is named.
TEXT = "text"


def released_texts(
    path: Path,
    private: Sequence[str],
    utility: Sequence[str],
    layout: Layout,
    about: dict[str, Any],
    column: str | None = None,
) -> tuple[Release, Dataset]:
    """Texts that are already released, such as `privet words` writes them, and their labels.

    There is nothing to learn a release on, so *fit* people attack as well; the words that
    adversaries know are those of *fit*.
    """
    data = read_parquet(path, replace(layout, modality="text", x=column or layout.x))
    release = Release.identity(learn_schema(data, [*private, *utility]))
    epsilon = about.get("epsilon")
    release.card = {
        "method": str(about.get("method") or "released texts"),
        "settings": {"epsilon": epsilon} if isinstance(epsilon, int | float) else {},
        "private": list(private),
    }
    return release, data.fit_as_attack()


def holds_texts(
    path: Path,
    kinds: dict[str, Any],
    about: dict[str, Any],
    labels: Sequence[str],
    column: str | None,
) -> bool:
    """Whether texts are what the file releases: it has no vectors, and a column of texts that is
    named, that `privet words` wrote, or that is called text in a file without real numbers."""
    if any(map(depth, kinds.values())):
        return False
    others = {name: kind for name, kind in kinds.items() if name not in labels}
    texts = text_columns(others, column, path.name)
    if column is not None or (texts and about.get("method") == "words"):
        return True
    return TEXT in texts and not any(map(pa.types.is_floating, others.values()))


def texts_of_vectors(spec: Path | str, data: Dataset, column: str | None = None) -> Array | None:
    """The texts that vectors in a parquet file stand for, one for each of `data.records`; None
    where there are none."""
    path = Path(spec)
    if data.modality != "table" or path.suffix != ".parquet" or not path.is_file():
        if column is not None:
            raise PrivetError(
                f"--text names the texts beside vectors in a parquet file, and {data.name} is none "
                "with vectors."
            )
        return None
    kinds = {field.name: field.type for field in pq.read_schema(path)}
    texts, name = text_columns(kinds, column, path.name), column or TEXT
    if name not in texts or not any(map(depth, kinds.values())):
        return None
    lines = pq.read_table(path, columns=[name]).column(0).to_pylist()
    refuse_if(
        len(lines) != len(data.records),
        f"{path.name} has {len(lines)} texts for {len(data.records)} vectors: there must be "
        "one for each.",
    )
    return np.array([line or "" for line in lines], dtype=object)
