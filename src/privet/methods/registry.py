"""Ways to privatize, one file each. A new one is a file here and a line in METHODS."""

from __future__ import annotations

from rich.table import Table

from privet.core.errors import unknown
from privet.methods.cloak import Cloak
from privet.methods.codebook import Codebook
from privet.methods.collaborative import Collaborative
from privet.methods.confusion import Confusion
from privet.methods.dp import DP
from privet.methods.encoder import Encoder
from privet.methods.gap import GAP
from privet.methods.hedge import Hedge
from privet.methods.hybrid import Hybrid
from privet.methods.leace import LEACE
from privet.methods.method import Method
from privet.methods.microaggregation import Microaggregation
from privet.methods.noisy import Noisy
from privet.methods.shredder import Shredder
from privet.methods.tiprdc import TIPRDC
from privet.methods.unoise import UNoise

__all__ = [
    "METHODS",
    "Method",
    "method",
    "table",
    "Hedge",
    "Codebook",
    "TIPRDC",
    "Confusion",
    "GAP",
    "Collaborative",
    "Cloak",
    "Shredder",
    "UNoise",
    "LEACE",
    "Noisy",
    "DP",
    "Encoder",
    "Hybrid",
    "Microaggregation",
]

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        Hedge,
        Codebook,
        TIPRDC,
        Confusion,
        GAP,
        Collaborative,
        Cloak,
        Shredder,
        UNoise,
        LEACE,
        Noisy,
        DP,
        Encoder,
        Hybrid,
        Microaggregation,
    )
}


def method(name: str) -> type[Method]:
    """The method called `name`."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]


def table() -> Table:
    """All methods, for people."""
    wants = {"none": "no", "optional": "may be told", "needed": "needed"}
    columns = Table("method", "name", "a task?", "takes", "its budget", box=None, pad_edge=False)
    for name, kind in METHODS.items():
        dial = (
            f"{kind.dial}: {', '.join(f'{value:g}' for value in kind.sweep)}"
            if kind.dial
            else "nothing to turn"
        )
        columns.add_row(name, kind.title, wants[kind.tasks], ", ".join(kind.modalities), dial)
    return columns
