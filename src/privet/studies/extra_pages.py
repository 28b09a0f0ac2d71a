"""Pages beside frontier.html that a method's own results fill: the four kinds of result of
collaborative sanitizers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from privet.studies import collaborative_page as collaborative
from privet.studies.results_table import Row


def pages(rows: Sequence[Row]) -> dict[str, tuple[str, list[Mapping[str, Any]]]]:
    """By the file's name: the question, and the cards of its sanitizers; of several seeds the
    first, so that a line is one sweep."""
    kept: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if (
            row.cell.method == "collaborative"
            and row.state == "done"
            and row.cell.seed == 0
            and "outcomes" in row.card
        ):
            kept.setdefault(row.cell.question, []).append(row.card)
    names = [
        "collaborative.html",
        *(f"collaborative-{place}.html" for place in range(2, len(kept) + 1)),
    ]
    return {name: found for name, found in zip(names, kept.items(), strict=False)}


def beside_pages(rows: Sequence[Row]) -> dict[str, str]:
    """The pages themselves, by the file's name."""
    return {name: collaborative.page(cards) for name, (_, cards) in pages(rows).items()}
