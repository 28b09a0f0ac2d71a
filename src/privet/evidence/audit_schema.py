"""The layout of audit.json for machines: a JSON Schema made from the dataclasses of figures.py.

`audit.schema.json` beside this file is what `text()` gives, kept so that it can be read without
Python; a test holds it to that. Source: JSON Schema, draft 2020-12,
https://json-schema.org/draft/2020-12.
"""

from __future__ import annotations

import json
import types
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from privet.core.settings import field_docs
from privet.evidence.figures import VERSION, Audit

PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": ["number", "null"]},  # infinity and NaN are written as null
    Any: {},
}


def json_schema() -> dict[str, Any]:
    """What audit.json looks like in this version.

    Fields that are not named are allowed: within a version fields may be added, and old schemas
    still hold.

    >>> json_schema()["properties"]["seconds"]
    {'type': ['number', 'null']}
    """
    kinds: dict[str, Any] = {}
    _of(Audit, kinds)
    whole = kinds.pop("Audit")
    whole["properties"]["version"] = {"const": VERSION}
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:privet:audit:{VERSION}",
        "title": "audit.json of Privet",
    }
    whole["required"] = sorted({*whole["required"], "version"})
    return {**head, **whole, "$defs": dict(sorted(kinds.items()))}


def text() -> str:
    """The schema as it is kept."""
    return json.dumps(json_schema(), indent=1) + "\n"


def _of(kind: Any, kinds: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; dataclasses are put into `kinds` and pointed at."""
    origin, args = get_origin(kind), get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        if kind.__name__ not in kinds:
            kinds[kind.__name__] = {}
            hints, docs = get_type_hints(kind), field_docs(kind)
            kinds[kind.__name__] |= {
                "type": "object",
                "description": " ".join((kind.__doc__ or "").partition("Parameters:")[0].split()),
                "properties": {
                    f.name: (
                        _of(hints[f.name], kinds)
                        | ({"description": docs[f.name]} if f.name in docs else {})
                    )
                    for f in fields(kind)
                },
                "required": sorted(f.name for f in fields(kind) if _is_required(f)),
            }
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if origin in (Union, types.UnionType):
        return {
            "anyOf": [{"type": "null"} if arg is type(None) else _of(arg, kinds) for arg in args]
        }
    if origin is Literal:
        return {"enum": list(args)}
    if origin is tuple:
        return {"type": "array", "items": _of(args[0], kinds)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of(args[1], kinds)}
    return dict(PLAIN[kind])


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING
