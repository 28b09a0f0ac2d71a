"""Reading data for a verb: what it was taken for is said, and whatever was left out of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privet.core.progress import console
from privet.data.dataset import Dataset
from privet.data.schema_file import Layout
from privet.data.show import kind_sentence
from privet.data.sources import load

PLAIN: dict[str, Any] = {"markup": False, "highlight": False, "soft_wrap": True}


def read(
    spec: str | Path, schema: str | Path | Layout | None = None, new_people: bool = False
) -> Dataset:
    """The data that a user names; its kind and the notes on it go to standard error."""
    data = load(spec, schema, new_people=new_people)
    console.print(kind_sentence(data), **PLAIN)
    for note in data.notes:
        console.print(f"Note: {note}", **PLAIN)
    return data
