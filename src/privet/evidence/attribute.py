"""Attributes: what is known about a record that somebody may want hidden or asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["binary", "categorical", "number", "identity", "mask"]


@dataclass(frozen=True)
class Attribute:
    """Something known about a record that somebody may want hidden or asked for.

    Parameters:
        values: Names of the classes, by code. Empty for numbers and masks.

    >>> Attribute("smiling", "binary", ("no", "yes")).classes
    2
    """

    name: str
    kind: Kind
    values: tuple[str, ...] = ()

    @property
    def classes(self) -> int:
        """How many classes there are; numbers and masks have none."""
        return len(self.values)

    @property
    def is_class(self) -> bool:
        """Whether its values are classes, not numbers or masks."""
        return self.kind in ("binary", "categorical", "identity")
