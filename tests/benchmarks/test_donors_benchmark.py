"""The benchmark of donors: a best reader of symbols, and lines that become a table."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import donors

from small import small


def _line(shared: int, seed: int, value: float) -> dict[str, object]:
    figure = {"value": value, "low": value - 1, "high": value + 1}
    return {"what": "toy: u, y", "shared": shared, "target": 0.61, "seed": seed, "bound": 0.6,
            "donors": 16 * (1 + seed), "private": figure, "task": figure, "n": 9}  # fmt: skip


def test_seeds_of_a_release_are_one_row_in_the_order_of_seeds() -> None:
    rows = donors.written([_line(1, 1, 60.0), _line(0, 0, 70.0), _line(1, 0, 50.0)])
    assert [(row["shared"], row["seeds"], row["donors"]) for row in rows] == [
        (0, 1, "16"),
        (1, 2, "16, 32"),
    ]
    assert rows[1]["task"] == {
        **dict(zip(("value", "low", "high"), map(Decimal, ("55.0", "54.0", "56.0")), strict=True)),
        "seeds": [Decimal("50.0"), Decimal("60.0")],
    }
    assert rows[0]["target"] == 61 and "seeds" not in rows[0]["private"]


def test_what_is_read_of_a_symbol_stays_below_its_bound() -> None:
    data = small("table", 1200)
    found = donors.row(data, "u", "y", [], {"target": 0.7, "donors": 8})
    assert found["donors"] == 8
    assert 30 < found["private"]["value"] < 100 * found["bound"]
    assert found["task"]["high"] > found["task"]["value"] > found["task"]["low"]
