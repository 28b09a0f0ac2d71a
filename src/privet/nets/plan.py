"""The networks of TIPRDC's tables for each kind of record: extractor, classifier, estimator and
decoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from privet.data.schema import ImageSchema, Schema, SignalSchema, TableSchema, TextSchema
from privet.nets import convolutions, sequences, vectors
from privet.nets.additive import Additive


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


def extractor(schema: Schema, width: float = 1.0) -> nn.Module:
    """The extractor as a release's network."""
    return plan(schema).extractor(width)


def noisy_extractor(schema: Schema, width: float = 1.0, noise: float = 1.0) -> nn.Module:
    """The extractor with noise on its features."""
    return Additive(plan(schema).extractor(width), noise)
