"""The contest for one attribute: every adversary on every kind of record, the strongest chosen on
*select*, counted on *test*."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from privet.adversaries.adversary import Adversary, Tick, Trained, has_label
from privet.adversaries.released import Released
from privet.auditing.information_estimates import released_information
from privet.data.dataset import Array, Attribute, Dataset
from privet.evidence.figures import Direction, Figure, Finding, Group, Reading, Role, Source
from privet.evidence.groups import by_group, risk
from privet.evidence.predictions import evidence_of, guesses_of, highest_of, judge
from privet.release.release import Release

Parts = Mapping[str, Released]
"""What is seen of *attack*, *select* and *test*."""

MOST_GROUPS = 6
"""Values of an attribute that still make groups."""
SHOWN_GROUPS = 5
"""Attributes to make groups of; those where the attack differs most."""


def see(
    release: Release, data: Dataset, names: Sequence[str], device: torch.device
) -> dict[str, Released]:
    first = Released(release, data.part("attack"), names, device)
    return {"attack": first} | {
        part: Released(release, data.part(part), names, device, like=first)
        for part in ("select", "test")
    }


@dataclass(frozen=True)
class Attempt:
    """One adversary's answers, and what they are worth."""

    finding: Finding
    select: Array
    test: Array


def better(role: Role) -> Direction:
    return "higher" if role == "utility" else "lower"


def attempt(
    adversary: Adversary,
    parts: Parts,
    attribute: Attribute,
    role: Role,
    source: Source,
    seed: int,
    tick: Tick,
    releases: int = 1,
) -> Attempt:
    started = time.monotonic()
    trained = adversary.attack(parts["attack"], parts["select"], attribute, seed, tick)
    return asked(trained, adversary, parts, attribute, role, source, started, releases)


def asked(
    trained: Trained,
    adversary: Adversary,
    parts: Parts,
    attribute: Attribute,
    role: Role,
    source: Source,
    started: float,
    releases: int = 1,
) -> Attempt:
    """A trained adversary's answers on *select* and *test*, judged."""
    answers = {part: trained.answers(parts[part]) for part in ("select", "test")}
    truth = {part: parts[part].labels(attribute.name) for part in answers}
    on_select, score, plain, area = judge(
        truth["select"],
        answers["select"],
        truth["test"],
        answers["test"],
        parts["test"].people,
        attribute,
        better(role),
    )
    seconds = round(time.monotonic() - started, 2)
    finding = Finding(
        adversary.name, source, on_select, score, plain, area, seconds, adversary.title, releases
    )
    return Attempt(finding, answers["select"], answers["test"])


def strongest(findings: Sequence[Finding]) -> int:
    return int(np.argmax([finding.select for finding in findings])) if findings else 0


def reading(
    attribute: Attribute,
    role: Role,
    released: Sequence[Attempt],
    raw: Sequence[Finding],
    parts: Parts,
    data: Dataset,
    utility: Sequence[str],
    others: Sequence[Finding] = (),
) -> Reading:
    """Everything about one attribute, from the attempts on it."""
    best = strongest([a.finding for a in released])
    chosen = released[best]
    truth = {part: parts[part].labels(attribute.name) for part in ("select", "test")}
    people, towards = parts["test"].people, better(role)
    evidence = evidence_of(
        truth["select"],
        chosen.select,
        truth["test"],
        chosen.test,
        people,
        attribute,
        towards,
        len(released),
    )
    groups: tuple[Group, ...] = ()
    sure = None
    there = has_label(truth["test"])
    if attribute.is_class:
        guesses = [guesses_of(truth["select"], a.select, a.test, attribute) for a in released]
        evidence["highest_of_all"] = highest_of(
            truth["test"][there], [g[there] for g in guesses], people[there], attribute.classes
        )
        sure = risk(truth["test"][there], chosen.test[there])
        groups = _groups(attribute, truth["test"], guesses[best], people, data.part("test"))
        if role == "private":
            evidence["knn_bits"] = released_information(
                parts["test"].vectors().cpu().numpy()[there], truth["test"][there], people[there]
            )
    return Reading(
        attribute.name,
        role,
        attribute.values,
        tuple(a.finding for a in released),
        tuple(raw),
        best,
        strongest(raw),
        baselines(attribute, role, data, utility),
        evidence,
        groups,
        sure,
        tuple(others),
    )


def baselines(
    attribute: Attribute, role: Role, data: Dataset, utility: Sequence[str]
) -> dict[str, Figure]:
    """What is has_label without the release: the most frequent value; and, of a private attribute, what
    the task's own label tells.

    Whoever serves a task must show its label, so a release that keeps it cannot hide more than that
    label does.
    """
    if not attribute.is_class:
        return {}
    parts = {part: data.part(part) for part in ("attack", "select", "test")}
    labels = {part: view.labels[attribute.name] for part, view in parts.items()}
    told = {"prior": {part: np.zeros(len(view), dtype=np.int64) for part, view in parts.items()}}
    if role == "private":
        for task in utility:
            if data.attributes[task].is_class:
                told[f"task {task}"] = {part: view.labels[task] for part, view in parts.items()}
    found = {}
    for name, codes in told.items():
        top = 1 + max(int(column.max(initial=0)) for column in codes.values())
        counts: Array = np.full(
            (top + 1, attribute.classes), 1e-3
        )  # the last row is for records without that label
        there = labels["attack"] >= 0
        np.add.at(counts, (codes["attack"][there], labels["attack"][there]), 1.0)
        table = counts / counts.sum(1, keepdims=True)
        _, score, _, _ = judge(
            labels["select"],
            table[codes["select"]],
            labels["test"],
            table[codes["test"]],
            parts["test"].people,
            attribute,
            better(role),
        )
        found[name] = score
    return found


def _groups(
    attribute: Attribute, truth: Array, guesses: Array, people: Array, test: Dataset
) -> tuple[Group, ...]:
    """The attack among people of each value of the other attributes, where it differs most between
    them."""
    others = {
        name: (test.labels[name], other.values)
        for name, other in test.attributes.items()
        if other.is_class and 2 <= other.classes <= MOST_GROUPS and name != attribute.name
    }
    there = has_label(truth)
    told = {name: (codes[there], values) for name, (codes, values) in others.items()}
    found = by_group(truth[there], guesses[there], people[there], told, attribute)
    spread: dict[str, float] = {}
    for name in others:
        scores = [group.score.value for group in found if group.by == name]
        spread[name] = max(scores) - min(scores) if len(scores) > 1 else -1.0
    shown = {
        name
        for name in sorted(spread, key=lambda n: -spread[n])[:SHOWN_GROUPS]
        if spread[name] >= 0
    }
    return tuple(group for group in found if group.by in shown)
