"""Rows of the results files: the figures of one model, over its seeds.

Several seeds are one row: exposure is the mean over the planted sentences of all of them, with an
interval over sentences; other figures are means of seeds, with the means of their intervals' ends.
Where two models are compared, it is on the seeds that both have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np

from privet.core.json_values import read
from privet.evidence.figures import Figure
from privet.language.model_audit.findings import ModelFindings, exposure_below, mean_exposure

LEARNED, SAME = "auc, texts it learned from", "auc, texts of the same authors"
WORD_LIST = "auc of the word list alone, texts it learned from"
NAMES = {
    "none": "plain",
    "stopped": "plain, stopped as at ε",
    "adversarial": "adversarial",
    "triplet": "triplet",
    "dp": "DP-SGD, ε",
}

Seeds = Mapping[int, ModelFindings]
Cell = dict[str, Any] | Decimal | list[Any] | None


def number(value: float, digits: int = 1) -> Decimal:
    """As it is printed.

    >>> number(-0.04), number(2.25)
    (Decimal('0.0'), Decimal('2.2'))
    """
    rounded = Decimal(f"{value:.{digits}f}")
    return abs(rounded) if rounded == 0 else rounded


def cell(figures: Sequence[Figure | None], factor: float = 1.0) -> Cell:
    """The mean of seeds, of the ends of their intervals too."""
    there = [one for one in figures if one is not None]
    if not there:
        return None
    ends = ("value", "low", "high")
    means = {key: factor * float(np.mean([getattr(one, key) for one in there])) for key in ends}
    found: dict[str, Any] = {key: number(value) for key, value in means.items()}
    if len(there) > 1:
        found["seeds"] = [number(factor * one.value) for one in there]
    return found


def of_seeds(values: Sequence[float]) -> Cell:
    """The mean of figures that have no interval, with the seeds' own where there are several."""
    mean = number(float(np.mean(values)))
    return mean if len(values) == 1 else {"value": mean, "seeds": [number(one) for one in values]}


def which(seeds: Sequence[int]) -> str:
    """How many seeds, and which.

    >>> which([0, 2]), which([])
    ('2: 0, 2', '0')
    """
    return f"{len(seeds)}: {', '.join(map(str, seeds))}" if seeds else "0"


def above(found: Seeds, other: Seeds, seeds: Sequence[int]) -> list[float]:
    """By how many per cent a model's perplexity is above another's, seed by seed."""
    return [
        100 * (found[seed].perplexity.value / other[seed].perplexity.value - 1) for seed in seeds
    ]


def pooled(found: Sequence[ModelFindings]) -> ModelFindings:
    """One with the planted sentences of all seeds."""
    return replace(found[0], canaries=tuple(one for each in found for one in each.canaries))


def findings_of(jobs: Mapping[str, Any]) -> dict[str, dict[int, ModelFindings]]:
    """Of each model, by seed; the plain one first."""
    found: dict[str, dict[int, ModelFindings]] = {}
    for key, result in jobs.items():
        kind, seed, *label = key.split(" ")
        if kind == "model" and "findings" in result:
            one = read(ModelFindings, result["findings"], key)
            found.setdefault(label[0], {})[int(seed)] = one
    return {label: dict(sorted(found[label].items())) for label in sorted(found, key=order)}


def order(label: str) -> tuple[int, float]:
    name, _, strength = label.partition(":")
    return list(NAMES).index(name), float(strength or 0)


def row(found: Seeds, plain: Seeds) -> dict[str, Any]:
    """The figures of a model, all in per cent but perplexity and bits."""
    seeds, shared = list(found.values()), [seed for seed in found if seed in plain]
    every = pooled(seeds)
    planted = [one for one in every.canaries if one.canary.repeats]
    repeats = sorted({one.canary.repeats for one in every.canaries})

    def per_cent(figure: Callable[[ModelFindings], Figure | None]) -> Cell:
        return cell([figure(one) for one in seeds], 100)

    against: dict[str, Cell] = {}
    if every.name != "none":
        against = {"above": None, "below": None}
    if shared and against:
        against = {"above": of_seeds(above(found, plain, shared)), "below": below(found, plain)}
    return {
        "which": which(list(found)),
        "perplexity": cell([one.perplexity for one in seeds]),
        **against,
        "exposure": with_seeds(
            cell([mean_exposure(planted)] if planted else []),
            [mean_exposure([c for c in one.canaries if c.canary.repeats]).value for one in seeds]
            if planted
            else [],
        ),
        "by_repeats": [
            number(mean_exposure([c for c in every.canaries if c.canary.repeats == r]).value)
            for r in repeats
        ],
        "tab": per_cent(lambda one: one.tab_excess),
        "canaries": per_cent(lambda one: one.tab_canaries),
        "repeated": per_cent(lambda one: one.repeated),
        "chance": of_seeds([100 * one.repeated.chance for one in seeds]),
        "longest": max(one.longest_repeated for one in seeds),
        "author": per_cent(lambda one: one.identified.accuracy if one.identified else None),
        "member": per_cent(lambda one: one.membership.get(LEARNED)),
        "words": per_cent(lambda one: one.membership.get(WORD_LIST)),
        "member_text": per_cent(lambda one: one.membership.get(SAME)),
        "gap": number(float(np.mean([one.gap for one in seeds])), 3),
        "seeds": len(seeds),
    }


def below(found: Seeds, other: Seeds) -> Cell:
    """By how many bits exposure is below another model's, by the sentences of the seeds of both."""
    shared = [seed for seed in found if seed in other]
    one, base = (pooled([model[seed] for seed in shared]) for model in (found, other))
    return with_seeds(
        cell([exposure_below(one, base)]),
        [each.value for seed in shared if (each := exposure_below(found[seed], other[seed]))],
    )


def with_seeds(found: Cell, values: Sequence[float]) -> Cell:
    """A figure over all seeds, with the seeds' own beside it."""
    if not isinstance(found, dict) or len(values) < 2:
        return found
    return {**found, "seeds": [number(value) for value in values]}


def title(label: str) -> str:
    name, _, strength = label.partition(":")
    return f"{NAMES[name]} {strength}".strip()
