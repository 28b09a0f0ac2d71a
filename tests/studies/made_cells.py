"""Cells of a comparison made by hand; needs nothing that is slow to import."""

from __future__ import annotations

from typing import Any

from privet.studies.cells import RAW, Cell, Source

SOURCE = Source("faces.parquet")


def cell(method: str = "tiprdc", budget: float | None = 0.9, seed: int = 0, **words: Any) -> Cell:
    label = {"tiprdc": "TIPRDC", "hedge": "Hedge", RAW: "raw data"}.get(method, method)
    settings = {} if budget is None else {"budget": budget, "width": 0.25}
    given = {"label": label, "dial": "" if budget is None else "budget", "budget": budget, **words}
    return Cell(
        method,
        settings,
        seed,
        SOURCE,
        "1" * 64,
        ("beard",),
        (),
        ("smiling",),
        SOURCE,
        "1" * 64,
        ("beard",),
        ("smiling",),
        "quick",
        **given,
    )
