"""An ONNX graph as a torch module, so that gradients pass through a model that somebody else
exported.

The graph is computed node by node with torch's own functions; an operator that is not in the table
(onnx_operators.py) is named in a sentence. The module is used only if it gives what onnxruntime
gives. (onnx2torch does the same, and needs torchvision.)
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn

from privet.core.errors import PrivetError, first_line, refuse
from privet.data.dataset import Array
from privet.methods.services.onnx_operators import OPERATORS
from privet.release.runtime import session

# Largest difference to onnxruntime, as a share of the largest score.
TOLERANCE = 1e-4
# What to do with a model that cannot be converted.
INSTEAD = "bring it as a torch module from Python"
# Which inputs of which operators are weights, where they are constants: they are trained where a
# game lets the model learn.
WEIGHTS = {
    "Conv": (1, 2),
    "Gemm": (0, 1, 2),
    "MatMul": (0, 1),
    "Add": (0, 1),
    "BatchNormalization": (1, 2),
    "LayerNormalization": (1, 2),
}
# Domains of the operators that ONNX itself defines.
STANDARD = ("", "ai.onnx")


class Converted(nn.Module):
    """The module of a graph with one input and one output; `name` is that of its file."""

    def __init__(self, model: onnx.ModelProto, name: str) -> None:
        super().__init__()
        graph = model.graph
        constants = {w.name: numpy_helper.to_array(w) for w in graph.initializer}
        constants |= {n.output[0]: _constant(n) for n in graph.node if n.op_type == "Constant"}
        self.nodes = _nodes(model, name)
        inputs = [value for value in graph.input if value.name not in constants]
        kinds = [value.type.tensor_type for value in inputs]
        refuse(
            (
                len(inputs) != 1,
                (
                    f"{name} has {len(inputs)} inputs, and a service takes records alone: export it"
                    " with one."
                ),
            ),
            (
                any(kind.elem_type != onnx.TensorProto.FLOAT for kind in kinds),
                (
                    f"The input of {name} is not float32, and gradients pass through floats only: "
                    "export it with a float input."
                ),
            ),
        )
        self.input, self.output = inputs[0].name, graph.output[0].name
        self.shape = [d.dim_value if d.HasField("dim_value") else None for d in kinds[0].shape.dim]
        self._register(constants)

    def _register(self, constants: dict[str, Array]) -> None:
        """Floats travel with the module, weights as parameters; whole numbers (shapes, axes) stay
        where Python reads them."""
        weights = {
            name
            for op, inputs, _, _ in self.nodes
            for place, name in enumerate(inputs)
            if place in WEIGHTS.get(op, ())
        }
        self.integers: dict[str, Tensor] = {}
        self.floats: dict[str, str] = {}
        for number, (name, value) in enumerate(constants.items()):
            tensor = torch.from_numpy(np.array(value))
            if not tensor.is_floating_point():
                self.integers[name] = tensor
                continue
            self.floats[name] = f"constant{number}"
            if name in weights and tensor.dim():
                self.register_parameter(self.floats[name], nn.Parameter(tensor.float()))
            else:
                self.register_buffer(self.floats[name], tensor.float())

    def forward(self, x: Tensor) -> Tensor:
        floats = {name: getattr(self, constant) for name, constant in self.floats.items()}
        known: dict[str, Any] = {"": None, self.input: x, **self.integers, **floats}
        for op, inputs, outputs, attributes in self.nodes:
            result = OPERATORS[op](attributes, *(known[name] for name in inputs))
            results = result if isinstance(result, tuple) else (result,)
            known.update(zip(outputs, results, strict=False))
        return known[self.output]  # type: ignore[no-any-return]


def read(path: Path) -> tuple[Converted, bytes, str]:
    """The module of an ONNX file, the graph with its weights inside, and the SHA-256 of the file
    (and of weights kept beside it)."""
    try:
        content = path.read_bytes()
        model = onnx.load_model_from_string(content)
        external = (e for w in model.graph.initializer for e in w.external_data)
        files = sorted({e.value for e in external if e.key == "location"})
        model = onnx.load(path) if files else model
        digest = hashlib.sha256(content)
        for name in files:
            digest.update((path.parent / name).read_bytes())
    except OSError as error:
        raise PrivetError(f"Cannot read {path}: {error.strerror or error}.") from None
    except Exception as error:
        raise PrivetError(f"{path} cannot be read as ONNX ({first_line(error)}).") from None
    return Converted(model, path.name), model.SerializeToString(), digest.hexdigest()


def check(converted: Converted, graph: bytes, x: Tensor, name: str) -> float:
    """The largest difference to onnxruntime on these records; PrivetError where it is more than
    TOLERANCE."""
    try:
        run = session(graph)
        size = converted.shape[0] or len(x)
        batches = x.numpy()[: len(x) // size * size].reshape(-1, size, *x.shape[1:])
        wanted = np.concatenate(
            [run.run([converted.output], {converted.input: batch})[0] for batch in batches]
        )
    except PrivetError as error:
        raise PrivetError(f"{name}: {error}") from None
    except Exception as error:
        raise PrivetError(f"{name} does not take these records ({first_line(error)}).") from None
    apart = np.inf
    with suppress(RuntimeError, ValueError, IndexError, KeyError, TypeError), torch.no_grad():
        scores = converted(torch.from_numpy(batches.reshape(-1, *x.shape[1:]))).numpy()
        if scores.shape == wanted.shape:
            apart = float(np.abs(scores - wanted).max() / max(1.0, np.abs(wanted).max()))
    if not apart <= TOLERANCE:
        if converted.shape[0]:
            raise PrivetError(
                f"{name} was exported for batches of {converted.shape[0]}: export it with a free "
                f"batch axis, or {INSTEAD}."
            )
        raise PrivetError(
            f"{name} as torch differs from onnxruntime by {apart:.1e}, more than {TOLERANCE}: "
            f"{INSTEAD}."
        )
    return apart


def _nodes(
    model: onnx.ModelProto, name: str
) -> list[tuple[str, list[str], list[str], dict[str, Any]]]:
    """Operator, inputs, outputs and attributes of every node that is no constant."""
    opset = next((o.version for o in model.opset_import if o.domain in STANDARD), 0)
    nodes = []
    for node in model.graph.node:
        if node.op_type == "Constant":
            continue
        if node.domain not in STANDARD or node.op_type not in OPERATORS:
            raise PrivetError(
                f"{name} uses the ONNX operator {node.op_type}, through which Privet passes no "
                f"gradients: {INSTEAD}."
            )
        attributes = {**_attributes(node), "opset": opset, "outputs": len(node.output)}
        nodes.append((node.op_type, list(node.input), list(node.output), attributes))
    return nodes


def _constant(node: onnx.NodeProto) -> Array:
    value = next(iter(_attributes(node).values()))
    if isinstance(value, torch.Tensor):
        return value.numpy()
    return np.asarray(value, np.float32 if "float" in node.attribute[0].name else None)


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    values = {}
    for attribute in node.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        if isinstance(value, onnx.TensorProto):
            value = torch.from_numpy(np.array(numpy_helper.to_array(value)))
        values[attribute.name] = value.decode() if isinstance(value, bytes) else value
    return values
