"""Words and their vectors: reading them from a file, texts to codes of words, and codes to texts
again.

A word that has no vector counts as one more word, *unknown*, that lies at the mean of all vectors:
so every word of a text has a place, and all that is promised about words holds for unknown ones
too. Punctuation marks that have no vector are dropped.
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

from privet.core.errors import PrivetError, refuse_if
from privet.data.column_meaning import is_text
from privet.data.dataset import Array
from privet.data.schema import split_words
from privet.data.table_files import READERS, kind_of
from privet.data.table_files import read_table as read_rows
from privet.data.vector_columns import depth, is_bytes, read_numbers

# How an unknown word is written in a released text.
UNKNOWN = "unk"


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words with their vectors; `of` and `read` make one.

    Parameters:
        words: Known words, the most frequent first; the code of words[i] is i + 1, after 0 for an
            unknown word.
        points: float32 (1 + words, d): the mean of all vectors, then theirs.
    """

    words: tuple[str, ...]
    points: Array

    @staticmethod
    def of(words: Sequence[str], vectors: Array) -> Vocabulary:
        """A vocabulary of words and their vectors (words, d); capitals do not count."""
        numbers = np.asarray(vectors, dtype=np.float32)
        refuse_if(
            numbers.ndim != 2 or len(numbers) != len(words) or not len(words),
            f"{len(words)} words need as many vectors of one length, not an array of the shape "
            f"{numbers.shape}.",
        )
        refuse_if(
            not np.isfinite(numbers).all(),
            "A word's vector holds something that is not a finite number: remove that word.",
        )
        lower = [str(word).lower() for word in words]
        repeated, times = Counter(lower).most_common(1)[0]
        refuse_if(
            times > 1, f"The word '{repeated}' has two vectors (capitals do not count): remove one."
        )
        mean = numbers.mean(0, dtype=np.float64).astype(np.float32)
        return Vocabulary(tuple(lower), np.concatenate([mean[None], numbers]))

    @staticmethod
    def read(path: Path) -> Vocabulary:
        """From a parquet file with a column of words and one of vectors: lists of numbers, or the
        bytes of float16 numbers."""
        table = read_table(path)
        kinds = {name: table.schema.field(name).type for name in table.schema.names}
        vectors = [name for name, kind in kinds.items() if depth(kind) == 1 or is_bytes(kind)]
        texts = text_columns(kinds)
        refuse_if(
            not vectors or not texts,
            f"{path.name} needs a column of words and a column of their vectors; it has: "
            f"{', '.join(kinds)}.",
        )
        words = table.column("word" if "word" in texts else texts[0])
        refuse_if(words.null_count, f"{path.name} has a vector without a word: remove that row.")
        column = "vector" if "vector" in vectors else vectors[0]
        numbers = read_numbers(table.column(column), f"The column '{column}' of {path.name}")
        return Vocabulary.of(words.to_pylist(), numbers)

    def __len__(self) -> int:
        return len(self.points)

    @property
    def dimension(self) -> int:
        return int(self.points.shape[1])

    @cached_property
    def _index(self) -> Any:
        return pd.Index(np.array(self.words, dtype=object))

    @cached_property
    def word_of_code(self) -> Array:
        """The words by code, the unknown one first."""
        return np.array([UNKNOWN, *self.words], dtype=object)

    def codes(self, texts: Iterable[object]) -> tuple[Array, Array]:
        """The words of all texts in a row, as codes, and how many each text has. A missing text has
        none."""
        lines = [split_words(text) if isinstance(text, str) else [] for text in texts]
        tokens = np.array(list(chain.from_iterable(lines)), dtype=object)
        number, distinct = pd.factorize(tokens)
        code = np.asarray(self._index.get_indexer(distinct) + 1)
        is_mark = np.array([not any(map(str.isalnum, word)) for word in distinct], dtype=bool)
        used = ~(is_mark & (code == 0))[number]
        text = np.repeat(np.arange(len(lines)), [len(line) for line in lines])
        return code[number][used], np.bincount(text[used], minlength=len(lines))

    def texts(self, codes: Array, lengths: Array) -> list[str]:
        """Texts again: lower-case words with a space between them."""
        words, ends = self.word_of_code[codes].tolist(), np.cumsum(lengths)
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


def text_columns(kinds: dict[str, Any], column: str | None = None, file: str = "") -> list[str]:
    """The columns of strings among columns with these Arrow types; an error where `column` is named
    and is none of them."""
    texts = [name for name, kind in kinds.items() if _is_text(kind)]
    refuse_if(
        column is not None and column not in texts,
        f"{file} has no column of texts called '{column}'; it has: {', '.join(texts) or 'none'}.",
    )
    return texts


def _is_text(kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(kind) for test in tests)


def text_column(table: Any, column: str | None, file: str) -> str:
    """The column of texts: the one named, the one called text, the only one of strings, or the
    only one of sentences."""
    kinds = {name: table.schema.field(name).type for name in table.schema.names}
    texts = text_columns(kinds, column, file)
    chosen = column or ("text" if "text" in texts else texts[0] if len(texts) == 1 else None)
    if chosen is None:
        sentences = [
            name for name in texts if is_text(table.column(name).slice(0, 200).to_pandas())
        ]
        chosen = sentences[0] if len(sentences) == 1 else None
    if chosen is None:
        raise PrivetError(
            f"Say which column of {file} holds the texts, with --text: "
            f"{', '.join(texts) or 'it has none of strings'}."
        )
    return chosen


def read_table(path: Path) -> Any:
    """A file as an Arrow table; an error where it cannot be read or is empty."""
    if kind_of(path) in READERS:
        return pa.Table.from_pandas(read_rows(path)[0], preserve_index=False)
    try:
        table = pq.read_table(path)
    except pa.ArrowException as error:
        raise PrivetError(
            f"{path} cannot be read as parquet ({str(error).splitlines()[0].rstrip('.')})."
        ) from None
    except OSError as error:
        raise PrivetError(f"Cannot read {path}: {error.strerror or error}.") from None
    refuse_if(not table.num_rows, f"{path} has no rows.")
    return table


def read_texts(path: Path, column: str | None = None) -> tuple[Any, str, list[str]]:
    """A file of texts: its table, the name of the column, and the texts, "" for a missing
    one."""
    table = read_table(path)
    name = text_column(table, column, path.name)
    return table, name, [text or "" for text in table.column(name).to_pylist()]
