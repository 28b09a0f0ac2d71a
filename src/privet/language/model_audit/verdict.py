"""The audit of language models as a value, and the sentence that sums it up."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from privet.core.json_values import finite
from privet.evidence.figures import Figure
from privet.evidence.person_intervals import best_of
from privet.evidence.sentences import say
from privet.evidence.verdict import Word, judge
from privet.language.model_audit.exposure import BY_CHANCE
from privet.language.model_audit.findings import ModelFindings, exposure_below
from privet.language.models.settings import Settings

# Perplexities that differ by less than this share count as equal.
NEAR = 0.03
# Bits of exposure above those of a sentence that was never planted. One bit is found twice as soon.
GOAL_BITS = 1.0


@dataclass(frozen=True)
class LanguageAudit:
    """The models of an audit, and what they show together.

    Parameters:
        authors: Known authors.
        settings: Of the plain model.
        models: The plain one first.
    """

    data: str
    authors: int
    settings: Settings
    patterns: tuple[str, ...]
    models: list[ModelFindings]
    verdict: str
    notes: tuple[str, ...]

    def to_json(self) -> str:
        """The content of language.json."""
        return json.dumps(finite(asdict(self)), indent=1, ensure_ascii=False) + "\n"

    def sentences(self) -> list[str]:
        """One line per model, and the verdict."""
        lines = []
        for model in self.models:
            accuracy = None if model.identified is None else model.identified.accuracy
            named = with_interval(accuracy, "percent")
            line = (
                f"{model.name}: perplexity {with_interval(model.perplexity)}, exposure "
                f"{with_interval(model.exposure)} bits, author named {named} %, "
                f"{model.speed:,.0f} tokens/s, {100 * model.time_ratio:.0f} % of plain"
            )
            spent = "" if model.epsilon is None else f", epsilon spent {model.epsilon:.2f}"
            lines.append(line + spent)
        return [*lines, self.verdict]


def memory_word(exposure: Figure | None) -> Word:
    """Whether planted sentences are held: found at most twice as soon as one that was never
    planted, at the upper end of the interval.

    >>> memory_word(Figure(1.6, 1.2, 2.1, 20, 1.44)), memory_word(Figure(9.0, 7.0, 11.0, 20, 1.44))
    ('held', 'readable')
    """
    return judge(exposure, BY_CHANCE + GOAL_BITS)


def with_interval(figure: Figure | None, kind: str = "plain") -> str:
    """A figure with its interval, as per cent or as a plain number.

    >>> with_interval(Figure(0.25, 0.2, 0.312, 10, 0.1), "percent"), with_interval(None)
    ('25.0 (20.0 to 31.2)', '-')
    """
    if figure is None or not math.isfinite(figure.value):
        return "-"
    factor = 100 if kind == "percent" else 1
    value, low, high = (factor * number for number in (figure.value, figure.low, figure.high))
    return f"{value:.1f} ({low:.1f} to {high:.1f})"


def verdict(models: Sequence[ModelFindings]) -> str:
    """Whether any regulariser remembers less at equal perplexity, with both exposures and their
    intervals."""
    plain, others = models[0], models[1:]
    if not others:
        return "Only the plain model was trained: there is nothing to compare it with."
    ratios = {one.name: one.perplexity.value / plain.perplexity.value for one in others}
    near = [one for one in others if ratios[one.name] <= 1 + NEAR]
    if not near:
        closest = min(ratios, key=lambda name: ratios[name])
        above = f"{100 * (ratios[closest] - 1):.0f}"
        return say("lm_none_near", near=f"{100 * NEAR:.0f}", closest=closest, above=above)
    # The best of several is named, so all intervals are to hold at once.
    compared = [(one, exposure_below(one, plain, best_of(len(near)))) for one in near]
    below = [(one, figure) for one, figure in compared if figure is not None]
    if not below:
        return "No sentence was planted, so nothing is known of what any model remembers."
    best, figure = max(below, key=lambda pair: pair[1].low)
    sentence = say(
        "lm_equal",
        perplexity=f"{best.perplexity.value:.1f}",
        plain_perplexity=f"{plain.perplexity.value:.1f}",
        near=f"{100 * NEAR:.0f}",
        model=best.name,
        exposure=_bits(best.exposure),
        plain_exposure=_bits(plain.exposure),
        lower=f"{figure.value:.1f}",
        low=f"{figure.low:.1f}",
        high=f"{figure.high:.1f}",
    )
    if figure.low > 0:
        sure = sum(one.low > 0 for _, one in below)
        return sentence + say("lm_less", sure=sure, others=len(others))
    return sentence + say("lm_no_less", near=len(near))


def _bits(figure: Figure | None) -> str:
    return "-" if figure is None else f"{figure.value:.1f} [{figure.low:.1f}, {figure.high:.1f}]"
