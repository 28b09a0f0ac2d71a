"""Columns of a table's input that are a label under another name.

A model that finds its own answer in its input is always right, and says nothing about the release.
Each column is asked alone, which costs one count per column and label: whether it is the label or a
one-to-one recoding of it, or tells it with a balanced accuracy above 99 % (the best value for each
of the column's values, learned on every second person and counted on the others).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from privet.data.dataset import Array, Dataset
from privet.data.stored_table import StoredTable, some_rows

# Balanced accuracy from which a column tells a label by itself.
TELLS = 0.99
# Bins of a column of numbers, of which each has as many records as the others.
_BINS = 256
# Columns that are asked; a table of more is one of embeddings or spectra.
_MOST = 2_000
# Rows of a table on disk that are asked.
_MOST_ROWS = 200_000


class LabelColumn(NamedTuple):
    """A column that is a label in another form.

    Parameters:
        label: The attribute.
        column: The column of the input.
        how: The label itself, another spelling of it, or a column that tells it.
        score: Balanced accuracy of the best guess from the column alone.
    """

    label: str
    column: str
    how: Literal["itself", "recoded", "tells"]
    score: float


def label_columns(
    data: Dataset, labels: Sequence[str], columns: Sequence[str]
) -> list[LabelColumn]:
    """The columns of a table that are one of the labels, or tell it."""
    if data.modality != "table":
        return []
    if isinstance(data.records, StoredTable):
        data = data.take(some_rows(len(data), _MOST_ROWS))
    asked = list(columns)[:_MOST]
    frame = data.records.iloc[data.rows][[c for c in asked if c in data.records.columns]]
    coded = {name: _codes(frame[name]) for name in frame.columns}
    _, person = np.unique(data.people, return_inverse=True)
    every_second = person % 2 == 0
    matches = []
    for label in labels:
        attribute = data.attribute(label)
        if label in columns:
            matches.append(LabelColumn(label, label, "itself", 1.0))
        if attribute.kind in ("mask", "identity"):
            continue
        truth = data.labels[label]
        codes = truth if attribute.is_class else _codes(pd.Series(truth))
        for name, column in coded.items():
            if name != label and (match := _compared(codes, column, every_second)):
                matches.append(LabelColumn(label, str(name), *match))
    return matches


def _codes(column: pd.Series) -> Array:
    """Codes of a column's values, -1 where there is none; numbers of many values in bins."""
    codes, values = pd.factorize(column)
    if len(values) <= _BINS or not pd.api.types.is_numeric_dtype(column.dtype):
        return np.asarray(codes)
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    known = np.isfinite(numbers)
    edges = np.unique(np.quantile(numbers[known], np.arange(1, _BINS) / _BINS))
    return np.where(known, np.searchsorted(edges, numbers, side="right"), -1)


def _compared(
    label: Array, column: Array, every_second: Array
) -> tuple[Literal["recoded", "tells"], float] | None:
    """How a column tells a label, where it does."""
    known = (label >= 0) & (column >= 0)
    # A column that is mostly missing tells little of most people, whatever it says of the rest.
    if known.sum() < 0.5 * (label >= 0).sum() or not known.any():
        return None
    learned, counted = (
        _counts(label[half], column[half], int(label.max()) + 1, int(column.max()) + 1)
        for half in (known & every_second, known & ~every_second)
    )
    together = learned + counted > 0
    if together.any(0).sum() < 2:
        return None
    if (together.sum(0) <= 1).all() and (together.sum(1) <= 1).all():
        return "recoded", 1.0
    score = _balanced_score(learned, counted)
    return ("tells", score) if score > TELLS else None


def _counts(label: Array, column: Array, labels: int, values: int) -> Array:
    """(values, labels): records of each value of the column and of the label."""
    cells = np.bincount(column * labels + label, minlength=values * labels)
    return cells.reshape(values, labels)


def _balanced_score(learned: Array, counted: Array) -> float:
    """Balanced accuracy of the best guess of the label from the column's value alone."""
    rates = learned / np.maximum(learned.sum(0), 1)
    guess = np.where(learned.sum(1) > 0, rates.argmax(1), -1)
    right = np.where(np.arange(learned.shape[1]) == guess[:, None], counted, 0).sum(0)
    people = counted.sum(0)
    return float(np.mean(right[people > 0] / people[people > 0])) if people.any() else 0.0
