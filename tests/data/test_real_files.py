"""The guesses on real files; skipped where they are not on the machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privet.data.dataset import Dataset
from privet.data.sources import load


@pytest.mark.parametrize(
    ("name", "modality", "n", "people", "shape"),
    [
        ("adult", "table", 48_842, None, (48_842, 15)),
        ("tweets", "text", 49_566, None, (49_566,)),
        ("blogs", "text", 12_000, 1_200, (12_000,)),
        ("motionsense", "signal", 10_854, 24, (10_854, 6, 64)),
        ("houses", "image", 535, None, (535, 3, 80, 104)),
        ("pets96", "image", 3_000, None, (3_000, 3, 96, 96)),
        ("glove100", "table", 20_000, None, (20_000, 100)),
    ],
)
def test_guesses(
    shared_data: Path, name: str, modality: str, n: int, people: int | None, shape: tuple[int, ...]
) -> None:
    data = load(shared_data / f"{name}.parquet", progress=False)
    assert (data.modality, len(data), data.records.shape) == (modality, n, shape)
    assert data.person is None if people is None else len(np.unique(data.people)) == people
    shares_no_person(data)


def test_windows_are_laid_out_by_channel(shared_data: Path) -> None:
    """Gravity is taken out, so each of the six channels moves around zero, and slowly against its
    own spread."""
    windows = load(shared_data / "motionsense.parquet").records
    steps = np.abs(np.diff(windows, axis=2)).mean(axis=(0, 2))
    assert np.all(steps < windows.std(axis=(0, 2)))


def test_masks_cover_the_animal(shared_data: Path) -> None:
    data = load(shared_data / "pets96.parquet", progress=False)
    assert data.attributes["mask"].kind == "mask" and data.labels["mask"].shape == (3_000, 96, 96)
    middle, corner = (
        data.labels["mask"][:, 40:56, 40:56].mean(),
        data.labels["mask"][:, :8, :8].mean(),
    )
    assert middle > 0.8 and corner < 0.3


def test_celeba64_keeps_its_split(shared_data: Path) -> None:
    data = load(shared_data / "celeba64.parquet", progress=False)
    assert (
        data.records.shape == (20_000, 3, 64, 64)
        and len(data.attributes) == 42
        and len(np.unique(data.people)) == 7_000
    )
    sizes = [len(part) for part in data.splits()]
    assert sizes[0] + sizes[1] == 13_600 and sizes[2:] == [2_000, 4_400]
    shares_no_person(data)


def test_dialects_can_be_kept_and_balanced(shared_data: Path, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('keep = {dialect = ["aa", "white"]}\nbalance = "dialect"')
    data = load(shared_data / "tweets.parquet", tmp_path / "s.toml")
    assert (
        data.attributes["dialect"].values == ("aa", "white")
        and np.bincount(data.labels["dialect"]).std() == 0
    )


def shares_no_person(data: Dataset) -> None:
    seen = [set(np.unique(part.people).tolist()) for part in data.splits()]
    assert all(seen) and sum(map(len, seen)) == len(set.union(*seen))
