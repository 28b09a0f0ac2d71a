"""What is learned by two processes in test_parallel.py, and by one: the same cases, started by
torchrun or called."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from privet.data.dataset import Dataset
from privet.methods.registry import METHODS
from privet.train.distributed import first, taken_part
from privet.train.feed import Batch, Feed
from privet.train.game import Run
from small import small

CASES = {
    "table": (
        "tiprdc",
        "table",
        {"width": 0.1, "warmup": 1, "epochs": 2, "batch": 32, "noise": 0.3},
    ),
    "pictures": (
        "tiprdc",
        "image",
        {"width": 0.05, "warmup": 1, "epochs": 1, "batch": 32, "noise": 0.3},
    ),
    "signals in turns": (
        "tiprdc",
        "signal",
        {"width": 0.05, "warmup": 1, "epochs": 1, "batch": 32, "fused": False},
    ),
    "texts": (
        "tiprdc",
        "text",
        {"width": 0.05, "warmup": 1, "epochs": 1, "batch": 32, "noise": 0.1},
    ),
    "hedged table": ("hedge", "table", {"width": 0.1, "epochs": 4, "batch": 32, "memory": 64}),
    "hedged pictures": ("hedge", "image", {"width": 0.05, "epochs": 1, "batch": 32, "memory": 64}),
}
"""Every kind of record, with noise, dropout and missing labels, all players at once and in turn."""


@contextmanager
def exact() -> Iterator[None]:
    """In double precision: what differs then differs by more than the order of sums, which Adam
    would make visible."""
    plain, single = Feed.batch, torch.Tensor.float

    def batch(self: Feed, index: Any) -> Batch:
        found = plain(self, index)
        return replace(found, x=found.x.double() if found.x.is_floating_point() else found.x)

    torch.set_default_dtype(torch.float64)
    torch.Tensor.float, Feed.batch = torch.Tensor.double, batch  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        torch.Tensor.float, Feed.batch = single, plain  # type: ignore[method-assign]
        torch.set_default_dtype(torch.float32)


def data(modality: str) -> Dataset:
    """A fifth of the private labels is missing."""
    made = small(modality, 200)
    known = np.random.default_rng(1).random(200) > 0.2
    return replace(made, labels={**made.labels, "u": np.where(known, made.labels["u"], -1)})


def learned(case: str) -> dict[str, torch.Tensor]:
    name, modality, settings = CASES[case]
    release = METHODS[name](**settings, seed=1).fit(
        data(modality),
        ["u"],
        ["y"] if case == "hedged table" else [],
        run=Run(progress=False, device="cpu"),
    )
    figures = [
        float(v)
        for row in release.card["history"]
        for k, v in row.items()
        if k not in ("phase", "epoch")
    ]
    weights = {
        name: value.double().contiguous() for name, value in release.module.state_dict().items()
    }
    return {**weights, "history": torch.tensor(figures, dtype=torch.float64)}


def main(out: Path, command: list[str]) -> None:
    """First the command, as  torchrun -m privet ...  runs it, then the cases."""
    torch.set_num_threads(1)
    sys.argv = ["privet", *command]
    with taken_part("tiprdc", "cpu"):
        with suppress(SystemExit):
            runpy.run_module("privet", run_name="__main__")
        with exact():
            for case in CASES:
                found = learned(case)
                if first():
                    save_file(found, out / f"{case}.safetensors")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
