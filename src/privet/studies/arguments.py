"""The words of `privet compare` to a study."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

from privet.core.errors import PrivetError, unknown
from privet.methods.registry import METHODS
from privet.studies import recipes
from privet.studies.cells import Source
from privet.studies.study import Question, Study, Variant

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def asked(
    recipe: str | None,
    size: str,
    data: str | None,
    private: Sequence[str],
    utility: Sequence[str],
    *,
    methods: Sequence[str] = (),
    budgets: str = "",
    settings: Sequence[str] = (),
    seeds: int | None = None,
    battery: str | None = None,
    schema: Path | None = None,
) -> Study:
    """The study that the words of the command line ask for: a recipe, or one question of the user's
    own."""
    if recipe is None:
        if size != "full":
            raise PrivetError("--size is for recipes: choose smaller data and settings instead.")
        if data is None:
            raise PrivetError("Say which data to compare on: --data SPEC, or a --recipe.")
        return study(
            data,
            private,
            utility,
            methods=methods,
            budgets=budgets,
            settings=settings,
            seeds=1 if seeds is None else seeds,
            battery=battery or "quick",
            schema=schema,
        )
    if private or utility or schema or budgets:
        raise PrivetError(
            "A recipe says itself what is private, which tasks and budgets there are: leave them out, or leave out --recipe."
        )
    made = recipes.recipe(recipe, data, size)
    return adapt(made, methods, settings, seeds, battery)


def adapt(
    made: Study,
    methods: Sequence[str],
    settings: Sequence[str],
    seeds: int | None,
    battery: str | None,
) -> Study:
    """A recipe with fewer methods, other settings, more seeds or another battery."""
    there = tuple(dict.fromkeys(variant.method for variant in made.variants))
    for name in methods:
        if name not in there:
            raise unknown("method in this recipe", name, there)
    among = tuple(name for name in there if name in methods) or there
    fixed = read_settings(settings, among)
    variants = tuple(
        dataclasses.replace(
            v, settings=tuple({**dict(v.settings), **fixed.get(v.method, {})}.items())
        )
        for v in made.variants
        if v.method in among
    )
    return dataclasses.replace(
        made,
        variants=variants,
        seeds=made.seeds if seeds is None else seeds,
        battery=battery or made.battery,
    )


def study(
    spec: str,
    private: Sequence[str],
    utility: Sequence[str],
    *,
    methods: Sequence[str] = (),
    budgets: str = "",
    settings: Sequence[str] = (),
    seeds: int = 1,
    battery: str = "quick",
    schema: Path | None = None,
) -> Study:
    """One question, and a variant per method; without `methods`, every method there is."""
    for name in methods:
        METHODS[name]
    named = tuple(dict.fromkeys(methods))
    among = named or tuple(METHODS)
    turns, fixed = read_budgets(budgets, among), read_settings(settings, among)
    variants = tuple(
        Variant(name, tuple(fixed.get(name, {}).items()), turns.get(name)) for name in among
    )
    question = Question(
        Source(spec, None if schema is None else str(schema)), tuple(private), tuple(utility)
    )
    return Study((question,), variants, seeds, battery, chosen=bool(named))


def read_budgets(words: str, methods: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """
    >>> read_budgets("hedge=0.54,0.58; tiprdc=0.9", ["hedge", "tiprdc", "leace"])
    {'hedge': (0.54, 0.58), 'tiprdc': (0.9,)}
    >>> read_budgets("0.5,0.9", ["tiprdc"])
    {'tiprdc': (0.5, 0.9)}
    """
    found: dict[str, tuple[float, ...]] = {}
    for part in filter(None, (p.strip() for p in words.split(";"))):
        name, equals, values = part.partition("=")
        if not equals:
            if len(methods) != 1:
                raise PrivetError(
                    "Say whose budgets these are, since there are several methods:  --budgets 'hedge=0.54,0.58;tiprdc=0.9'."
                )
            name, values = methods[0], part
        name = name.strip()
        if name not in methods:
            raise unknown("method in this comparison", name, methods)
        numbers = [_number(word.strip()) for word in values.split(",") if word.strip()]
        if not numbers:
            raise PrivetError(f"--budgets names {name} without a value: write  {name}=0.5,0.9.")
        found[name] = tuple(dict.fromkeys(numbers))
    return found


def _number(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        raise PrivetError(f"A budget is a number, and '{word}' is not.") from None
    if math.isnan(value):
        raise PrivetError("A budget is a number, and 'nan' is not.")
    return value


def read_settings(words: Sequence[str], methods: Sequence[str]) -> dict[str, dict[str, str]]:
    """`METHOD.key=value` for one method, `key=value` for every method that has such a setting.

    >>> read_settings(["tiprdc.width=0.5", "epochs=2"], ["tiprdc", "leace"])
    {'tiprdc': {'width': '0.5', 'epochs': '2'}}
    """
    found: dict[str, dict[str, str]] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise PrivetError(f"--set takes METHOD.key=value, and '{word}' has no '='.")
        owner, dot, rest = key.partition(".")
        if dot and owner not in methods:
            raise unknown("method in this comparison", owner, methods)
        name = rest if dot else key
        having = [
            m
            for m in ([owner] if dot else methods)
            if name in {f.name for f in dataclasses.fields(METHODS[m])} and name != "seed"
        ]
        if not having:
            among = sorted(
                {
                    f.name
                    for m in ([owner] if dot else methods)
                    for f in dataclasses.fields(METHODS[m])
                }
                - {"seed"}
            )
            raise unknown(f"setting of {owner}" if dot else "setting of these methods", name, among)
        for m in having:
            found.setdefault(m, {})[name] = value
    return found


def seconds(words: str) -> float:
    """
    >>> seconds("600"), seconds("10m"), seconds("1.5 h")
    (600.0, 600.0, 5400.0)
    """
    text = words.strip().lower()
    number = text.rstrip("smhin ")
    unit = text[len(number) :].strip()
    try:
        value = float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        raise PrivetError(
            f"--time-limit takes seconds, or minutes as 10m, or hours as 2h, not '{words}'."
        ) from None
    if not 0 < value < math.inf:
        raise PrivetError(f"--time-limit takes a time above 0, not '{words}'.")
    return value
