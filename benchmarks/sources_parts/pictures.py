"""One picture of all rows of a kind: raw faces above, then a line for each row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from privet.data.dataset import Array

SHOWN, LABEL, SIDE = 10, 210, 64


def sheet(path: Path, lines: list[tuple[str, Array]]) -> None:
    """`lines`: words and uint8 (n, 3, height, width); written as a PNG."""
    wide, high = LABEL + SHOWN * (SIDE + 2), len(lines) * (SIDE + 2)
    page = Image.new("RGB", (wide, high), "white")
    draw = ImageDraw.Draw(page)
    for down, (words, pictures) in enumerate(lines):
        top = down * (SIDE + 2)
        for place, line in enumerate(_folded(words)):
            draw.text((2, top + 2 + 12 * place), line, fill="black")
        for across, picture in enumerate(pictures[:SHOWN]):
            face = Image.fromarray(np.ascontiguousarray(picture.transpose(1, 2, 0)))
            face = face.resize((SIDE, SIDE), Image.Resampling.NEAREST)
            page.paste(face, (LABEL + across * (SIDE + 2), top))
    page.save(path, format="PNG", optimize=True)


def _folded(words: str, width: int = 33) -> list[str]:
    lines = [""]
    for word in words.split():
        if len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines[:5]
