"""int8: the graph of a release with its products in eight bits, for browsers and telephones;
believed only after an audit of both.

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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privet.auditing.audit import audit
from privet.core.errors import PrivetError
from privet.core.files import writable_folder
from privet.data.dataset import Array, Dataset
from privet.data.sources import load
from privet.evidence.figures import Audit, Figure
from privet.nets.additive import Additive
from privet.release.graph import trace
from privet.release.quantised import Quantised
from privet.release.release import Release

PRODUCTS = ("Conv", "Gemm", "MatMul")
"""Operators that are computed in int8; all others stay float."""
CALIBRATION = 256
"""Records of *fit* from which scales are set."""
STALE = ("in_game", "chosen", "certificate", "history", "sha256")
"""Said of the float release."""


@dataclass(frozen=True)
class Moved:
    """One headline figure of the audit, before and after."""

    attribute: str
    role: str
    before: Figure
    after: Figure

    @property
    def worse(self) -> bool:
        """Whether the int8 figure lies beyond the float one's interval, on the side that nobody
        wants."""
        return (
            self.after.value > self.before.high
            if self.role == "private"
            else self.after.value < self.before.low
        )

    @property
    def line(self) -> str:
        before = f"{self.before.measure} {self.before.value:.3f} ({self.before.low:.3f} to {self.before.high:.3f}) in float"
        return f"{self.attribute} ({self.role}): {before}, {self.after.value:.3f} in int8"


def export_int8(
    folder: Path,
    release: Path,
    spec: str,
    utility: Sequence[str] = (),
    *,
    battery: str = "quick",
    schema: Path | None = None,
    seed: int = 0,
    device: str = "auto",
    command: str | None = None,
    progress: bool = True,
) -> tuple[Release, list[Moved]]:
    """Write the int8 form of a release to `folder`, unless a private or task figure of the audit
    gets worse beyond its interval."""
    if folder.resolve() == release.resolve():
        raise PrivetError(f"{folder} holds the release itself: choose another --out.")
    loaded, data = Release.load(release), load(spec, schema)
    loaded.schema.check(data)
    undo = writable_folder(folder)
    try:
        made = quantise(loaded, data, seed)
        both = [
            audit(
                r,
                data,
                utility,
                battery,
                seed=seed,
                device=device,
                progress=progress,
                rebuild=False,
                raw=False,
            )
            for r in (loaded, made)
        ]
        moved = compare(*both)
        if worse := [one.line for one in moved if one.worse]:
            raise PrivetError(
                f"In int8 this release is worse beyond the interval of the audit, so it is not written: {'; '.join(worse)}."
            )
        made.card["int8"]["audit"] = {
            "battery": battery,
            "seed": seed,
            "figures": [one.line for one in moved],
        }
        made.card["command"] = command
        made.save(folder)
    except BaseException:
        undo()
        raise
    return made, moved


def compare(before: Audit, after: Audit) -> list[Moved]:
    """The headline of every private attribute and task in two audits of the same attributes."""
    later = {reading.attribute: reading.worst.score for reading in after.readings}
    return [Moved(r.attribute, r.role, r.worst.score, later[r.attribute]) for r in before.readings]


def quantise(release: Release, data: Dataset, seed: int = 0) -> Release:
    """The int8 form of a release, with scales from *fit* records of `data`. Nothing is audited
    here."""
    if "int8" in release.card:
        raise PrivetError("This release is in int8 already.")
    inputs = release.schema.inputs(data.part("fit"))
    some = np.sort(np.random.default_rng(seed).permutation(len(inputs))[:CALIBRATION])
    x = inputs[some]
    # Alone, where that is all that the noise touches: then the code can be looked at, and
    # certified, and get other noise.
    alone = type(release.module) is Additive and None not in release.shape
    part = (
        Release(release.schema, release.network, release.module.get_submodule("body"), None, {})
        if alone
        else release
    )
    noise = (
        None
        if part.noise is None
        else part.noise.draw(len(x), x.shape[1] if x.ndim > 1 else 0, seed)
    )
    content = static(trace(part), x, noise)
    body = Quantised.of(content, release.shape)
    settings: dict[str, Any] = {"size": len(content), "shape": list(release.shape)}
    card = {key: value for key, value in release.card.items() if key not in STALE}
    card["int8"] = {"of": release.card.get("sha256"), "calibrated_on": len(x)}
    if not alone:
        return Release(release.schema, ("int8", settings), body, release.noise, card)
    scale = float(release.module.get_buffer("scale"))
    return Release(
        release.schema,
        ("int8", settings | {"scale": scale}),
        Additive(body, scale),
        release.noise,
        card,
    )


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
        noisy = _depending(model, "noise")
        kept = [
            node.name
            for node in model.graph.node
            if node.op_type in PRODUCTS and node.name not in noisy
        ]
        if not kept:
            raise PrivetError(
                "Nothing in this release's graph can be computed in int8: its float graph is the one to use."
            )
        quantize_static(
            ready,
            after,
            _Records(x, noise),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=list(PRODUCTS),
            nodes_to_quantize=kept,
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


class _Records:
    """Calibration records, a few at a time, as onnxruntime asks for them."""

    def __init__(self, x: Array, noise: Array | None, batch: int = 32) -> None:
        self._feed = self._batches(x, noise, batch)

    @staticmethod
    def _batches(x: Array, noise: Array | None, batch: int) -> Iterator[dict[str, Array]]:
        for at in range(0, len(x), batch):
            yield {"x": x[at : at + batch]} | (
                {} if noise is None else {"noise": noise[at : at + batch]}
            )

    def get_next(self) -> dict[str, Array] | None:
        return next(self._feed, None)

    def __iter__(self) -> _Records:
        return self

    def __next__(self) -> dict[str, Array]:
        return next(self._feed)
