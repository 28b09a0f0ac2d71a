"""A cell of a table as text: one spelling of a value, however a file or a program holds it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

# How a file may write the values that are read as no and yes.
YES_OR_NO = {"0": "no", "-1": "no", "False": "no", "1": "yes", "True": "yes"}


def cell_text(value: object) -> str:
    """The text of a cell: empty where it is missing, whole numbers without a decimal point.

    >>> [cell_text(value) for value in (1, 1.0, np.float32(1), True, np.True_, 0.5, "a", None)]
    ['1', '1', '1', 'True', 'True', '0.5', 'a', '']
    """
    if value is None or value is pd.NA or value is pd.NaT:
        return ""
    if isinstance(value, float | np.floating):
        if np.isnan(value):
            return ""
        return str(int(value)) if float(value).is_integer() else str(value)
    return str(value)


def class_text(value: object, values: Sequence[str]) -> str:
    """The text of a cell as one of the classes `values`: 1 and True are yes where yes is a class.

    >>> class_text(True, ("no", "yes")), class_text(1.0, ("0", "1")), class_text("x", ("a",))
    ('yes', '1', 'x')
    """
    text = cell_text(value)
    meant = YES_OR_NO.get(text, text)
    return meant if text not in values and meant in values else text
