"""Dataclasses as JSON, and back from it: their annotations say what belongs where."""

from __future__ import annotations

import json
import math
import types
from dataclasses import MISSING, asdict, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


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
    """`value` from JSON as a `kind`: what does not belong there is refused by name.

    >>> read(tuple[float, ...], [1, None], "scores")
    (1.0, nan)
    """
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        inner = next(arg for arg in args if arg is not type(None))
        return None if value is None else read(inner, value, where)
    if origin is Literal:
        return _one_of(args, value, where)
    if origin is tuple:
        items = enumerate(_expect(list, value, where))
        return tuple(read(args[0], item, f"{where}[{i}]") for i, item in items)
    if origin is dict:
        entries = _expect(dict, value, where).items()
        name = int if args[0] is int else str
        return {name(key): read(args[1], item, f"{where}.{key}") for key, item in entries}
    if is_dataclass(kind):
        return _read_dataclass(kind, _expect(dict, value, where), where)
    if kind is float:
        return math.nan if value is None else float(_expect(int | float, value, where))
    return _expect(kind, value, where)


def _read_dataclass(kind: Any, entries: dict[str, Any], where: str) -> Any:
    known = {f.name: (f.default, f.default_factory) for f in fields(kind)}
    for name in entries:
        if name not in known:
            raise TypeError(f"{where} has an unknown {name!r}")
    for name, default in known.items():
        if name not in entries and default == (MISSING, MISSING):
            raise TypeError(f"{where} has no {name!r}")
    hints = _hints(kind)
    return kind(**{n: read(hints[n], item, f"{where}.{n}") for n, item in entries.items()})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _one_of(values: tuple[Any, ...], value: Any, where: str) -> Any:
    if value not in values:
        raise TypeError(f"{where} is {value!r:.40}")
    return value


def _expect(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{where} is {value!r:.40}")
    return value
