"""Data that is already in memory: frames of pandas or polars, Arrow tables, arrays, and datasets of
Hugging Face."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from privet.core.errors import PrivetError
from privet.data.assemble import assemble
from privet.data.dataset import Array, Dataset, Modality
from privet.data.schema_file import Layout
from privet.data.tables import from_frame

__all__ = ["Dataset", "as_dataset", "as_frame", "from_arrays", "from_frame"]


def as_dataset(data: Any, layout: Layout | None = None) -> Dataset:
    """A Dataset of whatever holds rows in memory; a Dataset itself is returned as it is.

    >>> as_dataset({"age": range(40), "sex": ["f", "m"] * 20}).attribute("sex").values
    ('f', 'm')
    """
    return data if isinstance(data, Dataset) else from_frame(as_frame(data), layout)


def as_frame(data: Any) -> pd.DataFrame:
    """Rows in memory as a pandas frame: of pandas itself, polars, Arrow, Hugging Face datasets, a
    mapping of columns, or an array of two axes, whose columns become x0, x1, ...

    >>> list(as_frame(np.zeros((3, 2))).columns)
    ['x0', 'x1']
    """
    if isinstance(data, pd.DataFrame):
        return data
    if isinstance(data, Mapping):
        return pd.DataFrame(dict(data))
    if isinstance(data, np.ndarray):
        if data.ndim != 2:
            raise PrivetError(
                f"An array of rows has two axes, and this one has {data.ndim}: give pictures and "
                "windows to Dataset.from_arrays, with their labels."
            )
        return pd.DataFrame(data, columns=[f"x{i}" for i in range(data.shape[1])])
    # polars, pyarrow and Hugging Face datasets all have it.
    if callable(convert := getattr(data, "to_pandas", None)):
        frame = convert()
        if isinstance(frame, pd.DataFrame):
            return frame
    raise PrivetError(
        f"A {type(data).__name__} cannot be read as rows: give a path, a data frame of pandas or "
        "polars, an Arrow table, a dataset of Hugging Face, or arrays."
    )


def from_arrays(
    records: npt.ArrayLike,
    labels: Mapping[str, npt.ArrayLike],
    *,
    person: npt.ArrayLike | None = None,
    split: npt.ArrayLike | None = None,
    name: str = "arrays",
    layout: Layout | None = None,
) -> Dataset:
    """A Dataset of arrays.

    records: uint8 pictures (n, channels, height, width) or (n, height, width, 3), float windows (n,
        channels, time), rows of numbers (n, d), or n strings.
    labels: per attribute, one value for each record.
    person: whose record each is; every record is a person of its own where it is left out.
    split: train, valid or test; or fit, attack, select or test, for each record.
    name: what reports call the data.
    layout: what a --schema file would say; with a space, rows of numbers are vectors of that space.

    >>> data = from_arrays(np.zeros((40, 5)), {"sex": ["f", "m"] * 20})
    >>> data.modality, data.records.shape
    ('table', (40, 5))
    """
    array = np.asarray(records)
    columns = {str(key): np.asarray(value) for key, value in labels.items()}
    columns |= {"person": np.asarray(person)} if person is not None else {}
    columns |= {"split": np.asarray(split)} if split is not None else {}
    for key, column in columns.items():
        if column.ndim != 1 or len(column) != len(array):
            raise PrivetError(
                f"There are {len(array)} records, and '{key}' has the shape {column.shape}: give "
                "one value for each record."
            )
    modality, content = _recognised(array)
    frame = pd.DataFrame(columns, index=pd.RangeIndex(len(array)))
    sha = hashlib.sha256(np.ascontiguousarray(array).tobytes() if array.dtype != object else b"")
    if array.dtype == object:
        sha.update("\0".join(map(str, array)).encode())
    layout = layout or Layout()
    data = assemble(name, modality, content, frame, layout, sha.hexdigest())
    return replace(data, space=layout.space if modality == "table" else None)


def _recognised(array: Array) -> tuple[Modality, Any]:
    """What an array of records holds, by its type and axes, in the form that a Dataset keeps."""
    if array.dtype.kind in "UO" and array.ndim == 1:
        return "text", array.astype(object)
    if array.dtype == np.uint8 and array.ndim == 4:
        last = array.shape[-1] in (1, 3) and array.shape[1] not in (1, 3)
        return "image", np.ascontiguousarray(array.transpose(0, 3, 1, 2)) if last else array
    if array.dtype.kind in "fiu" and array.ndim == 3:
        return "signal", array.astype(np.float32)
    if array.dtype.kind in "fiub" and array.ndim == 2:
        return "table", pd.DataFrame(
            array.astype(np.float32), columns=[f"v{i}" for i in range(array.shape[1])]
        )
    raise PrivetError(
        f"Records of type {array.dtype} and shape {array.shape} are neither uint8 pictures (n, "
        "channels, height, width), float windows (n, channels, time), rows (n, d) nor strings."
    )


# Here and not in dataset.py, on which everything that reads is built.
Dataset.from_frame = staticmethod(from_frame)
Dataset.from_arrays = staticmethod(from_arrays)
