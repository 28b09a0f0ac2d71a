"""Releases made elsewhere: an ONNX file with a small card, a Python function, or a parquet file of
records already released.

An audit needs of a release only what comes out of it, so anything that maps records to numbers can
be attacked like our own.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor, nn

from privet.core.errors import PrivetError
from privet.core.json_values import read
from privet.data.dataset import Array, Dataset
from privet.data.schema import (
    Column,
    ImageSchema,
    Schema,
    TableSchema,
    TextSchema,
    learn_schema,
    schema_from_json,
)
from privet.data.schema_file import Layout
from privet.data.tables import read_parquet
from privet.data.vector_columns import depth
from privet.evidence.what_leaves import WhatLeaves
from privet.release.foreign_texts import holds_texts, released_texts
from privet.release.noise import Noise
from privet.release.release import Release
from privet.release.strangers import release_session

# Keys of the card of an ONNX file; all may be left out.
CARD = {
    "name": "what the release is called",
    "private": "the attributes it hides",
    "settings": "anything worth knowing",
    "input": (
        "how records are prepared: range, mean, std, layout of pictures; columns of a table; words"
        " of a text"
    ),
    "noise": "name, law and shape of the input that takes noise",
    "output": "the name of the output to look at",
}


def from_function(
    function: Callable[[Array], Array],
    data: Dataset,
    private: Sequence[str],
    without: Sequence[str] = (),
) -> Release:
    """A release that is any Python function: it takes encoded records (uint8 pictures, float rows
    and windows, word ids) as a numpy array with one record per row and gives an array with as many
    rows."""
    schema = learn_schema(data, [*private, *without])
    named = getattr(function, "__name__", type(function).__name__)
    return _foreign(
        schema,
        _Call(function),
        None,
        data,
        {"method": "function", "title": named, "private": list(private)},
    )


def from_onnx(
    path: Path,
    data: Dataset,
    private: Sequence[str] = (),
    card: Path | None = None,
    without: Sequence[str] = (),
) -> Release:
    """A release that is an ONNX graph; `card` is a JSON file, by default the one of the same name,
    or card.json, beside it."""
    about = beside_card(path, card)
    hidden = list(private) or list(about.get("private", []))
    if not hidden:
        raise PrivetError(
            f'Say what {path.name} hides: --private A, or  "private": ["A"]  in a JSON file'
            " beside it."
        )
    for name in hidden:
        data.attribute(name)
    content = _bytes(path)
    try:
        run = release_session(content)
    except PrivetError as error:
        raise PrivetError(f"{path}: {error}") from None
    given, noise = about.get("input", {}), about.get("noise")
    schema = _schema(given, data, [*hidden, *without])
    graph = _Graph(run, given, noise, about.get("output", {}).get("name"), schema, path.name)
    law = (
        None
        if noise is None
        else Noise(
            noise.get("law", "gaussian"),
            tuple(noise.get("shape", graph.noise_shape)),
            float(noise.get("scale", 1.0)),
        )
    )
    said = {
        "method": str(about.get("name") or path.stem),
        "settings": about.get("settings", {}),
        "private": hidden,
        "sha256": {"graph": hashlib.sha256(content).hexdigest()},
    }
    return _foreign(schema, graph, law, data, said)


def from_vectors(
    path: Path,
    private: Sequence[str],
    utility: Sequence[str] = (),
    layout: Layout | None = None,
    text: str | None = None,
) -> tuple[Release, Dataset]:
    """Records that are already released, in a parquet file: one column of lists, a column of texts
    (`text` names it), or all columns of real numbers, are the released record; the others say
    something about it. There is nothing to learn a release on, so *fit* people attack as well."""
    if not private:
        raise PrivetError(f"Say which column of {path.name} must not be readable: --private A.")
    layout = layout or Layout()
    kinds, about = released_columns(path)
    lists = [name for name, kind in kinds.items() if depth(kind)]
    declared = (*private, *utility)
    if absent := [name for name in declared if name not in kinds]:
        raise PrivetError(f"{path.name} has no column '{absent[0]}'; it has: {', '.join(kinds)}.")
    if holds_texts(path, kinds, about, declared, text) and layout.features is None:
        return released_texts(path, private, utility, layout, about, text)
    if not lists and layout.features is None:
        named = {*declared, "person", "author", "split", *layout.labels}
        layout = replace(layout, features=_number_columns(path, kinds, named))
    data, released = _vectors(path, layout, declared)
    schema = _Vectors(tuple(released), data.space)
    card = {
        "method": str(about.get("method") or "released vectors"),
        "private": list(private),
        "sha256": about.get("sha256"),
    }
    if shape := _written_shape(about, len(released)):
        return Release(schema, ("reshaped", {}), _Reshape(shape), None, card), data
    return replace(Release.identity(schema), card=card), data


def _vectors(path: Path, layout: Layout, declared: Sequence[str]) -> tuple[Dataset, list[str]]:
    """The data, and the columns that are the released record."""
    data = read_parquet(path, replace(layout, modality="table"))
    released = [str(name) for name in data.records.columns if name not in declared]
    rest = {name: a for name, a in data.attributes.items() if name not in released}
    labels = {name: data.labels[name] for name in rest}
    return replace(data.fit_as_attack(), attributes=rest, labels=labels), released


def _written_shape(about: dict[str, Any], size: int) -> tuple[int, ...] | None:
    """The shape of a record that `privet apply` wrote beside the file, where it suits the size."""
    shape = about.get("shape")
    if not isinstance(shape, list) or not all(isinstance(s, int) and s > 0 for s in shape):
        return None
    return tuple(shape) if math.prod(shape) == size else None


def _number_columns(path: Path, kinds: dict[str, Any], named: set[str]) -> tuple[str, ...]:
    """All columns of real numbers beside the labels, or else of whole numbers."""
    for is_number in (pa.types.is_floating, pa.types.is_integer):
        if numbers := [n for n, kind in kinds.items() if n not in named and is_number(kind)]:
            return tuple(numbers)
    raise PrivetError(
        f"{path.name} has neither a column of lists nor texts nor columns of numbers beside"
        " the labels: nothing is released in it."
    )


class _Vectors(TableSchema):
    """Columns of numbers as they are: what is released is not standardised before it is looked
    at."""

    def __init__(self, names: tuple[str, ...], space: str | None = None) -> None:
        object.__setattr__(self, "columns", tuple(Column(name) for name in names))
        object.__setattr__(self, "space", space)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def encode(self, records: Any) -> Array:
        rows = np.nan_to_num(
            records[list(self.names)].to_numpy(dtype=np.float32, na_value=np.nan),
            posinf=0.0,
            neginf=0.0,
        )
        return np.ascontiguousarray(rows)


class _Reshape(nn.Module):
    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(len(x), *self.shape)


class _Call(nn.Module):
    """A Python function as a network."""

    def __init__(self, function: Callable[[Array], Array]) -> None:
        super().__init__()
        self.function = function
        self.shape: tuple[int | None, ...] = ()

    def forward(self, x: Tensor) -> Tensor:
        out = np.asarray(self.function(x.cpu().numpy()))
        if out.ndim == 0 or len(out) != len(x):
            raise PrivetError(
                f"The function gave an array of shape {out.shape} for {len(x)} records: it must"
                " give one row per record."
            )
        out = out[:, None] if out.ndim == 1 else out
        return torch.from_numpy(np.ascontiguousarray(out, dtype=np.float32)).to(x.device)


class _Graph(nn.Module):
    """An ONNX graph as a network; pictures are brought to the range and layout that the card
    names."""

    def __init__(
        self,
        run: Any,
        given: dict[str, Any],
        noise: dict[str, Any] | None,
        output: str | None,
        schema: Schema,
        where: str,
    ) -> None:
        super().__init__()
        self.run, self.given, self.where = run, given, where
        inputs = {put.name: put for put in run.get_inputs()}
        takes_noise = (noise or {}).get("name", "noise")
        others = [name for name in inputs if name != takes_noise]
        self.name = given.get("name") or (others or list(inputs))[0]
        self.noise = None if noise is None else takes_noise
        self._check_inputs(inputs)
        self.rows, self.dtype = inputs[self.name].shape[0], _DTYPES.get(inputs[self.name].type)
        if self.dtype is None:
            raise PrivetError(
                f"The input of {where} is {inputs[self.name].type}, which records cannot be given"
                " as."
            )
        sizes = [] if self.noise is None else inputs[self.noise].shape[1:]
        self.noise_shape = [size if isinstance(size, int) else None for size in sizes]
        self.output = output or run.get_outputs()[0].name
        self.picture = isinstance(schema, ImageSchema)
        self.shape: tuple[int | None, ...] = ()

    def _check_inputs(self, inputs: dict[str, Any]) -> None:
        for name in (self.name, self.noise):
            if name is not None and name not in inputs:
                raise PrivetError(
                    f"The card of {self.where} names the input '{name}', and the graph has:"
                    f" {', '.join(inputs)}."
                )
        for name in inputs:
            if name not in (self.name, self.noise):
                raise PrivetError(
                    f"{self.where} has another input '{name}': if it takes noise, say so in the"
                    ' card under "noise".'
                )

    def forward(self, x: Tensor, noise: Tensor | None = None) -> Tensor:
        fed = {self.name: self._prepared(x.cpu().numpy())}
        if self.noise is not None and noise is not None:
            fed[self.noise] = noise.cpu().numpy()
        size = self.rows if isinstance(self.rows, int) else len(x)
        parts = [
            self._run({k: v[start : start + size] for k, v in fed.items()}, size)
            for start in range(0, len(x), size)
        ]
        return torch.from_numpy(np.concatenate(parts).astype(np.float32)).to(x.device)

    def _run(self, fed: dict[str, Array], size: int) -> Array:
        n = len(fed[self.name])
        full = {
            k: np.concatenate([v, np.repeat(v[-1:], size - n, axis=0)]) if n < size else v
            for k, v in fed.items()
        }
        try:
            out = np.asarray(self.run.run([self.output], full)[0])
        except Exception as error:
            raise PrivetError(
                f"{self.where} does not take these records ({str(error).splitlines()[0][:160]})."
            ) from None
        return (out[:, None] if out.ndim == 1 else out)[:n]

    def _prepared(self, x: Array) -> Array:
        if not self.picture or self.dtype == np.uint8:
            ready = x.astype(self.dtype)
        else:
            low, high = self.given.get("range", (0.0, 1.0))
            ready = (x.astype(np.float32) / 255 * (high - low) + low).astype(self.dtype)
            shape = (1, -1, 1, 1)
            ready = ready - np.asarray(self.given.get("mean", 0.0), ready.dtype).reshape(shape)
            ready = ready / np.asarray(self.given.get("std", 1.0), ready.dtype).reshape(shape)
        return np.ascontiguousarray(
            ready.transpose(0, 2, 3, 1)
            if self.picture and self.given.get("layout") == "NHWC"
            else ready
        )


_DTYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}


def _foreign(
    schema: Schema, module: Any, noise: Noise | None, data: Dataset, card: dict[str, Any]
) -> Release:
    """The release, after trying it on a few records: which shape comes out, and whether the same
    comes out twice."""
    release = Release(schema, ("foreign", {}), module, noise, card)
    inputs = schema.inputs(data.take(np.arange(min(4, len(data)))))
    x = torch.from_numpy(np.ascontiguousarray(inputs[:]))
    first = release.forward(x)
    if not bool(torch.isfinite(first).all()):
        raise PrivetError(f"{card['method']} gives values that are not finite numbers.")
    text = schema.modality == "text" and first.dim() == 3 and first.shape[1] == x.shape[1]
    module.shape = (None, first.shape[2]) if text else tuple(first.shape[1:])
    if noise is None and not torch.equal(first, release.forward(x)):
        card["random"] = True
    return release


def _schema(given: Any, data: Dataset, without: Sequence[str]) -> Schema:
    if not isinstance(given, dict):
        raise PrivetError('"input" in the card must be a table of settings.')
    try:
        if (
            "modality" in given
            and {"channels", "columns", "words"} & set(given)
            and not isinstance(given.get("columns", [{}])[0], str)
        ):
            return schema_from_json(given)
    except (KeyError, TypeError, IndexError) as error:
        raise PrivetError(f'"input" in the card cannot be read ({error}).') from None
    if "columns" in given:
        return TableSchema(tuple(Column(str(name)) for name in given["columns"]))
    if "words" in given:
        return TextSchema(
            tuple(str(word) for word in given["words"]), int(given.get("longest", 64))
        )
    return learn_schema(data, without)


def beside_card(path: Path, card: Path | None) -> dict[str, Any]:
    beside = [card] if card else [path.with_suffix(".json"), path.parent / "card.json"]
    found = next((p for p in beside if p.is_file()), None)
    if found is None:
        if card is not None:
            raise PrivetError(f"There is no card {card}.")
        return {}
    try:
        content = json.loads(found.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise PrivetError(f"The card {found} is not JSON.") from None
    if not isinstance(content, dict):
        raise PrivetError(
            f"The card {found} must be a JSON object, with keys such as: {', '.join(CARD)}."
        )
    private = content.get("private", [])
    if not (isinstance(private, list) and all(isinstance(name, str) for name in private)):
        raise PrivetError(f'"private" in the card {found} must be a list of attributes.')
    return content


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PrivetError(f"Cannot read {path}: {error.strerror}.") from None


def released_columns(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Types of the columns of a parquet file, and what `privet apply` wrote about them."""
    try:
        schema = pq.read_schema(path)
    except OSError as error:
        raise PrivetError(f"Cannot read {path}: {error.strerror or error}.") from None
    except pa.ArrowException as error:
        raise PrivetError(
            f"{path} cannot be read as parquet ({str(error).splitlines()[0].rstrip('.')})."
        ) from None
    try:
        about = json.loads((schema.metadata or {}).get(b"privet", b"{}"))
    except ValueError:
        about = {}
    names = [name for name in schema.names if not name.startswith("__index_level_")]
    return {name: schema.field(name).type for name in names}, (
        about if isinstance(about, dict) else {}
    )


def what_leaves(path: Path) -> WhatLeaves | None:
    """What leaves with the records of a file that `privet apply` wrote, as the file says it; None
    of another file."""
    _, about = released_columns(path)
    if "leaves" not in about:
        return None
    try:
        return cast(WhatLeaves, read(WhatLeaves, about["leaves"], "leaves"))
    except (ValueError, KeyError, TypeError) as error:
        raise PrivetError(f"{path.name} says what leaves in words of its own: {error}.") from None
