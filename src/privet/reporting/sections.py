"""Sentences of the sections below the headlines: rebuilt records, people, undeclared attributes,
fairness."""

from __future__ import annotations

from privet.evidence.figures import Audit, Fairness, People, Reading, Rebuilt
from privet.evidence.formatting import (
    UNKNOWN,
    above,
    is_number,
    listed,
    measured,
    number,
    percent,
    times_in_100,
)
from privet.reporting import sentences

_GAPS = {
    "demographic_parity_difference": "gives an answer",
    "equalized_odds_difference": "is right or wrong",
}


def rebuilt_sentence(rebuilt: Rebuilt, noun: str = "records") -> str:
    """How close a decoder came, and what the number means.

    >>> rebuilt_sentence(Rebuilt("share of words rebuilt", 0.231, 400), "texts")
    'Share of words rebuilt: 23 in 100, over 400 test texts.'
    """
    measure = rebuilt.measure.strip()
    measure = measure[:1].upper() + measure[1:]
    over = f"over {rebuilt.n:,} test {noun}" if rebuilt.n != 1 else f"over 1 test record ({noun})"
    value, said = rebuilt.value, number(float(rebuilt.value))
    if rebuilt.n < 1 or not is_number(value):
        return f"{measure}: {UNKNOWN}."
    if measure.lower().startswith("psnr"):
        meaning = "Higher is closer to the original; compressed pictures reach 30 to 50 dB."
        return f"{measure}: {value:.1f}, {over}. {meaning}"
    if measure.lower().startswith("share") and value < 0:
        # Variance explained can be negative.
        return f"{measure}: below 0, {over}: worse than the same answer for every record."
    if measure.lower().startswith("share"):
        said = f"{times_in_100(value)} in 100"
    return f"{measure}: {said}, {over}."


def people_sentence(people: People, noun: str = "records") -> str:
    """What an attack on people found, for anyone.

    >>> from privet.evidence.figures import Figure
    >>> found = {"top_1": Figure(0.611, 0.5511, 0.669, 280, 1 / 280)}
    >>> again = People("re-identification", "cosine", found)
    >>> print(people_sentence(again, "pictures").replace(" for ", " for\\n"))
    Of 280 people, one other picture is enough to find the right person first for
    61 % (between 55 and 67); guessing finds 0.4 %.
    >>> found = {"balanced_accuracy": Figure(0.52, 0.47, 0.57, 400, 0.5)}
    >>> print(people_sentence(People("membership", "boosting", found)).replace(" is ", " is\\n"))
    An attacker who guesses whether a person was in the training data is
    right 52 times in 100 (between 47 and 57), not distinguishable from guessing (50).
    """
    key = "top_1" if people.attack == "re-identification" else "balanced_accuracy"
    first, raw, five = people.figures.get(key), people.raw.get(key), people.figures.get("top_5")
    if first is None or not measured(first):
        what = "can be found again" if key == "top_1" else "were in the training data"
        return f"Whether people {what}: {UNKNOWN}."
    if key == "top_1":
        low, high = times_in_100(first.low, "down"), times_in_100(first.high, "up")
        chance = ", not distinguishable from guessing" if first.is_chance else ""
        text = (
            f"Of {first.n:,} people, one other {noun.removesuffix('s')} is enough to find the "
            f"right person first for {times_in_100(first.value)} % (between {low} and {high})"
            f"{chance}; guessing finds {percent(first.chance)} %"
        )
        if five is not None and measured(five):
            text += f"; {times_in_100(five.value)} % are among the first five"
    else:
        who = "An attacker who guesses whether a person was in the training data"
        text = f"{who} {sentences.does(first)}{sentences.guessing(first)}"
    if raw is not None and measured(raw):
        share = f"{times_in_100(raw.value)} %" if key == "top_1" else sentences.short(raw)
        text += f"; from raw {noun} it is {share}"
    return f"{text}."


def ranked(audit: Audit) -> list[Reading]:
    """Undeclared attributes that were tried, the furthest above chance first."""
    tried = [r for r in audit.undeclared if r.released]
    return sorted(tried, key=lambda r: -above(r.worst.score))


def readable(audit: Audit) -> list[Reading]:
    """Those of them that are read beyond guessing."""
    return [r for r in ranked(audit) if measured(r.worst.score) and not r.worst.score.is_chance]


def undeclared_sentence(audit: Audit) -> str:
    """How much else can be read, the worst three by name."""
    tried, legible = [r for r in ranked(audit) if measured(r.worst.score)], readable(audit)
    if not tried:
        return (
            "Attributes you did not list were tried, but too few test records have a label, or all "
            "have the same."
        )
    several = len(tried) > 1
    if not legible:
        were = "attributes were" if several else "attribute was"
        return f"{len(tried):,} other {were} tried, and none could be told from guessing."
    named = listed([f"{r.attribute} ({sentences.in_tries(r.worst.score)})" for r in legible[:3]])
    of = f"Of {len(tried):,} other attribute{'s' if several else ''}"
    return f"{of}, {len(legible):,} can be read beyond guessing: above all {named}."


def fairness_sentence(one: Fairness) -> str:
    """Whether the model for a task treats groups differently, and the model on raw data; the names
    are set before it.

    >>> from privet.evidence.figures import Figure
    >>> gap = {"demographic_parity_difference": Figure(0.121, 0.1, 0.14, 900, 0.0)}
    >>> raw = {"demographic_parity_difference": Figure(0.083, 0.06, 0.1, 900, 0.0)}
    >>> print(fairness_sentence(Fairness("smiling", "gender", gap, raw)).replace(" (", "\\n("))
    it gives an answer up to 12.1 points more often in one group than in another
    (on raw data 8.3).
    """
    parts = []
    for key, verb in _GAPS.items():
        figure, raw = one.released.get(key), one.raw.get(key)
        if figure is not None and measured(figure):
            points = f"up to {percent(figure.value)} points more often in one group than in another"
            also = f" (on raw data {percent(raw.value)})" if raw and measured(raw) else ""
            parts.append(f"it {verb} {points}{also}")
    return f"{'; '.join(parts) or UNKNOWN}."
