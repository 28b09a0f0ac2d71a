"""A few pictures of a cell: as they were, as released where a release keeps their form, and as the
audit's best decoder rebuilt them."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path

import numpy as np
from PIL import Image

from privet.data.dataset import Array, Dataset
from privet.evidence.figures import Audit
from privet.release.release import Release

SHOWN = 4
# originals, released, rebuilt: WebP in base64, one for each picture shown; a kind that there is
# none of is left out.
Shown = dict[str, list[str]]


def examples(release: Release, audit: Audit, data: Dataset) -> Shown:
    """Empty for records that are no pictures. A release keeps a picture's form where its card says
    so: floats in [-1, 1]."""
    if data.modality != "image":
        return {}
    if audit.rebuilt and audit.rebuilt[0].originals:
        x = np.stack([_decode(text) for text in audit.rebuilt[0].originals[:SHOWN]])
        rebuilt = [_encode(_decode(text)) for text in audit.rebuilt[0].rebuilt[:SHOWN]]
        shown = {"originals": [_encode(one) for one in x], "rebuilt": rebuilt}
    else:
        x = np.asarray(release.schema.inputs(data.part("test"))[:SHOWN])
        shown = {"originals": [_encode(one) for one in x]}
    if release.card.get("form") == "record":
        pixels = np.clip((release(x, seed=0) + 1) * 127.5, 0, 255).round().astype(np.uint8)
        shown["released"] = [_encode(one) for one in pixels]
    return shown


def read(path: Path) -> Shown:
    """What was written of `examples`; empty where there is no such file."""
    try:
        shown = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return shown if isinstance(shown, dict) else {}


def _decode(text: str) -> Array:
    """Channels first, as networks take them."""
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(text))))
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _encode(pixels: Array) -> str:
    flat = pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(flat)).save(buffer, "WEBP", quality=90)
    return base64.b64encode(buffer.getvalue()).decode("ascii")
