"""Columns of a table that are no input: they have one value, name or number individuals, or hold
dates."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pandas as pd

from privet.data.attribute_codes import MANY

# How a note on such columns begins.
NO_INPUT = "Not used as input, because it holds"
# Cells that are looked at.
SAMPLE = 200
# Share of these that must look alike.
MOST = 0.9
# What a cell that names an individual looks like; the whole cell must match.
PATTERNS = {
    "e-mail addresses": re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+"),
    "UUIDs": re.compile(r"\{?[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\}?"),
    "web addresses": re.compile(r"https?://\S+"),
    "dates": re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ][\d:.+Z-]+)?"),
}
# Names that a column of row numbers usually has.
NUMBER_NAMES = re.compile(r"(?i)(?:.*[_\s-])?(?:id|ids|index|nr|no|row|key|number)|unnamed.*")


def is_text(column: pd.Series) -> bool:
    """Whether cells are sentences: words with spaces between them, or letters of a script that has
    no spaces.

    >>> is_text(pd.Series(["how are you", "quite well"])), is_text(pd.Series(["a@b.org", "c-d"]))
    (True, False)
    """
    cells = column.dropna().astype(str).head(SAMPLE)
    spaced = cells.str.strip().str.contains(r"\s") | cells.str.contains("[^\x01-\u024f]")
    return bool(len(cells)) and float(spaced.mean()) >= 0.5


def looks_like(column: pd.Series) -> str:
    """What most cells of a column of strings look like: a word of PATTERNS, or nothing.

    >>> looks_like(pd.Series(["ann@example.org", "bob@example.org"])), looks_like(pd.Series(["a"]))
    ('e-mail addresses', '')
    """
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return "dates"
    cells = column.dropna().head(SAMPLE)
    if not len(cells) or pd.api.types.infer_dtype(cells) != "string":
        return ""
    for name, pattern in PATTERNS.items():
        if float(cells.map(lambda cell, p=pattern: bool(p.fullmatch(cell.strip()))).mean()) >= MOST:
            return name
    return ""


def why_no_input(column: pd.Series) -> str:
    """Why a column is no input of a release; empty where it can be one."""
    present = column.dropna()
    distinct = present.nunique()
    if distinct <= 1:
        return "one value"
    if meaning := looks_like(column):
        return meaning
    if pd.api.types.is_numeric_dtype(column.dtype):
        whole = pd.api.types.is_integer_dtype(column.dtype)
        numbered = whole and distinct == len(column) and NUMBER_NAMES.fullmatch(str(column.name))
        return "row numbers" if numbered else ""
    # Up to MANY values a string may be a class, unless nearly every row has its own.
    return "names of individuals" if distinct > min(MANY, max(0.9 * len(column), 20)) else ""


def left_out(columns: pd.DataFrame, usable: Iterable[str]) -> tuple[list[str], tuple[str, ...]]:
    """Of the columns named, those that are no input, and a note for each reason."""
    reasons: dict[str, list[str]] = {}
    for name in usable:
        if reason := why_no_input(columns[name]):
            reasons.setdefault(reason, []).append(name)
    notes = tuple(f"{NO_INPUT} {reason}: {', '.join(names)}." for reason, names in reasons.items())
    return [name for names in reasons.values() for name in names], notes
