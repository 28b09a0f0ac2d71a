"""A page about a dataset before anything is learned from it: what it was read as, what is wrong
with it, missing values, how frequent values are, and of photos a sheet of some."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup
from PIL import Image

from privet.core.files import write_text
from privet.data.checks import check_data
from privet.data.dataset import PARTS, Array, Attribute, Dataset
from privet.data.show import kind_sentence
from privet.evidence.formatting import amount, percent
from privet.reporting.label_placement import Box
from privet.reporting.page import jinja
from privet.reporting.plot import Axis, Plot

# Values of an attribute that get a bar of their own; the rest share one.
MOST_VALUES = 6
# Columns of a table's input that are shown, and pictures on the sheet with their longest side.
MOST_COLUMNS, PICTURES, SIDE = 60, 12, 160


class Share(NamedTuple):
    """A value and how many of the known records have it."""

    value: str
    share: float


class Shown(NamedTuple):
    """One attribute or column.

    Parameters:
        name, kind: Its name, and what it was taken for.
        said: What is in it, in words.
        missing: Share of records without a value.
        shares: How frequent its values are; empty for numbers.
        role: private, utility or neither.
    """

    name: str
    kind: str
    said: str
    missing: float
    shares: list[Share]
    role: str = ""


def write_data_page(
    path: str | Path, data: Dataset, private: Sequence[str] = (), utility: Sequence[str] = ()
) -> None:
    """Write the page: one HTML file that needs nothing else. It holds records where they are
    pictures.

    Parameters:
        path: The file.
        data: The data.
        private: What is to be hidden: checked first.
        utility: The tasks: checked first.
    """
    write_text(Path(path), render_data(data, private, utility))


def render_data(data: Dataset, private: Sequence[str] = (), utility: Sequence[str] = ()) -> str:
    """The page about `data`."""
    attributes = [
        _attribute(data, one, _role(one.name, private, utility)) for one in data.attributes.values()
    ]
    columns = []
    if data.modality == "table":
        others = [name for name in data.records.columns if str(name) not in data.attributes]
        columns = list(_columns(data.records[others].iloc[data.rows]))
    return (
        jinja()
        .get_template("data.html")
        .render(
            name=data.name,
            kind=kind_sentence(data),
            checks=check_data(data, private, utility),
            people=None if data.person is None else len(np.unique(data.person)),
            parts=[(part, *_counts(data, code)) for code, part in enumerate(PARTS)],
            attributes=attributes,
            columns=columns[:MOST_COLUMNS],
            more_columns=max(0, len(columns) - MOST_COLUMNS),
            missing=sum(one.missing > 0 for one in (*attributes, *columns)),
            pictures=list(_pictures(data)) if data.modality == "image" else [],
            notes=data.notes,
            fingerprint=data.fingerprint,
            bar=share_bar,
            hidden=list(private),
            tasks=list(utility),
        )
    )


def share_bar(one: Shown) -> Markup:
    """The values of an attribute as parts of one bar."""
    plot = Plot(Axis(0, 1), Axis(0, 1), None, 16, css="share-bar", frame=Box(0, 0, 100, 16))
    start = 0.0
    for number, (value, share) in enumerate(one.shares):
        title = f"{value}: {percent(share)} %"
        plot.bar(f"part s{number % 8}", (start, start + share), (0, 1), title)
        start += share
    said = ", ".join(f"{value} {percent(share)} %" for value, share in one.shares)
    return plot.svg(f"{one.name}: {said}")


def _role(name: str, private: Sequence[str], utility: Sequence[str]) -> str:
    return "private" if name in private else "utility" if name in utility else ""


def _counts(data: Dataset, code: int) -> tuple[int, int]:
    inside = data.part_of == code
    return int(inside.sum()), len(np.unique(data.people[inside]))


def _attribute(data: Dataset, one: Attribute, role: str) -> Shown:
    column = data.labels[one.name]
    if one.kind == "mask":
        return Shown(one.name, "mask", f"covers {np.mean(column):.1%}", 0.0, [], role)
    if not one.is_class:
        return _number(one.name, column, role)
    missing = float(np.mean(column < 0)) if len(column) else 0.0
    counts = np.bincount(column[column >= 0], minlength=one.classes)
    if one.kind == "identity":
        return Shown(one.name, one.kind, f"{one.classes:,} people", missing, [], role)
    kind = "constant" if np.count_nonzero(counts) < 2 else one.kind
    shares = _shares(pd.Series(counts, index=list(one.values)))
    return Shown(one.name, kind, _listed(shares), missing, shares, role)


def _number(name: str, column: Array, role: str = "") -> Shown:
    known = column[np.isfinite(column)]
    missing = 1 - len(known) / max(len(column), 1)
    said = "nothing"
    if len(known):
        ends = f"{amount(float(known.min()))} to {amount(float(known.max()))}"
        said = f"{ends}, mean {amount(float(known.mean()))}"
    return Shown(name, "number", said, missing, [], role)


def _columns(frame: pd.DataFrame) -> Iterator[Shown]:
    """The input of a table, column by column."""
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            yield _number(str(name), column.to_numpy(dtype=float, na_value=np.nan))
            continue
        counts = column.astype("string").value_counts()
        missing = float(column.isna().mean()) if len(column) else 0.0
        shares = _shares(counts)
        yield Shown(str(name), "category", _listed(shares), missing, shares)


def _shares(counts: pd.Series) -> list[Share]:
    """The most frequent values, and the others together."""
    ordered = counts[counts > 0].sort_values(ascending=False, kind="stable")
    total = max(int(ordered.sum()), 1)
    shares = [Share(str(v), int(c) / total) for v, c in ordered.iloc[:MOST_VALUES].items()]
    if len(ordered) > MOST_VALUES:
        rest = int(ordered.iloc[MOST_VALUES:].sum()) / total
        shares.append(Share(f"{len(ordered) - MOST_VALUES:,} more", rest))
    return shares


def _listed(shares: Sequence[Share]) -> str:
    return ", ".join(f"{value} {percent(share)} %" for value, share in shares) or "nothing"


def _pictures(data: Dataset) -> Iterator[str]:
    """Some records, spread over the data, as PNG in base64."""
    spread = np.unique(np.linspace(0, max(len(data) - 1, 0), PICTURES).astype(int))
    for row in data.rows[spread[: len(data)]]:
        pixels = np.asarray(data.records[row])
        flat = pixels[0] if pixels.shape[0] == 1 else pixels[:3].transpose(1, 2, 0)
        picture = Image.fromarray(np.ascontiguousarray(flat))
        picture.thumbnail((SIDE, SIDE))
        out = io.BytesIO()
        picture.save(out, "PNG", optimize=True)
        yield base64.b64encode(out.getvalue()).decode()
