"""Privet learns releases that hide chosen private attributes, attacks them, and says what is left.

    data    = privet.load("portraits")
    release = privet.Hedge(target=0.6).fit(data, private=["beard"], utility=["smiling"])
    audit   = privet.audit(release, data, utility=["smiling"])
    audit.report("report.html"); release.save("hedge/")

The names are imported when they are first used: `privet --help` need not wait for PyTorch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from privet.auditor import audit
    from privet.data import Attribute, Dataset, load
    from privet.errors import PrivetError
    from privet.evidence.figures import Audit
    from privet.game import Run
    from privet.methods import (
        DP,
        GAP,
        LEACE,
        METHODS,
        TIPRDC,
        Cloak,
        Codebook,
        Collaborative,
        Confusion,
        Encoder,
        Hedge,
        Hybrid,
        Microaggregation,
        Noisy,
        Shredder,
        UNoise,
    )
    from privet.release import Release

__all__ = [
    "load", "Dataset", "Attribute", "METHODS", "Hedge", "Codebook", "TIPRDC", "Confusion", "GAP", "Collaborative", "Cloak", "Shredder",
    "UNoise", "LEACE", "Noisy", "DP", "Encoder", "Hybrid", "Microaggregation", "Run", "Release", "audit", "Audit",
    "PrivetError", "__version__",
]  # fmt: skip

_METHODS = (
    "METHODS", "Hedge", "Codebook", "TIPRDC", "Confusion", "GAP", "Collaborative", "Cloak", "Shredder", "UNoise", "LEACE", "Noisy", "DP",
    "Encoder", "Hybrid", "Microaggregation",
)  # fmt: skip
_ROOMS = {
    "privet.auditor": ("audit",),
    "privet.data": ("load", "Dataset", "Attribute"),
    "privet.errors": ("PrivetError",),
    "privet.evidence.figures": ("Audit",),
    "privet.game": ("Run",),
    "privet.methods": _METHODS,
    "privet.release": ("Release",),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'privet' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
