"""Maps of several tasks and shares of suppression as one picture: without faces, to be shown, and
with them, to be looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from privet.data.dataset import Array
from privet.studies.noise_maps import COLD, WARM

TILE, GAP, LABEL, HEAD = 128, 6, 110, 34
GREY = np.array([70, 66, 76])


def heat(sigma: Array) -> Array:
    """Noise that pixels bear, (height, width), as a picture: warm where it is least."""
    wide = float(np.ptp(sigma))
    share = (sigma.max() - sigma) / wide if wide > 0 else np.ones_like(sigma)
    return np.asarray(COLD + share[:, :, None] * (WARM - COLD), dtype=np.uint8)


def masked(picture: Array, keep: Array, dim: float = 0.3) -> Array:
    """A picture (height, width, 3) with what is suppressed in dark grey."""
    grey = np.broadcast_to(picture.mean(2, keepdims=True) * dim, picture.shape)
    return np.where(keep[:, :, None], picture, grey).astype(np.uint8)


def kept(sigma: Array, keep: Array) -> Array:
    """The map where it is kept, grey elsewhere."""
    return np.where(keep[:, :, None], heat(sigma), GREY).astype(np.uint8)


def board(
    path: Path, heads: Sequence[str], rows: Mapping[str, Sequence[tuple[str, Array]]]
) -> None:
    """A PNG: a row for each name, of tiles (height, width, 3) with words under each."""
    line = TILE + HEAD
    page = Image.new(
        "RGB", (LABEL + len(heads) * (TILE + GAP), 24 + len(rows) * (line + GAP)), "white"
    )
    draw = ImageDraw.Draw(page)
    for across, words in enumerate(heads):
        draw.text((LABEL + across * (TILE + GAP), 6), words, fill="black")
    for down, (name, tiles) in enumerate(rows.items()):
        top = 24 + down * (line + GAP)
        draw.text((4, top + TILE // 2), name, fill="black")
        for across, (words, tile) in enumerate(tiles):
            left = LABEL + across * (TILE + GAP)
            image = Image.fromarray(np.ascontiguousarray(tile))
            page.paste(image.resize((TILE, TILE), Image.Resampling.NEAREST), (left, top))
            draw.text((left, top + TILE + 2), words, fill="black")
    page.save(path, format="PNG", optimize=True)
