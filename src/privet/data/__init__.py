"""Data: where it comes from, what is known about it, who it is from, and how it becomes a network's input."""

from privet.data.dataset import PARTS, Attribute, Dataset, Splits
from privet.data.images import read_picture
from privet.data.portraits import portraits
from privet.data.schema import Schema, learn_schema, schema_from_json
from privet.data.show import show
from privet.data.sources import SOURCES, load
from privet.data.toys import toy

__all__ = [
    "load", "SOURCES", "Dataset", "Attribute", "Splits", "PARTS", "portraits", "toy",
    "Schema", "learn_schema", "schema_from_json", "read_picture", "show",
]  # fmt: skip
