"""Records of free length - a vector for each word of a text - as one vector, so that a task can be
learned from them.

    pooled(z) = [mean over words | largest over words | last word]

where a word is a position that is not all zeros; and the same as the first nodes of a model's
graph, which then takes records as they were released, filled up with zeros.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
from onnx import compose, parser

from privet.core.errors import PrivetError
from privet.data.dataset import Array

# An absent word counts less than every released number in the largest. A word is the last one if
# the position after it is none.
POOLING = """
<ir_version: 9, opset_import: ["": 18, "ai.onnx.ml": 3]>
pooling (float[n, words, {dims}] z) => (float[n, {pooled}] pooled)
<
    float none = {{0}}, float absent = {{-1e9}},
    int64[1] over_words = {{1}}, int64[1] over_numbers = {{2}},
    int64[6] one_more = {{0, 0, 0, 0, 1, 0}}, int64[1] second = {{1}}, int64[1] end = {{2147483648}}
>
{{
    size = Abs (z)
    largest_number = ReduceMax <keepdims = 1> (size, over_numbers)
    is_word = Greater (largest_number, none)
    here = Cast <to = 1> (is_word)
    count = ReduceSum <keepdims = 0> (here, over_words)
    sum = ReduceSum <keepdims = 0> (z, over_words)
    mean = Div (sum, count)
    words_only = Where (is_word, z, absent)
    largest = ReduceMax <keepdims = 0> (words_only, over_words)
    longer = Pad (here, one_more)
    next = Slice (longer, second, end, over_words)
    is_last = Sub (here, next)
    last_only = Mul (z, is_last)
    last = ReduceSum <keepdims = 0> (last_only, over_words)
    pooled = Concat <axis = 1> (mean, largest, last)
}}
"""


def word_size(about: dict[str, Any]) -> int | None:
    """How many numbers each word of an export of texts has, from what is written about the export;
    None where records are of one length."""
    match about.get("shape"):
        case [None, int(size)]:
            return size
    return None


def write_pooled(data: Path, out: Path, about: dict[str, Any], dims: int) -> None:
    """The export `data` again, with pooled records."""
    table = pq.read_table(data)
    flat = table["z"].combine_chunks()
    offsets, values = flat.offsets.to_numpy(), flat.values.to_numpy()
    if np.any(np.diff(offsets) % dims) or np.any(np.diff(offsets) == 0):
        raise PrivetError(f"{data} holds records that are not whole words of {dims} numbers.")
    rows = np.stack(
        [pooled(values[start:end].reshape(-1, dims)) for start, end in pairwise(offsets)]
    )
    column = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])
    new = table.set_column(table.schema.get_field_index("z"), "z", column)
    metadata = {"privet": json.dumps({**about, "shape": [rows.shape[1]]})}
    pq.write_table(new.replace_schema_metadata(metadata), out)


def pooled(z: Array) -> Array:
    """Words (words, d) to one vector of 3 d numbers.

    >>> pooled(np.array([[1.0, -2.0], [3.0, 0.0]], dtype=np.float32)).tolist()
    [2.0, -1.0, 3.0, 0.0, 3.0, 0.0]
    """
    return np.concatenate([z.mean(0), z.max(0), z[-1]]).astype(np.float32)


def with_pooling(graph: bytes, dims: int) -> bytes:
    """The graph of a model of pooled records, as a model of the records themselves: z is (n, words,
    dims), zeros after the last word."""
    first = parser.parse_model(POOLING.format(dims=dims, pooled=3 * dims))
    then = compose.add_prefix(onnx.load_from_string(graph), "task_", rename_outputs=False)
    joined = compose.merge_models(first, then, io_map=[("pooled", "task_z")])
    return bytes(joined.SerializeToString())
