"""All methods by name. A new one is a file in this folder and a line here; another package adds
its own by an entry point of the group `privet.methods`."""

from __future__ import annotations

from rich.table import Table

from privet.core.registry import Registry
from privet.methods.method import Method

METHODS: Registry[type[Method]] = Registry(
    "method",
    {
        "hedge": "privet.methods.hedge:Hedge",
        "codebook": "privet.methods.codebook:Codebook",
        "tree": "privet.methods.tree:Tree",
        "donors": "privet.methods.donors:Donors",
        "tiprdc": "privet.methods.tiprdc:TIPRDC",
        "confusion": "privet.methods.confusion:Confusion",
        "veil": "privet.methods.veil:Veil",
        "blend": "privet.methods.blend:Blend",
        "gap": "privet.methods.gap:GAP",
        "collaborative": "privet.methods.collaborative:Collaborative",
        "cloak": "privet.methods.cloak:Cloak",
        "shredder": "privet.methods.shredder:Shredder",
        "unoise": "privet.methods.unoise:UNoise",
        "leace": "privet.methods.leace:LEACE",
        "erase": "privet.methods.erase:Erase",
        "noisy": "privet.methods.noisy:Noisy",
        "dp": "privet.methods.dp:DP",
        "metric": "privet.methods.metric:Metric",
        "encoder": "privet.methods.encoder:Encoder",
        "hybrid": "privet.methods.hybrid:Hybrid",
        "microaggregation": "privet.methods.microaggregation:Microaggregation",
    },
    "privet.methods",
)


def table() -> Table:
    """All methods, for people."""
    wants = {"none": "no", "optional": "may be told", "needed": "needed"}
    columns = Table("method", "name", "a task?", "takes", "its budget", box=None, pad_edge=False)
    for name, kind in METHODS.items():
        sweep = ", ".join(f"{value:g}" for value in kind.sweep)
        dial = f"{kind.dial}: {sweep}" if kind.dial else "nothing to turn"
        columns.add_row(name, kind.title, wants[kind.tasks], ", ".join(kind.modalities), dial)
    return columns
