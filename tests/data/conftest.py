"""Small pictures and files to read back."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

Draw = Callable[..., bytes]


@pytest.fixture
def draw() -> Draw:
    """draw(number, height, width, format): a picture whose number can be told from its
    brightness."""

    def make(number: int, height: int = 12, width: int = 10, format: str = "PNG") -> bytes:
        pixels = np.random.default_rng(number).integers(0, 40, (height, width, 3)) + 5 * (
            number % 40
        )
        file = io.BytesIO()
        Image.fromarray(pixels.astype(np.uint8)).save(file, format)
        return file.getvalue()

    return make


@pytest.fixture
def pictures(tmp_path: Path, draw: Draw) -> Path:
    """A folder of 24 pictures of 8 people with a CSV."""
    folder = tmp_path / "faces"
    (folder / "img").mkdir(parents=True)
    for i in range(24):
        (folder / "img" / f"{i}.png").write_bytes(draw(i))
    rows = {
        "id": range(24),
        "file": [f"img/{i}.png" for i in range(24)],
        "person": [i // 3 for i in range(24)],
        "smiling": [i % 2 for i in range(24)],
    }
    pd.DataFrame(rows).to_csv(folder / "labels.csv", index=False)
    return folder


@pytest.fixture
def schema(tmp_path: Path) -> Callable[[str], Path]:
    """schema(text): a --schema file."""

    def write(text: str) -> Path:
        path = tmp_path / "schema.toml"
        path.write_text(text)
        return path

    return write
