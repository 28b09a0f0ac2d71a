"""Network parts, one set per kind of data: what each modality's extractor, classifier, estimator
and decoder are.

A release names its network by a word of NETWORKS, and the card holds the settings, so that loading
one needs no code beside the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from privet.core.errors import unknown
from privet.data.schema import ImageSchema, Schema, SignalSchema, TableSchema, TextSchema
from privet.nets import convolutions, sequences, vectors
from privet.nets.additive import Additive
from privet.nets.affine import Affine
from privet.nets.channel import channel_of
from privet.nets.code import Code
from privet.nets.components import Components
from privet.nets.identity import Identity
from privet.nets.laplace import Laplace
from privet.nets.mask import Keep, Split, Spread
from privet.nets.nearest import Nearest
from privet.nets.record import Record
from privet.nets.sanitizer import Sanitizer
from privet.nets.symbols import Quantiser, Symbols
from privet.nets.unet import NoiseMap


@dataclass(frozen=True)
class Plan:
    """How to build the players of a game for one schema."""

    extractor: Callable[[float], nn.Module]
    classifier: Callable[[Any, int, float], nn.Module]
    estimator: Callable[[Any, int, float], nn.Module]
    decoder: Callable[[Any, float], nn.Module]


def plan(schema: Schema) -> Plan:
    """The networks for this kind of record."""
    if isinstance(schema, ImageSchema | SignalSchema):
        picture = isinstance(schema, ImageSchema)
        shape = tuple(size for size in schema.shape if size is not None)
        return Plan(
            lambda width: convolutions.Extractor(shape, width),
            convolutions.Classifier,
            lambda features, private, width: convolutions.Estimator(
                shape, features, private, width
            ),
            lambda features, width: convolutions.Decoder(shape, features, width, picture),
        )
    if isinstance(schema, TextSchema):
        return Plan(
            lambda width: sequences.Extractor(schema.vocabulary, width),
            sequences.Classifier,
            lambda features, private, width: sequences.Estimator(
                schema.vocabulary, features, private, width
            ),
            lambda features, width: sequences.Decoder(schema.vocabulary, features, width),
        )
    assert isinstance(schema, TableSchema)
    columns = schema.shape[0] or 0
    return Plan(
        lambda width: vectors.Extractor(columns, width),
        vectors.Classifier,
        lambda features, private, width: vectors.Estimator(columns, features, private, width),
        lambda features, width: vectors.Decoder(columns, features, width),
    )


NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "identity": lambda schema: Identity(schema.shape),
    "extractor": lambda schema, width=1.0: plan(schema).extractor(width),
    "hedge": lambda schema, dims, sigma, width=1.0, dropout=0.0: Additive(
        Code(schema, dims, width, dropout), sigma
    ),
    "codebook": lambda schema, symbols, dims, flip, width=1.0, dropout=0.0: Symbols(
        Quantiser(Code(schema, dims, width, dropout), symbols), flip
    ),
    "noisy-extractor": lambda schema, width=1.0, noise=1.0: Additive(
        plan(schema).extractor(width), noise
    ),
    "noise-map": lambda schema, size, loud: NoiseMap(schema.shape, size, loud),
    "noisy-record": lambda schema, scale: Additive(Record(schema.shape), scale),
    "dp": lambda schema, scale: Laplace(Record(schema.shape), scale),
    "hybrid": lambda schema, dims, scale, width=1.0: Laplace(
        Components(plan(schema).extractor(width), dims), scale
    ),
    "nearest": lambda schema, groups: Nearest(schema.shape[0] or 0, groups),
    "affine": lambda schema, rank=1: Affine(schema.shape, rank),
    "cloak": lambda schema: Spread(Keep(schema.shape)),
    "shredder": lambda schema, outputs, width=0.25, depth=0.5: Split(schema, outputs, width, depth),
    "channel": channel_of,
    "sanitizer": lambda schema, width=1.0, stochastic=False: Sanitizer(schema, width, stochastic),
}


def build(name: str, schema: Schema, settings: dict[str, Any]) -> nn.Module:
    """The network called `name`; it has a `shape`, that of one released record (None for a free
    axis)."""
    if name not in NETWORKS:
        raise unknown("network", name, NETWORKS)
    return NETWORKS[name](schema, **settings)
