"""Shared bits against a slow count, and a page that fits."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from privet.core.errors import PrivetError
from privet.data.dataset import Attribute, Dataset
from privet.data.shared_information import shared_bits
from privet.data.show import show
from privet.data.sources import load


def dataset(**labels: np.ndarray) -> Dataset:
    n = len(next(iter(labels.values())))
    attributes = {
        name: (
            Attribute(name, "number")
            if column.dtype.kind == "f"
            else Attribute(name, "categorical", tuple(map(str, range(column.max() + 1))))
        )
        for name, column in labels.items()
    }
    return Dataset(
        "made",
        "signal",
        np.zeros((n, 1, 8)),
        attributes,
        labels,
        (np.arange(n) % 4).astype(np.int8),
        np.arange(n),
        "f" * 64,
    )


def slowly(a: np.ndarray, b: np.ndarray) -> float:
    """Miller-Madow entropies, one after the other."""
    known = (a >= 0) & (b >= 0)

    def entropy(words: list[object]) -> float:
        counts = np.array(list(Counter(words).values()))
        share = counts / counts.sum()
        return float(
            -(share * np.log2(share)).sum() + (len(counts) - 1) / (2 * counts.sum() * np.log(2))
        )

    a, b = a[known], b[known]
    return max(
        0.0,
        entropy(a.tolist())
        + entropy(b.tolist())
        - entropy(list(zip(a.tolist(), b.tolist(), strict=True))),
    )


def test_bits_equal_a_slow_count_with_missing_values() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, 500)
    columns = {
        "a": a,
        "b": (a + rng.integers(0, 2, 500)) % 5,
        "c": rng.integers(-1, 3, 500),
        "d": np.where(a == 2, -1, rng.integers(0, 2, 500)),
    }
    bits = shared_bits(dataset(**columns), list(columns))
    wanted = [[slowly(x, y) for y in columns.values()] for x in columns.values()]
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(bits[off], np.array(wanted)[off], atol=1e-9)
    np.testing.assert_allclose(bits, bits.T)


def test_independent_attributes_share_about_nothing_and_copies_everything() -> None:
    rng = np.random.default_rng(1)
    n = 20_000
    x = rng.normal(size=n)
    bits = shared_bits(
        dataset(x=x, same=-3 * x, other=rng.integers(0, 10, n)), ["x", "same", "other"]
    )
    assert bits[0, 1] == pytest.approx(2, abs=0.01)
    assert bits[0, 2] < 27 * 10 / n


def test_order_of_records_changes_no_bit() -> None:
    rng = np.random.default_rng(2)
    data = dataset(a=rng.integers(0, 3, 300), b=rng.integers(0, 3, 300))
    np.testing.assert_allclose(
        shared_bits(data, ["a", "b"]), shared_bits(data.take(rng.permutation(300)), ["a", "b"])
    )


def test_a_mask_shares_no_bits() -> None:
    data = dataset(a=np.arange(8) % 2)
    masked = Dataset(
        "m",
        "image",
        None,
        {"mask": Attribute("mask", "mask")},
        {"mask": np.zeros((8, 2, 2))},
        data.part_of,
        data.rows,
        "",
    )
    with pytest.raises(PrivetError, match="mask"):
        shared_bits(masked, ["mask"])


def page(data: Dataset) -> str:
    console = Console(width=100, file=io.StringIO())
    console.print(show(data))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_the_page_says_all_there_is_and_fits(pictures: Path) -> None:
    text = page(load(pictures))
    for word in (
        "24 pictures",
        "12 x 10",
        "8 people",
        "fit",
        "select",
        "smiling",
        "no 50.0%, yes 50.0%",
    ):
        assert word in text


def test_many_attributes_with_long_names_fit() -> None:
    rng = np.random.default_rng(0)
    columns = {f"[bold]a_rather_long_name_{i}": rng.integers(-1, 3, 200) for i in range(40)}
    text = page(dataset(**columns, number=rng.normal(size=200), gone=np.full(200, np.nan)))
    assert (
        max(len(line) for line in text.splitlines()) <= 100
        and "[bold]a_rather" in text
        and "16 that share most" in text
    )
