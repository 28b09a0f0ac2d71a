"""Re-identification: of one released record, whose other released record is among many?

Of every person with two records or more, one record is in a gallery under the person's name and
another is the probe. The adversary orders the gallery by how likely each entry is of the probe's
person. It learns its measure of likeness from the *attack* people, the strongest measure is chosen
on *select*, and shares of people found are counted on *test*.

All measures have the form  score(probe, gallery) = f(probe) . f(gallery) + b(gallery),  so that
ranking is one matrix product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.adversaries.adversary import Tick, silent, span
from privet.adversaries.network_training import BestState, one_cycle
from privet.adversaries.released import Released
from privet.adversaries.whitening import Transform, whitening
from privet.data.dataset import Array
from privet.evidence.figures import Figure, People
from privet.evidence.intervals import clopper_pearson
from privet.train.cuda_graph import ReplayedStep, adamw, descend, set_rate

# People with two records that a measure needs to be learned from, and as many others to be chosen
# on.
FEWEST_PEOPLE = 10
# Draws of gallery and probe that a measure is chosen by; what is reported is one draw, so that
# every person counts once.
DRAWS = 4
# Scores held in memory at a time.
AT_ONCE = 1 << 22
# How far the within-person covariance is drawn to its mean: little where there are many people,
# much where there are few.
SHRINKAGES = (0.02, 0.3)
# Coordinates of the two-covariance model that are kept: those in which one person's records differ
# least, relative to all records.
DIRECTIONS = 256
# People in a batch of the learned embedding, its fewest steps, and the top of its learning rate.
BATCH = 128
STEPS = 400
RATE = 3e-3

# Vectors (n, d) to features f (n, k) and b (n,).
Likeness = Callable[[Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Reidentified:
    """What one adversary found in records of one kind.

    Parameters:
        figures: The figures top_1 and top_5.
        adversary: The measure of likeness that was chosen.
        select: Mean reciprocal rank of every measure on the people it was chosen by; empty where
            there were too few to choose.
    """

    figures: dict[str, Figure]
    adversary: str
    select: dict[str, float] = field(default_factory=dict)


def reidentification(
    parts: Mapping[str, Released],
    raw: Mapping[str, Released] | None,
    seed: int = 0,
    tick: Tick = silent,
) -> People | str:
    """The attack on released records and, where they are given, on raw ones; or the reason why it
    is not possible."""
    first = 0.5 if raw else 1.0
    released = reidentify(parts, seed, span(tick, 0, first))
    if isinstance(released, str):
        return released
    beside = reidentify(raw, seed, span(tick, first, 1)) if raw else ""
    note = (
        "One record of each person stands in a gallery, and another is to be matched with it; "
        "people with a single record are left out, and guessing is one person of the gallery."
    )
    if not released.select:
        note += (
            f" Fewer than {FEWEST_PEOPLE} other people have two records, so no measure of likeness "
            "was learned or chosen: a weak attack."
        )
    raw_figures = {} if isinstance(beside, str) else beside.figures
    return People("re-identification", released.adversary, released.figures, raw_figures, note)


def reidentify(
    parts: Mapping[str, Released], seed: int = 0, tick: Tick = silent
) -> Reidentified | str:
    """How many *test* people are found first, and among the first five; or why that cannot be
    asked.

    `parts` holds *attack*, *select* and *test*. Neither the order of the records nor the names of
    people change a draw.
    """
    test, attack = parts["test"], parts["attack"]
    if test.data.person is None:
        return (
            "Re-identification was not tried: the data does not say which records are of one "
            "person."
        )
    paired = {part: len(_pairs(seen, seed)[0]) for part, seen in parts.items()}
    if paired["test"] < 2:
        return (
            f"Re-identification was not tried: {paired['test']} of the test people have two "
            "records, and two people are needed."
        )
    torch.manual_seed(seed)
    vectors = {part: finite(seen.vectors()) for part, seen in parts.items()}
    measures: dict[str, Likeness] = {
        "cosine": _cosine(_unstretched(attack)),
        "cosine of whitened records": _cosine(whitening(vectors["attack"])),
    }
    judge = next((part for part in ("select", "attack") if paired[part] >= FEWEST_PEOPLE), None)
    scores, chosen = dict[str, float](), "cosine of whitened records"
    if judge is not None:
        if min(paired["attack"], paired["select"]) >= FEWEST_PEOPLE:
            measures |= _learned(attack, parts["select"], vectors, seed, tick)
        for name, measure in measures.items():
            scores[name] = _reciprocal_rank(measure, vectors[judge], parts[judge], seed)
        chosen = max(scores, key=lambda name: scores[name])
    # Noise that was looked at while choosing is not the noise that is counted on.
    places = _places(measures[chosen], finite(test.vectors()), *_pairs(test, seed), seed)
    tick(1.0)
    return Reidentified({f"top_{k}": _figure(places, k) for k in (1, 5)}, chosen, scores)


def _learned(
    attack: Released, select: Released, vectors: Mapping[str, Tensor], seed: int, tick: Tick
) -> dict[str, Likeness]:
    """Measures that are learned from *attack*; the embedding starts from the best of the others."""
    measures = _two_covariances(vectors["attack"], attack.people)
    tick(0.2)
    ranks = {
        name: _reciprocal_rank(measure, vectors["select"], select, seed)
        for name, measure in measures.items()
    }
    start = measures[max(ranks, key=lambda name: ranks[name])]
    embedding = _embedding(start, attack, select, seed, span(tick, 0.2, 0.9))
    return measures | {"learned embedding": embedding}


def _figure(places: Array, k: int) -> Figure:
    n, right = len(places), int((places < k).sum())
    low, high = clopper_pearson(right, n)
    where = "first" if k == 1 else f"among the first {k}"
    chance = min(k / n, 1.0)
    return Figure(right / n, low, high, n, chance, measure=f"share of people found {where}")


def _pairs(seen: Released, seed: int) -> tuple[Array, Array]:
    """For every person with two records or more, the row of one that goes into the gallery, and of
    one that is the probe."""
    rows, people = seen.data.rows, seen.people
    if not len(rows):
        return rows, rows
    # A number per record of the source, so that the draw is of the records and not of their places
    # in this view.
    key = np.random.default_rng([seed, 1]).random(int(rows.max()) + 1)[rows]
    order = np.lexsort((key, people))
    who = people[order]
    first = np.flatnonzero(np.append(True, who[1:] != who[:-1])[:-1] & (who[1:] == who[:-1]))
    gallery, probe = order[first], order[first + 1]
    by_key = np.argsort(key[gallery])
    return gallery[by_key], probe[by_key]


@torch.no_grad()
def _places(measure: Likeness, x: Tensor, gallery: Array, probe: Array, seed: int) -> Array:
    """How many people stand before the right one in the list of each probe; equals are in a random
    order."""
    features, offset = measure(x)
    in_gallery, probes = (torch.as_tensor(rows, device=x.device) for rows in (gallery, probe))
    listed, bonus = features[in_gallery], offset[in_gallery]
    step = max(1, AT_ONCE // len(gallery))
    counts = []
    for start in range(0, len(probes), step):
        some = features[probes[start : start + step]]
        score = (some @ listed.T + bonus).nan_to_num(nan=-math.inf)
        right = score.diagonal(start)[:, None]
        counts.append(torch.stack([(score > right).sum(1), (score == right).sum(1)]))
    before, equal = torch.cat(counts, 1).cpu().numpy()
    among_equals = np.floor(np.random.default_rng([seed, 2]).random(len(probes)) * equal)
    return np.asarray(before + among_equals, dtype=np.int64)


def _reciprocal_rank(measure: Likeness, x: Tensor, seen: Released, seed: int) -> float:
    """Mean over people of 1 / (place of the right person), which moves with every place and not
    only with the first."""
    features = measure(x)
    draws = [_pairs(seen, seed + 1 + draw) for draw in range(DRAWS)]
    places = [_places(lambda _: features, x, *pairs, seed) for pairs in draws]
    return float(np.mean([1 / (1 + place) for place in places]))


def finite(x: Tensor) -> Tensor:
    """Vectors without NaN and infinity, which would look like a match."""
    return x.nan_to_num(0.0, 0.0, 0.0).clamp(-1e6, 1e6)


def _unstretched(seen: Released) -> Transform:
    """Long records come as principal directions that all vary alike; this gives each its own
    deviation back."""
    directions = seen.flattening.directions
    return lambda x: x if directions is None else x / directions.norm(dim=0)


def _cosine(transform: Transform) -> Likeness:
    def measure(x: Tensor) -> tuple[Tensor, Tensor]:
        return F.normalize(transform(x), dim=1), torch.zeros(len(x), device=x.device)

    return measure


def _features(measure: Likeness) -> Transform:
    return lambda x: measure(x)[0]


def _two_covariances(x: Tensor, people: Array) -> dict[str, Likeness]:
    """Likeness by how much people differ from each other and how much one person's records do.

    A record is m + y + e, with y ~ N(0, B) the person and e ~ N(0, W) the record. In coordinates u
    in which B + W = I and W = diag(w), the log-likelihood ratio of "the same person" to "two
    people" is, with r = (1 - w) / w and v = u / sqrt(w),

        sum over coordinates of  r / (1 + 2r) v v'  -  r^2 / (2 (1 + r) (1 + 2r)) (v^2 + v'^2)

    The second way takes the cosine of its features instead, which records of unusual length do not
    upset. W comes from the people with two records or more; w is drawn to its mean by each of
    SHRINKAGES, since few people show little of it.

    Sources: Brummer and de Villiers, The speaker partitioning problem, Odyssey (2010) (the
    two-covariance model); Ioffe, Probabilistic linear discriminant analysis, ECCV (2006).
    """
    whiten = whitening(x)
    z = whiten(x).double()
    _, codes = np.unique(people, return_inverse=True)
    place = torch.as_tensor(codes, device=x.device)
    count = torch.bincount(place).double()
    total = torch.zeros(len(count), z.shape[1], dtype=z.dtype, device=z.device)
    centred = z - (total.index_add_(0, place, z) / count[:, None])[place]
    within, basis = torch.linalg.eigh(centred.T @ centred / (len(z) - len(count)))
    middle = float(within.clamp(0, 1).mean())
    within, basis = within[:DIRECTIONS].clamp(0, 1), basis[:, :DIRECTIONS]

    def ratio(shrink: float) -> Likeness:
        w = ((1 - shrink) * within + shrink * middle).clamp(min=1e-6)
        r = (1 - w) / w
        features = basis * (r / (1 + 2 * r) / w).sqrt()
        penalty = r**2 / (2 * (1 + r) * (1 + 2 * r)) / w

        def measure(x: Tensor) -> tuple[Tensor, Tensor]:
            z = whiten(x).double()
            return (z @ features).float(), -((z @ basis).square() @ penalty).float()

        return measure

    ratios = {shrink: ratio(shrink) for shrink in SHRINKAGES}
    measures = {f"two-covariance model (shrinkage {s:g})": measure for s, measure in ratios.items()}
    cosines = {
        f"cosine in the two-covariance model (shrinkage {s:g})": _cosine(_features(measure))
        for s, measure in ratios.items()
    }
    return measures | cosines


class PersonEmbedding(nn.Module):
    """f + g(f): starts as the features f of a measure that needs no training, since the last layer
    of g starts at zero."""

    def __init__(self, features: int, hidden: int = 256) -> None:
        super().__init__()
        last = nn.Linear(hidden, features)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.bend = nn.Sequential(
            nn.Linear(features, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(0.3), last
        )
        self.sharpness = nn.Parameter(torch.tensor(math.log(10.0)))

    def forward(self, f: Tensor) -> Tensor:
        return F.normalize(f + self.bend(f), dim=1)


def _embedding(
    start: Likeness, attack: Released, select: Released, seed: int, tick: Tick
) -> Likeness:
    """A network that brings two records of one person together and those of others apart; the state
    best on *select* is kept.

    For a batch of people with records a and b, e their embeddings and t a learned sharpness, both
    ways round::

        loss = - mean over i of log  exp(t e(a_i) . e(b_i)) / sum over j of exp(t e(a_i) . e(b_j))

    Two records of each person are drawn anew in every epoch, with fresh noise where the release has
    any.

    Source: van den Oord, Li and Vinyals, Representation learning with contrastive predictive
    coding, arXiv:1807.03748 (2018).
    """
    torch.manual_seed(seed)
    people = len(_pairs(attack, seed)[0])
    size = min(BATCH, people)
    steps = people // size
    epochs = math.ceil(STEPS / steps)
    features = start(finite(attack.vectors()))[0]
    deviation = features.square().mean().sqrt().clamp(min=1e-12)
    net = PersonEmbedding(features.shape[1]).to(features.device)
    optimiser = adamw(net, RATE, 0.05, features.device)
    pairs_of = torch.arange(size, device=features.device)

    @torch.no_grad()
    def embed(features: Tensor) -> tuple[Tensor, Tensor]:
        net.eval()
        return net(features / deviation), torch.zeros(len(features), device=features.device)

    def learn(both: Tensor) -> None:
        left, right = net(both / deviation).chunk(2)
        likeness = net.sharpness.exp().clamp(max=100) * left @ right.T
        both_ways = [F.cross_entropy(table, pairs_of) for table in (likeness, likeness.T)]
        descend((both_ways[0] + both_ways[1]) / 2, optimiser)

    select_features = start(finite(select.vectors()))[0]
    best = BestState(net, _reciprocal_rank(embed, select_features, select, seed))
    step = ReplayedStep(learn)
    for epoch in range(epochs):
        if attack.fresh_noise and epoch % math.ceil(epochs / 40) == 0:
            features = start(finite(attack.vectors()))[0]
        net.train()
        order = np.random.default_rng([seed, epoch]).permutation(people)[: steps * size]
        pairs = np.stack(_pairs(attack, seed + 1_000_003 * (epoch + 1)))[:, order]
        batches = torch.as_tensor(pairs.reshape(2, steps, size), device=features.device).unbind(1)
        for done, batch in enumerate(batches):
            set_rate(optimiser, RATE * one_cycle((epoch * steps + done) / (epochs * steps)))
            step(features[batch.flatten()])
        if (epoch + 1) % math.ceil(epochs / 10) == 0:
            best.offer(_reciprocal_rank(embed, select_features, select, seed))
        tick((epoch + 1) / epochs)
    best.restore()
    return lambda x: embed(start(x)[0])
