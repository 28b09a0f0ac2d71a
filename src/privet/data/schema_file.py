"""Layout: what the user says about a source in a `--schema FILE.toml`, against what would be
guessed.

x = "image"                      # the column that is released: pictures, texts, windows or vectors
size = [64, 64]                  # height and width that pictures are brought to
person = "author"                # or false: every record is a person of its own
keep = {dialect = ["aa", "white"]}
balance = "dialect"
[attributes.age]
bins = [30, 45]
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from privet.core.errors import PrivetError, unknown
from privet.data.dataset import Kind, Modality

# A column's name, False for "none, whatever its name says", None for "guess".
Name = str | Literal[False] | None


@dataclass(frozen=True)
class Wish:
    """What the user says about one attribute.

    Parameters:
        bins: Inner edges that turn a number into classes.
    """

    kind: Kind | None = None
    bins: tuple[float, ...] = ()


@dataclass(frozen=True)
class Layout:
    """What the user says about a source in a --schema file; None where nothing is said.

    Parameters:
        x: The column that is the record itself.
        size: Height and width that pictures are brought to.
        on_disk: Whether a parquet table is read column by column into mapped files, for tables
            larger than memory; None: where it is large.
        skip_broken: Whether pictures, and parts of a table, that cannot be read are left out.
        shape: Channels and time of one window, where a file holds only a row of numbers.
        dtype: Type of numbers that a file holds as bytes; float16 where nothing is said.
        features: Table columns that are input.
        drop: Columns that are not looked at.
        labels: Attributes that are never input.
        keep: Per column, the values whose rows stay.
        balance: The attribute whose classes are cut down to one size.
        seed: Of the balancing, of sampling people and of dealing them out over the parts.
        space: What the space of vectors is called, where the file does not say it.
        people: How many people of a large table in parquet are taken, by a hash of who they are.
    """

    modality: Modality | None = None
    x: str | None = None
    size: tuple[int, int] | None = None
    shape: tuple[int, int] | None = None
    dtype: str | None = None
    person: Name = None
    split: Name = None
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    keep: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    balance: str | None = None
    seed: int = 0
    attributes: Mapping[str, Wish] = field(default_factory=dict)
    skip_broken: bool = False
    on_disk: bool | None = None
    space: str | None = None
    people: int | None = None

    def named_columns(self) -> list[str]:
        """Every column the file speaks of, so that a misspelt one is found before anything is
        read."""
        single = [
            name
            for name in (self.x, self.person, self.split, self.balance)
            if isinstance(name, str)
        ]
        return [
            *single,
            *(self.features or ()),
            *self.drop,
            *self.labels,
            *self.keep,
            *self.attributes,
        ]


def refuse_schema_file(layout: Layout, name: str) -> None:
    """Say that built-in data takes no schema file, where one was given."""
    if layout != Layout():
        raise PrivetError(f"The built-in data {name} takes no --schema: its columns are known.")


def read_layout(path: str | Path | Layout | None) -> Layout:
    """The layout in a TOML file, or a layout as it is; without either, the one that leaves
    everything to be guessed."""
    if path is None or isinstance(path, Layout):
        return path or Layout()
    try:
        with Path(path).open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise PrivetError(f"Cannot read the schema file {path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PrivetError(
            f"The schema file {path} is not TOML: {str(error).rstrip('.')}."
        ) from None
    known = [f.name for f in fields(Layout)]
    for key in content:
        if key not in known:
            raise unknown("schema key", key, known)
    return Layout(**{key: _value(key, value) for key, value in content.items()})


def _value(key: str, value: Any) -> Any:
    holds, form, change = _FORMS[key]
    if not holds(value):
        raise PrivetError(f"The schema key '{key}' must be {form}.")
    return change(value)


def _wish(name: str, content: dict[str, Any]) -> Wish:
    for key in content:
        if key not in ("kind", "bins"):
            raise unknown(f"key for the attribute {name}:", key, ("kind", "bins"))
    if (kind := content.get("kind")) not in (None, *get_args(Kind)):
        raise unknown("kind of attribute", str(kind), get_args(Kind))
    bins = content.get("bins", [])
    if not (isinstance(bins, list) and all(_is_number(edge) for edge in bins)):
        raise PrivetError(
            f"The bins of the attribute '{name}' must be a list of numbers, such as [30, 45]."
        )
    return Wish(kind, tuple(float(edge) for edge in bins))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_name(value: Any) -> bool:
    return isinstance(value, str)


def _is_column(value: Any) -> bool:
    return isinstance(value, str) or value is False


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(type(v) is int and 0 < v <= 65_536 for v in value)
    )


def _is_keep(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(v, list) and v for v in value.values())


def _is_tables(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(v, dict) for v in value.values())


_DTYPES = ("float16", "float32", "float64", "int8", "uint8", "int16", "int32")

# Per key: whether a value holds, what to say if not, and what it becomes.
_FORMS: dict[str, tuple[Callable[[Any], bool], str, Callable[[Any], Any]]] = {
    "modality": (lambda v: v in get_args(Modality), "one of " + ", ".join(get_args(Modality)), str),
    "x": (_is_name, "the name of a column", str),
    "size": (_is_pair, "two whole numbers [height, width]", tuple),
    "on_disk": (lambda v: isinstance(v, bool), "true or false", bool),
    "skip_broken": (lambda v: isinstance(v, bool), "true or false", bool),
    "shape": (_is_pair, "two whole numbers [channels, time]", tuple),
    "dtype": (lambda v: v in _DTYPES, "one of " + ", ".join(_DTYPES), str),
    "person": (_is_column, "the name of a column or false", lambda v: v),
    "split": (_is_column, "the name of a column or false", lambda v: v),
    "features": (_is_names, "a list of column names", tuple),
    "drop": (_is_names, "a list of column names", tuple),
    "labels": (_is_names, "a list of column names", tuple),
    "keep": (
        _is_keep,
        'a table of lists, such as {dialect = ["aa", "white"]}',
        lambda v: {k: tuple(x) for k, x in v.items()},
    ),
    "balance": (_is_name, "the name of an attribute", str),
    "space": (_is_name, "the name of a space of vectors", str),
    "seed": (lambda v: type(v) is int and v >= 0, "a whole number from 0", int),
    "people": (lambda v: type(v) is int and v > 0, "a whole number above 0", int),
    "attributes": (
        _is_tables,
        "tables such as [attributes.age]",
        lambda v: {k: _wish(k, x) for k, x in v.items()},
    ),
}
