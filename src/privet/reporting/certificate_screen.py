"""The first screen of a certificate: each attribute's bound against the goal, on one axis."""

from __future__ import annotations

from typing import NamedTuple

from privet.evidence.certificate.values import Certification
from privet.evidence.figures import Certified
from privet.evidence.formatting import is_number, percent
from privet.evidence.sentences import say
from privet.reporting.certificate import (
    all_groups,
    by_attribute,
    participant_sentence,
    repeated_sentence,
    variants,
)
from privet.reporting.figure_axis import Scale


class Judged(NamedTuple):
    """One attribute, or several guessed at once.

    Parameters:
        attribute: Its name.
        word: held, or not proved where the bound is above the goal: attacks may still find little.
            None without a goal or a bound.
        verdict: The same in a sentence; empty where there is no word.
        said: The certificate in plain words.
        repeated: What several releases of the same record allow.
        scale: What its axis shows.
    """

    attribute: str
    word: str | None
    verdict: str
    said: str
    repeated: str
    scale: Scale


def judged(certification: Certification, by: str = "") -> list[Judged]:
    """Every attribute in the order of the certificate."""
    certificates = certification.certificates
    made = []
    for name, releases in by_attribute(certificates).items():
        one, goal = releases[1], _goal(certification, releases[1])
        word, verdict = _against(one, goal)
        groups = all_groups([one, *variants(certificates, name)])
        worst = max((g.bound for g in groups if g.bound is not None), default=None)
        worst = worst if one.bound is not None and worst is not None and worst > one.bound else None
        scale = Scale(None, one.chance, None, goal, one.bound, worst=worst)
        said = participant_sentence(one, certificates, by)
        made.append(Judged(name, word, verdict, said, repeated_sentence(releases), scale))
    return made


def _goal(certification: Certification, one: Certified) -> float | None:
    """The target that noise was chosen for, else the one on the card, where it is about this
    attribute by itself and guessing does not reach it."""
    settings = certification.release.get("settings")
    on_card = settings.get("target") if isinstance(settings, dict) else None
    goal = certification.target if certification.target is not None else on_card
    if not is_number(goal) or goal is None or one.attribute not in _hidden(certification):
        return None
    return float(goal) if one.chance < float(goal) < 1 else None


def _hidden(certification: Certification) -> list[str]:
    return [str(name) for name in certification.release.get("private") or ()]


def _against(one: Certified, goal: float | None) -> tuple[str | None, str]:
    if goal is None or one.bound is None:
        return None, ""
    fields = {
        "attribute": one.attribute,
        "bound": percent(one.bound, "up"),
        "goal": f"{100 * goal:.3g}",
    }
    if one.bound <= goal:
        return "held", f"{say('certificate_held', **fields)}."
    return "not proved", f"{say('certificate_missed', **fields)}."
