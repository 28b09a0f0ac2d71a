"""Which rows of a source stay: `keep` and `balance` of a layout."""

from __future__ import annotations

import numpy as np
import pandas as pd

from privet.core.errors import PrivetError, unknown
from privet.data.attribute_codes import code
from privet.data.cell_text import cell_text
from privet.data.dataset import Array
from privet.data.schema_file import Layout, Wish


def choose_rows(columns: pd.DataFrame, layout: Layout) -> tuple[Array, tuple[str, ...]]:
    """The rows that stay, in file order, and a note where some went."""
    rows, notes = np.arange(len(columns)), []
    for name, wanted in layout.keep.items():
        rows = rows[_matches(name, columns[name].iloc[rows], wanted)]
        if not len(rows):
            raise PrivetError(
                f"The schema's keep leaves no record once '{name}' is asked for too: keep more"
                " values."
            )
    if len(rows) < len(columns):
        notes.append(f"keep left {len(rows):,} of {len(columns):,} records.")
    if layout.balance is not None:
        before, rows = len(rows), _balance(columns[layout.balance], rows, layout)
        notes.append(f"balance on '{layout.balance}' left {len(rows):,} of {before:,} records.")
    return rows, tuple(notes)


def _matches(name: str, column: pd.Series, wanted: tuple[object, ...]) -> Array:
    """Compared as text, so that 1, 1.0 and "1" are one value whichever way the file and the schema
    write it."""
    texts = column.map(_text).to_numpy(dtype=object)
    present = set(texts)
    for value in wanted:
        if _text(value) not in present:
            raise unknown(f"value in the column '{name}':", _text(value), present)
    return np.isin(texts.astype(str), [_text(value) for value in wanted])


def _text(value: object) -> str:
    text = cell_text(value)
    return {"True": "1", "False": "0"}.get(text, text)


def _balance(column: pd.Series, rows: Array, layout: Layout) -> Array:
    wish = layout.attributes.get(str(column.name), Wish())
    attribute, codes = code(str(column.name), column.iloc[rows], wish.kind, list(wish.bins))
    if not attribute.is_class:
        raise PrivetError(
            f"balance needs classes, and '{attribute.name}' is a number: give it bins in the schema"
            " file."
        )
    rng = np.random.default_rng(layout.seed)
    groups = [rows[codes == value] for value in np.unique(codes[codes >= 0])]
    if not groups:
        raise PrivetError(f"balance has nothing to count: the column '{attribute.name}' is empty.")
    smallest = min(len(group) for group in groups)
    return np.sort(np.concatenate([rng.permutation(group)[:smallest] for group in groups]))
