"""The words of `privet compare` as values: a study, budgets, settings, and a time limit."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from privet.core.errors import PrivetError, unknown
from privet.evidence.verdict import check_goal
from privet.methods.registry import METHODS
from privet.studies import recipes
from privet.studies.study import Study

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def read_study(
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
    goal: float | Mapping[str, float] | None = None,
) -> Study:
    """The study that the command line asks for: a recipe, or one question of the user's own."""
    if recipe is not None:
        if private or utility or schema or budgets:
            raise PrivetError(
                "A recipe says itself what is private, which tasks and budgets there are: leave "
                "them out, or leave out --recipe."
            )
        study = adapt(recipes.recipe(recipe, data, size), methods, settings, seeds, battery)
        return with_goals(study, goal)
    if size != "full":
        raise PrivetError("--size is for recipes: choose smaller data and settings instead.")
    if data is None:
        raise PrivetError("Say which data to compare on: --data SPEC, or a --recipe.")
    among = list(dict.fromkeys(METHODS[name].name for name in methods)) or list(METHODS)
    study = Study.of(
        data,
        private,
        utility,
        methods=methods,
        budgets=read_budgets(budgets, among),
        settings=read_settings(settings, among),
        seeds=1 if seeds is None else seeds,
        battery=battery or "quick",
        schema=schema,
    )
    return with_goals(study, goal)


def with_goals(study: Study, goal: float | Mapping[str, float] | None) -> Study:
    """The study with goals for its page: one for all private attributes, or one by name.

    >>> study = Study.of("portraits", ["beard"], ["hat"], methods=["leace"])
    >>> with_goals(study, 0.6).goals, with_goals(study, None).goals
    ({'beard': 0.6}, {})
    """
    known = list(dict.fromkeys(name for q in study.questions for name in q.audited_private))
    named = goal if isinstance(goal, Mapping) else {name: goal for name in known}
    goals = {name: share for name, share in named.items() if share is not None}
    for name, share in goals.items():
        if name not in known:
            raise unknown("private attribute of this comparison", name, known)
        check_goal(name, share, 0.0)
    return dataclasses.replace(study, goals=goals)


def adapt(
    study: Study,
    methods: Sequence[str],
    settings: Sequence[str],
    seeds: int | None,
    battery: str | None,
) -> Study:
    """A recipe with fewer methods, other settings, more seeds or another battery."""
    known = tuple(dict.fromkeys(variant.method for variant in study.variants))
    for name in methods:
        if name not in known:
            raise unknown("method in this recipe", name, known)
    fixed = read_settings(settings, tuple(name for name in known if name in methods) or known)
    variants = [
        dataclasses.replace(
            variant, settings=(*variant.settings, *fixed.get(variant.method, {}).items())
        )
        for variant in study.variants
        if not methods or variant.method in methods
    ]
    seeds = study.seeds if seeds is None else seeds
    battery = battery or study.battery
    return dataclasses.replace(study, variants=tuple(variants), seeds=seeds, battery=battery)


def read_budgets(words: str, methods: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """
    >>> read_budgets("hedge=0.54,0.58; tiprdc=0.9", ["hedge", "tiprdc", "leace"])
    {'hedge': (0.54, 0.58), 'tiprdc': (0.9,)}
    >>> read_budgets("0.5,0.9", ["tiprdc"])
    {'tiprdc': (0.5, 0.9)}
    """
    budgets: dict[str, tuple[float, ...]] = {}
    for part in filter(None, map(str.strip, words.split(";"))):
        if "=" not in part and len(methods) != 1:
            raise PrivetError(
                "Say whose budgets these are, since there are several methods:  "
                "--budgets 'hedge=0.54,0.58;tiprdc=0.9'."
            )
        name, _, values = part.rpartition("=")
        name = name.strip() or methods[0]
        if name not in methods:
            raise unknown("method in this comparison", name, methods)
        numbers = [_number(word) for word in map(str.strip, values.split(",")) if word]
        if not numbers:
            raise PrivetError(f"--budgets names {name} without a value: write  {name}=0.5,0.9.")
        budgets[name] = tuple(dict.fromkeys(numbers))
    return budgets


def _number(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise PrivetError(f"A budget is a number, and '{word}' is not.")
    return value


def read_settings(words: Sequence[str], methods: Sequence[str]) -> dict[str, dict[str, str]]:
    """`METHOD.key=value` for one method, `key=value` for every method that has such a setting.

    >>> read_settings(["tiprdc.width=0.5", "epochs=2"], ["tiprdc", "leace"])
    {'tiprdc': {'width': '0.5', 'epochs': '2'}}
    """
    settings: dict[str, dict[str, str]] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise PrivetError(f"--set takes METHOD.key=value, and '{word}' has no '='.")
        owner, _, name = key.rpartition(".")
        if owner and owner not in methods:
            raise unknown("method in this comparison", owner, methods)
        among = {one: _settings(one) for one in ([owner] if owner else methods)}
        having = [one for one, names in among.items() if name in names]
        if not having:
            every = sorted(set[str]().union(*among.values()))
            raise unknown(f"setting of {owner or 'these methods'}", name, every)
        for one in having:
            settings.setdefault(one, {})[name] = value
    return settings


def _settings(name: str) -> set[str]:
    return {field.name for field in dataclasses.fields(METHODS[name])} - {"seed"}


def read_seconds(words: str) -> float:
    """
    >>> read_seconds("600"), read_seconds("10m"), read_seconds("1.5 h")
    (600.0, 600.0, 5400.0)
    """
    text = words.strip().lower()
    number = text.rstrip("smhin ")
    try:
        value = float(number) * _SECONDS[text[len(number) :].strip()]
    except (ValueError, KeyError):
        raise PrivetError(
            f"--time-limit takes seconds, or minutes as 10m, or hours as 2h, not '{words}'."
        ) from None
    if not 0 < value < math.inf:
        raise PrivetError(f"--time-limit takes a time above 0, not '{words}'.")
    return value
