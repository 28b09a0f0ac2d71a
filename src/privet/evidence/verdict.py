"""The verdict on a private attribute: held, at risk or readable, against a goal.

The goal is a balanced accuracy (of a number a share of variance explained) that attackers should
not exceed: the one stated with the audit, else the one the release was made for, else a fifth of
the way from guessing to what is read from raw records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from privet.core.errors import PrivetError, unknown
from privet.evidence.certified_sentences import seen, sure
from privet.evidence.covering import certificate_for, doubts_about, highest_bound
from privet.evidence.figures import Audit, Certified, Figure, Reading
from privet.evidence.formatting import is_number, measured, percent
from privet.evidence.sentences import say

Word = Literal["held", "at risk", "readable", "not measured"]
Origin = Literal["stated", "release", "raw", "least", "certain"]

# The worst first: the verdict on several attributes is the first of these that occurs.
WORDS: tuple[Word, ...] = ("readable", "not measured", "at risk", "held")

# Where nobody states a goal: so far on the way from guessing to what is read from raw records, or
# to never being wrong where these were not read.
FIFTH = 0.2
# But never nearer to guessing than this share of the way to never being wrong: an audit of few
# people could not tell it from guessing.
LEAST = 0.05


@dataclass(frozen=True)
class Goal:
    """What attackers should not exceed, and where that comes from.

    Parameters:
        share: The most balanced accuracy, or share of variance explained.
        origin: stated with the audit; what the release was made for; a fifth of the way to what is
            read from raw records (or the least that is asked for), or to never being wrong.
    """

    share: float
    origin: Origin

    @property
    def sentence(self) -> str:
        """Where the goal comes from."""
        return say(f"goal_{self.origin}")


@dataclass(frozen=True)
class Among:
    """People, or a value, of which more is read than of everyone.

    Parameters:
        name: The group as `attribute = value`, or the value.
        score: What is read there.
        goal: The goal on the scale of that score.
        is_value: Whether it is a value told from the rest, and not a group of people.
    """

    name: str
    score: Figure
    goal: float
    is_value: bool = False


@dataclass(frozen=True)
class Verdict:
    """What an audit says of one private attribute, in a word.

    Parameters:
        attribute: Its name.
        word: held, at risk, readable or not measured.
        goal: What it is held against.
        found: The figure of the strongest attacker on all that leaves; None where nothing was
            measured.
        is_number: Whether the figure is a share of variance explained.
        bound: The certified bound that speaks of all that leaves, where there is one and nothing
            speaks against it.
        proof: The certificate it is from.
        among: The group or value that is read beyond the goal, where everyone is not.
    """

    attribute: str
    word: Word
    goal: Goal
    found: Figure | None
    is_number: bool = False
    bound: float | None = None
    proof: Certified | None = None
    among: Among | None = None

    @property
    def is_proved(self) -> bool:
        """Whether it is held by a certificate, not only against the attackers that were run."""
        return self.word == "held" and self.bound is not None and self.bound <= self.goal.share

    @property
    def sentence(self) -> str:
        """The verdict for anyone, the attribute first."""
        fields = {
            "attribute": self.attribute,
            "goal": f"{100 * self.goal.share:.3g}",
            "measure": "of variance explained" if self.is_number else "balanced accuracy",
        }
        if self.is_proved and self.proof is not None:
            del fields["measure"]
            bound = percent(self.bound or 0.0, "up")
            return say(
                "verdict_proved",
                bound=bound,
                seen=seen(self.proof),
                sure=sure(self.proof),
                **fields,
            )
        if self.found is None:
            return say("verdict_unknown", attribute=self.attribute)
        if self.among is not None:
            kind = "value" if self.among.is_value else "group"
            fields["goal"] = f"{100 * self.among.goal:.3g}"
            return say(f"verdict_{kind}", name=self.among.name, **fields, **_ends(self.among.score))
        name = {"held": "verdict_held", "at risk": "verdict_risk"}.get(
            self.word, "verdict_readable"
        )
        return say(name, **fields, **_ends(self.found))


def _ends(figure: Figure) -> dict[str, str]:
    return {"low": percent(figure.low, "down"), "high": percent(figure.high, "up")}


def judge(figure: Figure | None, goal: float, bound: float | None = None) -> Word:
    """The boundaries: readable where even the lower end of the interval is above the goal; held
    where the upper end is not, or where a certified bound is not; at risk in between.

    The value itself counts as an end too: a file edited by hand may hold one on the wrong side.

    Parameters:
        figure: What the strongest attacker reads; None where nothing was measured.
        goal: What it should not exceed.
        bound: A certified bound on every attacker, where one may be relied on.

    >>> at = lambda value: Figure(value, value - 0.02, value + 0.02, 2000, 0.5)
    >>> judge(at(0.55), 0.6), judge(at(0.59), 0.6), judge(at(0.63), 0.6)
    ('held', 'at risk', 'readable')
    >>> judge(at(0.59), 0.6, bound=0.6), judge(None, 0.6)
    ('held', 'not measured')
    """
    known = figure is not None and measured(figure)
    if known and figure is not None and min(figure.value, figure.low) > goal:
        return "readable"
    if bound is not None and bound <= goal:
        return "held"
    if not known or figure is None:
        return "not measured"
    return "held" if max(figure.value, figure.high) <= goal else "at risk"


def verdict(audit: Audit, reading: Reading) -> Verdict:
    """What the audit says of one private attribute.

    Everything counts that leaves: several records of a person or releases of a record where the
    audit says that they do; and columns beside, without which nothing was measured. A group of
    people, or one of several values, that is read beyond the goal makes a held attribute one at
    risk.
    """
    goal, figure = goal_of(audit, reading), _figure(audit, reading)
    proof, bound = _relied_on(audit, reading)
    word = judge(figure, goal.share, bound)
    among = _beyond(reading, goal.share) if word == "held" else None
    return Verdict(
        reading.attribute,
        "at risk" if among else word,
        goal,
        figure,
        reading.is_number,
        bound,
        proof,
        among,
    )


def verdicts(audit: Audit) -> tuple[Verdict, ...]:
    """One for every private attribute, in the audit's order."""
    return tuple(verdict(audit, reading) for reading in audit.private)


def overall(judged: Iterable[Verdict]) -> Word:
    """The worst of them; without any, nothing was measured."""
    words = {one.word for one in judged}
    return next((word for word in WORDS if word in words), "not measured")


def goal_of(audit: Audit, reading: Reading) -> Goal:
    """What attackers should not exceed: stated, else the release's own target, else a fifth of the
    way from guessing to what is read from raw records."""
    name, chance = reading.attribute, _chance(reading)
    if is_number(stated := audit.goals.get(name)) and stated is not None:
        return Goal(float(stated), "stated")
    own = None if reading.is_number else _on_card(audit.release, name)
    if own is not None and chance < own < 1:
        return Goal(own, "release")
    return default_goal(chance, reading.reference.score if reading.raw else None)


def default_goal(chance: float, raw: Figure | None) -> Goal:
    """Where nobody states a goal: a fifth of the way from guessing to what is read from raw
    records.

    >>> default_goal(0.5, Figure(0.9, 0.88, 0.92, 900, 0.5)).share, default_goal(0.5, None).share
    (0.58, 0.6)
    """
    if raw is None or not measured(raw):
        return Goal(round(chance + FIFTH * (1 - chance), 3), "certain")
    near, least = chance + FIFTH * (raw.value - chance), chance + LEAST * (1 - chance)
    return Goal(round(near, 3), "raw") if near >= least else Goal(round(least, 3), "least")


def goals_for(
    private: Mapping[str, int], goal: float | Mapping[str, float] | None
) -> dict[str, float]:
    """Goals by attribute, each checked.

    Parameters:
        private: How many values each private attribute has; 0 for a number.
        goal: One for all attributes with values, or one by name.

    >>> goals_for({"sex": 2, "age": 0}, 0.6), goals_for({"sex": 2, "age": 0}, {"age": 0.1})
    ({'sex': 0.6}, {'age': 0.1})
    """
    if goal is None:
        return {}
    named = goal if isinstance(goal, Mapping) else {n: goal for n, k in private.items() if k}
    for name, share in named.items():
        if name not in private:
            raise unknown("private attribute", name, private)
        check_goal(name, share, 1 / private[name] if private[name] else 0.0)
    return {name: float(share) for name, share in named.items()}


def parse_goals(words: Iterable[str]) -> float | dict[str, float] | None:
    """Goals as a user writes them: one number for all, or ATTRIBUTE=NUMBER for each.

    >>> parse_goals(["0.6"]), parse_goals(["sex=0.6", "age=0.1"]), parse_goals([])
    (0.6, {'sex': 0.6, 'age': 0.1}, None)
    """
    goals: dict[str, float] = {}
    for word in words:
        name, _, share = word.rpartition("=")
        try:
            goals[name.strip()] = float(share)
        except ValueError:
            raise PrivetError(
                f"--goal takes a number or ATTRIBUTE=NUMBER, for example 0.60, and not '{word}'."
            ) from None
    if "" in goals and len(goals) > 1:
        raise PrivetError("--goal takes one number for all private attributes, or one for each.")
    return goals.get("", goals or None)


def check_goal(name: str, goal: float, chance: float) -> None:
    """A goal that nothing can miss, or nothing can meet, is a mistake of the user's."""
    if not 0 <= goal <= 1:
        instead = f": write {goal / 100:g} for {goal:g} %" if 1 < goal <= 100 else ""
        raise PrivetError(f"--goal takes a number between 0 and 1, and not {goal:g}{instead}.")
    if goal <= chance and chance > 0:
        raise PrivetError(
            f"A goal of {goal:g} for '{name}' cannot be met: guessing has a balanced accuracy of "
            f"{chance:.3g} already."
        )
    if goal >= 1:
        raise PrivetError(f"A goal of {goal:g} for '{name}' holds nothing back: give less than 1.")


def _chance(reading: Reading) -> float:
    """What guessing reaches: one in as many as there are values, of a number none."""
    return 1 / len(reading.values) if reading.values else 0.0


def _on_card(card: Mapping[str, Any], attribute: str) -> float | None:
    """The bound that the release was made for, where its card has one."""
    settings, proof = card.get("settings"), card.get("certificate")
    own = proof if isinstance(proof, Mapping) else {}
    bounds = own.get("bounds") if isinstance(own.get("bounds"), Mapping) else {}
    aimed = settings.get("target") if isinstance(settings, Mapping) else None
    for share in (own.get("target"), aimed, (bounds or {}).get(attribute)):
        if is_number(share) and not isinstance(share, bool):
            return float(share)  # type: ignore[arg-type]
    return None


def _figure(audit: Audit, reading: Reading) -> Figure | None:
    """The highest figure of attackers who see what leaves, as the audit says it."""
    columns = {*audit.leaves.columns} - {reading.attribute}
    together = any(
        finding.source == "released and kept" and {*finding.columns} >= columns
        for finding in reading.others
    )
    if not reading.released or (columns and not together):
        return None
    figures = [reading.headline.score]
    for finding in reading.others:
        pooled = finding.source == "pooled" and audit.leaves.records != 1
        averaged = finding.source == "averaged" and audit.leaves.releases > 1
        if pooled or averaged:
            figures.append(finding.score)
    return max(filter(measured, figures), key=lambda figure: figure.value, default=None)


def _relied_on(audit: Audit, reading: Reading) -> tuple[Certified | None, float | None]:
    """The certificate of all that leaves and its bound, where nothing speaks against it."""
    if reading.is_number:
        return None, None
    one, _ = certificate_for(audit.certificates, reading.attribute, audit.leaves)
    if one is None or one.bound is None or doubts_about(audit, one):
        return None, None
    return one, highest_bound(one)


def _beyond(reading: Reading, goal: float) -> Among | None:
    """The group, or the value told from the rest, whose whole interval is furthest beyond the
    goal."""
    chance = _chance(reading)
    # Telling a value from the rest is a question of two answers: as far above guessing.
    alone = 0.5 + 0.5 * (goal - chance) / (1 - chance)
    groups = [Among(f"{g.by} = {g.value}", g.score, goal) for g in reading.groups]
    several = reading.classes if len(reading.values) > 2 else ()
    values = [Among(c.value, c.score, alone, True) for c in several]
    beyond = [one for one in (*groups, *values) if judge(one.score, one.goal) == "readable"]
    return max(beyond, key=lambda one: one.score.low - one.goal, default=None)
