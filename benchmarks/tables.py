"""Measured figures are JSON values in benchmarks/results; this script writes them as tables into docs.

    python benchmarks/tables.py           # write every table and command into the pages
    python benchmarks/tables.py --check   # only say which pages differ; exit code 1 if any does

A page has `<!-- table: TOPIC -->` or `<!-- command: TOPIC -->`, and `<!-- end -->` on a later line.
What stands between them is replaced by what benchmarks/results/TOPIC.json holds. README.md beside
this file explains the keys of such a file.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
WIDTH = 100
NONE, MINUS = "\u2013", "\u2212"
BLOCK = re.compile(
    r"^(?P<indent> *)<!-- (?P<kind>table|command): (?P<topic>[\w-]+) -->\n.*?^ *<!-- end -->$",
    re.MULTILINE | re.DOTALL,
)
FIGURE = {"value", "low", "high", "seeds", "unit", "by", "strong"}
# A cell that is taken from another study: its topic, the first cell of its row (or the row's
# number, from 0) and the column's key.
TAKEN = {"study", "row", "key"}
COLUMN = {"key", "title", "unit", "joined"}


class ResultError(ValueError):
    """A results file, or a page, that this script cannot use; the sentence says which and why."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """One file of benchmarks/results. What nobody recorded is None, never a guess."""

    title: str
    """What was measured, in one line."""
    command: Sequence[str]
    """Shell lines that measure it again; a line that ends in a backslash goes on in the next."""
    data: str | None
    """Which records, and how they were split."""
    n: int | None
    """Test records that the figures are counted on."""
    seeds: int | None
    """How many runs with different seeds a figure is the mean of; 1: one run."""
    confidence: float | None
    """Confidence of the intervals, such as 0.95; None where there are none."""
    machine: str | None
    """Kind of machine: processor or GPU, cores, what else ran on it."""
    commit: str | None
    """Commit that was run."""
    published_in: str | None
    """Commit that published the figures, by the history of the pages."""
    source: str | None
    """The paper, and its figure or table, whose claim is measured again."""
    columns: Sequence[Mapping[str, Any]]
    rows: Sequence[Mapping[str, Any]]
    notes: Sequence[str] = field(default=())
    """What has to be known about single values."""

    def __post_init__(self) -> None:
        for column in self.columns:
            _keys(column, COLUMN, {"key", "title"}, "column")
        known = {column["key"] for column in self.columns} | FACTS
        for row in self.rows:
            _keys(row, known, set(), "row")
            for key, cell in row.items():
                if key not in FACTS:
                    _check(key, cell)


FACTS = {one.name for one in fields(Study)} - {"title", "columns", "rows", "confidence"}
"""A row may have these too, where they differ from those of its study."""


def _keys(found: Mapping[str, Any], known: set[str], needed: set[str], what: str) -> None:
    if wrong := set(found) - known:
        raise ResultError(f"A {what} has unknown keys: {', '.join(sorted(wrong))}.")
    if missing := needed - set(found):
        raise ResultError(f"A {what} lacks {', '.join(sorted(missing))}.")


def _check(key: str, cell: Any) -> None:
    if isinstance(cell, list):
        for one in cell:
            _check(key, one)
    elif isinstance(cell, dict) and "study" in cell:
        _keys(cell, TAKEN, TAKEN, f"taken cell of {key}")
    elif isinstance(cell, dict):
        _keys(cell, FIGURE, {"value"}, f"figure of {key}")
        if ("low" in cell) != ("high" in cell):
            raise ResultError(f"{key}: an interval has two ends: {cell}.")
        numbers = [cell["value"], *(cell[end] for end in ("low", "high") if end in cell)]
        if not all(_is_number(number) for number in [*numbers, *cell.get("seeds", [])]):
            raise ResultError(f"{key}: not a number in {cell}.")
        if "low" in cell and not cell["low"] <= cell["value"] <= cell["high"]:
            raise ResultError(f"{key}: the value lies outside of its interval: {cell}.")
    elif not (cell is None or isinstance(cell, str) or _is_number(cell)):
        raise ResultError(f"{key}: {cell!r} is no figure, number, text or null.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def read(path: Path) -> Study:
    """The study in a file. Numbers are decimals, so that they are printed as the file has them."""
    try:
        return Study(**json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal))
    except (OSError, ValueError, TypeError) as error:
        raise ResultError(f"{path.name}: {error}") from None


def resolved(studies: Mapping[str, Study]) -> dict[str, Study]:
    """The studies with cells that are taken from others in their place, without seeds and bold."""

    def cell(value: Any, topic: str) -> Any:
        if isinstance(value, list):
            return [cell(one, topic) for one in value]
        if not isinstance(value, dict) or "study" not in value:
            return value
        source = studies.get(value["study"])
        if source is None:
            raise ResultError(f"{topic}.json takes a cell from {value['study']}, which is missing.")
        rows, first = source.rows, source.columns[0]["key"]
        wanted = value["row"]
        fitting = [row for row in rows if row.get(first) == wanted] or (
            [rows[wanted]] if isinstance(wanted, int) and wanted < len(rows) else []
        )
        if len(fitting) != 1 or value["key"] not in fitting[0]:
            raise ResultError(
                f"{topic}.json: {len(fitting)} rows of {value['study']} are '{wanted}' with a cell "
                f"'{value['key']}'."
            )
        taken = fitting[0][value["key"]]
        if not isinstance(taken, dict):
            return taken
        return {name: part for name, part in taken.items() if name not in ("seeds", "strong")}

    return {
        topic: replace(
            study,
            rows=[{key: cell(value, topic) for key, value in row.items()} for row in study.rows],
        )
        for topic, study in studies.items()
    }


def store(path: Path, values: Mapping[str, Any]) -> None:
    """Write plain values, such as a script has measured, as a results file."""
    write(path, Study(**json.loads(json.dumps(values), parse_float=Decimal)))


def write(path: Path, study: Study) -> None:
    """The study as JSON: a row or column on one line where it fits, else a line for each cell."""
    known = {one.name: getattr(study, one.name) for one in fields(study)}
    lines = []
    for key, value in known.items():
        if key == "notes" and not value:
            continue
        if isinstance(value, list | tuple) and value:
            lines.append(f' "{key}": [\n' + ",\n".join(_lines(one) for one in value) + "\n ]")
        else:
            lines.append(f' "{key}": {_json(value)}')
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _lines(value: Any) -> str:
    line = f"  {_json(value)}"
    if len(line) <= WIDTH or not isinstance(value, Mapping):
        return line
    cells = ",\n".join(f'   "{key}": {_json(cell)}' for key, cell in value.items())
    return f"  {{\n{cells}\n  }}"


def _json(value: Any) -> str:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_json(key)}: {_json(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def number(value: int | Decimal) -> str:
    """
    >>> number(16281), number(Decimal("0.50"))
    ('16,281', '0.50')
    """
    return re.sub("^-", MINUS, f"{value:,}".lower())


def figure(cell: Any, column: Mapping[str, Any]) -> str:
    """A cell as text: a number, a figure with its interval and seeds, several of them, or words.

    >>> figure({"value": 84, "seeds": [83, 85], "unit": "%", "strong": True}, {})
    '**84 % (83, 85)**'
    """
    if cell is None:
        return NONE
    if isinstance(cell, str):
        return cell.replace("|", "\\|")
    if isinstance(cell, list):
        return str(column.get("joined", ", ")).join(figure(one, column) for one in cell)
    if not isinstance(cell, dict):
        return number(cell)
    text = number(cell["value"])
    text += f" {cell['unit']}" if "unit" in cell else ""
    seeds = ", ".join(number(one) for one in cell.get("seeds", ()))
    if "low" in cell:
        dash = " to " if cell["low"] < 0 else NONE
        text += f" ({number(cell['low'])}{dash}{number(cell['high'])})"
        text += f"; {seeds}" if seeds else ""
    elif seeds:
        text += f" ({seeds})"
    text += f", {cell['by']}" if "by" in cell else ""
    return f"**{text}**" if cell.get("strong") else text


def table(study: Study) -> list[str]:
    """The lines of the Markdown table."""
    heads = [
        f"{column['title']}, {column['unit']}" if "unit" in column else column["title"]
        for column in study.columns
    ]
    rows = [
        [
            figure(row[column["key"]], column) if column["key"] in row else ""
            for column in study.columns
        ]
        for row in study.rows
    ]
    lines = [
        f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in cells)}|" for cells in (heads, *rows)
    ]
    return [lines[0], f"|{'---|' * len(heads)}", *lines[1:]]


def caption(topic: str, study: Study) -> str:
    """Where the values are, and what they are counted on."""
    known = [f"Values: `benchmarks/results/{topic}.json`"]
    if study.n is not None:
        known.append(f"n = {study.n:,}")
    if study.seeds is not None:
        known.append("one seed" if study.seeds == 1 else f"{study.seeds} seeds")
    if study.confidence is not None:
        known.append(f"intervals {float(study.confidence) * 100:g} %")
    if study.machine is not None:
        known.append(study.machine)
    return "; ".join(known) + "."


def block(kind: str, topic: str, study: Study, width: int = WIDTH) -> list[str]:
    """What stands between the markers."""
    if kind == "command":
        return [f"    {line}" for line in study.command]
    return [*table(study), "", *textwrap.wrap(caption(topic, study), width, break_on_hyphens=False)]


def filled(text: str, studies: Mapping[str, Study]) -> str:
    """A page with its tables and commands as the studies have them."""

    def fill(found: re.Match[str]) -> str:
        kind, topic, indent = found["kind"], found["topic"], found["indent"]
        if topic not in studies:
            raise ResultError(f"There is no benchmarks/results/{topic}.json.")
        body = block(kind, topic, studies[topic], WIDTH - len(indent))
        lines = [f"<!-- {kind}: {topic} -->", "", *body, "", "<!-- end -->"]
        return "\n".join(f"{indent}{line}".rstrip() for line in lines)

    return BLOCK.sub(fill, text)


def pages(root: Path) -> Iterator[Path]:
    """Every page that may hold a table."""
    yield from sorted(
        [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("benchmarks/*.md")]
    )


def differing(root: Path) -> dict[Path, str]:
    """Pages that are not as the results say, with what they should be."""
    paths = sorted((root / "benchmarks/results").glob("*.json"))
    studies = resolved({path.stem: read(path) for path in paths})
    found, shown = {}, set()
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        shown |= {match["topic"] for match in BLOCK.finditer(text) if match["kind"] == "table"}
        if (new := filled(text, studies)) != text:
            found[page] = new
    if unseen := set(studies) - shown:
        raise ResultError(f"No page shows {', '.join(sorted(unseen))}.")
    return found


def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit code 1 if a page differs"
    )
    given = parser.parse_args(words)
    try:
        found = differing(root)
    except ResultError as error:
        sys.stderr.write(f"tables: {error}\n")
        return 2
    for page, text in found.items():
        name = page.relative_to(root)
        if given.check:
            sys.stderr.write(
                f"{name} differs from benchmarks/results: run python benchmarks/tables.py\n"
            )
        else:
            page.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{name}\n")
    return 1 if found and given.check else 0


if __name__ == "__main__":
    sys.exit(main())
