"""Whether a campaign asks for what its release hides: words are compared, not names.

A question is refused that has all words of a private attribute in it, in its name, its text or one
of its answers; one that shares a word, or an answer, with a private attribute is shown beside it.
Words are compared without case and marks and by their stems ("bearded" is "beard").

What this cannot catch: another word for the same thing ("whiskers"), another language, and
questions whose answer tells it without naming it ("Did you shave today?"). So a participant sees
everything that is asked beside everything that is hidden.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

# Endings that are cut off where at least three letters stay, the longest first.
ENDINGS = re.findall(r"\w+", "ness less ings ing ers ies est ed er es ly e s y")
SHORTEST_STEM = 3
# From this length on a word is also looked for inside others: "hasbeard", "beardlength".
INSIDE = 5
# Words that say nothing about what is asked.
EMPTY = frozenset(
    re.findall(
        r"\w+",
        "a an and any are at be been by can did do does for from had has have how i in is it its "
        "many me much my no not of on one or other our that the their they this to type was we "
        "were what when where which who will with yes you your kind number value true false none "
        "unknown",
    )
)


class Question(Protocol):
    """What is asked, as a manifest's label has it."""

    @property
    def name(self) -> str: ...
    @property
    def question(self) -> str: ...
    @property
    def values(self) -> Sequence[str]: ...


class Overlap(NamedTuple):
    """A question that is near what is hidden.

    Parameters:
        label: Its name.
        attribute: The private attribute.
        word: What both have.
    """

    label: str
    attribute: str
    word: str


def words(text: str) -> list[str]:
    """The words of a text without case and marks; camelCase and snake_case are several.

    >>> words("Do you have aBeard_now?")
    ['do', 'you', 'have', 'a', 'beard', 'now']
    """
    plain = unicodedata.normalize("NFKD", str(text))
    plain = "".join(c for c in plain if not unicodedata.combining(c) and c not in "\u00ad\u200b")
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", plain)
    return re.findall(r"[^\W_]+", apart.casefold())


def stem(word: str) -> str:
    """
    >>> [stem(word) for word in ("beards", "bearded", "smiling", "smile", "age")]
    ['beard', 'beard', 'smil', 'smil', 'age']
    """
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_STEM:
            return word[: -len(ending)]
    return word


def asked_for(labels: Iterable[Question], private: Iterable[str]) -> Overlap | None:
    """The first question that asks for a private attribute by its words."""
    attributes = list(private)
    for label in labels:
        for text in (label.name, label.question, *label.values):
            for attribute in attributes:
                if _names(text, attribute):
                    return Overlap(label.name, attribute, str(text))
    return None


def overlaps(
    labels: Iterable[Question], private: Iterable[str], values: Mapping[str, Sequence[str]]
) -> list[Overlap]:
    """Questions that share a word with a private attribute, or an answer with its values.

    Parameters:
        labels: What is asked.
        private: What is hidden.
        values: Of private attributes, where they are known.
    """
    attributes = list(private)
    return [
        Overlap(label.name, attribute, shared)
        for label in labels
        for attribute in attributes
        if (shared := _shared(label, attribute, values.get(attribute, ())))
    ]


def _names(text: str, attribute: str) -> bool:
    """Whether all words of an attribute's name are in a text."""
    wanted = [word for word in words(attribute) if word not in EMPTY] or words(attribute)
    there = words(text)
    if sum(map(len, wanted)) < 2:  # one letter is a name, not a word
        return there == wanted
    return bool(wanted) and all(_inside(word, there) for word in wanted)


def _inside(word: str, there: Sequence[str]) -> bool:
    wanted = stem(word)
    return any(stem(other) == wanted or (len(word) >= INSIDE and word in other) for other in there)


def _shared(label: Question, attribute: str, values: Sequence[str]) -> str:
    texts = (label.name, label.question, *label.values)
    there = [word for text in texts for word in words(text)]
    for word in words(attribute):
        if word not in EMPTY and len(word) > 1 and _inside(word, there):
            return word
    answers = {" ".join(words(value)) for value in label.values}
    for value in values:
        plain = " ".join(words(value))
        if plain in answers and plain not in EMPTY and not plain.isdigit() and len(plain) > 1:
            return str(value)
    return ""
