"""Membership: from a person's released records, was this person in the data that the release was
fitted on?

Members are the people of *fit*; people of *attack*, *select* and *test* come from the same source
and were never fitted on. The adversary knows some of both: it learns from known members and
*attack* people, is chosen on other members and *select* people, and is counted on members and
*test* people it has not seen. It answers per record; a person's answer is the mean of the log-odds
of their records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from privet.adversaries.adversary import Tick, silent, span
from privet.adversaries.reidentification import finite
from privet.adversaries.released import Released
from privet.adversaries.vector_models import fitted, rows_of
from privet.adversaries.whitening import unchanged
from privet.data.dataset import PARTS, Array, Dataset
from privet.evidence.figures import Figure, People
from privet.evidence.leakage import auc, balanced_figure, best_threshold
from privet.evidence.roc import Estimate, auc_over_people, tpr_over_people
from privet.release.release import Release

# Members, and as many others, in each of the three groups, below which the question is not asked.
FEWEST_PEOPLE = 20
# Most members, and as many others, in a group; drawn at random where there are more.
MOST_PEOPLE = 4000
# Most records of a person; drawn at random where there are more.
RECORDS = 4
# Distances held in memory at a time.
AT_ONCE = 1 << 22
# Neighbours whose distances are looked at.
NEAREST = (1, 5)
# Non-members to learn from, to choose on and to count on; members are dealt out to go with them.
SIDES = ("attack", "select", "test")

# Vectors (n, d) to the log-odds (n,) that each is of a member.
LogOdds = Callable[[Tensor], Array]


class Group(NamedTuple):
    """Records of as many members as non-members.

    Parameters:
        data: The records.
        member: 1 where the record is of a member, else 0.
    """

    data: Dataset
    member: Array


class ByPerson(NamedTuple):
    """One answer per person.

    Parameters:
        member: 1 for a member, else 0.
        odds: The log-odds that the adversary gives.
    """

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
    groups = matched_groups(data, seed)
    if isinstance(groups, str):
        return groups
    first = 0.5 if raw else 1.0
    adversary, figures = _attack(release, groups, device, seed, span(tick, 0, first))
    note = (
        "Members are people the release was fitted on, the others people of the same source whom "
        "it has not seen, as many and with as many records each; the adversary knows some of both "
        "and sees released records only."
    )
    raw_figures: dict[str, Figure] = {}
    if raw:
        release = Release.identity(release.schema.plain)
        raw_figures = _attack(release, groups, device, seed, span(tick, first, 1))[1]
        if not raw_figures["auc"].is_chance:
            note += (
                " Raw records, in the form the release takes them, already tell these people apart:"
                " either the parts were not drawn at random from one source, and the figure shows"
                " the split rather than the release; or that form itself gives members away, as a"
                " list of words learned on them does."
            )
    return People("membership", adversary, figures, raw_figures, note)


def matched_groups(data: Dataset, seed: int) -> dict[str, Group] | str:
    """For each of SIDES, its people and as many people of *fit*, who are in one of the three
    only."""
    random = np.random.default_rng([seed, 3])
    people = {part: random.permutation(_sorted(data, part)) for part in ("fit", *SIDES)}
    sizes = np.array([len(people[part]) for part in SIDES])
    cuts = np.round(np.cumsum(sizes)[:-1] / max(sizes.sum(), 1) * len(people["fit"])).astype(int)
    groups = {}
    for part, members in zip(SIDES, np.split(people["fit"], cuts), strict=True):
        n = min(len(members), len(people[part]), MOST_PEOPLE)
        if n < FEWEST_PEOPLE:
            short = "fit" if len(members) <= len(people[part]) else part
            partner = f"the {part} part" if short == "fit" else "members"
            return (
                f"Membership was not tried: it needs {FEWEST_PEOPLE} people a side to learn from, "
                f"to choose on and to count on, and the {short} part has {n} to go with {partner}."
            )
        groups[part] = _matched(data, members[:n], people[part][:n], random)
    return groups


def _sorted(data: Dataset, part: str) -> Array:
    """Codes of the people of a part, in the order of their first records in the source: not of
    their names."""
    rows = np.flatnonzero(data.part_of == PARTS.index(part))
    rows = rows[np.argsort(data.rows[rows], kind="stable")]
    codes, first = np.unique(data.people[rows], return_index=True)
    return np.asarray(codes[np.argsort(first)])


def _matched(data: Dataset, members: Array, others: Array, random: np.random.Generator) -> Group:
    """Records of both, with the same numbers of records per person on both sides: a mean over many
    varies less than one over few, and would tell the sides apart where they differ in nothing
    else."""
    key = random.random(int(data.rows.max()) + 1)[data.rows]
    order = np.lexsort((key, data.people))
    codes, start, count = np.unique(data.people[order], return_index=True, return_counts=True)
    sides = [np.searchsorted(codes, side) for side in (members, others)]
    sides = [side[np.argsort(count[side], kind="stable")] for side in sides]
    keep = np.minimum(np.minimum(*(count[side] for side in sides)), RECORDS)
    within = np.arange(int(keep.sum())) - np.repeat(np.cumsum(keep) - keep, keep)
    taken = [order[np.repeat(start[side], keep) + within] for side in sides]
    return Group(data.take(np.concatenate(taken)), np.repeat([1, 0], int(keep.sum())))


def _attack(
    release: Release, groups: dict[str, Group], device: torch.device, seed: int, tick: Tick
) -> tuple[str, dict[str, Figure]]:
    torch.manual_seed(seed)
    # Principal directions are found on members and others alike: found on one side alone, they
    # would fit it better, and that is no trace of the release.
    known = Released(release, groups["attack"].data, [], device)
    select, test = (Released(release, groups[p].data, [], device, like=known) for p in SIDES[1:])
    x = finite(known.vectors())
    tick(0.2)
    select_x = finite(select.vectors())
    tries: list[tuple[float, str, LogOdds, ByPerson]] = []
    for name, odds in _adversaries(x, groups["attack"], seed):
        people = by_person(odds(select_x), groups["select"])
        tries.append((auc(people.member, people.odds) or 0.0, name, odds, people))
        tick(0.2 + 0.15 * len(tries))
    _, name, odds, people = max(tries, key=lambda one: one[0])
    answers = by_person(odds(finite(test.vectors())), groups["test"])
    tick(1.0)
    return name, membership_figures(answers, best_threshold(people.member, people.odds))


def _adversaries(x: Tensor, known: Group, seed: int) -> Iterator[tuple[str, LogOdds]]:
    """Models that are fitted on the known people, one after the other."""
    vectors, member = x.numpy(force=True), known.member
    for c in (1e-3, 1e-1):
        line = fitted(LogisticRegression(C=c, max_iter=200), vectors, member)
        yield f"logistic regression (C = {c:g})", _log_odds(line, rows_of(unchanged))
    trees = HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=15, min_samples_leaf=10, random_state=seed
    )
    yield "gradient boosting", _log_odds(fitted(trees, vectors, member), rows_of(unchanged))
    distances = _distances(x, known)
    line = make_pipeline(StandardScaler(), LogisticRegression())
    line = fitted(line, distances(x, known.data.people), member)
    yield "distances to known people", _log_odds(line, distances)


def _log_odds(model: Any, features: Callable[[Tensor], Array]) -> LogOdds:
    return lambda z: np.asarray(model.decision_function(features(z)))


def _distances(x: Tensor, known: Group) -> Callable[..., Array]:
    """Logarithms of how far a record is from its nearest records of known members and of known
    others, and their differences.

    What a release remembers of the people it was fitted on moves them together. Known records are
    measured without those of their own person, or the distances they are learned from would be
    shorter than those they are used on.
    """
    codes = torch.as_tensor(known.data.people, device=x.device)
    sides = [torch.as_tensor(known.member == side, device=x.device) for side in (1, 0)]
    step = max(1, AT_ONCE // len(x))

    def distances(z: Tensor, people: Array | None = None) -> Array:
        # No code is below -1: asked about unknown people, nobody's records are left out.
        left_out = np.full(len(z), -2) if people is None else people
        person = torch.as_tensor(left_out, device=x.device)
        columns = []
        for side in sides:
            parts = []
            for some, its_person in zip(
                torch.split(z, step), torch.split(person, step), strict=True
            ):
                same = its_person[:, None] == codes[side]
                far = torch.cdist(some, x[side]).masked_fill(same, torch.inf)
                parts.append(far.topk(max(NEAREST), largest=False).values)
            near = torch.cat(parts)[:, [k - 1 for k in NEAREST]]
            columns.append(near.double().clamp(1e-6, 1e9).log())
        members, others = columns
        return torch.cat([members, others, members - others], 1).numpy(force=True)

    return distances


def by_person(odds: Array, group: Group) -> ByPerson:
    """The mean of each person's log-odds; how many records there are does not enter."""
    _, first, place = np.unique(group.data.people, return_index=True, return_inverse=True)
    means = np.bincount(place, np.nan_to_num(odds)) / np.bincount(place)
    return ByPerson(group.member[first], means)


def membership_figures(answers: ByPerson, threshold: float) -> dict[str, Figure]:
    member, odds, people = answers.member, answers.odds, np.arange(len(answers.member))
    guesses = (odds > threshold).astype(np.int64)
    return {
        "auc": _figure(auc_over_people(people, member, odds), len(people), 0.5, "AUC"),
        "balanced_accuracy": balanced_figure(member, guesses, 2, "lower", people),
        "tpr_at_fpr_1_percent": _figure(
            tpr_over_people(people, member, odds),
            len(people),
            0.01,
            "share of members found while 1 % of others are flagged",
        ),
    }


def _figure(estimate: Estimate | None, n: int, chance: float, measure: str) -> Figure:
    assert estimate is not None, "both sides have people"
    return Figure(
        estimate.value,
        *estimate.interval,
        n,
        chance,
        interval="bootstrap over people 95 %",
        measure=measure,
    )
