"""The audit of language models as values, and the sentence that sums it up."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from privet.evidence.figures import Figure
from privet.evidence.person_intervals import best_of
from privet.language.model_audit.findings import Reading, exposure_below
from privet.language.model_audit.saved_findings import plain
from privet.language.models.train import Settings

NEAR = 0.03
"""Perplexities that differ by less than this share count as equal."""


@dataclass(frozen=True)
class LanguageAudit:
    """Every model of an audit, the plain one first, and what they show together."""

    data: str
    authors: int
    settings: Settings
    patterns: tuple[str, ...]
    models: list[Reading]
    """The plain one first."""
    verdict: str
    notes: tuple[str, ...]

    def to_json(self) -> str:
        return json.dumps(plain(asdict(self)), indent=1, ensure_ascii=False) + "\n"


def verdict(models: Sequence[Reading]) -> str:
    """Whether any regulariser remembers less at equal perplexity, with both exposures and their
    intervals."""
    plain, others = models[0], models[1:]
    if not others:
        return "Only the plain model was trained: there is nothing to compare it with."
    near = [one for one in others if one.perplexity.value <= (1 + NEAR) * plain.perplexity.value]
    if not near:
        closest = min(others, key=lambda one: one.perplexity.value)
        more = closest.perplexity.value / plain.perplexity.value - 1
        return (
            f"No regularised model has a perplexity within {100 * NEAR:.0f} % of the plain model's ({closest.name} comes closest, "
            f"{100 * more:.0f} % above): none can be compared at equal use."
        )
    # The best of several is named: all intervals are to hold at once.
    confidence = best_of(len(near))
    below = {
        one.name: figure
        for one in near
        if (figure := exposure_below(one, plain, confidence)) is not None
    }
    if not below:
        return "No sentence was planted, so nothing is known of what any model remembers."
    name = max(below, key=lambda one: below[one].low)
    best, chosen = below[name], next(one for one in near if one.name == name)
    compared = (
        f"At equal perplexity ({chosen.perplexity.value:.1f} against {plain.perplexity.value:.1f}, at most {100 * NEAR:.0f} % above) "
        f"{name} has a mean exposure of {_bits(chosen.exposure)} bits against the plain model's {_bits(plain.exposure)}: canary by canary "
        f"{best.value:.1f} bits lower [{best.low:.1f}, {best.high:.1f}]"
    )
    if best.low > 0:
        sure = sum(figure.low > 0 for figure in below.values())
        return f"{compared}, beyond the interval. So do {sure} of {len(others)} regularised models."
    return (
        f"{compared}, which is within the interval. Of {len(near)} models at equal perplexity none has a mean exposure that is lower "
        "beyond the interval: at equal use, no regulariser was shown to remember less."
    )


def _bits(figure: Figure | None) -> str:
    return (
        "-"
        if figure is None or math.isnan(figure.value)
        else f"{figure.value:.1f} [{figure.low:.1f}, {figure.high:.1f}]"
    )
