"""Records of free length - a vector for each word of a text - as one vector, so that a task can be
learned from them.

    pooled(z) = [mean over words | largest over words | last word],    a word being a position that is not all zeros

and the same as the first nodes of a model's graph, which then takes records as they were released,
filled up with zeros.
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
from onnx import TensorProto, helper, numpy_helper

from privet.core.errors import PrivetError
from privet.data.dataset import Array

WAYS = 3
"""Vectors that one is pooled to."""
FAR = 1e9
"""Below every released number: what an absent word counts in the largest."""


def width(data: Path) -> int | None:
    """Of an export of texts, how many numbers each word has; None where records are of one
    length."""
    shape = _about(data).get("shape")
    free = (
        isinstance(shape, list)
        and len(shape) == 2
        and shape[0] is None
        and isinstance(shape[1], int)
    )
    return int(shape[1]) if free else None  # type: ignore[index]


def write_pooled(data: Path, out: Path, dims: int) -> None:
    """The export again, with pooled records."""
    table = pq.read_table(data)
    flat = table["z"].combine_chunks()
    offsets, values = flat.offsets.to_numpy(), flat.values.to_numpy()
    if np.any(np.diff(offsets) % dims) or np.any(np.diff(offsets) == 0):
        raise PrivetError(f"{data} holds records that are not whole words of {dims} numbers.")
    rows = np.stack(
        [pooled(values[start:end].reshape(-1, dims)) for start, end in pairwise(offsets)]
    )
    column = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])
    about = {**_about(data), "shape": [rows.shape[1]]}
    new = table.set_column(table.schema.get_field_index("z"), "z", column)
    pq.write_table(new.replace_schema_metadata({"privet": json.dumps(about)}), out)


def pooled(z: Array) -> Array:
    """Words (words, d) to one vector of 3 d numbers.

    >>> pooled(np.array([[1.0, -2.0], [3.0, 0.0]], dtype=np.float32)).tolist()
    [2.0, -1.0, 3.0, 0.0, 3.0, 0.0]
    """
    return np.concatenate([z.mean(0), z.max(0), z[-1]]).astype(np.float32)


def before(graph: bytes, dims: int) -> bytes:
    """The graph of a model of pooled records, as a model of the records themselves: z is (n, words,
    dims), zeros after the last word."""
    model = onnx.load_from_string(graph)
    old = model.graph
    values = {
        "p_far": np.float32(-FAR),
        "p_none": np.float32(0),
        "p_words": np.array([1]),
        "p_depth": np.array([2]),
        "p_after": np.array([0, 0, 0, 0, 1, 0]),
        "p_from": np.array([1]),
        "p_to": np.array([2**31]),
    }
    nodes: list[Any] = [
        helper.make_node("Abs", ["z"], ["p_size"]),
        helper.make_node("ReduceMax", ["p_size", "p_depth"], ["p_most"], keepdims=1),
        helper.make_node("Greater", ["p_most", "p_none"], ["p_is"]),
        helper.make_node("Cast", ["p_is"], ["p_here"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["p_here", "p_words"], ["p_count"], keepdims=0),
        helper.make_node("ReduceSum", ["z", "p_words"], ["p_sum"], keepdims=0),
        helper.make_node("Div", ["p_sum", "p_count"], ["p_mean"]),
        helper.make_node("Where", ["p_is", "z", "p_far"], ["p_there"]),
        helper.make_node("ReduceMax", ["p_there", "p_words"], ["p_largest"], keepdims=0),
        # A word is the last one if the position after it is none.
        helper.make_node("Pad", ["p_here", "p_after"], ["p_longer"]),
        helper.make_node("Slice", ["p_longer", "p_from", "p_to", "p_words"], ["p_next"]),
        helper.make_node("Sub", ["p_here", "p_next"], ["p_ends"]),
        helper.make_node("Mul", ["z", "p_ends"], ["p_final"]),
        helper.make_node("ReduceSum", ["p_final", "p_words"], ["p_last"], keepdims=0),
        helper.make_node("Concat", ["p_mean", "p_largest", "p_last"], ["pooled"], axis=1),
    ]
    for node in old.node:
        node.input[:] = ["pooled" if name == "z" else name for name in node.input]
    made = helper.make_graph(
        [*nodes, *old.node],
        old.name,
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["n", "words", dims])],
        old.output,
        [
            *old.initializer,
            *(numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()),
        ],
    )
    found: bytes = helper.make_model(
        made, opset_imports=model.opset_import, ir_version=model.ir_version
    ).SerializeToString()
    return found


def _about(data: Path) -> dict[str, Any]:
    try:
        about = json.loads((pq.read_schema(data).metadata or {}).get(b"privet", b"{}"))
    except (OSError, ValueError, pa.ArrowException):
        return {}
    return about if isinstance(about, dict) else {}
