"""Dataclasses as JSON, and back from it: their annotations say what belongs where."""

from __future__ import annotations

import json
import math
import types
from dataclasses import MISSING, asdict, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints


def as_json(value: Any) -> str:
    """JSON has no infinity and no NaN: they are written as null, and read as NaN."""
    return json.dumps(finite(asdict(value)), indent=1, allow_nan=False)


def finite(value: Any) -> Any:
    """The same with None for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read(kind: Any, value: Any, where: str) -> Any:
    """`value` from JSON as a `kind`: what does not belong there is refused by name."""
    if kind is Any:
        return value
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return (
            None
            if value is None
            else read(next(a for a in args if a is not type(None)), value, where)
        )
    if origin is Literal:
        if value not in args:
            raise TypeError(f"{where} is {value!r:.40}")
        return value
    if origin is tuple:
        return tuple(
            read(args[0], inner, f"{where}[{i}]")
            for i, inner in enumerate(_expect(list, value, where))
        )
    if origin is dict:
        return {
            int(key) if args[0] is int else key: read(args[1], inner, f"{where}.{key}")
            for key, inner in _expect(dict, value, where).items()
        }
    if is_dataclass(kind):
        known = {f.name: f for f in fields(kind)}
        given = _expect(dict, value, where)
        wrong = next((name for name in given if name not in known), None)
        absent = next(
            (
                n
                for n, f in known.items()
                if n not in given and (f.default, f.default_factory) == (MISSING, MISSING)
            ),
            None,
        )
        if wrong or absent:
            raise TypeError(f"{where} has {'an unknown' if wrong else 'no'} {wrong or absent!r}")
        return cast(Any, kind)(
            **{
                name: read(_hints(cast(Any, kind))[name], inner, f"{where}.{name}")
                for name, inner in given.items()
            }
        )
    if kind is float:
        return math.nan if value is None else float(_expect(int | float, value, where))
    return _expect(kind, value, where)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _expect(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{where} is {value!r:.40}")
    return value
