"""Ways to privatize, one file each. A new one is a file here and a line in METHODS."""

from __future__ import annotations

from privet.errors import unknown
from privet.methods.hedge import Hedge
from privet.methods.leace import LEACE
from privet.methods.method import Method
from privet.methods.tiprdc import TIPRDC

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        Hedge,
        TIPRDC,
        LEACE,
    )
}


def method(name: str) -> type[Method]:
    """The method called `name`."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]
