"""The one table of sentences: every sentence with a figure that Privet writes.

sentences.toml has them, each with the condition under which it may be printed. Pages, the command
line and the participant's page in the browser fill in the same texts; fields are texts that were
rounded before (formatting.py).
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

_FIELD = re.compile(r"\{(\w+)\}")

About = Literal["balanced", "real frequencies", "variance", "people", ""]
Per = Literal["record", "records", "person", ""]


@dataclass(frozen=True)
class Sentence:
    """A sentence, or a part of one, with fields to fill in.

    Parameters:
        text: The words; a field is a name in braces.
        when: The condition under which it may be printed.
        about: What its figure counts; empty where it has none.
        per: What the adversary sees: a record, several records of a person, or one release made of
            all of them.
    """

    text: str
    when: str
    about: About
    per: Per

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of its fields, each once."""
        return tuple(dict.fromkeys(_FIELD.findall(self.text)))

    @property
    def pattern(self) -> re.Pattern[str]:
        """What the sentence looks like with any words in its fields."""
        parts = _FIELD.split(self.text)
        return re.compile("".join(".*?" if i % 2 else re.escape(p) for i, p in enumerate(parts)))


@cache
def table() -> dict[str, Sentence]:
    """All sentences by name."""
    text = resources.files("privet.evidence").joinpath("sentences.toml").read_text("utf-8")
    return {name: Sentence(**entry) for name, entry in tomllib.loads(text).items()}


def say(name: str, /, **fields: object) -> str:
    """The sentence of that name with its fields filled in; a name or a field that the table does
    not have is a mistake of ours, and so is one left out.

    >>> say("sure_together", sure="99", statements="12")
    '99 % confidence for all 12 statements together'
    >>> say("sure_together", sure="99")
    Traceback (most recent call last):
    KeyError: "The sentence 'sure_together' has the fields sure, statements, and got sure."
    """
    sentence = table().get(name)
    if sentence is None:
        raise KeyError(f"There is no sentence '{name}' in sentences.toml.")
    if set(sentence.fields) != set(fields):
        raise KeyError(
            f"The sentence '{name}' has the fields {', '.join(sentence.fields)}, and got "
            f"{', '.join(fields)}."
        )
    return _FIELD.sub(lambda match: str(fields[match[1]]), sentence.text)
