"""The last step of every source: columns beside the records become attributes, people and parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from privet.core.errors import PrivetError, unknown
from privet.data.attribute_codes import code
from privet.data.cache import digest
from privet.data.cell_text import cell_text
from privet.data.column_meaning import left_out
from privet.data.dataset import Array, Attribute, Dataset, Modality
from privet.data.row_selection import choose_rows
from privet.data.schema_file import Layout, Name, Wish
from privet.data.splitting import assign


def assemble(
    name: str,
    modality: Modality,
    records: Any,
    columns: pd.DataFrame,
    layout: Layout,
    content: str,
    masks: Mapping[str, Array] | None = None,
    notes: tuple[str, ...] = (),
) -> Dataset:
    """A Dataset of `records` with what `columns`, aligned with them, say about each.

    With `records` None the columns are the records: those that are not a label, a person or a split
    are a table's input. `content` is the digest of the source's bytes; labels and parts are added
    to it to make the fingerprint.
    """
    rows, chosen = choose_rows(columns, layout)
    columns = columns.drop(columns=[column for column in layout.drop if column in columns.columns])
    person_column = named_column(layout.person, ("person", "author"), columns)
    split_column = named_column(layout.split, ("split",), columns)
    # Rows stay in order, so that as many as before are the same.
    left = columns if len(rows) == len(columns) else columns.iloc[rows]

    coded = {
        str(c): _code(str(c), left[c], layout, c == person_column)
        for c in left.columns
        if c != split_column
    }
    attributes = {column: attribute for column, (attribute, _) in coded.items()}
    labels = {column: codes for column, (_, codes) in coded.items()}
    person, lost = people_of(labels, person_column)
    split = None if split_column is None else left[split_column].map(cell_text).to_numpy(dtype=str)
    classes = {c: labels[c] for c, attribute in attributes.items() if attribute.is_class}
    part_of, moved = assign(len(rows), person, split, layout.seed, classes)
    left_out: tuple[str, ...] = ()
    if records is None:
        inputs = columns.drop(columns=[c for c in (person_column, split_column) if c is not None])
        records, left_out = _features(inputs, layout)
    for column, mask in (masks or {}).items():
        attributes[column], labels[column] = Attribute(column, "mask"), mask[rows]
    return Dataset(
        name=name,
        modality=modality,
        records=records,
        attributes=attributes,
        labels=labels,
        part_of=part_of,
        rows=rows,
        fingerprint=_fingerprint(content, modality, records, attributes, labels, rows, part_of),
        person=person,
        notes=(*notes, *chosen, *lost, *moved, *left_out),
        content=content,
    )


def _fingerprint(
    content: str,
    modality: Modality,
    records: Any,
    attributes: Mapping[str, Attribute],
    labels: Mapping[str, Array],
    rows: Array,
    part_of: Array,
) -> str:
    seen = [
        digest(a.name, a.kind, *a.values, np.ascontiguousarray(labels[a.name]).tobytes())
        for a in attributes.values()
    ]
    inputs = list(records.columns) if isinstance(records, pd.DataFrame) else [modality]
    return digest(content, *inputs, *seen, rows.astype("<i8").tobytes(), part_of.tobytes())


def check_columns(
    layout: Layout, columns: Iterable[str], name: str, beside: Iterable[str] = ()
) -> None:
    """Every column that the schema file speaks of must be there, and be of single values where that
    is what it is used as.

    `beside` are the columns that hold more than a value. Sources ask this before any long work.
    """
    plain = list(columns)
    known = [*plain, *beside]
    for column in layout.named_columns():
        if column not in known:
            raise unknown(f"column in {name}:", column, known)
    single = [c for c in (layout.person, layout.split, layout.balance) if isinstance(c, str)]
    for column in (*single, *layout.keep, *(layout.features or ())):
        if column not in plain:
            raise PrivetError(
                f"The column '{column}' of {name} holds more than a value per record: take it out"
                " of the schema file."
            )
    for column in (*single, *(layout.features or ())):
        if column in layout.drop and column != layout.balance:
            raise PrivetError(
                f"The schema file both drops and uses the column '{column}': take it out of one."
            )


def named_column(wish: Name, usual: tuple[str, ...], columns: Any) -> str | None:
    """The column that the layout names for a role, or else one that usually has it."""
    if wish is False:
        return None
    return wish or next((column for column in usual if column in columns.columns), None)


def _code(name: str, column: pd.Series, layout: Layout, is_person: bool) -> tuple[Attribute, Array]:
    wish = layout.attributes.get(name, Wish("identity") if is_person else Wish())
    if wish.kind == "mask":
        raise PrivetError(
            f"The attribute '{name}' cannot be a mask: masks are pictures in a column of bytes."
        )
    return code(name, column, wish.kind, list(wish.bins))


def people_of(
    labels: Mapping[str, Array], column: str | None
) -> tuple[Array | None, tuple[str, ...]]:
    """Person codes without gaps; a record whose person is not known stands for a person of its
    own."""
    if column is None:
        return None, ()
    codes = labels[column]
    if codes.dtype.kind != "i":
        raise PrivetError(
            f"The column '{column}' names people and cannot be a number too: drop its entry from"
            " the schema file."
        )
    strangers = codes < 0
    person = np.where(strangers, codes.max(initial=0) + 1 + np.arange(len(codes)), codes)
    note = f"{int(strangers.sum()):,} records without a value in '{column}' count as a person each."
    return np.unique(person, return_inverse=True)[1].astype(np.int64), (
        (note,) if strangers.any() else ()
    )


def _features(columns: pd.DataFrame, layout: Layout) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The columns of a table that are input, and notes on those that are not."""
    if layout.features is not None:
        return columns[list(layout.features)], ()
    usable = [c for c in columns.columns if c not in layout.labels]
    names, notes = left_out(columns, usable)
    if len(names) == len(usable):
        raise PrivetError("No column can be the input of a release: " + " ".join(notes))
    return columns[[c for c in usable if c not in names]], notes
