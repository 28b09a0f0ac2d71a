"""Networks that a release's card may name, by that name.

The card holds the name and the settings, so that loading a release runs no code that came with it.
Another package adds its own by an entry point of the group `privet.networks`: a function that takes
the release's schema and the settings, and gives a module with a `shape`, that of one released
record (None for a free axis).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from privet.core.registry import Registry
from privet.data.schema import Schema

NETWORKS: Registry[Callable[..., nn.Module]] = Registry(
    "network",
    {
        "identity": "privet.nets.identity:identity",
        "extractor": "privet.nets.plan:extractor",
        "hedge": "privet.nets.code:noisy_code",
        "codebook": "privet.nets.symbols:random_symbols",
        "tree": "privet.nets.tree:tree_symbols",
        "donors": "privet.nets.donors:donor_symbols",
        "noisy-extractor": "privet.nets.plan:noisy_extractor",
        "noise-map": "privet.nets.unet:noise_map",
        "noisy-record": "privet.nets.record:noisy_record",
        "dp": "privet.nets.laplace:private_record",
        "radial": "privet.nets.radial:radial",
        "hybrid": "privet.nets.components:private_components",
        "nearest": "privet.nets.nearest:nearest",
        "affine": "privet.nets.affine:affine",
        "one-length": "privet.nets.one_length:one_length",
        "cloak": "privet.nets.mask:cloak",
        "shredder": "privet.nets.mask:Split",
        "channel": "privet.nets.channel:channel_of",
        "sanitizer": "privet.nets.sanitizer:Sanitizer",
        "veil": "privet.nets.veil:Veil",
        "blend": "privet.nets.blend:Blend",
    },
    "privet.networks",
)


def build(name: str, schema: Schema, settings: dict[str, Any]) -> nn.Module:
    """The network called `name` for records of `schema`."""
    return NETWORKS[name](schema, **settings)
