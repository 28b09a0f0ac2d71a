"""What leaves: everything that whoever receives a released record gets of it, as one value.

It is what `apply` writes and what audits, certificates, gates, campaigns and reports judge: the
released numbers, every column written beside them, every label asked for, and what ties records of
one person together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Form = Literal["code", "record"]
Link = Literal["person", "order", "time"]


@dataclass(frozen=True)
class WhatLeaves:
    """Everything that whoever receives a record gets of it.

    Parameters:
        form: Whether the released numbers are a code, or a record of the same form as the raw one
            (a picture, a row, a vector).
        kept: Columns written beside the released numbers.
        asked: Labels that the owner of a record is asked for, and that are sent with it.
        records: How many records of a person can be told to be the same person's; None where
            nothing limits it.
        linked_by: What tells that records are the same person's: a pseudonym, the order of rows, or
            times.
        releases: How many releases of one record, each with fresh noise, may be seen: 1 where noise
            is a function of a key and the record.
        made_of: How many records of a person one release is made of at most: 1 where each record is
            released, None where nothing limits it.

    >>> WhatLeaves(kept=("income",), asked=("smiling",)).columns
    ('income', 'smiling')
    """

    form: Form = "code"
    kept: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    records: int | None = 1
    linked_by: tuple[Link, ...] = ()
    releases: int = 1
    made_of: int | None = 1

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that leaves beside the released numbers, each once."""
        return tuple(dict.fromkeys((*self.kept, *self.asked)))
