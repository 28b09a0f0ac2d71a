"""The decoder of a veil as a graph of its own: whoever has a code can draw its record.

It is kept beside the release's graph: `privet apply --as picture` draws with it, and participants
of a campaign see what it makes of their code.
"""

from __future__ import annotations

import numpy as np
import torch

from privet.core.errors import PrivetError
from privet.nets.veil import Drawing, Veil
from privet.release.graph import TOLERANCE, Exportable, trace_module
from privet.release.runtime import session


def has_decoder(release: Exportable) -> bool:
    """Whether what is released is a code that has a decoder of its own."""
    return isinstance(release.module, Veil) and release.module.output == "code"


def decoder_graph(release: Exportable) -> bytes:
    """ONNX from codes `z` to records `x` in the network's scale (pictures in -1..1), drawn with the
    value that the release's card names; checked against the network."""
    veil = release.module
    if not (isinstance(veil, Veil) and has_decoder(release)):
        raise PrivetError("Only a release of veil with output=code has a decoder of its own.")
    device = veil.common.device
    drawing = Drawing(veil).eval().cpu()
    try:
        z = np.random.default_rng(0).standard_normal((5, veil.dims)).astype(np.float32)
        graph = trace_module(drawing, {"z": z[:3]}, "x")
        with torch.inference_mode():
            wanted = drawing(torch.from_numpy(z)).numpy()
    finally:
        veil.to(device)
    records = session(graph).run(["x"], {"z": z})[0]
    if records.shape != wanted.shape or not np.abs(records - wanted).max() <= 10 * TOLERANCE:
        raise PrivetError("The decoder's graph does not answer as the decoder does.")
    return graph
