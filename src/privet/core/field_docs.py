"""What a class's docstring says about its fields: the entries under `Parameters:`."""

from __future__ import annotations

import inspect
import re


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
