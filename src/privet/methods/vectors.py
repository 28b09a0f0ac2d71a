"""Which records are vectors, and whether all have one length."""

from __future__ import annotations

import numpy as np

from privet.data.schema import Schema, TableSchema
from privet.methods.method import Problem

# Columns, all of them numbers, from which on a row is taken for a vector.
FEWEST_NUMBERS = 64
# Records have one length where their lengths deviate by less than this share.
SAME_LENGTH = 0.01
# Records of *fit* whose lengths are looked at.
MEASURED = 65_536


def rows_are_vectors(schema: Schema) -> bool:
    """Whether records are vectors: many columns, all of them numbers."""
    return (
        isinstance(schema, TableSchema)
        and len(schema.columns) >= FEWEST_NUMBERS
        and not any(column.values for column in schema.columns)
    )


def one_length_of(problem: Problem) -> float | None:
    """The length that all records of *fit* have, in their own units; None where lengths differ."""
    schema = problem.schema
    if not isinstance(schema, TableSchema) or any(column.values for column in schema.columns):
        return None
    mean, std = (np.array([getattr(c, key) for c in schema.columns]) for key in ("mean", "std"))
    inputs = schema.inputs(problem.view())
    some = inputs[np.arange(min(len(inputs), MEASURED))]
    lengths = np.linalg.norm(mean + std * some, axis=1)
    typical = float(lengths.mean())
    return typical if lengths.std() < SAME_LENGTH * typical else None
