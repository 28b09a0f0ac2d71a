"""Whose release is this? The attacker holds the raw vector of a record and looks for its release
among those of everybody.

Three ways to compare: the raw vector itself with the released ones, by cosine; what a ridge
regression, learned on pairs of *attack* people, makes of it; and what the release itself makes of
it, for an attacker who has the release, with noise of its own. The way that finds most on *select*
is counted on *test*: a release without noise is found by the last one whatever it hides, and only
noise, or coarse symbols, keep it from that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from privet.adversaries.adversary import Tick, silent
from privet.adversaries.own_vectors import OwnVectors, are_vectors, own_vectors
from privet.data.dataset import Array, Dataset
from privet.evidence.figures import Figure, People
from privet.evidence.person_intervals import bootstrap_people
from privet.evidence.retrieval import AT_ONCE, unit
from privet.release.release import Release

# Records whose raw vector the attacker holds, drawn at random where there are more.
PROBES = 1000
# Weight of the ridge regression, times the mean variance of a coordinate.
RIDGE = 0.1
# Ways that need no release, and the one that does.
COSINE, LEARNED, MAPPED = (
    "cosine to the raw vector",
    "cosine to a learned map of the raw vector",
    "cosine to its own release of the raw vector",
)

# Raw vectors to what is compared with released ones.
Way = Callable[[Array], Array]


def raw_vector_search(
    release: Release,
    data: Dataset,
    device: torch.device,
    seed: int = 0,
    tick: Tick = silent,
) -> People | str:
    """How many *test* records are found first, and among the first five, by their raw vectors; or
    why that cannot be asked."""
    if not are_vectors(release, data):
        return ""
    torch.manual_seed(seed)
    parts = {p: own_vectors(release, data.part(p), device) for p in ("attack", "select", "test")}
    tick(0.4)
    ways = _ways(parts["attack"])
    places = {}
    for part in ("select", "test"):
        probes = _probes(len(parts[part].raw), seed)
        places[part] = {
            name: _places(
                # Who has the release makes another release of the raw record, with other noise.
                own_vectors(release, data.part(part).take(probes), device).released
                if way is None
                else way(parts[part].raw[probes]),
                parts[part].released,
                probes,
                seed,
            )
            for name, way in ways.items()
        }
        tick(0.7)
    scores = {name: float((place == 0).mean()) for name, place in places["select"].items()}
    best = max(scores, key=lambda name: scores[name])
    without = max((n for n in ways if n != MAPPED), key=lambda name: scores[name])
    who, n, found = data.part("test").people[probes], len(parts["test"].raw), places["test"]
    figures = {f"top_{k}": _figure(found[best], who, k, n) for k in (1, 5)}
    figures["top_1_without_release"] = _figure(found[without], who, 1, n)
    tick(1.0)
    note = (
        "The attacker holds the raw vector of a record and looks for its release among all of "
        f"test. Without the release itself, the strongest way is the {without}."
    )
    if not release.is_random:
        note += " The release adds no noise, so whoever has it can repeat it and find the record."
    return People("raw vector", best, figures, {}, note)


def _ways(attack: OwnVectors) -> dict[str, Way | None]:
    """By name; None for the release itself."""
    ways: dict[str, Way | None] = {COSINE: lambda x: x} if attack.same_space else {}
    return ways | {LEARNED: _regression(attack.raw, attack.released), MAPPED: None}


def _regression(raw: Array, released: Array) -> Way:
    x, y = raw.astype(np.float64), released.astype(np.float64)
    mean, middle = x.mean(0), y.mean(0)
    x, y = x - mean, y - middle
    gram = x.T @ x
    gram[np.diag_indices_from(gram)] += RIDGE * np.trace(gram) / len(gram)
    weights = np.linalg.solve(gram, x.T @ y)

    def learned(z: Array) -> Array:
        return np.asarray((z - mean) @ weights + middle)

    return learned


def _probes(n: int, seed: int) -> Array:
    return np.sort(np.random.default_rng([seed, 7]).permutation(n)[:PROBES])


def _places(query: Array, released: Array, probes: Array, seed: int) -> Array:
    """How many records stand before the right one; equals are in a random order. Vectors are
    centred, since a shared mean would make all look alike."""
    centre = released.mean(0)
    listed, asked = unit(released - centre), unit(np.asarray(query - centre, dtype=np.float32))
    step, before, equal = max(1, AT_ONCE // len(listed)), [], []
    for at in range(0, len(asked), step):
        score = asked[at : at + step] @ listed.T
        right = score[np.arange(len(score)), probes[at : at + step]][:, None]
        before.append((score > right + 1e-6).sum(1))
        equal.append((np.abs(score - right) <= 1e-6).sum(1))
    share = np.random.default_rng([seed, 8]).random(len(asked))
    among_equals = np.floor(share * np.concatenate(equal))
    return np.asarray(np.concatenate(before) + among_equals, dtype=np.int64)


def _figure(places: Array, people: Array, k: int, n: int) -> Figure:
    right = places < k
    inputs = np.c_[right, np.ones(len(right))].astype(np.float64)
    where = "first" if k == 1 else f"among the first {k}"
    return Figure(
        float(right.mean()),
        *bootstrap_people(people, inputs, lambda s: s[:, 0] / s[:, 1]),
        len(places),
        min(k / n, 1.0),
        interval="bootstrap over people 95 %",
        measure=f"share of records found {where}",
    )
