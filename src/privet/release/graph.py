"""The exported graph of a release: ONNX with noise as an input, a free batch axis, and for texts a
free time axis.

An export is checked before it is believed: the free axes must be free, and the graph must give what
the network gives, at sizes other than the one it was traced with. (A second LSTM export in one
process can silently freeze the time axis.)
"""

from __future__ import annotations

import logging
import warnings
from typing import Protocol

import numpy as np
import torch
from torch import nn

from privet.core.errors import PrivetError
from privet.data.dataset import Array
from privet.data.schema import Schema
from privet.nets.additive import Additive
from privet.release.noise import Noise
from privet.release.quantised import Quantised, holds_strange_graph
from privet.release.runtime import session
from privet.release.strangers import release_session


class Exportable(Protocol):
    """What an export needs of a release."""

    schema: Schema
    module: nn.Module
    noise: Noise | None

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Shape of one released record."""


TOLERANCE = 1e-4


def export(release: Exportable) -> bytes:
    """The graph of `release` as bytes, checked against the network."""
    device = next((t.device for t in release.module.state_dict().values()), torch.device("cpu"))
    release.module.cpu()
    try:
        graph = _quantised(release) or trace(release)
        check(release, graph)
    finally:
        release.module.to(device)
    return graph


def _quantised(release: Exportable) -> bytes | None:
    """The graph of a release that is in int8 already (quantised.py), with the noise and the grid of
    nets/additive.py behind its code."""
    module = release.module
    if isinstance(module, Quantised):
        return module.content
    if not (isinstance(module, Additive) and isinstance(module.body, Quantised)):
        return None
    import onnx
    from onnx import TensorProto, helper

    model = onnx.load_from_string(module.body.content)
    for node in model.graph.node:
        node.input[:] = ["code" if name == "z" else name for name in node.input]
        node.output[:] = ["code" if name == "z" else name for name in node.output]
    model.graph.initializer.extend(
        helper.make_tensor(name, TensorProto.FLOAT, [], [value])
        for name, value in (("scale", float(module.scale)), ("step", module.step))
    )
    rows = model.graph.input[0].type.tensor_type.shape.dim[0].dim_param
    model.graph.input.append(
        helper.make_tensor_value_info("noise", TensorProto.FLOAT, [rows, *release.shape])
    )
    steps = (
        ("Mul", "scale", "noise"),
        ("Add", "code", "scaled"),
        ("Div", "sum", "step"),
        ("Round", "steps"),
        ("Mul", "whole", "step"),
    )
    for (kind, *given), result in zip(steps, ("scaled", "sum", "steps", "whole", "z"), strict=True):
        model.graph.node.append(helper.make_node(kind, given, [result], name=f"noise_{result}"))
    content: bytes = model.SerializeToString()
    return content


def trace(release: Exportable) -> bytes:
    """The network as a graph, not checked yet."""
    free = 2 if release.schema.modality == "text" else 1
    return trace_module(release.module, example(release, 3), "z", free)


def trace_module(
    module: nn.Module, inputs: dict[str, Array], output: str, free_axes: int = 1
) -> bytes:
    """A network as an ONNX graph.

    Parameters:
        module: The network.
        inputs: Examples of its arguments, by the names that the graph's inputs get.
        output: The name of the graph's output.
        free_axes: So many first axes of every input may have any size.
    """
    free, fixed = torch.export.Dim.AUTO, torch.export.Dim.STATIC
    axes = [
        {axis: free if axis < free_axes else fixed for axis in range(value.ndim)}
        for value in inputs.values()
    ]
    loud = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loud]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loud:
            logger.setLevel(logging.ERROR)
        program = torch.onnx.export(
            module.eval(),
            tuple(torch.from_numpy(value) for value in inputs.values()),
            dynamo=True,
            verbose=False,
            input_names=list(inputs),
            output_names=[output],
            dynamic_shapes=tuple(axes),
            external_data=False,
        )
        for logger, level in zip(loud, levels, strict=True):
            logger.setLevel(level)
    assert program is not None
    graph: bytes = program.model_proto.SerializeToString()
    return graph


def example(release: Exportable, n: int, length: int = 11, seed: int = 0) -> dict[str, Array]:
    """Random inputs of the graph: right in form, without meaning."""
    x = release.schema.random(n, seed)
    if release.schema.modality == "text":
        x = np.resize(x, (n, length))
        x[0, length // 2 :] = 0
    inputs = {"x": x}
    if release.noise is not None:
        inputs["noise"] = release.noise.draw(n, length, seed)
    return inputs


def check(release: Exportable, graph: bytes) -> float:
    """The largest difference between graph and network at several sizes; PrivetError where it is
    more than TOLERANCE."""
    run = (release_session if holds_strange_graph(release.module) else session)(graph)
    for put in run.get_inputs():
        frozen = isinstance(put.shape[0], int) or (
            release.schema.modality == "text" and isinstance(put.shape[1], int)
        )
        if frozen:
            raise PrivetError(
                f"The exported graph froze an axis of '{put.name}' to {put.shape}; this export"
                " cannot be used."
            )
    worst = 0.0
    for n, length in ((1, 7), (5, 23)):
        inputs = example(release, n, length, seed=n)
        with torch.inference_mode():
            wanted = release.module(*(torch.from_numpy(v) for v in inputs.values())).numpy()
        given = run.run(["z"], inputs)[0]
        if given.shape != wanted.shape:
            raise PrivetError(
                f"The exported graph gives {given.shape} where the network gives {wanted.shape}."
            )
        apart = np.maximum(np.abs(given - wanted) - grid(release), 0.0)
        worst = max(worst, float(apart.max() / max(1.0, np.abs(wanted).max())))
    if not worst <= TOLERANCE:
        raise PrivetError(
            f"The exported graph differs from the network by {worst:.1e}, more than {TOLERANCE}."
        )
    return worst


def grid(release: Exportable) -> float:
    """The step of the grid that releases are rounded to: two runtimes may round a value between two
    steps differently."""
    return 1.01 * release.module.step if isinstance(release.module, Additive) else 0.0
