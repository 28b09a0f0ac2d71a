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
    from privet.adversaries.adversary import Adversary
    from privet.adversaries.registry import ADVERSARIES
    from privet.auditing.batteries import BATTERIES, Battery
    from privet.auditing.gate import gate
    from privet.auditing.int8 import export_int8
    from privet.benchmarking.bench import bench
    from privet.commands.apply import apply
    from privet.commands.audit import audit
    from privet.commands.certify import certify
    from privet.commands.compare import compare
    from privet.commands.embed import embed
    from privet.commands.learn import learn
    from privet.commands.verify import verify
    from privet.core.errors import PrivetError
    from privet.data.dataset import Attribute, Dataset
    from privet.data.show import show
    from privet.data.sources import SOURCES, load
    from privet.evidence.certificate.values import Certification
    from privet.evidence.figures import Audit
    from privet.methods.blend import Blend
    from privet.methods.cloak import Cloak
    from privet.methods.codebook import Codebook
    from privet.methods.collaborative import Collaborative
    from privet.methods.confusion import Confusion
    from privet.methods.donors import Donors
    from privet.methods.dp import DP
    from privet.methods.encoder import Encoder
    from privet.methods.erase import Erase
    from privet.methods.gap import GAP
    from privet.methods.hedge import Hedge
    from privet.methods.hybrid import Hybrid
    from privet.methods.leace import LEACE
    from privet.methods.method import Method
    from privet.methods.metric import Metric
    from privet.methods.microaggregation import Microaggregation
    from privet.methods.noisy import Noisy
    from privet.methods.registry import METHODS
    from privet.methods.shredder import Shredder
    from privet.methods.tiprdc import TIPRDC
    from privet.methods.tree import Tree
    from privet.methods.unoise import UNoise
    from privet.methods.veil import Veil
    from privet.release.apply import ApplyOptions
    from privet.release.noise_keys import forget
    from privet.release.part_writing import Parts
    from privet.release.release import Release
    from privet.release.triton import export_triton
    from privet.reporting.page import report
    from privet.scale.stage import Stage
    from privet.studies.demo import demo
    from privet.studies.study import Study
    from privet.train.game import Run

_HOME = {
    "load": "privet.data.sources",
    "SOURCES": "privet.data.sources",
    "Dataset": "privet.data.in_memory",
    "Attribute": "privet.data.dataset",
    "show": "privet.data.show",
    "embed": "privet.commands.embed",
    "learn": "privet.commands.learn",
    "Run": "privet.train.game",
    "Release": "privet.release.release",
    "apply": "privet.commands.apply",
    "ApplyOptions": "privet.release.apply",
    "Parts": "privet.release.part_writing",
    "Stage": "privet.scale.stage",
    "forget": "privet.release.noise_keys",
    "audit": "privet.commands.audit",
    "Audit": "privet.reporting.notebook",
    "Battery": "privet.auditing.batteries",
    "BATTERIES": "privet.auditing.batteries",
    "certify": "privet.commands.certify",
    "Certification": "privet.evidence.certificate.values",
    "verify": "privet.commands.verify",
    "gate": "privet.auditing.gate",
    "report": "privet.reporting.page",
    "compare": "privet.commands.compare",
    "Study": "privet.studies.study",
    "export_int8": "privet.auditing.int8",
    "export_triton": "privet.release.triton",
    "demo": "privet.studies.demo",
    "bench": "privet.benchmarking.bench",
    "Method": "privet.methods.method",
    "METHODS": "privet.methods.registry",
    "Hedge": "privet.methods.hedge",
    "Codebook": "privet.methods.codebook",
    "Tree": "privet.methods.tree",
    "Donors": "privet.methods.donors",
    "TIPRDC": "privet.methods.tiprdc",
    "Confusion": "privet.methods.confusion",
    "Veil": "privet.methods.veil",
    "Blend": "privet.methods.blend",
    "GAP": "privet.methods.gap",
    "Collaborative": "privet.methods.collaborative",
    "Cloak": "privet.methods.cloak",
    "Shredder": "privet.methods.shredder",
    "UNoise": "privet.methods.unoise",
    "LEACE": "privet.methods.leace",
    "Erase": "privet.methods.erase",
    "Noisy": "privet.methods.noisy",
    "DP": "privet.methods.dp",
    "Metric": "privet.methods.metric",
    "Encoder": "privet.methods.encoder",
    "Hybrid": "privet.methods.hybrid",
    "Microaggregation": "privet.methods.microaggregation",
    "Adversary": "privet.adversaries.adversary",
    "ADVERSARIES": "privet.adversaries.registry",
    "PrivetError": "privet.core.errors",
}

__all__ = [
    "load",
    "SOURCES",
    "Dataset",
    "Attribute",
    "show",
    "embed",
    "learn",
    "Run",
    "Release",
    "apply",
    "ApplyOptions",
    "Parts",
    "Stage",
    "forget",
    "audit",
    "Audit",
    "Battery",
    "BATTERIES",
    "certify",
    "Certification",
    "verify",
    "gate",
    "report",
    "compare",
    "Study",
    "export_int8",
    "export_triton",
    "demo",
    "bench",
    "Method",
    "METHODS",
    "Hedge",
    "Codebook",
    "Tree",
    "Donors",
    "TIPRDC",
    "Confusion",
    "Veil",
    "Blend",
    "GAP",
    "Collaborative",
    "Cloak",
    "Shredder",
    "UNoise",
    "LEACE",
    "Erase",
    "Noisy",
    "DP",
    "Metric",
    "Encoder",
    "Hybrid",
    "Microaggregation",
    "Adversary",
    "ADVERSARIES",
    "PrivetError",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'privet' has no attribute '{name}'")
    try:
        return getattr(import_module(_HOME[name]), name)
    except ModuleNotFoundError as error:
        raise missing_package(error) from error


def __dir__() -> list[str]:
    return sorted(__all__)
