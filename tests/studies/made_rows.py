"""Rows of a comparison made by hand, so that tables and pages can be looked at without learning
anything."""

from __future__ import annotations

from typing import Any

from made_cells import SOURCE, cell

from privet.evidence.figures import Audit, Certified, Fairness, Figure, Finding, Reading
from privet.studies.cells import RAW, Cell
from privet.studies.results_table import Row
from privet.studies.study import Question, Study, Variant


def figure(value: float, wide: float = 0.03, chance: float = 0.5) -> Figure:
    return Figure(value, value - wide, value + wide, 900, chance)


def reading(name: str, role: Any, value: float, *adversaries: str) -> Reading:
    found = tuple(
        Finding(a, "released", value, figure(value), figure(value - 0.01), None, 1.0, a.upper())
        for a in adversaries or ("mlp",)
    )
    return Reading(name, role, ("no", "yes"), found, (), 0, 0)


def row(own: Cell, leak: float, use: float, certified: float | None = None, **words: Any) -> Row:
    proof = Certified(
        "beard",
        ("no", "yes"),
        certified,
        None,
        (0.5, 0.5),
        None,
        0.5,
        0.02,
        0.99,
        (400, 400),
        4,
        0.5,
        1,
        "smoothed",
    )
    fair = Fairness(
        "smiling", "beard", {"demographic_parity_difference": figure(0.1, 0.02, 0.0)}, {}
    )
    audit = Audit(
        {"method": own.method, "private": ["beard"]},
        {"name": "faces", "modality": "image"},
        "quick",
        (reading("beard", "private", leak, "mlp", "res-cl"), reading("smiling", "utility", use)),
        (),
        1.0,
        fairness=(fair,),
        certificates=() if certified is None else (proof,),
    )
    return Row(
        own,
        "done",
        "",
        audit,
        words.pop("card", {"in_game": {"beard": {"balanced": 0.52}}}),
        2.0,
        3.0,
        **words,
    )


def study(**words: Any) -> Study:
    return Study(
        (Question(SOURCE, ("beard",), ("smiling",)),),
        (Variant("tiprdc"), Variant("hedge")),
        **words,
    )


def comparison() -> list[Row]:
    """Raw records, two methods with two seeds each, one of them certified; one cell failed and one
    was not reached."""
    rows = [row(cell(RAW, None), 0.93, 0.92, card={})]
    for seed in (0, 1):
        rows += [
            row(cell(budget=b, seed=seed), leak + 0.01 * seed, use)
            for b, leak, use in ((0.0, 0.9, 0.9), (0.9, 0.8, 0.86))
        ]
        rows += [
            row(cell("hedge", b, seed), leak, use - 0.01 * seed, b)
            for b, leak, use in ((0.58, 0.55, 0.82), (0.54, 0.52, 0.7))
        ]
    rows.append(Row(cell(budget=0.5), "failed", "Learning diverged."))
    rows.append(Row(cell(budget=1.0), "left"))
    return rows
