"""Privet learns releases that hide chosen private attributes, attacks them, and says what is left.

    data    = privet.load("portraits")
    release = privet.Hedge(target=0.6).fit(data, private=["beard"], utility=["smiling"])
    audit   = privet.audit(release, data, utility=["smiling"])
    privet.report(audit, "report.html"); release.save("hedge/")

The names are imported when they are first used: `privet --help` need not wait for PyTorch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from privet.core.errors import missing_package
from privet.core.version import __version__

if TYPE_CHECKING:
    from privet.auditing.audit import audit
    from privet.core.errors import PrivetError
    from privet.data.dataset import Attribute, Dataset
    from privet.data.sources import load
    from privet.evidence.figures import Audit
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
    from privet.methods.microaggregation import Microaggregation
    from privet.methods.noisy import Noisy
    from privet.methods.registry import METHODS
    from privet.methods.shredder import Shredder
    from privet.methods.tiprdc import TIPRDC
    from privet.methods.unoise import UNoise
    from privet.release.release import Release
    from privet.reporting.page import report
    from privet.train.game import Run

_HOME = {
    "load": "data.sources",
    "Dataset": "data.dataset",
    "Attribute": "data.dataset",
    "METHODS": "methods.registry",
    "Hedge": "methods.hedge",
    "Codebook": "methods.codebook",
    "TIPRDC": "methods.tiprdc",
    "Confusion": "methods.confusion",
    "GAP": "methods.gap",
    "Collaborative": "methods.collaborative",
    "Cloak": "methods.cloak",
    "Shredder": "methods.shredder",
    "UNoise": "methods.unoise",
    "LEACE": "methods.leace",
    "Noisy": "methods.noisy",
    "DP": "methods.dp",
    "Encoder": "methods.encoder",
    "Hybrid": "methods.hybrid",
    "Microaggregation": "methods.microaggregation",
    "Run": "train.game",
    "Release": "release.release",
    "audit": "auditing.audit",
    "Audit": "evidence.figures",
    "report": "reporting.page",
    "PrivetError": "core.errors",
}

__all__ = [
    "load",
    "Dataset",
    "Attribute",
    "METHODS",
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
    "Run",
    "Release",
    "audit",
    "Audit",
    "report",
    "PrivetError",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'privet' has no attribute '{name}'")
    try:
        return getattr(import_module(f"privet.{_HOME[name]}"), name)
    except ModuleNotFoundError as error:
        raise missing_package(error) from error


def __dir__() -> list[str]:
    return sorted(__all__)
