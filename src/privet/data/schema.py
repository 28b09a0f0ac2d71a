"""Schema: how a raw record becomes what the network takes.

Learned on the *fit* part, stored in the release's card, used again wherever the release runs:
standardising a table or looking up a word needs nothing but the card. A column that is private or a
task is never part of a table's input.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from privet.core.errors import PrivetError, unknown
from privet.core.registry import Registry
from privet.data.cell_text import cell_text
from privet.data.dataset import Array, Dataset, Modality
from privet.data.spaces import check_space
from privet.data.stored_table import StoredTable


class Inputs:
    """Encoded records of one dataset view: `inputs[index]` is a batch. Pictures are read from the
    cache as they are needed."""

    def __init__(self, array: Array, rows: Array | None = None) -> None:
        self.array, self.rows = array, rows

    def __len__(self) -> int:
        return len(self.array) if self.rows is None else len(self.rows)

    def __getitem__(self, index: Any) -> Array:
        return np.asarray(self.array[index if self.rows is None else self.rows[index]])

    @property
    def nbytes(self) -> int:
        return len(self) * (self.array[:1].nbytes if len(self.array) else 0)


class Schema(ABC):
    """How raw records of one kind become the input of a network."""

    modality: ClassVar[Modality]
    dtype: ClassVar[str]

    @property
    @abstractmethod
    def shape(self) -> tuple[int | None, ...]:
        """Shape of one encoded record; None for a free axis."""

    @property
    def plain(self) -> Schema:
        """The record alone, without what a release is given beside it (given.py)."""
        return self

    def own(self, x: Any) -> Any:
        """The record's own part of encoded inputs, as an array or a tensor."""
        return x

    def beside(self, x: Array, frame: pd.DataFrame | None, where: str) -> Array:
        """Encoded plain records with what else the release takes, from the columns of the file they
        are in."""
        return x

    @abstractmethod
    def encode(self, records: Any) -> Array:
        """Raw records to network inputs."""

    def inputs(self, data: Dataset) -> Inputs:
        """The encoded records of a dataset view, after checking that they are of this schema's
        kind."""
        self.check(data)
        return Inputs(self.encode(data.records[data.rows]))

    def check(self, data: Dataset) -> None:
        if data.modality != self.modality:
            raise PrivetError(
                f"The release takes a {self.modality}, and {data.name} holds {data.modality}"
                " records."
            )

    def to_json(self) -> dict[str, Any]:
        return {
            "modality": self.modality,
            "dtype": self.dtype,
            "shape": list(self.shape),
            **asdict(self),  # type: ignore[call-overload]
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Schema:
        """The inverse of `to_json`."""
        rest = {k: v for k, v in value.items() if k not in ("modality", "dtype", "shape")}
        return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in rest.items()})

    def random(self, n: int, seed: int = 0) -> Array:
        """Encoded records drawn at random: right in form, without meaning. For export and for
        tests."""
        shape = [n] + [11 if size is None else size for size in self.shape]
        rng = np.random.default_rng(seed)
        if self.dtype == "float32":
            return rng.standard_normal(shape).astype(np.float32)
        high = 256 if self.dtype == "uint8" else self.vocabulary  # type: ignore[attr-defined]
        low = 0 if self.dtype == "uint8" else 2
        return rng.integers(low, high, shape).astype(self.dtype)


@dataclass(frozen=True)
class ImageSchema(Schema):
    """Pictures as bytes of a known size."""

    channels: int
    height: int
    width: int
    modality: ClassVar[Modality] = "image"
    dtype: ClassVar[str] = "uint8"

    @property
    def shape(self) -> tuple[int | None, ...]:
        return (self.channels, self.height, self.width)

    def encode(self, records: Any) -> Array:
        return np.asarray(records, dtype=np.uint8)

    def check(self, data: Dataset) -> None:
        super().check(data)
        if data.records.shape[1:] != self.shape:
            has = "x".join(str(size) for size in data.records.shape[1:])
            raise PrivetError(
                f"The release takes {'x'.join(str(s) for s in self.shape)} pictures (channels,"
                f" height, width), and {data.name} has {has}: read the data with a --schema file"
                f" that sets  size = [{self.height}, {self.width}]."
            )

    def inputs(self, data: Dataset) -> Inputs:
        self.check(data)
        return Inputs(data.records, data.rows)


@dataclass(frozen=True)
class SignalSchema(Schema):
    """Windows of numbers over channels and time, standardised by channel."""

    channels: int
    time: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    modality: ClassVar[Modality] = "signal"
    dtype: ClassVar[str] = "float32"

    @property
    def shape(self) -> tuple[int | None, ...]:
        return (self.channels, self.time)

    def encode(self, records: Any) -> Array:
        windows = np.asarray(records, dtype=np.float32)
        if windows.shape[1:] != self.shape:
            raise PrivetError(
                f"The release takes windows of {self.shape} (channels, time), and these are"
                f" {windows.shape[1:]}."
            )
        mean, std = (np.asarray(v, dtype=np.float32)[:, None] for v in (self.mean, self.std))
        return np.asarray((windows - mean) / std, dtype=np.float32)


@dataclass(frozen=True)
class Column:
    """One column of a table: a number with its mean and spread on *fit*, or a category with the
    values seen there."""

    name: str
    mean: float = 0.0
    std: float = 1.0
    values: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return len(self.values) or 1

    def encode(self, column: pd.Series) -> Array:
        """A missing number becomes the mean; a missing or unseen category becomes all zeros."""
        if self.values:
            codes = _places(column, self.values)
            zeros_for_unseen: Array = np.eye(
                len(self.values) + 1, len(self.values), dtype=np.float32
            )
            return zeros_for_unseen[codes]
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        return np.nan_to_num((numbers - self.mean) / self.std, posinf=0.0, neginf=0.0).astype(
            np.float32
        )[:, None]


@dataclass(frozen=True)
class TableSchema(Schema):
    """Rows: numbers standardised, categories as zeros and ones.

    Parameters:
        columns: The columns that are input, in order.
        space: Where the columns are the numbers of a vector, the name of its space, empty where it
            has none; None for other rows.
    """

    columns: tuple[Column, ...]
    space: str | None = None
    modality: ClassVar[Modality] = "table"
    dtype: ClassVar[str] = "float32"

    @property
    def shape(self) -> tuple[int | None, ...]:
        return (sum(column.size for column in self.columns),)

    def encode(self, records: Any) -> Array:
        absent = [column.name for column in self.columns if column.name not in records.columns]
        if absent:
            has = ", ".join(map(str, records.columns))
            raise PrivetError(
                f"The release needs the column '{absent[0]}', and the data has: {has}."
            )
        return np.concatenate(
            [column.encode(records[column.name]) for column in self.columns], axis=1
        )

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Schema:
        columns = [Column(**{**c, "values": tuple(c["values"])}) for c in value["columns"]]
        return cls(tuple(columns), value.get("space"))

    def to_json(self) -> dict[str, Any]:
        whole = super().to_json()
        return whole if self.space is not None else {k: whole[k] for k in whole if k != "space"}

    def check(self, data: Dataset) -> None:
        super().check(data)
        check_space(self.space, data.space, data.name)

    def inputs(self, data: Dataset) -> Inputs:
        self.check(data)
        if isinstance(data.records, StoredTable):
            # Once for the whole table; views read their rows from it, as of pictures.
            width, key = sum(column.size for column in self.columns), repr(self.columns)
            return Inputs(data.records.packed(self.encode, width, key), data.rows)
        return Inputs(self.encode(data.records.iloc[data.rows]))


PAD, UNKNOWN = 0, 1


@dataclass(frozen=True)
class TextSchema(Schema):
    """Texts as ids of the words that enough people of *fit* use.

    Parameters:
        words: Known words; the code of words[i] is i + 2, after 0 for padding and 1 for an unknown
            word.
    """

    words: tuple[str, ...]
    longest: int = 64
    modality: ClassVar[Modality] = "text"
    dtype: ClassVar[str] = "int64"

    @property
    def shape(self) -> tuple[int | None, ...]:
        return (None,)

    @property
    def vocabulary(self) -> int:
        return len(self.words) + 2

    def encode(self, records: Any) -> Array:
        code = {word: i + 2 for i, word in enumerate(self.words)}
        lines = [
            [code.get(word, UNKNOWN) for word in split_words(text)[: self.longest]] or [UNKNOWN]
            for text in records
        ]
        return padded(lines)

    def decode(self, ids: Array) -> list[str]:
        """Words again, for people to read."""
        return [
            " ".join("?" if i == UNKNOWN else self.words[i - 2] for i in line if i != PAD)
            for line in ids
        ]


SCHEMAS: Registry[type[Schema]] = Registry(
    "kind of record",
    {
        "image": ImageSchema,
        "table": TableSchema,
        "text": TextSchema,
        "signal": SignalSchema,
        "given": "privet.data.known_attributes:Given",
    },
    "privet.schemas",
)


def schema_from_json(value: dict[str, Any]) -> Schema:
    """The inverse of `Schema.to_json`."""
    return SCHEMAS["given" if "given" in value else value["modality"]].from_json(value)


_WORD = re.compile(r"[\w']+|[^\w\s]")


def padded(lines: Sequence[Sequence[int]]) -> Array:
    """Sequences as rows of one array, filled up with PAD."""
    lengths = np.fromiter((len(line) for line in lines), dtype=np.int64, count=len(lines))
    ids = np.full((len(lines), int(lengths.max(initial=1))), PAD, dtype=np.int64)
    ids[np.arange(ids.shape[1]) < lengths[:, None]] = np.fromiter(
        (code for line in lines for code in line), dtype=np.int64
    )
    return ids


def split_words(text: str) -> list[str]:
    """Lower-case words and single marks; works for any script that separates words.

    >>> split_words("It's 5 o'clock :)")
    ["it's", '5', "o'clock", ':', ')']
    """
    return _WORD.findall(str(text).lower())


# People who must have a word, or a value of a column, before it is written into the card of a
# release, which anybody may read.
SHARED = 2


def learn_schema(
    data: Dataset, without: Sequence[str] = (), words: int = 20_000, people: int = 1
) -> Schema:
    """The schema of `data`, with all statistics and vocabularies taken from its *fit* part.

    `without` names table columns that must not be part of the input: the private attributes, the
    tasks, and whatever the user leaves out. Words and values that fewer than `people` have are left
    out; so are columns of which nothing is left.
    """
    if data.modality == "image":
        return ImageSchema(*data.records.shape[1:])
    fit = data.part("fit")
    if data.modality == "signal":
        windows = np.asarray(data.records[fit.rows], dtype=np.float64)
        mean, std = windows.mean(axis=(0, 2)), windows.std(axis=(0, 2))
        _, channels, time = windows.shape
        return SignalSchema(channels, time, tuple(mean), tuple(np.where(std > 0, std, 1.0)))
    if data.modality == "text":
        return _text_schema(fit, words, people)
    return _table_schema(data, fit, without, people)


def _text_schema(fit: Dataset, words: int, people: int) -> TextSchema:
    counts: Counter[str] = Counter()
    owners: dict[str, set[int]] = defaultdict(set)
    for text, who in zip(fit.records[fit.rows], fit.people.tolist(), strict=True):
        tokens = split_words(text)
        counts.update(tokens)
        for word in tokens if people > 1 else ():
            if len(owners[word]) < people:
                owners[word].add(who)
    common = [word for word, n in counts.most_common(words) if n > 1]
    return TextSchema(tuple(word for word in common if people == 1 or len(owners[word]) == people))


def _table_schema(data: Dataset, fit: Dataset, without: Sequence[str], people: int) -> TableSchema:
    for name in without:
        if name not in data.records.columns and name not in data.attributes:
            raise unknown("column", name, data.records.columns)
    frame = data.records.iloc[fit.rows]
    columns = [
        _column(name, frame[name], fit.people, people)
        for name in frame.columns
        if name not in without
    ]
    if not any(columns):
        taken = "private attributes, tasks and values that one person alone has"
        if people == 1:
            taken = "private attributes and tasks"
        raise PrivetError(f"No column of {data.name} is left as input once {taken} are taken out.")
    return TableSchema(tuple(column for column in columns if column), data.space)


def _column(name: str, values: pd.Series, person: Array, people: int) -> Column | None:
    if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        seen = numbers[np.isfinite(numbers)]
        std = float(seen.std()) if len(seen) else 1.0
        return Column(name, float(seen.mean()) if len(seen) else 0.0, std if std > 0 else 1.0)
    each = values.map(cell_text)
    counts = Counter(word for word in each if word)
    owners = pd.Series(person).groupby(each.to_numpy()).nunique() if people > 1 else counts
    shared = tuple(sorted(word for word, _ in counts.most_common(100) if owners[word] >= people))
    return Column(name, values=shared) if shared or not counts else None


def _places(column: pd.Series, values: Sequence[str]) -> Array:
    """Where in `values` each value of a column is, -1 where it is not there; each different value
    is looked up once."""
    known = pd.Index(list(values), dtype=object)
    # Of other kinds, values that print differently may count as equal: 1 and True, 0.0 and -0.0.
    if (
        isinstance(column.dtype, pd.StringDtype)
        or pd.api.types.is_integer_dtype(column.dtype)
        or pd.api.types.is_bool_dtype(column.dtype)
    ):
        which, different = pd.factorize(column)
        places = known.get_indexer(
            pd.Index([cell_text(value) for value in different], dtype=object)
        )
        return np.append(places, -1)[which]
    return np.asarray(known.get_indexer(pd.Index(column.map(cell_text), dtype=object)))
