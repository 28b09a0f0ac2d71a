"""Given: a schema whose records come with what the participant knows about them, for releases that
may use it.

Generative adversarial privacy lets the channel see the private attribute u: W(x~ | x, u). The
participant knows u, so the release's input holds it beside the record, as zeros and ones: extra
columns of a table, constant channels of a picture (bytes 0 and 255) or of a window. All zeros where
it is not known. What comes out has the form of the plain record, and whoever attacks raw records is
shown the plain ones: `plain` is the schema without u.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from privet.core.errors import PrivetError
from privet.data.attribute_codes import code
from privet.data.cell_text import class_text
from privet.data.dataset import PARTS, Array, Attribute, Dataset, LabelsByName
from privet.data.schema import Inputs, Schema, schema_from_json


@dataclass(frozen=True)
class Known:
    """An attribute that is given with every record: its classes, or of a number the edges that make
    classes of it."""

    name: str
    values: tuple[str, ...]
    edges: tuple[float, ...] = ()

    def of_labels(self, data: Dataset) -> Array:
        """Codes of the records of a dataset view, -1 where the value is missing or was never
        seen."""
        attribute, labels = data.attribute(self.name), data.labels[self.name]
        if attribute.kind == "number":
            return into_bins(labels, self._edges(data.name))
        place = {value: code for code, value in enumerate(self.values)}
        return np.array([*(place.get(value, -1) for value in attribute.values), -1])[labels]

    def of_column(self, column: pd.Series, where: str) -> Array:
        """The same from a column as a file holds it. A value that the release does not know is
        said, not passed over."""
        if self.edges:
            return into_bins(
                pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan),
                self.edges,
            )
        words = column.map(lambda cell: class_text(cell, self.values))
        codes = pd.Index(self.values, dtype=object).get_indexer(pd.Index(words, dtype=object))
        strange = words[(codes < 0) & (words != "")]
        if len(strange):
            raise PrivetError(
                f"{where}: '{self.name}' is '{strange.iloc[0]}', and the release knows:"
                f" {', '.join(self.values)}."
            )
        return np.asarray(codes)

    def _edges(self, name: str) -> tuple[float, ...]:
        if not self.edges:
            raise PrivetError(
                f"'{self.name}' is a number in {name}, and the release takes classes: give it the"
                " same bins as before."
            )
        return self.edges


@dataclass(frozen=True)
class Given(Schema):
    """A schema whose records come with attributes that their owner knows.

    Parameters:
        base: The schema of the records themselves.
        known: The attributes that stand beside them.
    """

    base: Schema
    known: tuple[Known, ...]

    @property
    def modality(self) -> Any:  # type: ignore[override]
        return self.base.modality

    @property
    def dtype(self) -> Any:  # type: ignore[override]
        return self.base.dtype

    @property
    def plain(self) -> Schema:
        return self.base

    @property
    def extra(self) -> int:
        """Columns or channels that stand beside the record's own."""
        return sum(len(known.values) for known in self.known)

    @property
    def shape(self) -> tuple[int | None, ...]:
        first, *rest = self.base.shape
        return ((first or 0) + self.extra, *rest)

    def own(self, x: Any) -> Any:
        return x[:, : self.base.shape[0]]

    def encode(self, records: Any) -> Array:
        """Raw records of which nothing is known."""
        x = self.base.encode(records)
        return self.join(x, np.full((len(x), len(self.known)), -1))

    def inputs(self, data: Dataset) -> Inputs:
        self.check(data)
        codes = np.stack([known.of_labels(data) for known in self.known], 1)
        inputs = self.base.inputs(data)
        if inputs.rows is None:
            return Inputs(self.join(inputs.array, codes))
        return Joined(self, inputs, codes)

    def check(self, data: Dataset) -> None:
        self.base.check(data)
        for known in self.known:
            if known.name not in data.attributes:
                raise PrivetError(
                    f"The release uses '{known.name}' of every record, and {data.name} has no such"
                    " attribute."
                )

    def join(self, x: Array, codes: Array) -> Array:
        """Encoded plain records (n, ...) and codes (n, attributes) to the release's input."""
        parts = []
        for place, known in enumerate(self.known):
            ones = np.eye(len(known.values) + 1, len(known.values), dtype=x.dtype)[codes[:, place]]
            ones = ones * x.dtype.type(255 if x.dtype == np.uint8 else 1)
            wide = ones.reshape(*ones.shape, *(1,) * (x.ndim - 2))
            parts.append(np.broadcast_to(wide, (*ones.shape, *x.shape[2:])))
        return np.concatenate([x, *parts], axis=1)

    def beside(self, x: Array, frame: pd.DataFrame | None, where: str) -> Array:
        names = [known.name for known in self.known]
        absent = names if frame is None else [name for name in names if name not in frame.columns]
        if frame is None or absent:
            raise PrivetError(
                f"{where}: the release uses '{absent[0]}' of every record, which only the"
                f" participant knows: give a parquet or CSV file with a column '{absent[0]}' beside"
                f" the {self.modality}."
            )
        return self.join(
            x, np.stack([known.of_column(frame[known.name], where) for known in self.known], 1)
        )

    def random(self, n: int, seed: int = 0) -> Array:
        rng = np.random.default_rng([seed, 1])
        return self.join(
            self.base.random(n, seed),
            np.stack([rng.integers(-1, len(known.values), n) for known in self.known], 1),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "modality": self.modality,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "given": [asdict(known) for known in self.known],
            "base": self.base.to_json(),
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Schema:
        known = tuple(
            Known(k["name"], tuple(k["values"]), tuple(k["edges"])) for k in value["given"]
        )
        return cls(schema_from_json(value["base"]), known)


class Joined(Inputs):
    """Records that are read as they are needed, with what is known of them beside each."""

    def __init__(self, schema: Given, inputs: Inputs, codes: Array) -> None:
        super().__init__(inputs.array, inputs.rows)
        self.schema, self.plain, self.codes = schema, inputs, codes

    def __getitem__(self, index: Any) -> Array:
        return self.schema.join(self.plain[index], self.codes[index])

    @property
    def nbytes(self) -> int:
        own = self.schema.plain.shape[0] or 1
        return self.plain.nbytes * (own + self.schema.extra) // own


def know(data: Dataset, attributes: Sequence[Attribute], bins: int) -> tuple[Known, ...]:
    """What is to be given of these attributes; a number as which of `bins` equally frequent classes
    of *fit* it lies in."""
    found = []
    for attribute in attributes:
        edges = quantiles(data, attribute.name, bins) if attribute.kind == "number" else ()
        values = classed(data, attribute.name, edges)[0].values if edges else attribute.values
        found.append(Known(attribute.name, values, edges))
    return tuple(found)


def in_classes(
    data: Dataset, attributes: Sequence[Attribute], bins: int
) -> tuple[Dataset, tuple[Attribute, ...]]:
    """The data with those of the attributes that are numbers turned into `bins` equally frequent
    classes, and the attributes anew."""
    known, labels, found = dict(data.attributes), dict[str, Array](), []
    for attribute in attributes:
        if attribute.kind == "number":
            attribute, labels[attribute.name] = classed(
                data, attribute.name, quantiles(data, attribute.name, bins)
            )
        known[attribute.name] = attribute
        found.append(attribute)
    if not labels:
        return data, tuple(found)
    both = data.labels.changed(labels) if isinstance(data.labels, LabelsByName) else None
    return replace(data, attributes=known, labels=both or {**data.labels, **labels}), tuple(found)


def classed(data: Dataset, name: str, edges: Sequence[float]) -> tuple[Attribute, Array]:
    """A number as classes between edges, named by them as a --schema file's bins are."""
    return code(name, pd.Series(data.labels[name]), bins=list(edges))


def quantiles(data: Dataset, name: str, bins: int) -> tuple[float, ...]:
    """Inner edges of `bins` equally frequent classes of a number among the *fit* records."""
    numbers = data.labels[name][data.part_of == PARTS.index("fit")]
    edges = np.unique(np.quantile(numbers[np.isfinite(numbers)], np.arange(1, bins) / bins))
    if len(edges) < bins - 1:
        raise PrivetError(
            f"'{name}' has too few values for {bins} equally frequent classes: ask for fewer bins."
        )
    return tuple(float(edge) for edge in edges)


def into_bins(numbers: Array, edges: Sequence[float]) -> Array:
    """Codes 0 .. len(edges); an edge belongs to the class above it, and what is no number is -1.

    >>> into_bins(np.array([1.0, 2.0, np.nan, 9.0]), [2.0, 5.0])
    array([ 0,  1, -1,  2])
    """
    return np.where(
        np.isfinite(numbers), np.searchsorted(np.asarray(edges), numbers, side="right"), -1
    ).astype(np.int64)
