"""Settings as people write them: `key=value` words for the fields of a dataclass, what a class's
docstring says about its fields, and lists of names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from privet.core.errors import PrivetError, unknown

_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_KINDS = {"int": "a whole number", "float": "a number", "bool": "yes or no"}


def settings_from_words(kind: Any, words: Sequence[str], what: str = "setting") -> dict[str, Any]:
    """The values that `words` give to fields of the dataclass `kind`; `what` names a field in
    errors.

    >>> from dataclasses import make_dataclass
    >>> settings_from_words(make_dataclass("Net", [("width", "int")]), ["width=128"])
    {'width': 128}
    """
    # Annotations are strings only where a module asks for that.
    types = {f.name: str(getattr(f.type, "__name__", f.type)) for f in fields(kind)}
    values = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise PrivetError(f"--set takes key=value, and '{word}' has no '='.")
        if key not in types:
            raise unknown(what, key, types)
        values[key] = _typed(key, value, types[key])
    return values


def _typed(key: str, value: str, kind: str) -> Any:
    try:
        if kind == "bool":
            return _BOOLEANS[value.lower()]
        return {"int": int, "float": float}.get(kind, str)(value)
    except (ValueError, KeyError):
        raise PrivetError(f"The setting {key} takes {_KINDS[kind]}, not '{value}'.") from None


def field_docs(kind: type) -> dict[str, str]:
    """The text of each entry under `Parameters:`, on one line.

    >>> class Point:
    ...     \"\"\"A place.
    ...
    ...     Parameters:
    ...         x, y: From the corner,
    ...             in pixels.
    ...     \"\"\"
    >>> field_docs(Point)
    {'x': 'From the corner, in pixels.', 'y': 'From the corner, in pixels.'}
    """
    section = re.search(
        r"^Parameters:\n((?:    .*\n?|\n)+)", inspect.cleandoc(kind.__doc__ or ""), re.MULTILINE
    )
    if section is None:
        return {}
    entries = re.findall(r"^    (\w[\w, ]*): (.*(?:\n     .*)*)", section[1], re.MULTILINE)
    return {
        name.strip(): " ".join(text.split()) for names, text in entries for name in names.split(",")
    }


def names(words: str | Iterable[str]) -> list[str]:
    """The names in `words`.

    >>> names("sex, race"), names(["sex"]), names("")
    (['sex', 'race'], ['sex'], [])
    """
    if isinstance(words, str):
        return [word.strip() for word in words.split(",") if word.strip()]
    return list(words)


def read_numbers(option: str, words: str) -> tuple[int, ...]:
    """Whole numbers from 1 on, as a user writes them with commas.

    >>> read_numbers("--records", "2, 5")
    (2, 5)
    """
    try:
        numbers = tuple(int(word) for word in names(words))
    except ValueError:
        numbers = (0,)
    if any(number < 1 for number in numbers):
        raise PrivetError(f"{option} takes whole numbers with commas, such as 2,5: not '{words}'.")
    return numbers
