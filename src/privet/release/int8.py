"""int8: the graph of a release with its products in eight bits, for browsers and telephones.

Static quantisation (onnxruntime's, QDQ): scales of the inputs of every product are set from *fit*
records, one scale a channel of the weights; weights take seven bits, because processors without
VNNI saturate sums of eight-bit products, and a release must not depend on the processor. Whatever
depends on the noise stays float: noise of another law would not be what the card says.

An int8 release is another function of the record. Nothing is assumed in a certificate of the code c
but that it looks at one record at a time, which with fixed scales c' in int8 does too; so z = c'(x)
+ sigma N(0, I) can be certified from codes c'(x) of *test* people. But the certificate of c says
nothing about c', and does not come along.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from privet.core.errors import PrivetError
from privet.data.dataset import Array, Dataset
from privet.nets.additive import Additive
from privet.release.graph import trace
from privet.release.quantised import Quantised
from privet.release.release import Release
from privet.release.strangers import trust

# Operators that are computed in int8; all others stay float.
PRODUCTS = ("Conv", "Gemm", "MatMul")
# Records of *fit* from which scales are set, and how many of them at a time.
CALIBRATION = 256
BATCH = 32
# What a card says of the float release only.
STALE = ("in_game", "chosen", "certificate", "history", "sha256")


def quantise(release: Release, data: Dataset, seed: int = 0) -> Release:
    """The int8 form of a release, with scales from *fit* records of `data`. Nothing is audited
    here."""
    if "int8" in release.card:
        raise PrivetError("This release is in int8 already.")
    inputs = release.schema.inputs(data.part("fit"))
    x = inputs[np.sort(np.random.default_rng(seed).permutation(len(inputs))[:CALIBRATION])]
    card = {key: value for key, value in release.card.items() if key not in STALE}
    card["int8"] = {"of": release.card.get("sha256"), "calibrated_on": len(x)}
    # Alone, where that is all that the noise touches: then the code can be looked at, and
    # certified, and get other noise.
    if type(release.module) is Additive and None not in release.shape:
        body = release.module.get_submodule("body")
        content = static(trace(Release(release.schema, release.network, body, None, {})), x)
        scale = float(release.module.get_buffer("scale"))
        module: Any = Additive(Quantised.of(content, release.shape), scale)
        more = {"scale": scale}
    else:
        length, law = x.shape[1] if x.ndim > 1 else 0, release.noise
        noise = None if law is None else law.draw(len(x), length, seed)
        content = static(trace(release), x, noise)
        module, more = Quantised.of(content, release.shape), {}
    trust(content)  # made here, of a network that is no stranger's program
    settings = {"size": len(content), "shape": list(release.shape), **more}
    return Release(release.schema, ("int8", settings), module, release.noise, card)


def static(graph: bytes, x: Array, noise: Array | None = None) -> bytes:
    """The graph with its products in int8, except those that depend on the noise."""
    import onnx
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory(prefix="privet-int8-") as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before, ready, after = (Path(name) / f"{step}.onnx" for step in ("float", "ready", "int8"))
        before.write_bytes(graph)
        # The optimiser would make one node of a product and noise that is added to it, which then
        # had to stay float.
        quant_pre_process(
            str(before), str(ready), skip_symbolic_shape=True, skip_optimization=noise is not None
        )
        model = onnx.load(ready)
        for i, node in enumerate(model.graph.node):
            node.name = node.name or f"node_{i}"
        onnx.save(model, ready)
        noisy, nodes = _depending(model, "noise"), model.graph.node
        products = [n.name for n in nodes if n.op_type in PRODUCTS and n.name not in noisy]
        if not products:
            raise PrivetError(
                "Nothing in this release's graph can be computed in int8: its float graph is the "
                "one to use."
            )
        quantize_static(
            ready,
            after,
            _Calibration(x, noise),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=list(PRODUCTS),
            nodes_to_quantize=products,
            per_channel=True,
            reduce_range=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
        return after.read_bytes()


def _depending(model: Any, name: str) -> set[str]:
    """Names of the nodes whose result depends on an input of the graph. Nodes stand in an order in
    which they can be computed."""
    tensors, nodes = {name}, set()
    for node in model.graph.node:
        if tensors & set(node.input):
            tensors |= set(node.output)
            nodes.add(node.name)
    return nodes


class _Calibration:
    """Calibration records, a few at a time, as onnxruntime asks for them."""

    def __init__(self, x: Array, noise: Array | None) -> None:
        inputs = {"x": x} if noise is None else {"x": x, "noise": noise}
        starts = range(0, len(x), BATCH)
        self._batches = iter(
            [{name: a[at : at + BATCH] for name, a in inputs.items()} for at in starts]
        )

    def get_next(self) -> dict[str, Array] | None:
        return next(self._batches, None)

    def __iter__(self) -> _Calibration:
        return self

    def __next__(self) -> dict[str, Array]:
        return next(self._batches)
