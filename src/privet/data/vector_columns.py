"""Columns whose cells hold many numbers: lists, nested lists, or the bytes of a small array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from privet.core.errors import PrivetError
from privet.data.dataset import Array

# Channels and time.
Shape = tuple[int, int]


def is_bytes(kind: Any) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def is_list(kind: Any) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def depth(kind: Any) -> int:
    """How many lists deep the numbers lie; 0 for what is no list of numbers.

    >>> depth(pa.list_(pa.list_(pa.float32()))), depth(pa.list_(pa.string())), depth(pa.int8())
    (2, 0, 0)
    """
    levels = 0
    while is_list(kind):
        kind, levels = kind.value_type, levels + 1
    return levels if pa.types.is_integer(kind) or pa.types.is_floating(kind) else 0


def read_numbers(column: Any, where: str, dtype: str | None = None) -> Array:
    """The cells of an arrow column as one float32 array, (n, d) or as deep as the lists are."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    if column.null_count:
        raise PrivetError(f"{where} has empty cells: fill or remove those rows.")
    return (
        _from_bytes(column, where, dtype) if is_bytes(column.type) else _from_lists(column, where)
    )


def _from_bytes(column: Any, where: str, dtype: str | None) -> Array:
    cells = column.to_pylist()
    kind, length = np.dtype(dtype or "float16").newbyteorder("<"), len(cells[0])
    if length == 0 or length % kind.itemsize or any(len(cell) != length for cell in cells):
        raise PrivetError(
            f"{where} holds neither pictures nor equally many {kind.name} numbers a row: set dtype"
            " or drop it."
        )
    return np.frombuffer(b"".join(cells), dtype=kind).astype(np.float32).reshape(len(cells), -1)


def _from_lists(column: Any, where: str) -> Array:
    shape = [len(column)]
    while is_list(column.type):
        values = column.flatten()
        width = len(values) // max(len(column), 1)
        if width == 0 or np.any(column.value_lengths().to_numpy(zero_copy_only=False) != width):
            raise PrivetError(
                f"{where} holds lists of different lengths: cut or fill them to one length."
            )
        shape.append(width)
        column = values
    numbers = column.to_numpy(zero_copy_only=False)
    return np.asarray(numbers, dtype=np.float32).reshape(shape)


def find_shape(rows: Array) -> Shape | None:
    """Channels and time of windows that a file holds as flat rows, from where the rows jump.

    Within a channel, a signal moves in steps of about one size; from the end of one channel to the
    start of the next the step is larger. Of the divisions whose every seam stands out from the
    steps beside it, the finest one is meant: the seams of a coarser one are among its own. None
    where no division does.

    >>> t = np.linspace(0, 3, 32)
    >>> find_shape(np.stack([np.r_[np.sin(t + k), 5 + np.cos(t + k), -4 + t] for k in range(50)]))
    (3, 32)
    """
    length = rows.shape[1]
    steps = np.abs(np.diff(rows[:4096].astype(np.float64), axis=1)).mean(axis=0)
    for channels in range(length // 8, 1, -1):
        if length % channels:
            continue
        time = length // channels
        seams = np.arange(time, length, time) - 1
        beside = steps[seams[:, None] + np.array([-3, -2, -1, 1, 2, 3])]
        if np.all(steps[seams] > 1.1 * beside.max(axis=1)):
            return channels, time
    return None


def as_windows(numbers: Array, shape: Shape | None, where: str) -> Array:
    """Windows (n, channels, time) from numbers of any depth."""
    if shape is None and numbers.ndim == 3:
        return numbers
    flat = numbers.reshape(len(numbers), -1)
    found = shape or find_shape(flat)
    if found is None or found[0] * found[1] != flat.shape[1]:
        raise PrivetError(
            f"{where} holds {flat.shape[1]} numbers a row: give  shape = [channels, time]  in a"
            " --schema file."
        )
    return flat.reshape(len(flat), *found)
