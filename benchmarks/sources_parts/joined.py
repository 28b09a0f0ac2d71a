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
            raise ValueError(f"Seed {min(seeds)} of '{name(line)}' is in the results already.")
        some = [old, *seeds.values()]
        runs = [old["runs"], *(1 for _ in seeds)]
        cells = {key: _cell(key, [one[key] for one in some], runs) for key in old if key != "runs"}
        lines[name(line)] = {**cells, "runs": sum(runs)}
    return list(lines.values())


def _cell(key: str, cells: Sequence[Any], runs: Sequence[int]) -> Any:
    if all(isinstance(cell, list) for cell in cells):
        if len({len(cell) for cell in cells}) > 1:
            raise ValueError(f"{key}: these cannot be joined: {cells}.")
        return [_cell(key, some, runs) for some in zip(*cells, strict=True)]
    if not any(isinstance(c, Mapping) for c in cells) and all(c == cells[0] for c in cells):
        return cells[0]
    figures = [
        {"value": c} if isinstance(c, int | float) else c
        for c in cells
        if isinstance(c, int | float | Mapping)
    ]
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


def with_seeds(
    there: Mapping[str, Any],
    new: Mapping[str, Any],
    seeds: Mapping[int, Sequence[Line]],
    name: Callable[[Line], str],
) -> Line:
    """A results file whose rows all have the same seeds, with those of a later call.

    Args:
        there: The file as it is.
        new: What the new seeds alone give.
        seeds: The rows that each of the new seeds alone gives.
        name: What two rows of the same kind have in common.
    """
    before = [{**row, "runs": there["seeds"]} for row in there["rows"]]
    later = [
        (
            {**row, "runs": len(seeds)},
            {
                s: {**one, "runs": 1}
                for s, rows in seeds.items()
                for one in rows
                if name(one) == name(row)
            },
        )
        for row in new["rows"]
    ]
    rows = joined(before, later, name)
    total = there["seeds"] + len(seeds)
    if missing := [name(row) for row in rows if row["runs"] != total]:
        raise ValueError(f"Not measured with every seed: {', '.join(missing)}.")
    plain = [{key: cell for key, cell in row.items() if key != "runs"} for row in rows]
    notes = list(dict.fromkeys((*there["notes"], *new["notes"])))
    return {**there, "seeds": total, "rows": plain, "notes": notes}
