"""A fitted scikit-learn histogram boosting as an ONNX graph, so that it can be kept without pickle.

The trees become one TreeEnsembleRegressor that sums the raw scores; a sigmoid, a softmax or nothing
follows. scikit-learn compares in float64 and the graph in float32: each threshold is rounded down
to a float32, between which and the threshold no float32 input lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from privet.data.dataset import Array


def trees_to_onnx(model: Any, features: int) -> bytes:
    """The graph: `z` (n, features) to `answers`, probabilities (n, classes) or numbers (n, 1)."""
    classes = len(model.classes_) if hasattr(model, "classes_") else 0
    scores = classes if classes > 2 else 1
    columns: dict[str, list[Any]] = {
        key: []
        for key in (
            "nodes_treeids",
            "nodes_nodeids",
            "nodes_featureids",
            "nodes_values",
            "nodes_modes",
            "nodes_truenodeids",
            "nodes_falsenodeids",
            "nodes_missing_value_tracks_true",
            "target_treeids",
            "target_nodeids",
            "target_ids",
            "target_weights",
        )
    }
    trees = [(tree.nodes, k) for round_ in model._predictors for k, tree in enumerate(round_)]
    for number, (nodes, target) in enumerate(trees):
        leaf = nodes["is_leaf"].astype(bool)
        size = len(nodes)
        columns["nodes_treeids"] += [number] * size
        columns["nodes_nodeids"] += range(size)
        columns["nodes_featureids"] += np.where(leaf, 0, nodes["feature_idx"]).tolist()
        columns["nodes_values"] += np.where(leaf, 0.0, _down(nodes["num_threshold"])).tolist()
        columns["nodes_modes"] += ["LEAF" if is_leaf else "BRANCH_LEQ" for is_leaf in leaf]
        columns["nodes_truenodeids"] += np.where(leaf, 0, nodes["left"]).tolist()
        columns["nodes_falsenodeids"] += np.where(leaf, 0, nodes["right"]).tolist()
        columns["nodes_missing_value_tracks_true"] += (
            np.where(leaf, 0, nodes["missing_go_to_left"]).astype(int).tolist()
        )
        at = np.flatnonzero(leaf)
        columns["target_treeids"] += [number] * len(at)
        columns["target_nodeids"] += at.tolist()
        columns["target_ids"] += [target] * len(at)
        columns["target_weights"] += nodes["value"][at].astype(np.float32).tolist()
    base = np.ravel(model._baseline_prediction).astype(float).tolist()
    attributes: dict[str, Any] = dict(columns)
    made = [
        helper.make_node(
            "TreeEnsembleRegressor",
            ["z"],
            ["scores"],
            domain="ai.onnx.ml",
            n_targets=scores,
            base_values=base,
            aggregate_function="SUM",
            post_transform="NONE",
            **attributes,
        )
    ]
    if classes > 2:
        made.append(helper.make_node("Softmax", ["scores"], ["answers"], axis=1))
    elif classes == 2:
        one = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])
        made += [
            helper.make_node("Constant", [], ["one"], value=one),
            helper.make_node("Sigmoid", ["scores"], ["yes"]),
            helper.make_node("Sub", ["one", "yes"], ["no"]),
            helper.make_node("Concat", ["no", "yes"], ["answers"], axis=1),
        ]
    else:
        made.append(helper.make_node("Identity", ["scores"], ["answers"]))
    return finished(made, "boosting", features, classes)


def finished(
    nodes: Sequence[Any], name: str, features: int, classes: int, values: Sequence[Any] = ()
) -> bytes:
    """A checked graph from `z` (n, features) to `answers` (n, classes), or (n, 1) for a number."""
    graph = helper.make_graph(
        list(nodes),
        name,
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["n", features])],
        [helper.make_tensor_value_info("answers", TensorProto.FLOAT, ["n", max(classes, 1)])],
        list(values),
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)],
        ir_version=9,
    )
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _down(thresholds: Array) -> Array:
    """The largest float32 not above each threshold."""
    near = thresholds.astype(np.float32)
    return np.where(
        near.astype(np.float64) > thresholds, np.nextafter(near, np.float32(-np.inf)), near
    )
