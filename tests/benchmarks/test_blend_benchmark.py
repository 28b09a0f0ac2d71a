"""The benchmark of blend: its kernel machine, and rows of several seeds as one."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import torch
from veil_parts import attackers, blend_written


def test_a_kernel_machine_reads_what_is_no_straight_line():
    torch.manual_seed(0)
    z = {part: torch.randn(400, 2) for part in ("attack", "select", "test")}
    truth = {part: (some.norm(dim=1) > 1.2).long() for part, some in z.items()}
    found = attackers.kernel_machine(
        lambda part, index: z[part] if index is None else z[part][index], truth, 2
    )
    assert attackers.figure(found, truth, 2).value > 90


def line(seed: int, value: float) -> dict[str, Any]:
    one = {"value": value, "low": value - 1, "high": value + 1, "select": value}
    names = ("perceptron 1", "quadratic", "kernel machine", "network on decoded")
    return {
        "name": "24 numbers",
        "settings": {"seed": seed},
        "question": {"private": ["Male"]},
        "private": {"Male": {"attackers": dict.fromkeys(names, one), "worst": one, "pooled": one}},
        "tasks": {"Smiling": one, "Mouth_Slightly_Open": one},
        "mean": value,
    }


def test_a_row_is_the_mean_of_its_seeds_and_shows_each():
    _, rows = blend_written.faces([line(1, 62.0), line(0, 60.0)])
    assert len(rows) == 1 and rows[0]["seeds"] == 2 and rows[0]["mean"] == Decimal("61.0")
    worst = rows[0]["worst"]
    assert [worst[key] for key in ("value", "low", "high")] == [61, 60, 62]
    assert worst["seeds"] == [60, 62]
