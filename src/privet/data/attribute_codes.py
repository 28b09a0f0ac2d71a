"""From a column of raw values to an Attribute and its codes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd

from privet.core.errors import PrivetError
from privet.data.cell_text import cell_text
from privet.data.dataset import Array, Attribute, Kind

# A column of whole numbers with more distinct values than this is a number, with fewer a class.
FEW = 20
# A column of strings with more distinct values than this names individuals, not groups.
MANY = 1000


def guess_kind(column: pd.Series) -> Kind:
    """binary, categorical, number or identity, from what the values look like."""
    values = column.dropna()
    distinct = values.nunique()
    if pd.api.types.is_bool_dtype(values.dtype) or distinct <= 2:
        return "binary"
    if pd.api.types.is_float_dtype(values.dtype) and not np.array_equal(values, np.round(values)):
        return "number"
    if pd.api.types.is_numeric_dtype(values.dtype):
        return "number" if distinct > FEW else "categorical"
    return "identity" if distinct > MANY else "categorical"


def code(
    name: str, column: pd.Series, kind: Kind | None = None, bins: list[float] | None = None
) -> tuple[Attribute, Array]:
    """The attribute and its label array. `bins` are the inner edges that turn a number into
    classes."""
    if bins:
        return _binned(name, column, bins)
    kind = kind or guess_kind(column)
    if kind == "number":
        try:
            return Attribute(name, "number"), column.to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError):
            raise PrivetError(
                f"The column '{name}' is called a number but holds other values."
            ) from None
    present = column.dropna()
    if (
        pd.api.types.is_bool_dtype(present.dtype)
        or set(present.unique()) <= {0, 1}
        or set(present.unique()) <= {-1, 1}
    ):
        codes = np.where(
            column.isna(), -1, column.eq(1).to_numpy(dtype=bool, na_value=False)
        ).astype(np.int64)
        return Attribute(name, "binary" if kind != "identity" else kind, ("no", "yes")), codes
    values = sorted(present.unique(), key=lambda value: (isinstance(value, str), value))
    if kind == "binary" and len(values) > 2:
        raise PrivetError(
            f"The column '{name}' is called binary but has {len(values)} values; call it"
            " categorical."
        )
    codes = pd.Categorical(column, categories=values).codes.astype(np.int64)
    return Attribute(name, kind, tuple(cell_text(value) for value in values)), codes


def _binned(name: str, column: pd.Series, bins: list[float]) -> tuple[Attribute, Array]:
    edges = sorted(bins)
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    codes = np.where(np.isnan(numbers), -1, np.searchsorted(edges, numbers, side="right")).astype(
        np.int64
    )
    ends = [cell_text(edge) for edge in edges]
    middle = [f"{low} to {high}" for low, high in pairwise(ends)]
    values = (f"below {ends[0]}", *middle, f"{ends[-1]} or more")
    return Attribute(name, "binary" if len(values) == 2 else "categorical", values), codes
