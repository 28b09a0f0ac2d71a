"""Vectors of a part in their own units, raw and released, where every record is a vector."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from privet.data.dataset import Array, Dataset
from privet.data.schema import TableSchema
from privet.release.release import Release

# Records released at a time.
BATCH = 512


class OwnVectors(NamedTuple):
    """Vectors of the same records before and after a release.

    Parameters:
        raw: (n, d), in the units of the file.
        released: (n, e): in the same units where what is released is a vector of that space.
        same_space: Whether a raw vector can be compared with a released one.
    """

    raw: Array
    released: Array
    same_space: bool


def are_vectors(release: Release, data: Dataset) -> bool:
    """Whether records, and what is released of them, are vectors."""
    plain = release.schema.plain
    is_vector = isinstance(plain, TableSchema) and len(release.shape) == 1
    return data.space is not None and is_vector


def raw_vectors(release: Release, data: Dataset) -> Array:
    """The vectors of a dataset view as its file has them, float32 (n, d)."""
    plain = release.schema.plain
    assert isinstance(plain, TableSchema), "asked of vectors only"
    names = [column.name for column in plain.columns]
    rows = data.records[names].to_numpy(dtype=np.float32)[data.rows]
    return np.asarray(rows)


@torch.no_grad()
def own_vectors(release: Release, data: Dataset, device: torch.device) -> OwnVectors:
    """Raw and released vectors of a dataset view; noise is drawn anew."""
    plain = release.schema.plain
    assert isinstance(plain, TableSchema), "asked of vectors only"
    inputs, release = release.schema.inputs(data), release.to(device)
    parts = [
        release.forward(torch.from_numpy(np.ascontiguousarray(inputs[at : at + BATCH])).to(device))
        for at in range(0, len(inputs), BATCH)
    ]
    released = torch.cat(parts).float().cpu().numpy()
    identity = release.network[0] == "identity"
    same = released.shape[1:] == plain.shape and (identity or release.card.get("form") == "record")
    if same:
        std, mean = (np.array([getattr(c, k) for c in plain.columns]) for k in ("std", "mean"))
        released = (released * std + mean).astype(np.float32)
    return OwnVectors(raw_vectors(release, data), released, same)
