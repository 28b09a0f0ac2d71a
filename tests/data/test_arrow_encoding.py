"""Arrow columns are encoded as a frame of the same rows is, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from privet.core.errors import PrivetError
from privet.data.arrow_encoding import encode_batch, encode_lists, encode_windows, standardised
from privet.data.schema import Column, SignalSchema, TableSchema
from privet.data.stream import encoded_rows, record_field

RNG = np.random.default_rng(0)
WORDS = RNG.choice(["a", "b", "unseen"], 50).tolist()
NUMBERS = [3, None, 5, 2**40] * 12 + [0, 1]
SCHEMA = TableSchema(
    (Column("n", 2.0, 3.0), Column("w", values=("a", "b", "c")), Column("m", -1.0, 0.1))
)


@pytest.mark.parametrize(
    "words",
    [
        pa.array(WORDS),
        pa.array(WORDS, pa.large_string()),
        pa.array(WORDS).dictionary_encode(),
        pa.array([None, *WORDS[1:]]),
        pa.array([None, *WORDS[1:]]).dictionary_encode(),
        pa.chunked_array([WORDS[:7], WORDS[7:]]),
        pa.array([True, False] * 25),
    ],
    ids=["string", "large", "dictionary", "gaps", "dictionary-gaps", "chunks", "truth values"],
)
@pytest.mark.parametrize(
    "numbers",
    [
        pa.array(NUMBERS, pa.int64()),
        pa.array([1.5, float("nan"), float("inf"), -float("inf"), None] * 10, pa.float32()),
        pa.array(RNG.standard_normal(50)),
        pa.array(np.arange(50).astype(np.float16)),
        pa.array([str(k) for k in range(50)]),
    ],
    ids=["integers", "endless", "double", "half", "text"],
)
def test_columns_are_encoded_as_in_a_frame(words: Any, numbers: Any) -> None:
    table = pa.table({"m": pa.array(RNG.integers(0, 9, 50)), "w": words, "n": numbers})
    assert np.array_equal(encode_batch(SCHEMA, table), SCHEMA.encode(table.to_pandas()))


VECTORS = TableSchema(tuple(Column(f"v{i}", 0.1 * i, 1 + 0.3 * i) for i in (0, 2, 3)))


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float64(), 4)], ids=str)
def test_lists_are_encoded_as_in_a_frame(kind: Any) -> None:
    rows = RNG.standard_normal((20, 4))
    rows[3, 2] = np.nan
    cells = pa.chunked_array([pa.array(part.tolist(), kind) for part in (rows[:7], rows[7:])])
    frame = pd.DataFrame(rows.astype(np.float32), columns=[f"v{i}" for i in range(4)])
    assert np.array_equal(encode_lists(VECTORS, cells, ""), VECTORS.encode(frame))
    assert np.array_equal(encode_lists(VECTORS, cells.slice(5, 9), ""), VECTORS.encode(frame[5:14]))
    table = pa.table({"vector": cells, "y": list(range(20))})
    x, beside = encoded_rows(VECTORS, table, ["y"], "vector", "The table")
    assert np.array_equal(x, VECTORS.encode(frame)) and beside["y"].tolist() == list(range(20))


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64], ids=lambda kind: kind.__name__)
def test_numbers_are_standardised_as_column_by_column(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privet.data.arrow_encoding.PIECE", 20)
    rows = 100 * RNG.standard_normal((50, 3))
    if kind is not np.int64:
        rows[7, 1], rows[8, 2], rows[49, 0] = np.nan, np.inf, -np.inf
    frame = pd.DataFrame(rows.astype(kind), columns=["v0", "v2", "v3"])
    assert np.array_equal(standardised(VECTORS, frame.to_numpy()), VECTORS.encode(frame))


def test_lists_of_two_lengths_are_refused() -> None:
    for cells in ([[1.0, 2.0], [1.0]], [[1.0], [1.0, 2.0], [1.0, 2.0, 3.0]]):
        with pytest.raises(PrivetError, match="uneven"):
            encode_lists(VECTORS, pa.array(cells), "uneven")


def test_windows_are_encoded_as_in_a_frame() -> None:
    schema = SignalSchema(2, 3, (0.5, 1.0), (2.0, 3.0))
    windows = RNG.standard_normal((10, 2, 3)).astype(np.float32)
    for cells in (windows.tolist(), windows.reshape(10, 6).tolist()):
        x = encode_windows(schema, pa.array(cells), "wrong")
        assert x is not None and np.array_equal(x, schema.encode(windows))
    for cells in ([[1.0] * 5], [[1.0] * 6, None]):
        with pytest.raises(PrivetError, match="wrong"):
            encode_windows(schema, pa.array(cells), "wrong")


def test_the_column_of_the_record_follows_from_types_alone() -> None:
    def fields(**kinds: Any) -> pa.Schema:
        return pa.schema(list(kinds.items()))

    floats = pa.list_(pa.float32())
    assert record_field(VECTORS, fields(id=pa.string(), vector=floats), ["id"]) == "vector"
    assert record_field(VECTORS, fields(v0=pa.float32(), other=floats), []) is None
    with pytest.raises(PrivetError, match="a, b could be it"):
        record_field(VECTORS, fields(a=floats, b=floats), [])
    signal = SignalSchema(1, 2, (0.0,), (1.0,))
    assert record_field(signal, fields(other=floats, window=floats), []) == "window"
    with pytest.raises(PrivetError, match="No column holds a signal"):
        record_field(signal, fields(x=pa.float32()), [])
