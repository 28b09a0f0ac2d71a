"""The first screen of a report: what leaves, the verdict, one axis per attribute, and who is read
best; then the three questions of anonymisation."""

from __future__ import annotations

from typing import NamedTuple

from privet.evidence.figures import Audit, Group, Reading
from privet.evidence.formatting import between, listed, measured, number, percent
from privet.evidence.sentences import say
from privet.evidence.verdict import WORDS, Verdict, verdict
from privet.reporting import sections, sentences
from privet.reporting.audit_plots import known
from privet.reporting.figure_axis import Scale

# A sign for each word, so that none is told by its colour alone.
SIGNS = {
    "held": "\u2713",
    "at risk": "!",
    "not proved": "\u2026",
    "readable": "\u2715",
    "not measured": "?",
}

LINKS = {"person": "a pseudonym", "order": "the order of rows", "time": "times"}


class Attribute(NamedTuple):
    """One attribute on the first screen.

    Parameters:
        reading: What was found of it.
        verdict: The verdict on a private attribute; None for a task.
        said: The verdict, or what is left of the task, in a sentence.
        scale: What its axis shows.
        worst: The worst group and the worst value, in sentences.
    """

    reading: Reading
    verdict: Verdict | None
    said: str
    scale: Scale
    worst: list[str]


def measure(reading: Reading) -> str:
    return "of variance explained" if reading.is_number else "balanced accuracy"


def attributes(audit: Audit) -> list[Attribute]:
    """The private attributes, the worst verdict first, then the tasks."""
    noun = sentences.records(audit)
    private = [_private(audit, reading) for reading in audit.private]
    private.sort(key=lambda one: WORDS.index(one.verdict.word) if one.verdict else 0)
    return private + [_task(reading, noun) for reading in audit.utility]


def _private(audit: Audit, reading: Reading) -> Attribute:
    judged = verdict(audit, reading)
    scale = Scale(
        judged.found,
        1 / len(reading.values) if reading.values else 0.0,
        reading.reference.score if reading.raw else None,
        judged.goal.share,
        judged.bound,
        "private",
        measure(reading),
    )
    worst = [_group_sentence(reading), _value_sentence(reading)]
    return Attribute(reading, judged, f"{judged.sentence}.", scale, list(filter(None, worst)))


def _task(reading: Reading, noun: str) -> Attribute:
    figure = reading.worst.score if reading.released else None
    raw = reading.reference.score if reading.raw else None
    chance = 1 / len(reading.values) if reading.values else 0.0
    scale = Scale(figure, chance, raw, role="utility", measure=measure(reading))
    worst = list(filter(None, [_group_sentence(reading)]))
    return Attribute(reading, None, task_sentence(reading, noun), scale, worst)


def task_sentence(reading: Reading, noun: str = "records") -> str:
    """What is left of a task, and which way is better."""
    figure = reading.worst.score if reading.released else None
    if figure is None or not measured(figure):
        return f"{reading.attribute}: {say('too_few' if reading.released else 'no_model')}"
    fields = {"task": reading.attribute, "measure": measure(reading)}
    if figure.is_chance:
        ends = {"low": percent(figure.low, "down"), "high": percent(figure.high, "up")}
        return f"{say('task_lost', blind=percent(figure.chance), **ends, **fields)}."
    raw = reading.reference.score if reading.raw else None
    value = percent(figure.value)
    if raw is None or not measured(raw) or raw.is_chance:
        return f"{say('task_alone', value=value, blind=percent(figure.chance), **fields)}."
    kept = min((figure.value - figure.chance) / (raw.value - raw.chance), 1.0)
    share, before = f"{100 * kept:.0f}", percent(raw.value)
    return f"{say('task_kept', share=share, noun=noun, value=value, raw=before, **fields)}."


def _group_sentence(reading: Reading) -> str:
    groups = known(reading.groups)
    if not groups:
        return ""
    is_task = reading.role == "utility"
    worst = (min if is_task else max)(groups, key=lambda group: group.score.value)
    return say("worst_served" if is_task else "worst_group", **_fields(worst, reading)) + "."


def _fields(group: Group, reading: Reading) -> dict[str, str]:
    score = group.score
    return {
        "name": f"{group.by} = {group.value}",
        "value": percent(score.value),
        "between": between(score),
        "n": number(score.n),
        "measure": measure(reading),
    }


def _value_sentence(reading: Reading) -> str:
    scores = [one for one in reading.classes if measured(one.score)]
    if len(reading.values) <= 2 or not scores:
        return ""
    worst = max(scores, key=lambda one: one.score.value)
    figures = {"value": percent(worst.score.value), "between": between(worst.score)}
    return say("worst_value", name=worst.value, **figures) + "."


def leaves_sentence(audit: Audit) -> str:
    """What whoever receives a record gets of it."""
    noun, leaves = sentences.records(audit), audit.leaves
    single = noun.removesuffix("s")
    what = f"a changed {single} in the form of the raw one"
    if leaves.form == "code":
        what = f"a list of numbers in place of the {single}"
    whole = leaves.made_of is None or leaves.made_of > 1
    per = f"of each {single}" if not whole else f"of all {noun} of a person together"
    columns = f"with {listed(leaves.columns)} beside it" if leaves.columns else "nothing beside it"
    tied = f"{noun} of one person are not marked as such"
    if leaves.linked_by or leaves.records != 1:
        by = listed([LINKS[link] for link in leaves.linked_by])
        tied = f"{noun} of one person can be told to be the same person's"
        tied += f" (by {by})" if by else ""
    return f"{per[0].upper()}{per[1:]}, {what}, {columns}; {tied}."


class Question(NamedTuple):
    """One of the three questions of anonymisation, and what the audit says to it."""

    title: str
    asked: str
    answers: list[str]


NOT_MEASURED = "Not measured in this audit."


def questions(audit: Audit) -> list[Question]:
    """The questions of the Article 29 Working Party's Opinion 05/2014, with our figures."""
    noun = sentences.records(audit)
    again = [one for one in audit.people if one.attack == "re-identification"]
    single = [sections.people_sentence(one, noun) for one in again if one.figures]
    return [
        Question(
            "Singling out",
            "Is it still possible to single out an individual?",
            single or [NOT_MEASURED],
        ),
        Question(
            "Linking",
            "Is it still possible to link records relating to an individual?",
            _linking(audit, noun) or [NOT_MEASURED],
        ),
        Question(
            "Inferring",
            "Can information be inferred concerning an individual?",
            _inferring(audit, noun) or [NOT_MEASURED],
        ),
    ]


def _linking(audit: Audit, noun: str) -> list[str]:
    said = []
    for reading in audit.private:
        pooled = [f for f in reading.others if f.source == "pooled" and measured(f.score)]
        said += [
            f"{reading.attribute}: {_lower(sentences.other_sentence(one, noun))}" for one in pooled
        ]
    if audit.leaves.linked_by:
        by = listed([LINKS[link] for link in audit.leaves.linked_by])
        said.insert(0, f"Records of one person leave with what ties them together: {by}.")
    return said


def _lower(text: str) -> str:
    return f"{text[:1].lower()}{text[1:]}"


def _inferring(audit: Audit, noun: str) -> list[str]:
    said = [f"{verdict(audit, reading).sentence}." for reading in audit.private]
    if any(reading.released for reading in audit.undeclared):
        said.append(sections.undeclared_sentence(audit))
    members = [one for one in audit.people if one.attack == "membership" and one.figures]
    return said + [sections.people_sentence(one, noun) for one in members]
