"""The files of a release that a campaign publishes: card and graph, and what a page may show beside
them, without anybody's records."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from privet.core.errors import PrivetError
from privet.evidence.figures import Audit
from privet.release.graph_verifier import verify_graph
from privet.release.runtime import FILES, read_card, read_graph, read_part
from privet.release.strangers import release_session
from privet.reporting.page import render


def published_parts(
    release: Path, decoder: Path | None, audit: Path | None, report: bool
) -> dict[str, bytes]:
    """Contents by the names that a manifest has for them.

    Parameters:
        release: Folder of the release.
        decoder: ONNX graph that rebuilds records; without it, the release's own, where it has one
            that draws pictures.
        audit: `audit.json` of the release, or its folder.
        report: Whether a page of the audit is published too.
    """
    card = read_card(release)
    verify_graph(read_graph(release))  # participants would not run it
    parts = {"card": read_file(release / "card.json"), "graph": read_file(release / FILES["graph"])}
    if decoder is None and "decoder" in card["sha256"] and card["input"]["modality"] == "image":
        read_part(release, card, "decoder")
        decoder = release / FILES["decoder"]
    if decoder is not None:
        parts["decoder"] = read_file(decoder)
        _check_decoder(parts["decoder"], card, decoder)
    if audit is not None:
        file = audit / "audit.json" if audit.is_dir() else audit
        graph = hashlib.sha256(parts["graph"]).hexdigest()
        parts["audit"] = published_audit(read_file(file), graph, file)
    if report:
        # Written anew from the figures alone: the page that an audit writes shows records of *test*
        # people.
        parts["report"] = render(Audit.from_json(parts["audit"].decode())).encode()
    return parts


def read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PrivetError(f"Cannot read {error.filename}: {error.strerror}.") from None


def _check_decoder(content: bytes, card: dict[str, Any], path: Path) -> None:
    """A page shows what it makes of a released record, so it must make a picture of one."""
    about, released = card["input"], card["output"]["shape"]
    if about["modality"] != "image" or None in released:
        raise PrivetError("What could be rebuilt is shown of pictures only: leave out --decoder.")
    try:
        verify_graph(content)
        run = release_session(content)
    except PrivetError as error:
        raise PrivetError(f"{path}: {error}") from None
    record = np.zeros((1, *released), np.float32)
    try:
        shape = run.run(None, {put.name: record for put in run.get_inputs()})[0].shape
    except Exception:  # whatever the runtime says about a graph that takes something else
        shape = ()
    picture = about.get("base", about)["shape"]
    if shape != (1, *picture):
        raise PrivetError(
            f"{path} does not make pictures {picture} of released records {released}: it is no "
            "decoder of this release."
        )


def published_audit(content: bytes, graph: str, path: Path) -> bytes:
    """An audit as it may be published: its figures, without the records of *test* people that it
    shows beside what was rebuilt of them.

    An audit of another release is refused: it would promise what this one does not keep.
    """
    try:
        audit = json.loads(content)
        audited = audit["release"]["sha256"]["graph"]
        if any(one.get("originals") or one.get("rebuilt") for one in audit.get("rebuilt") or ()):
            audit["signature"] = None  # it is that of the audit with these records
        audit["rebuilt"] = [
            {**one, "originals": [], "rebuilt": []} for one in audit.get("rebuilt") or ()
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise PrivetError(f"{path} is not the audit.json of a release.") from None
    if audited != graph:
        raise PrivetError(f"{path} is the audit of another release.")
    return json.dumps(audit).encode()
