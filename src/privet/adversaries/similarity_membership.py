"""Membership by similarity scores: were this person's vectors among those the release was learned
on?

Instead of the vectors themselves, the adversary looks at how alike they are: the mean cosine
between two released vectors of one person, the cosine of a raw vector and its release (where both
are in one space), and the cosine to the nearest released vector of somebody else. A threshold on
each score, to either side, and a logistic regression on all of them are learned from known people;
the one with the highest AUC on *select* is counted on *test*.

Source of the scores: Song and Raghunathan, Information leakage in embedding models, CCS 2020,
section 5, where the similarity of neighbouring sentences tells the members.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from privet.adversaries.adversary import Tick, silent
from privet.adversaries.membership import (
    SIDES,
    ByPerson,
    Group,
    matched_groups,
    membership_figures,
)
from privet.adversaries.own_vectors import OwnVectors, are_vectors, own_vectors
from privet.data.dataset import Array, Dataset
from privet.evidence.figures import Figure, People
from privet.evidence.leakage import auc, best_threshold
from privet.evidence.retrieval import nearest, unit
from privet.release.release import Release

OWN, DRIFT, NEAR = (
    "mean cosine of a person's vectors",
    "cosine of a raw vector and its release",
    "cosine to the nearest vector of others",
)


def similarity_membership(
    release: Release,
    data: Dataset,
    device: torch.device,
    seed: int = 0,
    tick: Tick = silent,
    *,
    raw: bool = True,
) -> People | str:
    """What members are told by from similarity scores of released vectors and, with `raw`, of raw
    ones; or why the question cannot be asked."""
    if not are_vectors(release, data):
        return ""
    groups = matched_groups(data, seed)
    if isinstance(groups, str):
        return ""  # The other attack on membership has said why.
    torch.manual_seed(seed)
    vectors = {part: own_vectors(release, groups[part].data, device) for part in SIDES}
    tick(0.4)
    adversary, figures = _attack({p: _scores(vectors[p], groups[p]) for p in SIDES}, groups)
    tick(0.7)
    beside: dict[str, Figure] = {}
    if raw:
        plain = {p: OwnVectors(v.raw, v.raw, False) for p, v in vectors.items()}
        beside = _attack({p: _scores(plain[p], groups[p]) for p in SIDES}, groups)[1]
    tick(1.0)
    note = (
        "The same people as in membership; the adversary sees how alike vectors are, and, where "
        "raw and released vectors are in one space, how far each was moved."
    )
    return People("membership by similarity", adversary, figures, beside, note)


def _scores(vectors: OwnVectors, group: Group) -> dict[str, Array]:
    """One number per person, by score."""
    codes, place, count = np.unique(group.data.people, return_inverse=True, return_counts=True)
    z = unit(vectors.released)
    sums = np.zeros((len(codes), z.shape[1]))
    np.add.at(sums, place, z)
    pairs = np.maximum(count * (count - 1), 1)
    own = (np.square(sums).sum(1) - np.bincount(place, np.square(z).sum(1))) / pairs
    scores = {OWN: own} if (count > 1).all() else {}
    if vectors.same_space:
        moved = (unit(vectors.raw) * z).sum(1)
        scores[DRIFT] = np.bincount(place, moved) / count
    near = nearest(z, z, min(len(z) - 1, int(count.max())), np.arange(len(z)))
    others = place[near] != place[:, None]
    first = near[np.arange(len(z)), others.argmax(1)]
    scores[NEAR] = np.bincount(place, (z * z[first]).sum(1)) / count
    return scores


def _attack(
    scores: Mapping[str, Mapping[str, Array]], groups: Mapping[str, Group]
) -> tuple[str, dict[str, Figure]]:
    members = {part: _members(groups[part]) for part in SIDES}
    tables = {part: np.stack(list(scores[part].values()), 1) for part in SIDES}
    tries = []
    for at, name in enumerate(scores["attack"]):
        sign = 1.0 if (auc(members["attack"], tables["attack"][:, at]) or 0.5) >= 0.5 else -1.0
        odds = {part: sign * tables[part][:, at] for part in SIDES}
        tries.append((name, odds))
    line = make_pipeline(StandardScaler(), LogisticRegression())
    line.fit(tables["attack"], members["attack"])
    odds = {part: np.asarray(line.decision_function(tables[part])) for part in SIDES}
    tries.append(("logistic regression on similarity scores", odds))
    name, odds = max(tries, key=lambda one: auc(members["select"], one[1]["select"]) or 0.0)
    threshold = best_threshold(members["select"], odds["select"])
    return name, membership_figures(ByPerson(members["test"], odds["test"]), threshold)


def _members(group: Group) -> Array:
    _, first = np.unique(group.data.people, return_index=True)
    return group.member[first]
