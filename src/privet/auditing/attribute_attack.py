"""The attack on one attribute: every adversary on every kind of record, the strongest chosen on
*select*, counted on *test*."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from privet.adversaries.adversary import Adversary, Tick, Trained, has_label
from privet.adversaries.released import Released
from privet.auditing.information_estimates import released_information
from privet.data.dataset import Array, Attribute, Dataset
from privet.evidence.class_scores import Answers, class_scores
from privet.evidence.figures import (
    ClassScore,
    Direction,
    Figure,
    Finding,
    Group,
    Reading,
    Role,
    Source,
)
from privet.evidence.groups import by_group, risk
from privet.evidence.people_weighed import people_figures
from privet.evidence.power import visible_figure
from privet.evidence.predictions import evidence_of, guesses_of, highest_of, judge

# What is seen of *attack*, *select* and *test*.
Parts = Mapping[str, Released]

# Most values of an attribute that makes groups, and most attributes that groups are shown of: those
# between whose values the attack differs most.
MOST_GROUPS = 6
SHOWN_ATTRIBUTES = 5


class AttackTarget(NamedTuple):
    """What is attacked.

    Parameters:
        parts: Records of *attack*, *select* and *test*.
        attribute: What is guessed.
        role: Whether it is private, a task, or undeclared.
        source: What the records are: released, raw, rebuilt, averages of releases, ...
        releases: How many releases of each record were averaged.
        records: How many records of a person are seen at once.
        columns: Columns beside released records that are seen.
    """

    parts: Parts
    attribute: Attribute
    role: Role
    source: Source
    releases: int = 1
    records: int = 1
    columns: tuple[str, ...] = ()

    @property
    def better(self) -> Direction:
        """Which direction the user of the release would like."""
        return "higher" if self.role == "utility" else "lower"

    def labels(self, part: str) -> Array:
        """Of the records of a part."""
        return self.parts[part].labels(self.attribute.name)


class AttackResult(NamedTuple):
    """One adversary's answers on *select* and *test*, and what they are worth.

    Parameters:
        finding: What they are worth.
        select: Answers on *select*.
        test: Answers on *test*.
        adversary: Who learned.
        trained: What it has learned.
    """

    finding: Finding
    select: Array
    test: Array
    adversary: Adversary
    trained: Trained


def run_adversary(
    adversary: Adversary, target: AttackTarget, seed: int, tick: Tick
) -> AttackResult:
    """Train an adversary and judge it."""
    started, (attack, select) = time.monotonic(), (target.parts[p] for p in ("attack", "select"))
    trained = adversary.attack(attack, select, target.attribute, seed, tick)
    return judge_trained(trained, adversary, target, started)


def judge_trained(
    trained: Trained, adversary: Adversary, target: AttackTarget, started: float
) -> AttackResult:
    """A trained adversary's answers on *select* and *test*, judged."""
    test = target.parts["test"]
    select_answers, answers = trained.answers(target.parts["select"]), trained.answers(test)
    on_select, score, plain, area = judge(
        target.labels("select"),
        select_answers,
        target.labels("test"),
        answers,
        test.people,
        target.attribute,
        target.better,
    )
    finding = Finding(
        adversary.name,
        target.source,
        on_select,
        score,
        plain,
        area,
        round(time.monotonic() - started, 2),
        adversary.title,
        target.releases,
        target.records,
        target.columns,
    )
    return AttackResult(finding, select_answers, answers, adversary, trained)


def strongest(findings: Sequence[Finding]) -> int:
    """The place of the one that was best on *select*; 0 where there are none."""
    return int(np.argmax([finding.select for finding in findings])) if findings else 0


def quickest_as_good(findings: Sequence[Finding], people: int) -> int:
    """The place of the first of those that score as the best does on *select*, up to a standard
    error among so many people: batteries name quick adversaries first. (By the time that each took,
    the same seed would not give the same figures.)"""
    noise = 0.5 / max(people, 1) ** 0.5
    best = max(finding.select for finding in findings)
    return next(i for i, finding in enumerate(findings) if finding.select >= best - noise)


def reading_of(
    target: AttackTarget,
    results: Sequence[AttackResult],
    raw: Sequence[Finding],
    data: Dataset,
    utility: Sequence[str],
) -> Reading:
    """Everything about one attribute.

    Parameters:
        target: The attribute and the released records.
        results: Of every adversary on these records, or on records rebuilt from them.
        raw: Findings on raw records.
        data: The dataset.
        utility: Tasks, whose labels alone give something away.
    """
    attribute, released = target.attribute, tuple(result.finding for result in results)
    best = strongest(released)
    chosen, people = results[best], target.parts["test"].people
    select, truth = target.labels("select"), target.labels("test")
    evidence = evidence_of(
        select, chosen.select, truth, chosen.test, people, attribute, target.better, len(results)
    )
    groups: tuple[Group, ...] = ()
    classes: tuple[ClassScore, ...] = ()
    record_risk = None
    if attribute.is_class:
        present = has_label(truth)
        guesses = [guesses_of(select, one.select, one.test, attribute)[present] for one in results]
        if target.role == "private":
            tried = [Answers(one.finding.called, one.select, one.test) for one in results]
            classes = class_scores(select, truth, people, tried, attribute, target.better)
        truth, people = truth[present], people[present]
        evidence["highest_of_all"] = highest_of(truth, guesses, people, attribute.classes)
        record_risk = risk(truth, chosen.test[present])
        groups = _groups(attribute, truth, guesses[best], people, data.part("test"), present)
        likeliest = chosen.test[present].argmax(1)
        evidence |= people_figures(truth, guesses[best], likeliest, people, target.better)
        if target.role == "private":
            score = released[best].score
            evidence["smallest_visible"] = visible_figure(truth, guesses[best], score)
            z = target.parts["test"].vectors().cpu().numpy()[present]
            evidence["knn_bits"] = released_information(z, truth, people)
    return Reading(
        attribute.name,
        target.role,
        attribute.values,
        released,
        tuple(raw),
        best,
        strongest(raw),
        baselines(attribute, target.role, data, utility),
        evidence,
        groups,
        record_risk,
        classes=classes,
    )


def baselines(
    attribute: Attribute, role: Role, data: Dataset, utility: Sequence[str]
) -> dict[str, Figure]:
    """What is known without the release: the most frequent value; and, of a private attribute, what
    the label of a task gives away.

    Whoever serves a task must show its label, so a release that keeps it cannot hide more than that
    label does.
    """
    if not attribute.is_class:
        return {}
    parts = {part: data.part(part) for part in ("attack", "select", "test")}
    labels = {part: view.labels[attribute.name] for part, view in parts.items()}
    known = {"prior": {part: np.zeros(len(view), dtype=np.int64) for part, view in parts.items()}}
    for task in utility if role == "private" else ():
        if data.attributes[task].is_class:
            known[f"task {task}"] = {part: view.labels[task] for part, view in parts.items()}
    figures = {}
    for name, codes in known.items():
        values = 1 + max(int(column.max(initial=0)) for column in codes.values())
        # The last row is for records without that label, whose code is -1.
        counts: Array = np.full((values + 1, attribute.classes), 1e-3)
        present = labels["attack"] >= 0
        np.add.at(counts, (codes["attack"][present], labels["attack"][present]), 1.0)
        table = counts / counts.sum(1, keepdims=True)
        figures[name] = judge(
            labels["select"],
            table[codes["select"]],
            labels["test"],
            table[codes["test"]],
            parts["test"].people,
            attribute,
            "higher" if role == "utility" else "lower",
        )[1]
    return figures


def _groups(
    attribute: Attribute,
    truth: Array,
    guesses: Array,
    people: Array,
    test: Dataset,
    present: Array,
) -> tuple[Group, ...]:
    """The attack among people of each value of the other attributes, where it differs most between
    them; all but `test` hold the records that are `present`."""
    others = {
        name: (test.labels[name][present], other.values)
        for name, other in test.attributes.items()
        if other.is_class and 2 <= other.classes <= MOST_GROUPS and name != attribute.name
    }
    groups = by_group(truth, guesses, people, others, attribute)
    ranges: dict[str, float] = {}
    for name in others:
        scores = [group.score.value for group in groups if group.by == name]
        if len(scores) > 1:
            ranges[name] = max(scores) - min(scores)
    shown = sorted(ranges, key=lambda name: -ranges[name])[:SHOWN_ATTRIBUTES]
    return tuple(group for group in groups if group.by in shown)
