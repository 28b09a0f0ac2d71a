"""`privet task`: the collector's own model, trained on what participants let through, counted on
people it has not seen.

Gradient boosting, and perceptrons of several shapes (the first of them logistic regression), on the
*attack* people; the one that is best on the *select* people is kept as an ONNX graph and counted on
the *test* people, as everywhere in Privet.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from onnx import helper, numpy_helper

from privet.adversaries.adversary import has_label
from privet.adversaries.mlp import MLP, TrainedMLP
from privet.adversaries.released import Released, released_parts
from privet.adversaries.stacked_mlps import EPSILON
from privet.core.errors import PrivetError
from privet.core.files import writable_folder, write_bytes, write_text
from privet.data.dataset import Array, Attribute
from privet.evidence.figures import Figure
from privet.evidence.predictions import judge
from privet.exchange.owner import pooling
from privet.exchange.owner.trees import finished, trees_to_onnx
from privet.release.foreign import from_vectors
from privet.release.runtime import session

LEAST = 40
"""Fewest records with the label."""


@dataclass(frozen=True)
class Task:
    label: str
    values: tuple[str, ...]
    model: str
    """The one that was kept."""
    score: Figure
    """On *test*: balanced accuracy, or the share of variance explained."""
    plain: Figure
    records: dict[str, int]
    tried: dict[str, float]
    """Every model's score on *select*."""


Model = Callable[[Array], Array]


def train(data: Path, label: str, out: Path, seed: int = 0) -> Task:
    """Train a model of `label` on an export; writes model.onnx and task.json to `out`. Records of
    free length are pooled first."""
    words = pooling.width(data)
    if words is None:
        return _train(data, label, out, seed, None)
    with tempfile.TemporaryDirectory() as folder:
        pooled = Path(folder) / "pooled.parquet"
        pooling.write_pooled(data, pooled, words)
        return _train(pooled, label, out, seed, words)


def _train(data: Path, label: str, out: Path, seed: int, words: int | None) -> Task:
    release, dataset = from_vectors(data, [label], ())
    hidden = _private(data)
    if label in hidden:
        raise PrivetError(f"'{label}' is what the release hides: it is not a task.")
    attribute = dataset.attribute(label)
    if attribute.kind not in ("binary", "categorical", "number"):
        raise PrivetError(f"'{label}' is a {attribute.kind}; a task is a class or a number.")
    there = int(has_label(dataset.labels[label]).sum())
    if there < LEAST:
        raise PrivetError(
            f"{there} records have an answer to '{label}', and at least {LEAST} are needed."
        )
    dataset.require_labels([label], "task", "attack")
    undo = writable_folder(out)
    try:
        parts = released_parts(release, dataset, [label], torch.device("cpu"))
        rows = {name: _rows(part) for name, part in parts.items()}
        graphs = {
            "boosting": _boosting(parts["attack"], rows["attack"], attribute, seed),
            **_perceptrons(parts, attribute, seed),
        }
        truth = {name: part.labels(label) for name, part in parts.items()}
        tried: dict[str, tuple[float, Figure, Figure]] = {}
        for name, graph in graphs.items():
            run = _answers(graph, attribute)
            on_select, score, plain, _ = judge(
                truth["select"],
                run(rows["select"]),
                truth["test"],
                run(rows["test"]),
                parts["test"].people,
                attribute,
                "higher",
            )
            tried[name] = on_select, score, plain
        best = max(tried, key=lambda name: tried[name][0])
        sizes = {name: int(has_label(labels).sum()) for name, labels in truth.items()}
        task = Task(
            label,
            attribute.values,
            best,
            *tried[best][1:],
            sizes,
            {name: round(one[0], 4) for name, one in tried.items()},
        )
        write_bytes(
            out / "model.onnx",
            graphs[best] if words is None else pooling.before(graphs[best], words),
        )
        write_text(
            out / "task.json", json.dumps(_json(task, words), indent=1, ensure_ascii=False) + "\n"
        )
    except BaseException:
        undo()
        raise
    return task


def _rows(part: Released) -> Array:
    """Released records laid flat, as they are in the export."""
    return torch.cat([z.flatten(1) for z, _ in part.batches(512)]).numpy().astype(np.float32)


def _boosting(seen: Released, rows: Array, attribute: Attribute, seed: int) -> bytes:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    labels = seen.labels(attribute.name)
    there = has_label(labels)
    if attribute.is_class and len(np.unique(labels[there])) != attribute.classes:
        raise PrivetError(
            f"Some answers to '{attribute.name}' were given by nobody among the people to learn from: collect more."
        )
    kind = HistGradientBoostingClassifier if attribute.is_class else HistGradientBoostingRegressor
    model = kind(
        early_stopping=False, random_state=seed, max_leaf_nodes=15, learning_rate=0.06
    ).fit(rows[there], labels[there])
    return trees_to_onnx(model, rows.shape[1])


def _perceptrons(parts: dict[str, Released], attribute: Attribute, seed: int) -> dict[str, bytes]:
    shapes = {
        "logistic" if attribute.is_class else "linear": (),
        "perceptron": (128,),
        "deep perceptron": (256, 128),
    }
    found = {}
    for name, shape in shapes.items():
        adversary = MLP(shapes=(shape,), whites=(False,), rates=(1e-3, 1e-2))
        found[name] = _graph(
            adversary.attack(parts["attack"], parts["select"], attribute, seed),
            parts["attack"],
            attribute,
        )
    return found


def _graph(trained: TrainedMLP, seen: Released, attribute: Attribute) -> bytes:
    """A trained perceptron as ONNX, from the record on.

    How vectors were made of records is an affine map, found by asking for its columns; batch
    normalisation after training is a scale and a shift. The linear layers take in both.
    """
    shape = tuple(size or 1 for size in seen.view.shape)
    size = int(np.prod(shape))
    ask = torch.cat([torch.zeros(1, size), torch.eye(size)])
    vectors = torch.cat(
        [
            trained.transform(seen.flattening(part.reshape(-1, *shape)))
            for part in torch.split(ask, 512)
        ]
    ).double()
    turn, shift = (vectors[1:] - vectors[0]).T, vectors[0]
    stack = trained.stack.stack
    depth, layers = len(stack.sizes) - 1, [layer.double() for layer in stack.layers()]
    nodes, values, last = [], [], "z"
    for k in range(depth):
        weight, bias = layers[k][0], layers[depth + k][0, :, 0]
        if k < depth - 1:
            scale = (stack.variances[k][0].double() + EPSILON).rsqrt()
            weight, bias = weight * scale, bias - stack.means[k][0, :, 0].double() * scale[:, 0]
        elif attribute.is_class:
            weight, bias = weight[: attribute.classes], bias[: attribute.classes]
        else:
            mean, deviation = trained.stack.scales[0]
            weight, bias = weight[:1] * deviation, bias[:1] * deviation + mean
        if k == 0:
            weight, bias = weight @ turn, bias + weight @ shift
        values += [
            numpy_helper.from_array(value.float().numpy(), f"{name}{k}")
            for name, value in (("weight", weight), ("bias", bias))
        ]
        nodes.append(
            helper.make_node("Gemm", [last, f"weight{k}", f"bias{k}"], [f"sum{k}"], transB=1)
        )
        last = f"sum{k}"
        if k < depth - 1:
            nodes.append(helper.make_node("Relu", [last], [f"layer{k}"]))
            last = f"layer{k}"
    nodes.append(
        helper.make_node("Softmax", [last], ["answers"], axis=1)
        if attribute.is_class
        else helper.make_node("Identity", [last], ["answers"])
    )
    return finished(nodes, "perceptron", size, attribute.classes, values)


def _answers(graph: bytes, attribute: Attribute) -> Model:
    """What the graph that is kept answers: it is judged as it will be used."""
    run = session(graph)

    def answer(rows: Array) -> Array:
        out = np.asarray(run.run(["answers"], {"z": rows})[0], dtype=np.float64)
        return out if attribute.is_class else out[:, 0]

    return answer


def _private(data: Path) -> list[str]:
    try:
        about = json.loads((pq.read_schema(data).metadata or {}).get(b"privet", b"{}"))
        return [str(name) for name in about.get("private", [])]
    except (ValueError, TypeError, AttributeError):
        return []


def _json(task: Task, words: int | None) -> dict[str, Any]:
    form = (
        "z, float32, laid flat"
        if words is None
        else f"z, float32, (records, words, {words}), zeros after the last word"
    )
    return {**asdict(task), "input": form, "output": "probabilities" if task.values else "number"}
