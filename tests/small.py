"""Small data sets of every modality whose attributes are readable by construction: `u` to hide, `y`
to keep."""

from __future__ import annotations

import numpy as np
import pandas as pd

from privet.data.attribute_codes import code
from privet.data.dataset import Dataset
from privet.data.splitting import assign

WORDS = [f"word{i}" for i in range(30)]


def small(modality: str, n: int = 400, seed: int = 0, people: int | None = None) -> Dataset:
    """n records in which u and y are independent and each leaves a plain trace of its own."""
    rng = np.random.default_rng(seed)
    u, y = rng.integers(0, 2, n), rng.integers(0, 2, n)
    records, extra = TRACES[modality](rng, u, y), {}
    if modality == "table":
        extra = {"colour": records["colour"]}
    columns = {"u": pd.Series(u), "y": pd.Series(y), **extra}
    coded = {name: code(name, column) for name, column in columns.items()}
    person = None if people is None else rng.integers(0, people, n)
    part, notes = assign(n, person, None, seed)
    attributes = {name: attribute for name, (attribute, _) in coded.items()}
    labels = {name: column for name, (_, column) in coded.items()}
    return Dataset(
        f"small {modality}",
        modality,
        records,
        attributes,
        labels,
        part,
        np.arange(n),
        f"{modality}{seed}",
        person,
        notes,
    )


def _image(rng: np.random.Generator, u: np.ndarray, y: np.ndarray) -> np.ndarray:
    x = rng.integers(0, 90, (len(u), 3, 32, 32))
    x[:, 0, 4:14, 4:14] += (120 * u)[:, None, None]
    x[:, 1, 16:28, 16:28] += (120 * y)[:, None, None]
    return x.astype(np.uint8)


def _signal(rng: np.random.Generator, u: np.ndarray, y: np.ndarray) -> np.ndarray:
    t = np.arange(32) / 32
    x = rng.standard_normal((len(u), 2, 32)) * 0.3
    x[:, 0] += np.where(u[:, None] == 1, np.sin(2 * np.pi * 2 * t), np.sin(2 * np.pi * 5 * t))
    x[:, 1] += np.where(y[:, None] == 1, 1.0, -1.0)
    return x.astype(np.float32)


def _text(rng: np.random.Generator, u: np.ndarray, y: np.ndarray) -> np.ndarray:
    lengths = rng.integers(4, 12, len(u))
    lines = [
        " ".join(rng.choice(WORDS, size)) + f" u{a} y{b}"
        for size, a, b in zip(lengths, u, y, strict=True)
    ]
    return np.array(lines, dtype=object)


def _table(rng: np.random.Generator, u: np.ndarray, y: np.ndarray) -> pd.DataFrame:
    noise = rng.standard_normal((len(u), 3)) * 0.4
    frame = pd.DataFrame({"a": u + noise[:, 0], "b": y + noise[:, 1], "c": noise[:, 2]})
    frame["colour"] = rng.choice(["red", "green", "blue"], len(u))
    return frame


TRACES = {"image": _image, "signal": _signal, "text": _text, "table": _table}
