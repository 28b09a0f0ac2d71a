"""Rows of a later call in a results file: other games are new rows, other seeds of a game join its
row.

A figure of several seeds is the mean of their values. Its interval has the means of the seeds' own
ends. Both are made of figures that were rounded, so the last digit can be off by one. The file does
not say which seeds a row is of: N of them are taken to be 0 to N - 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Line = dict[str, Any]


def joined(
    there: Sequence[Line],
    new: Sequence[tuple[Line, Mapping[int, Line]]],
    name: Callable[[Line], str],
) -> list[Line]:
    """The rows that are there, with the new ones and their seeds.

    Args:
        there: Rows of a results file; one without `runs` is of one seed.
        new: Each a row, with `runs`, and the row of each of its seeds.
        name: What two rows of the same game have in common.
    """
    lines = {name(line): {**line, "runs": line.get("runs", 1)} for line in there}
    for line, seeds in new:
        old = lines.get(name(line))
        if old is None:
            lines[name(line)] = line
            continue
        if min(seeds) < old["runs"]:
            raise ValueError(f"Seed {min(seeds)} of '{line['game']}' is in the results already.")
        some = [old, *seeds.values()]
        runs = [old["runs"], *(1 for _ in seeds)]
        cells = {key: _cell(key, [one[key] for one in some], runs) for key in old if key != "runs"}
        lines[name(line)] = {**cells, "runs": sum(runs)}
    return list(lines.values())


def _cell(key: str, cells: Sequence[Any], runs: Sequence[int]) -> Any:
    figures = [cell for cell in cells if isinstance(cell, Mapping)]
    if not figures and all(cell == cells[0] for cell in cells):
        return cells[0]
    values = [value for cell in figures for value in cell.get("seeds", [cell["value"]])]
    if len(figures) < len(cells) or len(values) != sum(runs):
        raise ValueError(f"{key}: these cannot be joined: {cells}.")
    digits = max(len(str(value).partition(".")[2]) for value in values)
    cell = {"value": round(sum(values) / len(values), digits)}
    for end in ("low", "high"):
        if end in figures[0]:
            total = sum(one[end] * count for one, count in zip(figures, runs, strict=True))
            cell[end] = round(total / sum(runs), digits)
    return cell | {"seeds": values}
