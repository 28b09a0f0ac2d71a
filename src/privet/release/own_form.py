"""Released records in their own form, `privet apply --as picture`: pictures as PNG files, rows with
the columns and units of the file that they came from, vectors and windows as lists.

A release whose card says that it gives records is only brought back to bytes and units. A code that
has a decoder (veil's) is drawn by it: with one value of the private attribute for everybody.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
from PIL import Image

from privet.core.errors import PrivetError, refuse_if
from privet.core.stores import AnyFile, StoredFile
from privet.data.dataset import Array
from privet.data.schema import Column, ImageSchema, Schema, SignalSchema, TableSchema
from privet.data.stream import frames_of, record_column
from privet.release.runtime import Runnable, read_part
from privet.release.strangers import release_session

Form = Literal["record", "picture", "row", "vector", "window"]
FORMS: tuple[str, ...] = get_args(Form)
# Which records each of them fits; "record" fits all.
MODALITIES = {"picture": "image", "row": "table", "vector": "table", "window": "signal"}
# Rows that say of what type a file's columns are.
LOOKED_AT = 1000


@dataclass(frozen=True)
class OwnForm:
    """How released numbers become a record again.

    Parameters:
        schema: Of the records, without what is told beside them.
        column: The column that holds the picture, vector or window; None for rows.
        types: Types of the columns of the file that the records come from, by name.
        decoder: Session of the graph that draws records from codes; None where records are
            released.
    """

    schema: Schema
    column: str | None
    types: dict[str, Any]
    decoder: Any | None

    @property
    def names(self) -> list[str]:
        """The columns that a record takes in a file."""
        if self.column is None and isinstance(self.schema, TableSchema):
            return [column.name for column in self.schema.columns]
        return [str(self.column)]

    def in_csv(self) -> OwnForm:
        """The same for a CSV file, which holds a number or a word in a cell and no more."""
        refuse_if(
            not isinstance(self.schema, TableSchema),
            f"A CSV file cannot hold a {_word(self.schema)} in its own form: write .parquet.",
        )
        return replace(self, column=None)

    def behind(self, run: Any) -> Any:
        """The release's session, with the decoder behind it where there is one."""
        return run if self.decoder is None else _Decoded(run, self.decoder)

    def columns(self, records: Array) -> dict[str, Any]:
        """Records in the network's scale as columns of a file, by name."""
        if isinstance(self.schema, ImageSchema):
            return {str(self.column): pa.array(list(map(png, pixels(records))), pa.binary())}
        if isinstance(self.schema, SignalSchema):
            mean, std = (np.asarray(v)[:, None] for v in (self.schema.mean, self.schema.std))
            windows = (records * std + mean).astype(np.float32)
            return {str(self.column): pa.array(windows.tolist(), pa.list_(pa.list_(pa.float32())))}
        assert isinstance(self.schema, TableSchema)
        ends = np.cumsum([column.size for column in self.schema.columns])[:-1]
        parts = np.split(records.astype(np.float64), ends, axis=1)
        if self.column is not None:
            numbers = [
                part * column.std + column.mean
                for column, part in zip(self.schema.columns, parts, strict=True)
            ]
            flat = pa.array(np.hstack(numbers).astype(np.float32).ravel())
            return {self.column: pa.FixedSizeListArray.from_arrays(flat, len(numbers))}
        return {
            column.name: cells(column, part, self.types.get(column.name))
            for column, part in zip(self.schema.columns, parts, strict=True)
        }


@dataclass(frozen=True)
class _Decoded:
    """Two sessions one behind the other, to be run as one."""

    first: Any
    decoder: Any

    def run(self, names: Sequence[str], inputs: dict[str, Array]) -> list[Array]:
        (z,) = self.first.run(names, inputs)
        records: list[Array] = self.decoder.run(["x"], {"z": z})
        return records


def own_form(
    folder: Path,
    release: Runnable,
    form: Form,
    source: AnyFile | Sequence[Path],
    column: str | None = None,
) -> OwnForm:
    """The own form of what the release in a folder gives; PrivetError where it has none.

    Parameters:
        folder: Of the release.
        release: What is in it.
        form: What was asked for.
        source: The file that the records are in, or pictures.
        column: The column that holds the record, where it was named.
    """
    schema = release.schema.plain
    wanted = MODALITIES.get(form, schema.modality)
    refuse_if(
        wanted != schema.modality, f"The release takes a {schema.modality}: it gives no {form}."
    )
    decoder = None
    if release.card.get("form") != "record":
        method = release.card.get("method", "This method")
        if "decoder" not in (release.card.get("sha256") or {}):
            raise PrivetError(
                f"{method} releases numbers that nothing turns into a {_word(schema)} again: leave "
                f"out --as, or learn a release that gives one:  privet learn veil."
            )
        decoder = release_session(read_part(folder, release.card, "decoder"), threads=1)
    if not isinstance(source, Path | StoredFile):
        return OwnForm(schema, "image", {}, decoder)
    first = next(frames_of(source, LOOKED_AT), None)
    if first is None:
        raise PrivetError("There are no records to release.")
    name = column or record_column(schema, first, str(source))
    types = pa.Schema.from_pandas(first, preserve_index=False)
    return OwnForm(schema, name, {field.name: field.type for field in types}, decoder)


def cells(column: Column, part: Array, kind: Any) -> Any:
    """Cells of one column of rows, in its own units; of a category the likeliest value.

    >>> cells(Column("age", 40.0, 10.0), np.array([[0.52]]), pa.int64()).to_pylist()
    [45]
    >>> cells(Column("town", values=("A", "B")), np.array([[0.0, 1.0]]), None).to_pylist()
    ['B']
    """
    if column.values:
        words = pa.array([column.values[place] for place in part.argmax(1)], pa.string())
        return words.cast(kind) if kind is not None and pa.types.is_boolean(kind) else words
    numbers = part[:, 0] * column.std + column.mean
    if kind is not None and pa.types.is_integer(kind):
        return pa.array(np.rint(numbers).astype(np.int64))
    return pa.array(numbers)


def pixels(records: Array) -> Array:
    """Pictures in [-1, 1] as bytes, (n, channels, height, width)."""
    return np.clip(np.rint((records + 1) * 127.5), 0, 255).astype(np.uint8)


def png(picture: Array) -> bytes:
    """A picture (channels, height, width) as a PNG file, with nothing beside its pixels."""
    flat = picture[0] if len(picture) == 1 else picture.transpose(1, 2, 0)
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(flat)).save(buffer, "PNG")
    return buffer.getvalue()


def drawn_as(card: dict[str, Any]) -> dict[str, str] | None:
    """The value of each private attribute that a veil's records are drawn with."""
    classes = card.get("classes")
    places = (card.get("network") or {}).get("settings", {}).get("drawn_as")
    if not classes or places is None:
        return None
    return {name: values[at] for (name, values), at in zip(classes.items(), places, strict=True)}


def _word(schema: Schema) -> str:
    return {"image": "picture", "table": "row", "signal": "window"}.get(schema.modality, "record")
