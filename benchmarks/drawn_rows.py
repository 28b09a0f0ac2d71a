"""Rows, pictures and releases for measuring speed: drawn, and of networks that have learned nothing,
which take as long as those that have."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from PIL import Image

from privet.data.portraits.source import portraits
from privet.data.schema import ImageSchema, Schema, learn_schema
from privet.data.sources import load
from privet.nets import registry as nets
from privet.release.noise import Noise
from privet.release.release import Release

# Values of the columns of words: with six numbers, a record is encoded as 104 numbers.
SIZES = (7, 16, 7, 15, 6, 5, 42)
# Rows that are drawn, and written as a row group, at once.
GROUP = 1 << 16
# Networks by the name of a release: the network, its settings, and how many numbers of noise.
NETWORKS: dict[str, tuple[str, dict[str, Any], int]] = {
    "leace": ("affine", {"rank": 1}, 0),
    "hedge": ("hedge", {"dims": 2, "sigma": 0.4}, 2),
    "small hedge": ("hedge", {"dims": 2, "sigma": 0.4, "width": 0.05}, 2),
    "veil": ("veil", {"classes": [2], "dims": 128}, 128),
}


def rows(n: int, start: int = 0) -> pa.Table:
    """Thirteen columns and `id`: six numbers and seven columns of words."""
    rng = np.random.default_rng(start)
    columns: dict[str, Any] = {"id": np.arange(start, start + n)}
    columns |= {f"n{i}": rng.standard_normal(n) for i in range(6)}
    for i, size in enumerate(SIZES):
        words = pa.array([f"value {j}" for j in range(size)])
        columns[f"c{i}"] = words.take(pa.array(rng.integers(0, size, n)))
    return pa.table(columns)


def write_rows(path: Path, n: int) -> Path:
    """n rows as a parquet file, of which one group is in memory at a time."""
    with pq.ParquetWriter(path, rows(1).schema) as writer:
        for start in range(0, n, GROUP):
            writer.write_table(rows(min(GROUP, n - start), start))
    return path


def pictures(n: int, drawn: int = 100) -> pa.Table:
    """JPEGs of 64 x 64 and `id`; drawn faces, again and again."""
    cells = []
    for face in portraits(drawn, progress=False).records:
        target = io.BytesIO()
        picture = Image.fromarray(face.transpose(1, 2, 0)).resize((64, 64))
        picture.save(target, "JPEG", quality=90)
        cells.append(target.getvalue())
    return pa.table({"id": np.arange(n), "image": [cells[k % drawn] for k in range(n)]})


def schema_of_rows(folder: Path) -> Schema:
    pq.write_table(rows(2_000).drop_columns(["id"]), folder / "some.parquet")
    return learn_schema(load(folder / "some.parquet", progress=False))


def release(name: str, kind: str, folder: Path) -> Path:
    """The folder of a release of NETWORKS that takes `rows` or `pictures`."""
    schema = ImageSchema(3, 64, 64) if kind == "pictures" else schema_of_rows(folder)
    return save_release(name, schema, folder / f"{name}-{kind}".replace(" ", "-"))


def save_release(name: str, schema: Schema, folder: Path) -> Path:
    """A release of NETWORKS for records of a schema."""
    network, settings, numbers = NETWORKS[name]
    torch.manual_seed(0)
    law = Noise("gaussian", (numbers,), 0.4) if numbers else None
    module = nets.build(network, schema, settings).eval()
    card = {"method": name, "private": []}
    Release(schema, (network, settings), module, law, card).save(folder)
    return folder
