"""`privet task`: the collector's own model, trained on what participants let through, counted on
people it has not seen.

Gradient boosting, and perceptrons of several shapes (the first of them logistic regression), on the
*attack* people; the one that is best on the *select* people is kept as an ONNX graph and counted on
the *test* people, as everywhere in Privet.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from onnx import numpy_helper

from privet.adversaries.adversary import has_label
from privet.adversaries.mlp import MLP, TrainedMLP
from privet.adversaries.released import Released, released_parts
from privet.adversaries.stacked_mlps import EPSILON
from privet.core.errors import PrivetError
from privet.core.files import results_folder, write_bytes, write_text
from privet.data.dataset import Array, Attribute
from privet.data.table_files import READERS, kind_of, read_table
from privet.evidence.figures import Figure
from privet.evidence.predictions import judge
from privet.exchange.owner.pooling import with_pooling, word_size, write_pooled
from privet.exchange.owner.task_graph import task_graph
from privet.exchange.owner.trees import trees_to_onnx
from privet.release.foreign import from_vectors, released_columns
from privet.release.runtime import session

# Fewest records with the label.
MIN_RECORDS = 40


@dataclass(frozen=True)
class Task:
    """A model that was trained on released records.

    Parameters:
        label, values: What it answers; no values for a number.
        model: The kind that was kept.
        score: On *test*: balanced accuracy, or the share of variance explained.
        plain: On *test*: accuracy, or the mean absolute error.
        records: With the label, by part.
        tried: The score of every kind on *select*.
    """

    label: str
    values: tuple[str, ...]
    model: str
    score: Figure
    plain: Figure
    records: dict[str, int]
    tried: dict[str, float]


def train_task(data: Path, label: str, out: Path, seed: int = 0) -> Task:
    """Train a model on released records.

    Parameters:
        data: `export.parquet` of a campaign, or a file that `privet apply --keep LABEL` wrote:
            parquet or CSV. Records of free length are pooled first.
        label: The label to learn.
        out: Folder for `model.onnx` and `task.json`.
        seed: On one machine's CPU the same seed gives the same result.
    """
    with results_folder(out), tempfile.TemporaryDirectory() as scratch:
        if kind_of(data) in READERS:
            in_text, data = data, Path(scratch) / f"{data.stem}.parquet"
            read_table(in_text)[0].to_parquet(data)
        about = released_columns(data)[1]
        if label in about.get("private", ()):
            raise PrivetError(f"'{label}' is what the release hides: it is not a task.")
        dims, form = word_size(about), "z, float32, laid flat"
        if dims is None:
            task, graph = _train(data, label, seed)
        else:
            pooled = Path(scratch) / "pooled.parquet"
            write_pooled(data, pooled, about, dims)
            task, graph = _train(pooled, label, seed)
            graph = with_pooling(graph, dims)
            form = f"z, float32, (records, words, {dims}), zeros after the last word"
        output = "probabilities" if task.values else "number"
        content = {**asdict(task), "input": form, "output": output}
        write_bytes(out / "model.onnx", graph)
        write_text(out / "task.json", json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return task


def _train(data: Path, label: str, seed: int) -> tuple[Task, bytes]:
    """The best model on *select*, counted on *test*, and its graph."""
    release, dataset = from_vectors(data, [label], ())
    attribute = dataset.attribute(label)
    if attribute.kind not in ("binary", "categorical", "number"):
        raise PrivetError(f"'{label}' is a {attribute.kind}; a task is a class or a number.")
    labelled = int(has_label(dataset.labels[label]).sum())
    if labelled < MIN_RECORDS:
        raise PrivetError(
            f"{labelled} records have an answer to '{label}', and at least {MIN_RECORDS} are "
            "needed."
        )
    dataset.require_labels([label], "task", "attack")
    parts = released_parts(release, dataset, [label], torch.device("cpu"))
    rows = {name: _rows(part) for name, part in parts.items()}
    graphs = {
        "boosting": _boosting(parts["attack"], rows["attack"], attribute, seed),
        **_perceptrons(parts, attribute, seed),
    }
    truth = {name: part.labels(label) for name, part in parts.items()}
    results = {}
    for name, graph in graphs.items():
        answers = [_answers(graph, rows[part], attribute) for part in ("select", "test")]
        results[name] = judge(
            truth["select"],
            answers[0],
            truth["test"],
            answers[1],
            parts["test"].people,
            attribute,
            "higher",
        )
    best = max(results, key=lambda name: results[name][0])
    records = {name: int(has_label(labels).sum()) for name, labels in truth.items()}
    tried = {name: round(result[0], 4) for name, result in results.items()}
    return Task(label, attribute.values, best, *results[best][1:3], records, tried), graphs[best]


def _rows(part: Released) -> Array:
    """Released records laid flat, as they are in the export."""
    return torch.cat([z.flatten(1) for z, _ in part.batches(512)]).numpy().astype(np.float32)


def _boosting(seen: Released, rows: Array, attribute: Attribute, seed: int) -> bytes:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    labels = seen.labels(attribute.name)
    labelled = has_label(labels)
    if attribute.is_class and len(np.unique(labels[labelled])) != attribute.classes:
        raise PrivetError(
            f"Some answers to '{attribute.name}' were given by nobody among the people to learn "
            "from: collect more."
        )
    kind = HistGradientBoostingClassifier if attribute.is_class else HistGradientBoostingRegressor
    model = kind(early_stopping=False, random_state=seed, max_leaf_nodes=15, learning_rate=0.06)
    return trees_to_onnx(model.fit(rows[labelled], labels[labelled]), rows.shape[1])


def _perceptrons(parts: dict[str, Released], attribute: Attribute, seed: int) -> dict[str, bytes]:
    shapes = {
        "logistic" if attribute.is_class else "linear": (),
        "perceptron": (128,),
        "deep perceptron": (256, 128),
    }
    graphs = {}
    for name, shape in shapes.items():
        adversary = MLP(shapes=(shape,), whites=(False,), rates=(1e-3, 1e-2))
        trained = adversary.attack(parts["attack"], parts["select"], attribute, seed)
        graphs[name] = _perceptron_graph(trained, parts["attack"], attribute)
    return graphs


def _perceptron_graph(trained: TrainedMLP, seen: Released, attribute: Attribute) -> bytes:
    """A trained perceptron as ONNX, from the record on.

    How vectors were made of records is an affine map, found by asking for its columns; batch
    normalisation after training is a scale and a shift. The linear layers take in both.
    """
    shape = tuple(size or 1 for size in seen.view.shape)
    size = int(np.prod(shape))
    units = torch.cat([torch.zeros(1, size), torch.eye(size)])
    vectors = torch.cat(
        [
            trained.transform(seen.flattening(part.reshape(-1, *shape)))
            for part in torch.split(units, 512)
        ]
    ).double()
    slope, shift = (vectors[1:] - vectors[0]).T, vectors[0]
    stack = trained.stack.stack
    depth, layers = len(stack.sizes) - 1, [layer.double() for layer in stack.layers()]
    nodes, values = [], []
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
            weight, bias = weight @ slope, bias + weight @ shift
        for name, value in (("weight", weight), ("bias", bias)):
            values.append(numpy_helper.from_array(value.float().numpy(), f"{name}{k}"))
        before = f"layer{k - 1}" if k else "z"
        nodes.append(f"sum{k} = Gemm <transB = 1> ({before}, weight{k}, bias{k})")
        nodes.append(f"layer{k} = Relu (sum{k})")
    end = "Softmax <axis = 1>" if attribute.is_class else "Identity"
    nodes[-1] = f"answers = {end} (sum{depth - 1})"
    return task_graph("\n".join(nodes), size, attribute.classes, values=values)


def _answers(graph: bytes, rows: Array, attribute: Attribute) -> Array:
    """What the graph that is kept answers: it is judged as it will be used."""
    answers = session(graph).run(["answers"], {"z": rows})[0].astype(np.float64)
    return np.asarray(answers if attribute.is_class else answers[:, 0])
