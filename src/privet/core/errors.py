"""The one error a user may see: a sentence that says what is wrong and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LEARN = ("torch", "sklearn", "safetensors", "onnxscript")
PARTICIPANT = ("httpx", "nacl", "pydantic")
# Packages that whole verbs need, by the name they are imported with, and the extra with each.
EXTRAS = {**dict.fromkeys(LEARN, "learn"), **dict.fromkeys(PARTICIPANT, "participant")}


class PrivetError(Exception):
    """Raised where the user's words are read; the command line prints it and exits with code 2."""


def refuse_if(wrong: object, sentence: str) -> None:
    """Raise a PrivetError with this sentence where something is wrong.

    >>> refuse_if(3 < 2, "Take 2 or more.")
    """
    if wrong:
        raise PrivetError(sentence)


def unknown(what: str, word: str, known: Iterable[str]) -> PrivetError:
    """Say that `word` is not a known `what`, and name the closest known ones.

    >>> str(unknown("method", "tiprc", ["tiprdc", "gap"]))
    "There is no method 'tiprc'; did you mean 'tiprdc'? Known: gap, tiprdc."
    """
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1)
    hint = f"; did you mean '{close[0]}'?" if close else "."
    shown = ", ".join(names[:40]) + (", ..." if len(names) > 40 else "")
    return PrivetError(f"There is no {what} '{word}'{hint} Known: {shown or 'none'}.")


def first_line(error: BaseException) -> str:
    """The first line of what an error of another package says, to be quoted in a sentence.

    >>> first_line(ValueError("No such column.\\n  at line 3"))
    'No such column'
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")


def refuse(*rules: tuple[object, str]) -> None:
    """Raise the sentence of the first rule whose condition holds.

    >>> refuse((False, "All is well."), (3 > 2, "Three are too many."))
    Traceback (most recent call last):
    privet.core.errors.PrivetError: Three are too many.
    """
    for refused, sentence in rules:
        if refused:
            raise PrivetError(sentence)


def missing_extra(package: str, extra: str, why: str) -> PrivetError:
    """Say which extra brings an optional package."""
    return PrivetError(
        f"{why} needs the package {package}: install it with  pip install 'privet[{extra}]'."
    )


def missing_package(error: ModuleNotFoundError) -> PrivetError | ModuleNotFoundError:
    """Say which extra brings a package that could not be imported; the error itself for others.

    >>> str(missing_package(ModuleNotFoundError("No module named 'torch'", name="torch.nn")))
    "This needs the package torch: install it with  pip install 'privet[learn]'."
    """
    package = (error.name or "").split(".")[0]
    return missing_extra(package, EXTRAS[package], "This") if package in EXTRAS else error
