"""What vector stores export: JSON lines, one object per record with its id, its vector and its
metadata, under the names that each store has for them.

The export becomes a table, some lines at a time: `id`, `vector`, the text as `text`, and a column
per key of the metadata, "author.gender" for a key within a key. Such a table becomes an export
again that the store takes back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pandas.io.common import get_handle  # type: ignore[import-not-found]

from privet.core.errors import PrivetError, refuse_if, unknown
from privet.core.files import replacing
from privet.data.table_files import kind_of
from privet.data.vector_columns import depth

# Lines that are read, and records that are written, at a time.
AT_ONCE = 2048
# Most letters of a line: a vector of 100,000 numbers and a long text.
LONGEST = 1 << 24
# Most columns that metadata may become.
MOST_COLUMNS = 1000


class Store(NamedTuple):
    """The names that a vector store has for the parts of a record.

    Parameters:
        id: Of the record's id.
        vector: Of its vector.
        metadata: Of what else is known about it.
        text: Of the text that the vector is of, where that is not part of the metadata.
    """

    id: str
    vector: str
    metadata: str
    text: str | None = None


STORES = {
    "chroma": Store("id", "embedding", "metadata", "document"),
    "pinecone": Store("id", "values", "metadata"),
    "qdrant": Store("id", "vector", "payload"),
    "weaviate": Store("uuid", "vector", "properties"),
}
# All names that a part of a record may have in an export.
IDS = ("id", "uuid", "_id", "pk")
VECTORS = ("vector", "embedding", "values", "vectors", "embeddings")
METADATA = ("metadata", "payload", "properties", "meta")
TEXTS = ("document", "text", "page_content")


def is_export(path: Path) -> bool:
    """Whether the first line of a file is an object with a vector, as vector stores export it."""
    if kind_of(path) not in (".jsonl", ".ndjson"):
        return False
    try:
        first = next(_lines(path), None)
    except PrivetError:
        return False
    return first is not None and _vector(first[1]) is not None


def read_export(path: Path) -> Iterator[pa.Table]:
    """The records of an export as tables of one schema; a column whose values are not all of one
    kind is written as text."""
    kinds, size = _kinds(path)
    for name in ("id", "vector"):
        kinds.pop(name, None)
    schema = pa.schema(
        [
            ("id", pa.string()),
            *((name, _TYPES[kind]) for name, kind in kinds.items()),
            ("vector", pa.list_(pa.float32(), size)),
        ]
    )
    lines = _lines(path)
    while some := list(islice(lines, AT_ONCE)):
        rows = [_flat(record) for _, record in some]
        columns = [pa.array([row.get("id") for row in rows], pa.string())]
        for name, kind in kinds.items():
            cells = [_cell(row.get(name), kind) for row in rows]
            columns.append(pa.array(cells, _TYPES[kind]))
        numbers = np.array([_vector(record) for _, record in some], dtype=np.float32)
        columns.append(pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), size))
        yield pa.table(columns, schema=schema)


def write_export(source: Path, out: Path, store: str) -> Path:
    """Write a parquet file with columns `id` and `vector` as an export that a vector store takes;
    other columns become metadata.

    Parameters:
        source: Parquet file; the vectors may be in any one column of lists.
        out: JSON lines.
        store: chroma, pinecone, qdrant or weaviate.
    """
    if store not in STORES:
        raise unknown("vector store", store, STORES)
    names = STORES[store]
    with pq.ParquetFile(source) as file:
        kinds = {field.name: field.type for field in file.schema_arrow}
        lists = [name for name, kind in kinds.items() if depth(kind) == 1]
        refuse_if(
            "id" not in kinds or len(lists) != 1,
            f"{source.name} needs a column 'id' and one column of vectors to become an export; it "
            f"has: {', '.join(kinds)}.",
        )
        with replacing(out) as temporary, temporary.open("w", encoding="utf-8") as lines:
            for batch in file.iter_batches(AT_ONCE):
                for row in batch.to_pylist():
                    whole: dict[str, Any] = {names.id: row.pop("id")}
                    whole[names.vector] = row.pop(lists[0])
                    if names.text is not None and "text" in row:
                        whole[names.text] = row.pop("text")
                    metadata: dict[str, Any] = {}
                    for key, value in row.items():
                        _put(metadata, key.split("."), value)
                    lines.write(json.dumps(whole | {names.metadata: metadata}) + "\n")
    return out


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of the file with the numbers of their lines."""
    try:
        with get_handle(path, "r", compression="infer", encoding="utf-8") as packed:
            number = 0
            while line := packed.handle.readline(LONGEST):
                number += 1
                where = f"Line {number} of {path.name}"
                refuse_if(len(line) >= LONGEST, f"{where} is too long to be a record.")
                if not line.strip():
                    continue
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    raise PrivetError(f"{where} is not JSON: export the store again.") from None
                refuse_if(not isinstance(record, dict), f"{where} is not an object.")
                yield number, record
    except (OSError, UnicodeError, EOFError) as error:
        raise PrivetError(f"Cannot read {path} as JSON lines ({error}).") from None


def _kinds(path: Path) -> tuple[dict[str, str], int]:
    """The kind of every column, and the length of the vectors: all lines must agree on that."""
    kinds: dict[str, str] = {}
    size, known = 0, set[str]()
    for number, record in _lines(path):
        vector, where = _vector(record), f"Line {number} of {path.name}"
        if vector is None:
            raise PrivetError(f"{where} has no vector under {', '.join(VECTORS[:3])}.")
        size = size or len(vector)
        refuse_if(
            len(vector) != size, f"{where} has {len(vector)} numbers, and the first line {size}."
        )
        row = _flat(record)
        refuse_if(row["id"] in known, f"{where} has the id '{row['id']}' a second time.")
        known.add(row["id"])
        for name, value in row.items():
            if value is not None:
                kind = _kind(value)
                before = kinds.get(name, kind)
                both = {before, kind}
                kinds[name] = (
                    kind if before == kind else "float" if both == {"int", "float"} else "text"
                )
        refuse_if(len(kinds) > MOST_COLUMNS, f"{path.name} has over {MOST_COLUMNS} keys.")
    refuse_if(not size, f"{path.name} has no records.")
    return kinds, size


def _vector(record: dict[str, Any]) -> list[float] | None:
    """The vector of a record; of several under names of their own, the only one or `default`."""
    for key in VECTORS:
        value = record.get(key)
        if isinstance(value, dict) and value:
            value = value.get("default", next(iter(value.values())) if len(value) == 1 else None)
        if isinstance(value, list) and value and all(_is_number(one) for one in value):
            return value
    return None


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """Id, text and metadata of a record as cells by column."""
    identity = next((record[key] for key in IDS if record.get(key) is not None), None)
    if identity is None:
        raise PrivetError(f"A record has no id under {', '.join(IDS)}: export the store with ids.")
    cells: dict[str, Any] = {"id": str(identity)}
    taken = {*IDS, *VECTORS, *METADATA}
    for key, value in record.items():
        if key not in taken:
            _spread(cells, "text" if key in TEXTS else key, value)
    for key in METADATA:
        if isinstance(record.get(key), dict):
            for inner, value in record[key].items():
                _spread(cells, "text" if inner in TEXTS else inner, value)
    return cells


def _spread(cells: dict[str, Any], name: str, value: Any) -> None:
    if isinstance(value, dict):
        for inner, one in value.items():
            _spread(cells, f"{name}.{inner}", one)
    elif name not in ("id", "vector"):
        cells.setdefault(name, json.dumps(value) if isinstance(value, list) else value)


def _put(metadata: dict[str, Any], keys: list[str], value: Any) -> None:
    """The reverse: "author.gender" is a key within a key again."""
    here = metadata
    for key in keys[:-1]:
        inner = here.setdefault(key, {})
        if not isinstance(inner, dict):
            break
        here = inner
    here[keys[-1]] = value.isoformat() if hasattr(value, "isoformat") else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    return next((kind for kind in ("bool", "int", "float") if type(value).__name__ == kind), "text")


def _cell(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "text" and not isinstance(value, str):
        return json.dumps(value)
    return float(value) if kind == "float" else value


_TYPES = {"bool": pa.bool_(), "int": pa.int64(), "float": pa.float64(), "text": pa.string()}
