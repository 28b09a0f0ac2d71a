"""Records that give an attribute away in a known way, and by how much: what an auditor has to
find."""

from __future__ import annotations

import numpy as np
import pandas as pd

from privet.data.dataset import Attribute, Dataset
from privet.data.schema import Column, ImageSchema, TableSchema
from privet.release.release import Release

FLIP = 0.11
"""A bit that is turned over this often tells 1 - h(0.11) = 0.5 bits of itself."""


def copy(n: int, d: int, rng: np.random.Generator):
    """One coordinate says the attribute, and lies in 11 of 100 records."""
    u, x = rng.integers(0, 2, n), rng.standard_normal((n, d))
    x[:, 3] = np.where(rng.random(n) < FLIP, 1 - u, u)
    return x, u


def xor(n: int, d: int, rng: np.random.Generator):
    """Whether two coordinates have the same sign; neither alone says anything."""
    x = rng.standard_normal((n, d))
    u = (x[:, 5] > 0) ^ (x[:, 9] > 0)
    return x, (u ^ (rng.random(n) < FLIP)).astype(np.int64)


def fortieth(n: int, d: int, rng: np.random.Generator):
    """Along the 40th principal component, which holds a two-thousandth of the variance; turned at
    random. Also 11 in 100 wrong."""
    u = rng.integers(0, 2, n)
    said = np.where(rng.random(n) < FLIP, 1 - u, u)
    x = rng.standard_normal((n, d))
    x[:, 39] = (2 * said - 1) + 0.1 * x[:, 39]
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return (x / (1 + np.arange(d))) @ turn, u


def parity(n: int, d: int, rng: np.random.Generator):
    """Grey pictures of 32 x 32 whose pixels are all even, or all one beside an even number: no eye
    and no smooth function sees it.

    One more as often as one less, so that odd pictures are no brighter than even ones on average
    over their pixels.
    """
    u = rng.integers(0, 2, n)
    said = np.where(rng.random(n) < FLIP, 1 - u, u)
    even = np.clip(128 + 30 * rng.standard_normal((n, 1, 32, 32)), 2, 252).astype(np.int64) & ~1
    return (even + said[:, None, None, None] * rng.choice([-1, 1], even.shape)).astype(np.uint8), u


def total(n: int, d: int, rng: np.random.Generator):
    """Pictures whose pixels add up to an even or an odd number: any one pixel alone says
    nothing."""
    u = rng.integers(0, 2, n)
    said = np.where(rng.random(n) < FLIP, 1 - u, u)
    pictures = np.clip(128 + 30 * rng.standard_normal((n, 1, 32, 32)), 0, 254).astype(np.uint8)
    odd = (pictures.reshape(n, -1).sum(1, dtype=np.int64) & 1) != said
    pictures[odd, 0, 0, 0] ^= 1
    return pictures, u


LEAKS = {"copy": copy, "xor": xor, "fortieth": fortieth, "parity": parity, "total": total}
BITS = 0.5
BEST = 1 - FLIP
"""What the best adversary of all reads, balanced, of each of them."""


def leak(name: str, n: int, d: int = 64, seed: int = 0) -> tuple[Release, Dataset]:
    """A release that is the identity on such records, and the records."""
    rng = np.random.default_rng(seed)
    x, u = LEAKS[name](n, d, rng)
    attributes, labels = {"u": Attribute("u", "binary", ("no", "yes"))}, {"u": u.astype(np.int64)}
    part = rng.choice(4, n, p=[0.02, 0.58, 0.15, 0.25]).astype(np.int8)
    if x.ndim == 4:
        data = Dataset(name, "image", x, attributes, labels, part, np.arange(n), name)
        release = Release.identity(ImageSchema(*x.shape[1:]))
    else:
        frame = pd.DataFrame(x.astype(np.float32), columns=[f"v{i}" for i in range(x.shape[1])])
        data = Dataset(name, "table", frame, attributes, labels, part, np.arange(n), name)
        release = Release.identity(TableSchema(tuple(Column(c) for c in frame.columns)))
    release.card["private"] = ["u"]
    return release, data
