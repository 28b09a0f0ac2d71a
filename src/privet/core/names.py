"""Names as people give them: one, several in a list, or several with commas between them."""

from __future__ import annotations

from collections.abc import Iterable


def names(words: str | Iterable[str]) -> list[str]:
    """The names in `words`.

    >>> names("sex, race"), names(["sex"]), names("")
    (['sex', 'race'], ['sex'], [])
    """
    if isinstance(words, str):
        return [word.strip() for word in words.split(",") if word.strip()]
    return list(words)
