"""What the columns of a file are: guesses, each of which a `--schema` file can overrule."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import pandas as pd
import pyarrow as pa

from privet.core.errors import PrivetError
from privet.data.attribute_codes import MANY
from privet.data.column_meaning import is_text
from privet.data.dataset import Modality
from privet.data.images import is_picture
from privet.data.schema_file import Layout
from privet.data.vector_columns import depth, is_bytes, is_list

# One value per cell; a picture; numbers over channels and time; a row of numbers; nothing that can
# be used.
Role = Literal["plain", "picture", "window", "vector", "other"]

# Letters in the middle cell of a column of texts; names of things are shorter.
_LONG = 20
_WINDOW_NAMES = ("window", "windows", "signal")
_FITTING: dict[Modality, tuple[Role, ...]] = {
    "image": ("picture",),
    "signal": ("window", "vector"),
    "table": ("vector", "window"),
    "text": ("plain",),
}
_NATURAL: dict[Role, Modality] = {
    "picture": "image",
    "window": "signal",
    "vector": "table",
    "plain": "text",
    "other": "table",
}


class Choice(NamedTuple):
    """What the columns of a file are taken for.

    Parameters:
        x: The column that is the record itself; None where the record is the row.
    """

    modality: Modality
    x: str | None
    masks: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def roles_of(file: Any, names: list[str]) -> dict[str, Role]:
    """The role of each column of an open parquet file."""
    kinds = {name: file.schema_arrow.field(name).type for name in names}
    in_bytes = [name for name, kind in kinds.items() if is_bytes(kind)]
    first = next(file.iter_batches(batch_size=16, columns=in_bytes)) if in_bytes else None

    def role(name: str, kind: Any) -> Role:
        named_window = name in _WINDOW_NAMES
        if first is not None and name in in_bytes:
            cells = [cell for cell in first.column(name).to_pylist() if cell is not None]
            if name == "image" or any(is_picture(cell) for cell in cells):
                return "picture"
            return "window" if named_window else "vector"
        if levels := depth(kind):
            return "window" if levels > 1 or named_window else "vector"
        return "other" if is_list(kind) or pa.types.is_nested(kind) else "plain"

    return {name: role(name, kind) for name, kind in kinds.items()}


def choose(roles: dict[str, Role], plain: pd.DataFrame, layout: Layout, where: str) -> Choice:
    """The record itself: a picture before a window before a vector before a text before the row."""
    if layout.x is not None:
        return _named(layout.x, roles, layout, where)
    order: tuple[Modality, ...] = ("image", "signal", "table", "text")
    for modality in order if layout.modality is None else (layout.modality,):
        if fitting := _fitting(modality, roles, plain, layout):
            return _with_rest(modality, fitting[0], roles)
    if layout.modality not in (None, "table"):
        raise PrivetError(
            f"{where} has no column that can be read as {layout.modality}: name one as x in the"
            " schema file."
        )
    if plain.empty:
        raise PrivetError(
            f"{where} has no column that can be read as pictures, windows, texts or features."
        )
    return _with_rest("table", None, roles)


def _named(x: str, roles: dict[str, Role], layout: Layout, where: str) -> Choice:
    """The column that the schema file names."""
    if x not in roles:
        raise PrivetError(f"The schema calls '{x}' both x and dropped: take it out of one.")
    modality = layout.modality or _NATURAL[roles[x]]
    if roles[x] not in _FITTING[modality]:
        raise PrivetError(
            f"The column '{x}' of {where} cannot be read as {modality}: choose another x or"
            " modality."
        )
    return _with_rest(modality, x, roles)


def _fitting(
    modality: Modality, roles: dict[str, Role], plain: pd.DataFrame, layout: Layout
) -> list[str]:
    """Columns that can be read as this modality, the likeliest first."""
    if modality == "text":
        taken = (layout.person, layout.split, *layout.drop)
        return _texts(plain, surely=layout.modality == "text", taken=taken)
    names = [name for name, role in roles.items() if role in _FITTING[modality]]
    if modality == "image":
        return sorted((n for n in names if n != "mask"), key=lambda name: name != "image")
    if layout.modality is None:
        return [name for name in names if (roles[name] == "window") == (modality == "signal")]
    return names


def _with_rest(modality: Modality, x: str | None, roles: dict[str, Role]) -> Choice:
    masks = (
        ("mask",) if modality == "image" and roles.get("mask") == "picture" and x != "mask" else ()
    )
    unused = tuple(
        name for name, role in roles.items() if role != "plain" and name != x and name not in masks
    )
    note = f"Left out, because a record has one input ({x or 'its row'}): {', '.join(unused)}."
    return Choice(modality, x, masks, unused, (note,) if unused else ())


def holds_words(column: pd.Series) -> bool:
    """Whether every value that is there is a string."""
    return pd.api.types.infer_dtype(column, skipna=True) == "string"


def _texts(plain: pd.DataFrame, surely: bool, taken: tuple[object, ...]) -> list[str]:
    """Columns of texts, the one called `text` first, then the longest."""
    found: dict[str, float] = {}
    for name in plain.columns:
        column = plain[name].dropna()
        if name in taken or not holds_words(column):
            continue
        length = float(column.str.len().median())
        distinct = length > _LONG and column.nunique() > min(MANY, len(plain) / 2)
        if surely or (distinct and is_text(column)):
            found[str(name)] = length
    return sorted(found, key=lambda name: (name != "text", -found[name]))
