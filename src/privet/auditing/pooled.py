"""Attackers who see several records of one person at once, and know that they are one person's.

With m records of a person, the adversaries' log-probabilities are averaged over them, as somebody
does to whom each record is a new hint; and models learn from the mean and the deviation of the
person's vectors, which also show what differs between the records. Every person counts once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from privet.adversaries.adversary import Adversary, Tick, TrainedFunction, has_label, silent
from privet.adversaries.linear import Logistic
from privet.adversaries.released import Released
from privet.adversaries.trees import Boosting
from privet.adversaries.vector_records import VectorRecords
from privet.auditing.attribute_attack import (
    AttackResult,
    AttackTarget,
    Parts,
    judge_trained,
    run_adversary,
)
from privet.data.dataset import Array, Dataset

# Most records of a person that are looked at together.
MOST_RECORDS = 5
# Fewest people of a part that have so many.
FEWEST_PEOPLE = 20
# Probabilities below this count as this: one record alone is not to decide.
SMALLEST = 1e-6

POOLED_READERS: tuple[Adversary, ...] = (
    Logistic(strengths=(1e-3, 1e-1)),
    Boosting(settings=((("max_iter", 60),),), columns=256),
)


class Tuples(NamedTuple):
    """Records of a part, m of a person together.

    Parameters:
        rows: Positions of the records, (tuples, m).
        labels: What the tuples are to be read for.
        people: The person of every tuple.
        mixed: How many people were left out since their records differ in the attribute.
    """

    rows: Array
    labels: Array
    people: Array
    mixed: int = 0


def records_together(data: Dataset) -> int:
    """How many records of a person to look at together: as many as half of the people have, and
    at most five; 1 where most people have one."""
    if data.person is None:
        return 1
    counts = [
        int(np.median(np.unique(data.part(part).people, return_counts=True)[1]))
        for part in ("attack", "select", "test")
    ]
    return min(*counts, MOST_RECORDS)


def tuples_of(part: Released, labels: Array, m: int, several: bool, seed: int) -> Tuples:
    """m records of each person who has so many, drawn at random; where `several`, as many such
    tuples as there are records for."""
    present = np.flatnonzero(has_label(labels))
    order = np.random.default_rng([seed, m]).permutation(present)
    order = order[np.argsort(part.people[order], kind="stable")]
    people = part.people[order]
    _, first, count = np.unique(people, return_index=True, return_counts=True)
    rows = [
        order[start + at : start + at + m]
        for start, size in zip(first, count, strict=True)
        for at in range(0, (size // m if several else min(size // m, 1)) * m, m)
    ]
    table = np.array(rows, dtype=np.int64).reshape(-1, m)
    values = labels[table]
    same = (
        (values == values[:, :1]).all(1) if labels.dtype.kind in "iu" else np.full(len(rows), True)
    )
    truth = values[:, 0] if labels.dtype.kind in "iu" else values.mean(1)
    return Tuples(table[same], truth[same], part.people[table[same, 0]], int((~same).sum()))


def read_pooled(
    target: AttackTarget,
    results: Sequence[AttackResult],
    m: int,
    seed: int = 0,
    tick: Tick = silent,
) -> AttackResult | str:
    """The strongest reading of m records of a person, chosen on *select*; or why there is none.

    Parameters:
        target: The released records and the attribute.
        results: Of adversaries that read one record.
        m: How many records of a person they see.
        seed: Which of a person's records these are.
        tick: Is called with the share of the work that is done.
    """
    name = target.attribute.name
    chosen = {
        part: tuples_of(seen, target.labels(part), m, part == "attack", seed)
        for part, seen in target.parts.items()
    }
    counts = {part: len(np.unique(tuples.people)) for part, tuples in chosen.items()}
    if min(counts.values()) < FEWEST_PEOPLE or (
        target.attribute.is_class
        and any(len(np.unique(tuples.labels)) < 2 for tuples in chosen.values())
    ):
        return (
            f"Too few people have {m} records with the same '{name}', so attackers did not look at"
            " several records of a person at once."
        )
    pooled = target._replace(parts=_vectors(target.parts, chosen, name), source="pooled", records=m)
    tries = [run_adversary(reader, pooled, seed, tick) for reader in POOLED_READERS]
    tries += [_averaged(result, chosen, pooled) for result in results]
    best = max(tries, key=lambda result: result.finding.select)
    mixed = chosen["test"].mixed
    if not mixed:
        return best
    note = f"{mixed:,} people whose records differ in it were left out."
    finding = replace(best.finding, score=replace(best.finding.score, note=note))
    return best._replace(finding=finding)


def _vectors(parts: Parts, chosen: dict[str, Tuples], name: str) -> dict[str, Released]:
    """Mean and deviation of the vectors of every tuple."""
    made: dict[str, VectorRecords] = {}
    for part, tuples in chosen.items():
        seen = parts[part]
        rows = torch.as_tensor(tuples.rows, device=seen.feed.device)

        def draw(seen: Released = seen, rows: torch.Tensor = rows) -> torch.Tensor:
            vectors = seen.vectors()[rows]
            return torch.cat([vectors.mean(1), vectors.std(1, correction=0)], dim=1)

        made[part] = VectorRecords(
            draw,
            {name: tuples.labels},
            tuples.people,
            seen.feed.device,
            made.get("attack"),
            seen.fresh_noise,
        )
    return dict(made)


def _averaged(
    result: AttackResult, chosen: dict[str, Tuples], pooled: AttackTarget
) -> AttackResult:
    """The mean over a tuple of an adversary's log-probabilities, or of its guesses of a number."""
    answers = {
        id(pooled.parts[part]): _mean_answers(each[chosen[part].rows])
        for part, each in (("select", result.select), ("test", result.test))
    }
    trained = TrainedFunction(lambda released: answers[id(released)])
    return judge_trained(trained, result.adversary, pooled, time.monotonic())


def _mean_answers(answers: Array) -> Array:
    """(tuples, m, classes) to (tuples, classes), or (tuples, m) to (tuples,)."""
    if answers.ndim == 2:
        return np.asarray(answers.mean(1))
    logs = np.log(np.clip(np.nan_to_num(answers, nan=1 / answers.shape[2]), SMALLEST, 1)).mean(1)
    table = np.exp(logs - logs.max(1, keepdims=True))
    return np.asarray(table / table.sum(1, keepdims=True))
