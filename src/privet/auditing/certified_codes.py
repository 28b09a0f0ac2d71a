"""The codes that a certificate is computed from: those of the graph that people run, not those of
the weights it was exported from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privet.core.errors import PrivetError
from privet.data.dataset import Array
from privet.evidence.certificate import gaussian
from privet.release.graph import export
from privet.release.graph_shape import NoisyGraph, graph_codes, read_shape
from privet.release.release import Release


@dataclass(frozen=True)
class CertifiedCodes:
    """Codes of encoded records by a release's graph, and the noise that the graph puts on them.

    Parameters:
        values: (n, d) numbers, or (n,) symbols; empty where nothing can be certified.
        shape: What the graph does with noise; None where that is not known.
        sha256: Of the graph.
        reason: Why nothing can be certified, as the end of a sentence; empty where it can.
    """

    values: Array
    shape: NoisyGraph | None
    sha256: str
    reason: str = ""


def graph_of(release: Release) -> bytes:
    """The graph of a release: its folder's, or exported now where it was only learned."""
    return release.graph or export(release)


def certified_codes(graph: bytes, noise: Sequence[int | None], inputs: Any) -> CertifiedCodes:
    """The codes of encoded records, from a graph of known shape; else the reason why not.

    Parameters:
        graph: The graph.
        noise: Shape of the noise that is drawn for one record.
        inputs: The encoded records.
    """
    digest = hashlib.sha256(graph).hexdigest()
    try:
        shape = read_shape(graph)
        codes = graph_codes(graph, shape, [size or 0 for size in noise], inputs)
    except PrivetError as error:
        return CertifiedCodes(np.empty((0, 0)), None, digest, str(error).rstrip("."))
    reason = ""
    if not shape.symbols and codes.shape[1] > gaussian.DIMENSIONS:
        reason = (
            f"the code has {codes.shape[1]:,} dimensions, and more than {gaussian.DIMENSIONS} "
            "cannot be certified from a sample"
        )
    return CertifiedCodes(codes, shape, digest, reason)
