"""The codes that a certificate is computed from: those of the graph that people run, not those of
the weights it was exported from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privet.core.errors import PrivetError
from privet.data.dataset import PARTS, Array, Dataset
from privet.evidence.certificate import gaussian
from privet.release.graph import export
from privet.release.graph_shape import NoisyGraph, graph_codes, read_shape
from privet.release.release import Release
from privet.release.what_runs import runs_hash

# Records that are hashed at once.
BATCH = 1024


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


def stated_runs(release: Release) -> dict[str, str]:
    """The hash of all that decides what is released, as audits and certificates state it; empty
    where the release was never saved."""
    hashes = release.card.get("sha256")
    graph = None if release.graph is None else hashlib.sha256(release.graph).hexdigest()
    graph = graph or (hashes.get("graph") if isinstance(hashes, dict) else None)
    noise = None if release.noise is None else release.noise.to_json()
    return {} if graph is None else {"runs": runs_hash(graph, release.schema.to_json(), noise)}


def about_release(release: Release) -> dict[str, Any]:
    """What a certificate says of a release: from its card, and the hashes of what runs."""
    keys = ("method", "title", "settings", "private", "data", "sha256")
    card = {key: release.card.get(key) for key in keys}
    if release.graph is None:
        return card
    digest = hashlib.sha256(release.graph).hexdigest()
    hashes = card["sha256"] if isinstance(card["sha256"], dict) else {}
    return card | {"sha256": {**hashes, "graph": digest}} | stated_runs(release)


def about_data(release: Release, data: Dataset) -> dict[str, Any]:
    """What a certificate says of its data: whose it is, and a hash that commits to the test records
    as the release takes them, to their people and to their private labels."""
    test = data.part("test")
    content = hashlib.sha256()
    inputs = release.schema.inputs(test)
    for start in range(0, len(inputs), BATCH):
        content.update(np.ascontiguousarray(inputs[start : start + BATCH]).tobytes())
    people = np.unique(test.people, return_inverse=True)[1]
    content.update(people.astype("<i8").tobytes())
    for name in release.private:
        attribute = data.attribute(name)
        content.update(json.dumps([name, attribute.kind, *attribute.values]).encode())
        content.update(np.ascontiguousarray(test.labels[name]).tobytes())
    return {
        "name": data.name,
        "modality": data.modality,
        "fingerprint": data.fingerprint,
        "test": content.hexdigest(),
        "records": len(test),
        "people": int(people.max(initial=-1)) + 1,
        "new_people": all_new(data),
        **data.said_of_sample,
    }


def all_new(data: Dataset) -> bool:
    """Whether everybody is in *test*, as people are who are new to a release."""
    return bool((data.part_of == PARTS.index("test")).all())
