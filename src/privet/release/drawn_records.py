"""What a release makes of a few pictures, for people to look at: before, after, and, of a veil, the
same picture drawn with every value of the private attribute."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from privet.core.files import write_bytes
from privet.data.dataset import Array, Dataset
from privet.nets.convolutions import prepare
from privet.nets.veil import Veil
from privet.release.own_form import pixels, png
from privet.release.release import Release

SHOWN = 6
# Most values that a picture is drawn with.
VALUES = 8
# Pixels between the pictures of a grid, and how often small ones are enlarged.
GAP, ENLARGED = 2, 2
# The grid in a release's folder.
GRID = "drawn.png"


@dataclass(frozen=True)
class Drawn:
    """Some pictures of *test* people, each as uint8 (n, channels, height, width).

    Parameters:
        before: As they were.
        after: As they leave.
        values: The same codes drawn with each value of the first private attribute, by its words;
            nothing where the decoder is told no value.
    """

    before: Array
    after: Array
    values: dict[str, Array]

    @property
    def rows(self) -> dict[str, Array]:
        """All of them by what they are."""
        return {"before": self.before, "after": self.after, **self.values}

    def files(self) -> dict[str, list[bytes]]:
        """The same as PNG files, as a report takes them."""
        return {words: [png(one) for one in row] for words, row in self.rows.items()}


def draw_records(release: Release, data: Dataset, shown: int = SHOWN) -> Drawn | None:
    """Pictures of different people of *test*; None where no pictures leave."""
    is_veil = isinstance(release.module, Veil)
    if data.modality != "image" or not (is_veil or release.card.get("form") == "record"):
        return None
    view = data.part("test")
    _, first = np.unique(view.people, return_index=True)
    x = np.asarray(release.schema.inputs(view)[np.sort(first)[:shown]])
    before = np.asarray(release.schema.own(x), dtype=np.uint8)
    if not is_veil:
        return Drawn(before, pixels(release(x, seed=0)), {})
    return _of_veil(release, x, before)


@torch.inference_mode()
def _of_veil(release: Release, x: Array, before: Array) -> Drawn:
    veil = release.module
    assert isinstance(veil, Veil)
    device = veil.common.device
    records = torch.from_numpy(np.ascontiguousarray(x)).to(device)
    own = prepare(release.schema.own(records))
    noise = torch.randn(len(x), veil.dims, generator=torch.Generator().manual_seed(0))
    z = veil.code(own, veil.value(records, own), noise.to(device))

    def drawn(value: torch.Tensor | None) -> Array:
        wanted = None if value is None else value.expand(len(z), -1)
        return pixels(veil.draw(z, wanted).float().cpu().numpy())

    name, words = next(iter(release.card["classes"].items()))
    values = {}
    for place, word in enumerate(words[:VALUES] if veil.aware else ()):
        value = veil.common.clone()
        value[: veil.classes[0]] = 0.0
        value[place] = 1.0
        values[f"{name}: {word}"] = drawn(value)
    return Drawn(before, drawn(None), values)


def write_grid(drawn: Drawn, path: Path) -> None:
    """One picture of all: a row for before, after and each value, a column for each record."""
    rows = list(drawn.rows.values())
    count, channels, height, width = rows[0].shape
    size = (len(rows) * (height + GAP) - GAP, count * (width + GAP) - GAP)
    sheet: Array = np.full((channels, *size), 255, dtype=np.uint8)
    for down, row in enumerate(rows):
        for across, picture in enumerate(row):
            top, left = down * (height + GAP), across * (width + GAP)
            sheet[:, top : top + height, left : left + width] = picture
    sheet = sheet.repeat(ENLARGED, 1).repeat(ENLARGED, 2)
    write_bytes(path, png(sheet))
