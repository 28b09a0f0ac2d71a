"""Tables in files: CSV in any usual dialect, encoding and packing, JSON lines, Feather, Excel and
SQLite.

pandas reads them; what is found out here is what pandas has to be told: how a text file separates
its cells, how it writes a decimal point, and in which encoding it is.
"""

from __future__ import annotations

import csv
import json
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.feather
from pandas.io.common import get_handle  # type: ignore[import-not-found]

from privet.core.errors import PrivetError, first_line, missing_extra

# Endings of packed files, which stand after the kind of the table: people.csv.gz.
PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")
# What may stand between two cells of a line, the usual one first.
DELIMITERS = (",", ";", "\t", "|")
# Bytes, and lines, of a text file that its dialect is found out from.
SAMPLE_BYTES, SAMPLE_LINES = 1 << 16, 50
# What a text in the old encoding of Windows is read with, of which Latin-1 is nearly a part.
OLD_ENCODING = "cp1252"
# What libraries raise for a file that they cannot read.
UNREADABLE = (
    pd.errors.EmptyDataError,
    pd.errors.ParserError,
    pa.ArrowException,
    zipfile.BadZipFile,
    sqlite3.DatabaseError,
    UnicodeError,
    ValueError,
    EOFError,
    KeyError,
)


class Dialect(NamedTuple):
    """How a text file holds its table.

    Parameters:
        delimiter: What stands between two cells.
        decimal: What a decimal point is written as.
        encoding: How letters are written as bytes.
    """

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

    @property
    def options(self) -> dict[str, Any]:
        """The same in pandas' words."""
        return {"sep": self.delimiter, "decimal": self.decimal, "encoding": self.encoding}

    @property
    def note(self) -> str:
        """What is unusual about it, in a sentence; empty where nothing is."""
        if self.encoding != OLD_ENCODING:
            return ""
        return "The file is not in UTF-8; it was read as Windows-1252, of which Latin-1 is a part."


def kind_of(path: Path) -> str:
    """The ending that says what a file holds, without that of its packing.

    >>> kind_of(Path("people.csv.gz")), kind_of(Path("People.TSV")), kind_of(Path("people"))
    ('.csv', '.tsv', '')
    """
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    if endings and endings[-1] in PACKED:
        endings.pop()
    return endings[-1] if endings else ""


def stem_of(path: Path) -> str:
    """The name of a file without these endings.

    >>> stem_of(Path("people.csv.gz")), stem_of(Path("people.v2.parquet"))
    ('people', 'people.v2')
    """
    return Path(path.stem).stem if path.suffix.lower() in PACKED else path.stem


def read_table(path: Path) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The whole table, and notes on how it was read. Columns without a name, such as pandas' row
    numbers, are not data."""
    try:
        frame, notes = READERS[kind_of(path)](path)
    except OSError as error:
        reason = error.strerror or first_line(error)
        raise PrivetError(f"Cannot read {path}: {reason}.") from None
    except UNREADABLE as error:
        raise PrivetError(
            f"{path} cannot be read as {_form(path)} ({first_line(error)})."
        ) from None
    if not len(frame):
        raise PrivetError(f"{path} has no rows under its header: add records.")
    frame.columns = frame.columns.map(str)
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise PrivetError(f"{path} has two columns called '{repeated[0]}': rename one.")
    return frame.drop(columns=[c for c in frame.columns if c.startswith("Unnamed: ")]), notes


def read_in_parts(path: Path, rows: int) -> Iterator[pd.DataFrame]:
    """The table `rows` at a time; only text files are read piece by piece."""
    kind = kind_of(path)
    if kind in TEXT_FILES:
        yield from pd.read_csv(path, chunksize=rows, **dialect_of(path, kind).options)
    elif kind in (".jsonl", ".ndjson"):
        yield from pd.read_json(path, lines=True, chunksize=rows)
    else:
        frame, _ = read_table(path)
        yield from (frame.iloc[start : start + rows] for start in range(0, len(frame), rows))


def dialect_of(path: Path, kind: str = ".csv") -> Dialect:
    """How a text file separates its cells, writes a decimal point, and is encoded."""
    with get_handle(path, "rb", compression="infer", is_text=False) as packed:
        sample = packed.handle.read(SAMPLE_BYTES)
    encoding = _encoding(sample)
    lines = sample.decode(encoding, errors="ignore").splitlines()
    # The last line may be cut.
    lines = [line for line in (lines[:-1] if len(lines) > 1 else lines) if line.strip()]
    lines = lines[:SAMPLE_LINES]
    delimiter = "\t" if kind == ".tsv" else _delimiter(lines)
    return Dialect(delimiter, _decimal(lines, delimiter), encoding)


def _encoding(sample: bytes) -> str:
    for mark, encoding in (
        (b"\xef\xbb\xbf", "utf-8-sig"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
    ):
        if sample.startswith(mark):
            return encoding
    try:
        # The last character may be cut; it has at most three bytes before its end.
        sample[: max(len(sample) - 3, 0)].decode("utf-8")
    except UnicodeDecodeError as error:
        return "utf-8" if error.start >= len(sample) - 6 else OLD_ENCODING
    return "utf-8"


def _delimiter(lines: list[str]) -> str:
    """The one that cuts most lines into as many cells as the header has, and the header into most
    cells."""

    def fit(delimiter: str) -> tuple[float, int]:
        cells = [len(row) for row in islice(csv.reader(lines, delimiter=delimiter), SAMPLE_LINES)]
        if not cells or cells[0] < 2:
            return 0.0, 0
        return sum(count == cells[0] for count in cells) / len(cells), cells[0]

    return max(DELIMITERS, key=fit)


def _decimal(lines: list[str], delimiter: str) -> str:
    """A comma where cells are numbers with a comma and none has a point."""
    if delimiter == ",":
        return "."
    cells = [cell.strip() for row in csv.reader(lines[1:], delimiter=delimiter) for cell in row]
    with_mark = {
        mark: sum(
            cell.count(mark) == 1 and cell.replace(mark, "", 1).lstrip("+-").isdigit()
            for cell in cells
        )
        for mark in (",", ".")
    }
    return "," if with_mark[","] and not with_mark["."] else "."


def _read_text(path: Path) -> tuple[pd.DataFrame, tuple[str, ...]]:
    dialect = dialect_of(path, kind_of(path))
    try:
        frame = pd.read_csv(path, low_memory=False, **dialect.options)
    except UnicodeDecodeError:
        if dialect.encoding != "utf-8":
            raise
        dialect = dialect._replace(encoding=OLD_ENCODING)
        frame = pd.read_csv(path, low_memory=False, **dialect.options)
    return frame, (dialect.note,) if dialect.note else ()


def _read_json(path: Path) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """JSON lines, or a list of objects."""
    with get_handle(path, "rb", compression="infer", is_text=False) as packed:
        start = packed.handle.read(64).lstrip()[:1]
    if start == b"[":
        with get_handle(path, "r", compression="infer", encoding="utf-8") as packed:
            return pd.DataFrame(json.load(packed.handle)), ()
    return pd.read_json(path, lines=True), ()


def _read_feather(path: Path) -> tuple[pd.DataFrame, tuple[str, ...]]:
    return pyarrow.feather.read_table(path).to_pandas(), ()


def _read_excel(path: Path) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The first sheet."""
    try:
        sheets = pd.read_excel(path, sheet_name=None)
    except ImportError:
        raise missing_extra("openpyxl", "files", "Reading Excel files") from None
    first, *others = sheets
    note = f"Of the workbook's sheets only '{first}' was read, not: {', '.join(map(str, others))}."
    return sheets[first], (note,) if others else ()


def _read_sqlite(path: Path) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The only table of a database, opened for reading."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        names = [name for (name,) in database.execute(_TABLES)]
        if len(names) != 1:
            listed = f": {', '.join(names[:8])}" if names else ""
            raise PrivetError(
                f"{path} holds {len(names)} tables{listed}. Write the one to use into a file of "
                "its own."
            )
        quoted = names[0].replace('"', '""')
        return pd.read_sql_query(f'SELECT * FROM "{quoted}"', database), ()


_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"

Reader = Callable[[Path], tuple[pd.DataFrame, tuple[str, ...]]]

TEXT_FILES = (".csv", ".tsv", ".txt")
# By the ending that says what a file holds.
READERS: dict[str, Reader] = {
    **dict.fromkeys(TEXT_FILES, _read_text),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), _read_json),
    **dict.fromkeys((".feather", ".arrow"), _read_feather),
    ".xlsx": _read_excel,
    **dict.fromkeys((".sqlite", ".sqlite3", ".db"), _read_sqlite),
}


def _form(path: Path) -> str:
    """What a file of this ending should be."""
    kind = kind_of(path)
    if kind in TEXT_FILES:
        return "a table in text with a header line"
    return {".xlsx": "an Excel workbook"}.get(kind, f"a {kind[1:]} file")


def header(path: Path) -> list[str]:
    """The names of a table's columns."""
    first: Any = next(read_in_parts(path, 1), pd.DataFrame())
    return [str(name) for name in first.columns]
