"""The decoder of a campaign: what could be rebuilt of a picture from what leaves, for participants
to see before they decide.

It is the auditor's strongest decoder (`adversaries.rebuilder`), learned from the *attack* people,
its state chosen on *select*, counted on *test*, and written as ONNX: a released record in, a
picture of floats in [-1, 1] out. Whoever tries harder may do better.
"""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from privet.adversaries.decoder import TrainedDecoder
from privet.adversaries.rebuilder import Rebuilder
from privet.adversaries.released import released_parts
from privet.core.errors import PrivetError
from privet.core.files import write_bytes
from privet.data.schema import ImageSchema
from privet.data.sources import load
from privet.evidence.figures import Rebuilt
from privet.nets.convolutions import prepare
from privet.nets.device import pick
from privet.release.graph import TOLERANCE
from privet.release.release import Release
from privet.release.runtime import session


def learn_decoder(
    release: Path,
    spec: str,
    out: Path,
    *,
    schema: Path | None = None,
    width: float = 1.0,
    steps: int = 1500,
    seed: int = 0,
    device: str = "auto",
    progress: bool = True,
) -> Rebuilt:
    """Learn to rebuild the pictures of `spec` from what `release` lets through, and write the
    decoder to `out`."""
    if out.exists() or not out.parent.is_dir():
        raise PrivetError(
            f"{out} is there already." if out.exists() else f"There is no folder {out.parent}."
        )
    loaded, data = Release.load(release), load(spec, schema)
    if not isinstance(loaded.schema, ImageSchema) or None in loaded.shape:
        raise PrivetError(
            "What could be rebuilt is shown of pictures only, and this release does not take plain pictures."
        )
    where = pick(device)
    parts = released_parts(loaded, data, [], where)
    attacker = Rebuilder(epochs=1, least=steps, width=width)
    found, trained = attacker.attack(
        parts["attack"], parts["select"], parts["test"], loaded.schema, seed, progress
    )
    write_bytes(out, graph_of(trained, loaded.shape))
    return found


class _Picture(nn.Module):
    """From released records to pictures in [-1, 1], which is how a page draws them."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, z: Tensor) -> Tensor:
        return self.net(prepare(z)).float().clamp(0, 255) / 127.5 - 1  # type: ignore[no-any-return]


def graph_of(trained: TrainedDecoder, shape: tuple[int | None, ...]) -> bytes:
    """The decoder as ONNX, checked against the network at another number of records than it was
    traced with."""
    net = _Picture(trained.net.cpu().eval())
    drawn = (
        np.random.default_rng(0)
        .standard_normal((5, *(size or 1 for size in shape)))
        .astype(np.float32)
    )
    loud = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    before = [logger.level for logger in loud]
    for logger in loud:
        logger.setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        free = {
            0: torch.export.Dim.AUTO,
            **dict.fromkeys(range(1, drawn.ndim), torch.export.Dim.STATIC),
        }
        program = torch.onnx.export(
            net,
            (torch.from_numpy(drawn[:3]),),
            dynamo=True,
            verbose=False,
            input_names=["z"],
            output_names=["x"],
            dynamic_shapes=(free,),
            external_data=False,
        )
    for logger, level in zip(loud, before, strict=True):
        logger.setLevel(level)
    assert program is not None
    graph: bytes = program.model_proto.SerializeToString()
    with torch.inference_mode():
        wanted = net(torch.from_numpy(drawn)).numpy()
    given = session(graph).run(["x"], {"z": drawn})[0]
    if given.shape != wanted.shape or not np.abs(given - wanted).max() <= 10 * TOLERANCE:
        raise PrivetError(
            "The decoder's graph does not answer as the decoder does; it is not written."
        )
    return graph
