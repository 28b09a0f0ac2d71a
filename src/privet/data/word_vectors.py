"""Words and their vectors: reading them from a file, texts to codes of words, and codes to texts
again.

A word that has no vector counts as one more word, *unknown*, that lies at the mean of all vectors:
so every word of a text has a place, and all that is promised about words holds for unknown ones
too. Marks that have no vector are dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from privet.core.errors import PrivetError
from privet.data.dataset import Array
from privet.data.schema import split_words
from privet.data.vector_columns import depth, is_bytes, read_numbers

UNKNOWN = "unk"
"""How an unknown word is written in a text that leaves the house."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    words: tuple[str, ...]
    """Known words, the most frequent first; the code of words[i] is i + 1, after 0 for an unknown
    word."""
    points: Array
    """float32 (1 + words, d): the mean of all vectors, then theirs."""

    @staticmethod
    def of(words: Sequence[str], vectors: Array) -> Vocabulary:
        numbers = np.asarray(vectors, dtype=np.float32)
        if numbers.ndim != 2 or len(numbers) != len(words) or not len(words):
            raise PrivetError(
                f"{len(words)} words need as many vectors of one length, not an array of the shape"
                f" {numbers.shape}."
            )
        if not np.isfinite(numbers).all():
            raise PrivetError(
                "A word's vector holds something that is not a finite number: remove that word."
            )
        lower = [str(word).lower() for word in words]
        if len(set(lower)) < len(lower):
            twice = Counter(lower).most_common(1)[0][0]
            raise PrivetError(
                f"The word '{twice}' has two vectors (capitals do not count): remove one."
            )
        mean = numbers.mean(0, dtype=np.float64).astype(np.float32)
        return Vocabulary(tuple(lower), np.concatenate([mean[None], numbers]))

    @staticmethod
    def read(path: Path) -> Vocabulary:
        """A parquet file with a column of words and one of vectors: lists of numbers, or the bytes
        of float16 numbers."""
        table = read_table(path)
        kinds = {name: table.schema.field(name).type for name in table.schema.names}
        vectors = [name for name, kind in kinds.items() if depth(kind) == 1 or is_bytes(kind)]
        words = [name for name, kind in kinds.items() if is_words(kind)]
        if not vectors or not words:
            raise PrivetError(
                f"{path.name} needs a column of words and a column of their vectors; it has:"
                f" {', '.join(kinds)}."
            )
        named = table.column("word" if "word" in words else words[0])
        if named.null_count:
            raise PrivetError(f"{path.name} has a vector without a word: remove that row.")
        column = "vector" if "vector" in vectors else vectors[0]
        return Vocabulary.of(
            named.to_pylist(),
            read_numbers(table.column(column), f"The column '{column}' of {path.name}"),
        )

    def __len__(self) -> int:
        return len(self.points)

    @property
    def dimension(self) -> int:
        return int(self.points.shape[1])

    @cached_property
    def _index(self) -> Any:
        return pd.Index(np.array(self.words, dtype=object))

    @cached_property
    def written(self) -> Array:
        """The words by code."""
        return np.array([UNKNOWN, *self.words], dtype=object)

    def find(self, words: Sequence[str]) -> Array:
        """Codes of words; 0 where a word is not known."""
        return np.asarray(self._index.get_indexer(np.array(words, dtype=object)) + 1)

    def codes(self, texts: Iterable[object]) -> tuple[Array, Array]:
        """The words of all texts in a row, as codes, and how many each text has. A missing text has
        none."""
        lines = [split_words(text) if isinstance(text, str) else [] for text in texts]
        tokens = list(chain.from_iterable(lines))
        unique, first = (
            pd.factorize(np.array(tokens, dtype=object))
            if tokens
            else (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=object))
        )
        code = self.find(list(first))
        mark = np.array(
            [not any(letter.isalnum() for letter in word) for word in first], dtype=bool
        )
        kept = ~(mark & (code == 0))[unique]
        of = np.repeat(np.arange(len(lines)), [len(line) for line in lines])
        return code[unique][kept], np.bincount(of[kept], minlength=len(lines))

    def texts(self, codes: Array, lengths: Array) -> list[str]:
        """Texts again: lower-case words with a space between them."""
        words, ends = self.written[codes].tolist(), np.cumsum(lengths)
        return [
            " ".join(words[end - n : end])
            for end, n in zip(ends.tolist(), lengths.tolist(), strict=True)
        ]

    def mean_vectors(self, texts: Iterable[object]) -> Array:
        """The plainest sentence embedding: the mean of the words' vectors, float32 (n, d); of a
        text without words, zeros."""
        codes, lengths = self.codes(texts)
        sums = np.zeros((len(lengths), self.dimension), dtype=np.float64)
        np.add.at(sums, np.repeat(np.arange(len(lengths)), lengths), self.points[codes])
        return np.asarray(sums / np.maximum(lengths, 1)[:, None], dtype=np.float32)


def is_words(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def read_table(path: Path) -> Any:
    """A parquet file, or one sentence."""
    try:
        table = pq.read_table(path)
    except pa.ArrowException as error:
        raise PrivetError(
            f"{path} cannot be read as parquet ({str(error).splitlines()[0].rstrip('.')})."
        ) from None
    except OSError as error:
        raise PrivetError(f"Cannot read {path}: {error.strerror or error}.") from None
    if not table.num_rows:
        raise PrivetError(f"{path} has no rows.")
    return table
