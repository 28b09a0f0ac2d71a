"""The name of the space that vectors are in, such as "use-lite-512": vectors of two models have
nothing to do with each other, whatever their length.

It is kept in the metadata of a parquet file, in a Dataset and in the card of a release. An empty
name says that nobody has named the space; such vectors are taken as they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from privet.core.errors import PrivetError

# Of the metadata of a parquet file, and of what Privet writes there.
METADATA, KEY = b"privet", "space"


def space_in(metadata: Mapping[bytes, bytes] | None) -> str:
    """The space that the metadata of an Arrow schema names; empty where it names none.

    >>> space_in({b"privet": b'{"space": "use-lite-512"}'}), space_in(None)
    ('use-lite-512', '')
    """
    try:
        about = json.loads((metadata or {}).get(METADATA, b"{}"))
    except ValueError:
        return ""
    space = about.get(KEY) if isinstance(about, dict) else None
    return space if isinstance(space, str) else ""


def space_of(path: Path) -> str:
    """The space that a file names; empty where it names none, or is no parquet file."""
    try:
        return space_in(pq.read_schema(path).metadata)
    except (pa.ArrowException, OSError):
        return ""


def with_space(schema: pa.Schema, space: str) -> pa.Schema:
    """The schema of a file, with the name of the space in its metadata beside what is there."""
    metadata: dict[Any, Any] = dict(schema.metadata or {})
    try:
        about = json.loads(metadata.get(METADATA, b"{}"))
    except ValueError:
        about = {}
    about = {**(about if isinstance(about, dict) else {}), **({KEY: space} if space else {})}
    return schema.with_metadata({**metadata, METADATA: json.dumps(about).encode()})


def check_space(learned: str | None, given: str | None, where: str) -> None:
    """PrivetError where a release was learned in one space and vectors say that they are in
    another."""
    if learned and given and learned != given:
        raise PrivetError(
            f"The release was learned on vectors of '{learned}', and {where} holds vectors of "
            f"'{given}': give it vectors of the model that it was learned on."
        )
