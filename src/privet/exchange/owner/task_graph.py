"""The graph of a task model, in ONNX's own text: released records in, answers out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import parser

MODEL = """
<ir_version: 9, opset_import: ["": 18, "ai.onnx.ml": 3]>
task (float[n, {features}] z) => (float[n, {outputs}] answers) {{ {nodes} }}
"""


def task_graph(
    nodes: str,
    features: int,
    classes: int,
    *,
    first: Sequence[Any] = (),
    values: Sequence[Any] = (),
) -> bytes:
    """A checked graph from `z` (n, features) to `answers` (n, classes), or (n, 1) for a number.

    Parameters:
        nodes: In ONNX's text.
        features, classes: Sizes of `z` and `answers`; 0 classes for a number.
        first: Nodes before those.
        values: Tensors that the nodes name.
    """
    text = MODEL.format(features=features, outputs=max(classes, 1), nodes=nodes)
    model = parser.parse_model(text)
    after = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend([*first, *after])
    model.graph.initializer.extend(values)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())
