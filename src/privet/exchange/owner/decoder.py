"""The decoder of a campaign: what could be rebuilt of a picture from what leaves, for participants
to see before they decide.

It is the auditor's strongest decoder (`adversaries.rebuilder`), learned from the *attack* people,
its state chosen on *select*, counted on *test*, and written as ONNX: a released record in, a
picture of floats in [-1, 1] out. Whoever tries harder may do better.
"""

from __future__ import annotations

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
from privet.release.graph import TOLERANCE, trace_module
from privet.release.release import Release
from privet.release.runtime import session


def learn_decoder(
    release: Path,
    data: str,
    out: Path,
    *,
    schema: Path | None = None,
    width: float = 1.0,
    steps: int = 1500,
    seed: int = 0,
    device: str = "auto",
    progress: bool = True,
) -> Rebuilt:
    """Learn to rebuild pictures from what a release lets through, and write the decoder as ONNX.

    Parameters:
        release: Folder of a release of pictures.
        data: Pictures to learn from, as for `privet learn`.
        out: The file to write.
        schema: TOML file that says what the columns of the data are.
        width: Factor on the decoder's layers; less is faster and sees less.
        steps: How long to learn.
        seed: On one machine's CPU the same seed gives the same result.
        device: cpu, cuda or auto.
        progress: Whether progress is shown.
    """
    if out.exists() or not out.parent.is_dir():
        raise PrivetError(
            f"{out} is there already." if out.exists() else f"There is no folder {out.parent}."
        )
    loaded, pictures = Release.load(release), load(data, schema)
    if not isinstance(loaded.schema, ImageSchema) or None in loaded.shape:
        raise PrivetError(
            "What could be rebuilt is shown of pictures only, and this release does not take plain "
            "pictures."
        )
    parts = released_parts(loaded, pictures, [], pick(device))
    attacker = Rebuilder(epochs=1, least=steps, width=width)
    rebuilt, trained = attacker.attack(
        parts["attack"], parts["select"], parts["test"], loaded.schema, seed, progress
    )
    write_bytes(out, decoder_graph(trained, loaded.shape))
    return rebuilt


class _Picture(nn.Module):
    """From released records to pictures in [-1, 1], which is how a page draws them."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, z: Tensor) -> Tensor:
        return self.net(prepare(z)).float().clamp(0, 255) / 127.5 - 1  # type: ignore[no-any-return]


def decoder_graph(trained: TrainedDecoder, shape: tuple[int | None, ...]) -> bytes:
    """The decoder as ONNX, checked against the network at another number of records than it was
    traced with."""
    net = _Picture(trained.net.cpu().eval())
    rng = np.random.default_rng(0)
    z = rng.standard_normal((5, *(size or 1 for size in shape))).astype(np.float32)
    graph = trace_module(net, {"z": z[:3]}, "x")
    with torch.inference_mode():
        wanted = net(torch.from_numpy(z)).numpy()
    pictures = session(graph).run(["x"], {"z": z})[0]
    if pictures.shape != wanted.shape or not np.abs(pictures - wanted).max() <= 10 * TOLERANCE:
        raise PrivetError(
            "The decoder's graph does not answer as the decoder does; it is not written."
        )
    return graph
