"""Membership: from a person's released records, was this person in the data that the release was
fitted on?

Members are the people of *fit*; people of *attack*, *select* and *test* come from the same source
and were never fitted on. The adversary knows some of both: it learns from known members and
*attack* people, is chosen on other members and *select* people, and is counted on members and
*test* people it has not seen. It answers per record; a person's answer is the mean of the log-odds
of their records.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from privet.adversaries.adversary import Tick, silent
from privet.adversaries.reidentification import finite
from privet.adversaries.released import Released
from privet.adversaries.vector_models import numpy
from privet.data.dataset import PARTS, Array, Dataset
from privet.evidence.figures import Figure, People
from privet.evidence.intervals import balanced_interval
from privet.evidence.leakage import auc, best_threshold, confusion
from privet.evidence.roc import Estimate, auc_over_people, tpr_over_people
from privet.release.release import Release

LEAST = 20
"""People a side, in each of the three pairs, below which the question is not asked."""
MOST = 4000
"""People a side, drawn at random where there are more."""
RECORDS = 4
"""Records of a person that are looked at, drawn at random where there are more."""
AT_ONCE = 1 << 22
"""Distances held at a time."""
NEAR = (1, 5)
"""Neighbours whose distances are looked at."""

SIDES = ("attack", "select", "test")
"""Non-members to learn from, to choose on and to count on; members are dealt out to go with
them."""

Odds = Callable[[Tensor], Array]
"""Vectors (n, d) to the log-odds (n,) that each is of a member."""


class Asked(NamedTuple):
    """Records of as many members as non-members."""

    data: Dataset
    member: Array
    """1 where the record is of a member, else 0."""


class Answers(NamedTuple):
    """One answer per person."""

    member: Array
    odds: Array


def membership(
    release: Release,
    data: Dataset,
    device: torch.device,
    seed: int = 0,
    tick: Tick = silent,
    *,
    raw: bool = True,
) -> People | str:
    """What members are told by, from released records and, with `raw`, from raw ones; or why the
    question cannot be asked."""
    groups = _deal(data, seed)
    if isinstance(groups, str):
        return groups
    first = 0.5 if raw else 1.0
    adversary, figures = _attack(release, groups, device, seed, lambda share: tick(first * share))
    note = (
        "Members are people the release was fitted on, the others people of the same source whom it has not seen, as many and with "
        "as many records each; the adversary knows some of both and sees released records only."
    )
    beside: dict[str, Figure] = {}
    if raw:
        identity = Release.identity(release.schema.plain)
        beside = _attack(
            identity, groups, device, seed, lambda share: tick(first + (1 - first) * share)
        )[1]
        if not beside["auc"].is_chance:
            note += (
                " Raw records, in the form the release takes them, already tell these people apart: either the parts were not drawn at "
                "random from one source, and the figure shows the split rather than the release; or that form itself gives members away, "
                "as a list of words learned on them does."
            )
    return People("membership", adversary, figures, beside, note)


def _deal(data: Dataset, seed: int) -> dict[str, Asked] | str:
    """For each of SIDES, its people and as many people of *fit*, who are in one of the three
    only."""
    random = np.random.default_rng([seed, 3])
    people = {part: random.permutation(_sorted(data, part)) for part in ("fit", *SIDES)}
    sizes = np.array([len(people[part]) for part in SIDES])
    cuts = np.round(np.cumsum(sizes)[:-1] / max(sizes.sum(), 1) * len(people["fit"])).astype(int)
    groups = {}
    for part, members in zip(SIDES, np.split(people["fit"], cuts), strict=True):
        n = min(len(members), len(people[part]), MOST)
        if n < LEAST:
            fewest = "fit" if len(members) <= len(people[part]) else part
            return (
                f"Membership was not tried: it needs {LEAST} people a side to learn from, to choose on and to count on, and the {fewest} "
                f"part has {n} to go with {'the ' + part + ' part' if fewest == 'fit' else 'members'}."
            )
        groups[part] = _matched(data, members[:n], people[part][:n], random)
    return groups


def _sorted(data: Dataset, part: str) -> Array:
    """Codes of the people of a part, in the order of their first records in the source: not of
    their names."""
    there = np.flatnonzero(data.part_of == PARTS.index(part))
    there = there[np.argsort(data.rows[there], kind="stable")]
    codes, first = np.unique(data.people[there], return_index=True)
    return np.asarray(codes[np.argsort(first)])


def _matched(data: Dataset, members: Array, others: Array, random: np.random.Generator) -> Asked:
    """Records of both, with the same numbers of records per person on both sides: a mean over many
    varies less than one over few, and would tell the sides apart where they differ in nothing
    else."""
    key = random.random(int(data.rows.max()) + 1)[data.rows]
    order = np.lexsort((key, data.people))
    codes, start, count = np.unique(data.people[order], return_index=True, return_counts=True)
    where = [np.searchsorted(codes, side) for side in (members, others)]
    where = [at[np.argsort(count[at], kind="stable")] for at in where]
    keep = np.minimum(np.minimum(*(count[at] for at in where)), RECORDS)
    taken = [order[np.repeat(start[at], keep) + _up_to(keep)] for at in where]
    return Asked(data.take(np.concatenate(taken)), np.repeat([1, 0], int(keep.sum())))


def _up_to(counts: Array) -> Array:
    """0 .. c - 1 for each c, one after the other."""
    return np.asarray(np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts))


def _attack(
    release: Release, groups: dict[str, Asked], device: torch.device, seed: int, tick: Tick
) -> tuple[str, dict[str, Figure]]:
    torch.manual_seed(seed)
    # Main directions are found on members and others alike: found on one side alone, they would fit
    # it better, and that is no trace of the release.
    known = Released(release, groups["attack"].data, [], device)
    seen = {"attack": known} | {
        part: Released(release, groups[part].data, [], device, like=known) for part in SIDES[1:]
    }
    x = finite(known.vectors())
    tick(0.2)
    best: tuple[float, str, Odds, Answers] | None = None
    apart = finite(seen["select"].vectors())
    for done, (name, odds) in enumerate(_adversaries(x, groups["attack"], seed)):
        told = _by_person(odds(apart), groups["select"])
        score = auc(told.member, told.odds) or 0.0
        best = (score, name, odds, told) if best is None or score > best[0] else best
        tick(0.2 + 0.15 * (done + 1))
    assert best is not None, "there are adversaries"
    _, name, odds, told = best
    answers = _by_person(odds(finite(seen["test"].vectors())), groups["test"])
    tick(1.0)
    return name, _figures(answers, best_threshold(told.member, told.odds))


def _adversaries(x: Tensor, known: Asked, seed: int) -> Iterator[tuple[str, Odds]]:
    """Ways to tell, fitted on the known people one after the other."""
    vectors, member = numpy(x), known.member
    for strength in (1e-3, 1e-1):
        yield (
            f"logistic regression (C = {strength:g})",
            _fitted(LogisticRegression(C=strength, max_iter=200), vectors, member, numpy),
        )
    trees = HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=15, min_samples_leaf=10, random_state=seed
    )
    yield "gradient boosting", _fitted(trees, vectors, member, numpy)
    near = _distances(x, known)
    line = make_pipeline(StandardScaler(), LogisticRegression())
    yield "distances to known people", _fitted(line, near(x, known.data.people), member, near)


def _fitted(model: Any, features: Array, member: Array, look: Callable[[Tensor], Array]) -> Odds:
    """`look` makes of vectors the features that the model was fitted on."""
    with warnings.catch_warnings():
        # A line that has not quite settled still tells; the people it is chosen on say how well.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(features, member)
    return lambda z: np.asarray(model.decision_function(look(z)))


def _distances(x: Tensor, known: Asked) -> Callable[..., Array]:
    """Logarithms of how far a record is from its nearest records of known members and of known
    others, and their differences.

    What a release remembers of the people it was fitted on moves them together. Known records are
    measured without those of their own person, or the distances they are learned from would be
    shorter than those they are used on.
    """
    codes = torch.as_tensor(known.data.people, device=x.device)
    sides = [
        torch.as_tensor(np.flatnonzero(known.member == side), device=x.device) for side in (1, 0)
    ]

    def near(z: Tensor, own: Array | None = None) -> Array:
        # No code is below -1: asked about unknown people, nobody's records are left out.
        who = (
            torch.full((len(z),), -2, device=x.device)
            if own is None
            else torch.as_tensor(own, device=x.device)
        )
        step = max(1, AT_ONCE // len(x))
        columns = []
        for side in sides:
            found = []
            for part, person in zip(torch.split(z, step), torch.split(who, step), strict=True):
                far = torch.cdist(part, x[side]).masked_fill(
                    person[:, None] == codes[side], torch.inf
                )
                found.append(far.topk(max(NEAR), largest=False).values)
            columns.append(
                torch.cat(found)[:, [k - 1 for k in NEAR]].double().clamp(1e-6, 1e9).log()
            )
        members, others = columns
        return numpy(torch.cat([members, others, members - others], 1))

    return near


def _by_person(odds: Array, asked: Asked) -> Answers:
    """The mean of each person's log-odds; how many records there are does not enter."""
    _, first, place = np.unique(asked.data.people, return_index=True, return_inverse=True)
    return Answers(
        asked.member[first], np.bincount(place, np.nan_to_num(odds)) / np.bincount(place)
    )


def _figures(answers: Answers, threshold: float) -> dict[str, Figure]:
    people = np.arange(len(answers.member))
    area = auc_over_people(people, answers.member, answers.odds)
    sure = tpr_over_people(people, answers.member, answers.odds)
    assert area is not None and sure is not None, "both sides have people"
    table = confusion(answers.member, (answers.odds > threshold).astype(np.int64), 2)
    right, sizes = table.diagonal(), table.sum(1)
    counted = Estimate(
        float((right / sizes).mean()), balanced_interval(right.tolist(), sizes.tolist())
    )
    return {
        "auc": _figure(area, len(people), 0.5, "AUC", "bootstrap over people 95 %"),
        "balanced_accuracy": _figure(
            counted,
            len(people),
            0.5,
            "balanced accuracy",
            "Clopper-Pearson per class, combined, 95 %",
        ),
        "tpr_at_fpr_1_percent": _figure(
            sure,
            len(people),
            0.01,
            "share of members found while 1 % of others are flagged",
            "bootstrap over people 95 %",
        ),
    }


def _figure(estimate: Estimate, n: int, chance: float, measure: str, interval: str) -> Figure:
    (low, high), value = estimate.interval, estimate.value
    return Figure(value, low, high, n, chance, interval=interval, measure=measure)
