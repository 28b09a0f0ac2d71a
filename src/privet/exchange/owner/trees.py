"""A fitted scikit-learn histogram boosting as an ONNX graph, so that it can be kept without pickle.

The trees become one TreeEnsembleRegressor that sums the raw scores; a sigmoid, a softmax or nothing
follows. scikit-learn compares in float64 and the graph in float32: each threshold is rounded down
to a float32, between which and the threshold no float32 input lies. (skl2onnx rounds to the nearest
one, and then answers otherwise where a number is the threshold.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from privet.data.dataset import Array
from privet.exchange.owner.task_graph import task_graph

# From the sum of the trees to answers, by the number of classes.
ANSWERS = {
    0: "answers = Identity (scores)",
    2: (
        """
        yes = Sigmoid (scores)
        one = Constant <value_float = 1.0> ()
        no = Sub (one, yes)
        answers = Concat <axis = 1> (no, yes)
    """
    ),
}
MORE_CLASSES = "answers = Softmax <axis = 1> (scores)"


def trees_to_onnx(model: Any, features: int) -> bytes:
    """The graph: `z` (n, features) to `answers`, probabilities (n, classes) or numbers (n, 1)."""
    classes = len(model.classes_) if hasattr(model, "classes_") else 0
    trees = [(tree.nodes, k) for trees in model._predictors for k, tree in enumerate(trees)]
    columns = [_columns(number, *tree) for number, tree in enumerate(trees)]
    attributes: dict[str, Any] = {
        name: np.concatenate([one[name] for one in columns]).tolist() for name in columns[0]
    }
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["z"],
        ["scores"],
        domain="ai.onnx.ml",
        n_targets=classes if classes > 2 else 1,
        base_values=np.ravel(model._baseline_prediction).astype(float).tolist(),
        aggregate_function="SUM",
        post_transform="NONE",
        **attributes,
    )
    return task_graph(ANSWERS.get(classes, MORE_CLASSES), features, classes, first=[node])


def _columns(number: int, nodes: Array, target: int) -> dict[str, Array]:
    """The attributes of one tree, which adds to the score `target`."""
    leaf = nodes["is_leaf"].astype(bool)
    leaves = np.flatnonzero(leaf)
    return {
        "nodes_treeids": np.full(len(nodes), number),
        "nodes_nodeids": np.arange(len(nodes)),
        "nodes_featureids": np.where(leaf, 0, nodes["feature_idx"]),
        "nodes_values": np.where(leaf, 0.0, _down(nodes["num_threshold"])),
        "nodes_modes": np.where(leaf, "LEAF", "BRANCH_LEQ"),
        "nodes_truenodeids": np.where(leaf, 0, nodes["left"]),
        "nodes_falsenodeids": np.where(leaf, 0, nodes["right"]),
        "nodes_missing_value_tracks_true": np.where(leaf, 0, nodes["missing_go_to_left"]),
        "target_treeids": np.full(len(leaves), number),
        "target_nodeids": leaves,
        "target_ids": np.full(len(leaves), target),
        "target_weights": nodes["value"][leaves].astype(np.float32),
    }


def _down(thresholds: Array) -> Array:
    """The largest float32 not above each threshold."""
    near = thresholds.astype(np.float32)
    return np.where(
        near.astype(np.float64) > thresholds, np.nextafter(near, np.float32(-np.inf)), near
    )
