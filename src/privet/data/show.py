"""`privet data show`: what there is, who is in which part, and what attributes give away about each
other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from privet.data.checks import check_data
from privet.data.dataset import PARTS, Attribute, Dataset
from privet.data.shared_information import shared_bits

# Attributes whose shared bits are counted, and how many of them fit on a page.
_COMPARED, _SHOWN = 64, 16
# Columns of the terminal that the name of an attribute, and a figure with its space, take.
_NAME_COLUMNS, _BITS_COLUMNS = 19, 5
# An attribute with more classes names individuals: each of them shares all its bits with
# everything.
_CLASSES = 50


def show(
    data: Dataset,
    private: Sequence[str] = (),
    utility: Sequence[str] = (),
    width: int = 100,
) -> Group:
    """A page of so many columns; what is wrong with the data for these private attributes and tasks
    comes first."""
    page: list[RenderableType] = [Text(kind_sentence(data), style="bold")]
    colours = {"meaningless": "bold red", "warning": "yellow", "note": ""}
    page += [
        Text(f"Check: {check.sentence}", style=colours[check.severity])
        for check in check_data(data, private, utility)
    ]
    people = (
        "every record counts as a person"
        if data.person is None
        else f"{len(np.unique(data.person)):,} people"
    )
    page += [
        Text(f"{people}; fingerprint {data.fingerprint[:16]}"),
        Text(""),
        _parts(data),
        Text(""),
        _attributes(data),
    ]
    most = max(2, min(_SHOWN, (width - _NAME_COLUMNS) // _BITS_COLUMNS))
    names = _most_shared(data, most)
    if len(names) > 1:
        which = f"; the {most} that share most" if len(names) == most else ""
        page += [
            Text(""),
            Text(f"Bits that two attributes share (at the end of a line, its own bits){which}"),
            _bits(data, names),
        ]
    page += [Text(f"Note: {note}", style="yellow") for note in data.notes]
    return Group(*page)


def kind_sentence(data: Dataset) -> str:
    """What the data was taken for, which is a guess that a --schema file can overrule."""
    n = f"{len(data):,}"
    if data.modality == "image":
        channels, height, width = data.records.shape[1:]
        kind = f"{n} pictures of {height} x {width} pixels in {channels} channels"
    elif data.modality == "signal":
        channels, steps = data.records.shape[1:]
        kind = f"{n} windows of {channels} channels x {steps} steps"
    elif data.modality == "table":
        kind = f"a table of {n} rows with {data.records.shape[1]} columns of input"
    else:
        letters = int(np.median([len(text) for text in data.records[data.rows]]))
        kind = f"{n} texts, half of them longer than {letters} letters"
    return f"{data.name} was read as {kind}."


def _parts(data: Dataset) -> Table:
    table = _table("part", "records", "people", right=("records", "people"))
    for code, part in enumerate(PARTS):
        inside = data.part_of == code
        table.add_row(part, f"{int(inside.sum()):,}", f"{len(np.unique(data.people[inside])):,}")
    return table


def _attributes(data: Dataset) -> Table:
    table = _table("attribute", "kind", "values", "unknown", right=("unknown",))
    for attribute in data.attributes.values():
        column = data.labels[attribute.name]
        unknown = (
            0.0
            if attribute.kind == "mask"
            else float(np.mean(column < 0 if attribute.is_class else ~np.isfinite(column)))
        )
        name, values = escape(_short(attribute.name, 24)), escape(_values(attribute, column))
        kind = "constant" if attribute.is_class and len(np.unique(column)) < 2 else attribute.kind
        table.add_row(name, kind, values, f"{unknown:.1%}" if unknown else "")
    return table


def _values(attribute: Attribute, column: np.ndarray) -> str:
    if attribute.kind == "mask":
        return f"covers {np.mean(column):.1%}"
    if attribute.kind == "number":
        known = column[np.isfinite(column)]
        return f"mean {known.mean():.4g}, sd {known.std():.4g}" if len(known) else "none"
    counts = np.bincount(column[column >= 0], minlength=attribute.classes)
    if attribute.kind == "identity" or attribute.classes > _CLASSES:
        return (
            f"{attribute.classes:,} values, {counts.min(initial=len(column)):,} to"
            f" {counts.max(initial=0):,} records each"
        )
    order = (
        np.argsort(-counts, kind="stable")
        if attribute.classes > 2
        else np.arange(attribute.classes)
    )
    shares = [
        f"{_short(attribute.values[i], 12)} {counts[i] / max(counts.sum(), 1):.1%}"
        for i in order[:3]
    ]
    return ", ".join(shares) + (f", {attribute.classes - 3} more" if attribute.classes > 3 else "")


def _most_shared(data: Dataset, most: int) -> list[str]:
    """The attributes that share the most with others, in the order of the data."""
    usable = [
        a.name
        for a in data.attributes.values()
        if a.kind == "number" or (a.is_class and 1 < a.classes <= _CLASSES)
    ]
    usable = [name for name in usable if data.attributes[name].kind != "identity"][:_COMPARED]
    if len(usable) <= most:
        return usable
    bits = shared_bits(data, usable)
    np.fill_diagonal(bits, 0.0)
    return [usable[i] for i in sorted(np.argsort(-bits.max(axis=0), kind="stable")[:most])]


def _bits(data: Dataset, names: list[str]) -> Table:
    """The lower half: the matrix is symmetric. The last figure of a line is the attribute's own
    entropy."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    for number in range(1, len(names) + 1):
        table.add_column(str(number), justify="right", no_wrap=True)
    bits = shared_bits(data, names)
    for i, name in enumerate(names):
        cells = [f"{bits[i, j]:.2f}" for j in range(i + 1)]
        table.add_row(escape(f"{i + 1:2d} {_short(name, 15)}"), *cells)
    return table


def _table(*headers: str, right: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for header in headers:
        table.add_column(header, justify="right" if header in right else "left")
    return table


def _short(word: str, length: int) -> str:
    return word if len(word) <= length else word[: length - 1] + "…"
