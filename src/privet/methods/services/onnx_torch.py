"""An ONNX graph as a torch module, so that gradients pass through a model that somebody else
exported.

The graph is computed node by node with torch's own functions; an operator that is not in the table
(onnx_operators.py) is named in a sentence. Nothing is believed before the module gives what
onnxruntime gives.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn

from privet.core.errors import PrivetError
from privet.data.dataset import Array
from privet.methods.services.onnx_operators import OPERATORS
from privet.release.runtime import session

TOLERANCE = 1e-4
"""Largest difference to onnxruntime, as a share of the largest score."""
INSTEAD = "bring it as a torch module from Python"

LEARNED = {
    "Conv": (1, 2),
    "Gemm": (0, 1, 2),
    "MatMul": (0, 1),
    "Add": (0, 1),
    "BatchNormalization": (1, 2),
    "LayerNormalization": (1, 2),
}
"""Which constants of which operators are weights: they learn on where a game lets the model
learn."""


class Converted(nn.Module):
    """A graph with one input and one output."""

    def __init__(self, model: onnx.ModelProto, where: str) -> None:
        super().__init__()
        graph = model.graph
        constants = {w.name: numpy_helper.to_array(w) for w in graph.initializer}
        constants |= {n.output[0]: _constant(n) for n in graph.node if n.op_type == "Constant"}
        nodes = [n for n in graph.node if n.op_type != "Constant"]
        self.nodes = [(n.op_type, list(n.input), list(n.output), _attributes(n)) for n in nodes]
        self.opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
        foreign = next(
            (
                n.op_type
                for n in nodes
                if n.domain not in ("", "ai.onnx") or n.op_type not in OPERATORS
            ),
            None,
        )
        if foreign is not None:
            raise PrivetError(
                f"{where} uses the ONNX operator {foreign}, through which Privet passes no gradients: {INSTEAD}."
            )
        puts = [p for p in graph.input if p.name not in constants]
        if len(puts) != 1:
            raise PrivetError(
                f"{where} has {len(puts)} inputs, and a service takes records alone: export it with one."
            )
        self.put, self.got = puts[0].name, graph.output[0].name
        kind = puts[0].type.tensor_type
        if kind.elem_type != onnx.TensorProto.FLOAT:
            raise PrivetError(
                f"The input of {where} is not float32, and gradients pass through floats only: export it with a float input."
            )
        self.shape = [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim]
        self._keep(constants)

    def _keep(self, constants: dict[str, Array]) -> None:
        """Floats travel with the module, weights as parameters; whole numbers (shapes, axes) stay
        where Python reads them."""
        weights = {
            name
            for op, puts, _, _ in self.nodes
            for i in LEARNED.get(op, ())
            if i < len(puts)
            for name in (puts[i],)
        }
        self.whole: dict[str, Tensor] = {}
        self.kept: dict[str, str] = {}
        for number, (name, value) in enumerate(constants.items()):
            tensor = torch.from_numpy(np.array(value))
            if not tensor.is_floating_point():
                self.whole[name] = tensor
                continue
            self.kept[name] = f"constant{number}"
            if name in weights and tensor.dim():
                self.register_parameter(self.kept[name], nn.Parameter(tensor.float()))
            else:
                self.register_buffer(self.kept[name], tensor.float())

    def forward(self, x: Tensor) -> Tensor:
        known: dict[str, Any] = {
            self.put: x,
            **self.whole,
            **{name: getattr(self, kept) for name, kept in self.kept.items()},
        }
        for op, puts, gets, attributes in self.nodes:
            out = OPERATORS[op](
                [known[name] if name else None for name in puts],
                {**attributes, "opset": self.opset, "outputs": len(gets)},
            )
            known.update(zip(gets, out if isinstance(out, tuple) else (out,), strict=False))
        return known[self.got]  # type: ignore[no-any-return]


def read(path: Path) -> tuple[Converted, bytes, str]:
    """The module of an ONNX file, the graph with its weights inside, and the SHA-256 of the file
    (and of weights kept beside it)."""
    try:
        content = path.read_bytes()
        bare = onnx.load_model_from_string(content)
        beside = sorted(
            {
                e.value
                for w in bare.graph.initializer
                for e in w.external_data
                if e.key == "location"
            }
        )
        model = onnx.load(path) if beside else bare
        digest = hashlib.sha256(content)
        for name in beside:
            digest.update((path.parent / name).read_bytes())
    except OSError as error:
        raise PrivetError(f"Cannot read {path}: {error.strerror or error}.") from None
    except Exception as error:
        raise PrivetError(
            f"{path} cannot be read as ONNX ({str(error).splitlines()[0][:120]})."
        ) from None
    return Converted(model, path.name), model.SerializeToString(), digest.hexdigest()


def check(converted: Converted, graph: bytes, x: Tensor, where: str) -> float:
    """The largest difference to onnxruntime on these records; PrivetError where it is more than
    TOLERANCE."""
    try:
        run = session(graph)
        size = converted.shape[0] or len(x)
        rows = x.numpy()[: len(x) // size * size]
        parts = [
            run.run([converted.got], {converted.put: rows[at : at + size]})[0]
            for at in range(0, len(rows), size)
        ]
        wanted = np.concatenate(parts)
    except PrivetError as error:
        raise PrivetError(f"{where}: {error}") from None
    except Exception as error:
        raise PrivetError(
            f"{where} does not take these records ({str(error).splitlines()[0][:160]})."
        ) from None
    try:
        with torch.no_grad():
            given = converted(torch.from_numpy(rows)).numpy()
        apart = (
            float(np.abs(given - wanted).max() / max(1.0, np.abs(wanted).max()))
            if given.shape == wanted.shape
            else np.inf
        )
    except (RuntimeError, ValueError, IndexError, KeyError, TypeError):
        apart = np.inf
    if not apart <= TOLERANCE:
        if converted.shape[0]:
            raise PrivetError(
                f"{where} was exported for batches of {converted.shape[0]}: export it with a free batch axis, or {INSTEAD}."
            )
        raise PrivetError(
            f"{where} as torch differs from onnxruntime by {apart:.1e}, more than {TOLERANCE}: {INSTEAD}."
        )
    return apart


def _constant(node: onnx.NodeProto) -> Array:
    value = next(iter(_attributes(node).values()))
    return (
        value.numpy()
        if isinstance(value, torch.Tensor)
        else np.asarray(value, np.float32 if "float" in node.attribute[0].name else None)
    )


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    found = {}
    for attribute in node.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        if isinstance(value, onnx.TensorProto):
            value = torch.from_numpy(np.array(numpy_helper.to_array(value)))
        found[attribute.name] = value.decode() if isinstance(value, bytes) else value
    return found
