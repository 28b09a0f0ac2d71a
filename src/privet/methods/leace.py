"""LEACE: the smallest affine change of a record after which no linear adversary finds the
attribute.

    r(x) = x - W^+ P W (x - E x),       W = (Sigma_xx^(1/2))^+
    P the orthogonal projection onto the columns of W Sigma_xz

Belrose, Schneider-Joseph, Ravfogel, Cotterell, Raff and Biderman, "LEACE: Perfect linear concept
erasure in closed form", NeurIPS 2023, sections 3 and 4: a linear predictor with intercept does no
better than a constant, whatever its convex loss, where the classes have the same mean, that is
Cov(r(x), z) = 0; and of all affine maps with that property this one moves x least, in every inner
product at once.

Nothing is trained and nothing is random. What is not linear in x (a variance, a product of two
coordinates) is left as it was.

One thing is added. A direction in which only a few people differ from all others, as in a rare
category, holds its small share of the concept in these few; taking it out moves everybody else a
little, by as much as the rest of the record says about z. Whoever knows none of the few then reads
z there, however small the steps. Such directions are therefore taken out whole: P projects onto
them too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from privet.core.errors import PrivetError
from privet.data.dataset import Array, Attribute
from privet.methods.method import NUMERIC, Method, Problem
from privet.nets.affine import Affine, flat
from privet.release.release import Release
from privet.train.feed import Batch, Feed
from privet.train.game import Run

# Numbers per record: a covariance of more is slow to decompose, and wants more people than there
# usually are.
MOST_NUMBERS = 4096
# Records at a time.
CHUNK = 4096
# A coordinate whose deviation is smaller than this, next to its mean, does not vary: what is seen
# is rounding.
CONSTANT = 1e-12
# A main direction this much narrower than the widest is one that float32 records do not have.
NARROW = 1e-7
# A correlation below this is rounding: no sample is large enough to show it.
NO_CORRELATION = 1e-7
# A direction needs about this many people who differ in it.
CARRIERS = 50
# So many times the mean leverage, a person is never one of the few: with few people per coordinate
# all have much.
HEAVY = 3.0
# Where less than this share of a coordinate's deviation is left, it was taken out whole, and what
# is left is rounding.
ERASED = 1e-4


@dataclass(kw_only=True)
class LEACE(Method):
    """The smallest change of a record after which no linear adversary finds the attribute.

    An affine map, in closed form, takes out every direction that correlates with the private
    attribute, and those in which only a few people differ. It has no settings but the seed, which
    changes nothing.

    Example:
        >>> import privet
        >>> data = privet.load("toy:gaussian")
        >>> release = privet.LEACE().fit(data, "u")
        >>> release.card["rank"], release.card["certificate"]["kind"]
        (1, 'linear')

    Notes:
        It is exact on *fit* and holds up to sampling error for other people; the card says how far.
        An adversary that is not linear reads what it could read before. Texts are not taken: give
        an embedding of each, one column per number, at most 4096 of them.
    """

    name = "leace"
    title = "LEACE"
    modalities = NUMERIC
    instead = "erase an embedding of each text, one column per number"
    numbers = True

    def accept(self, problem: Problem) -> Problem:
        size = _size(problem)
        if size > MOST_NUMBERS:
            raise PrivetError(
                f"The method leace takes records of at most {MOST_NUMBERS} numbers, and those of "
                f"{problem.data.name} have {size}: give it an embedding of each record, one column "
                "per number."
            )
        return problem

    def learn(self, problem: Problem, run: Run) -> Release:
        feed = problem.feed()
        factor, cross = gather(feed, Concept.of(problem.private, feed), _size(problem))
        white = Whitening.of(factor)
        erased = erasure(white, cross, rare_directions(feed, problem.view().people, white))
        module = Affine(problem.schema.shape, len(erased.up)).to(problem.device)
        module.fill(white.mean, erased.down, erased.up, white.deviation)
        card = {
            "rank": erased.rank,
            "rare": erased.rare,
            "certificate": certificate(module, white, erased, problem),
        }
        if getattr(problem.schema.plain, "space", None) is not None:
            card["form"] = "record"  # a vector in, the same vector without the concept out
        return Release(problem.schema, ("affine", {"rank": len(erased.up)}), module, None, card)


@dataclass(frozen=True)
class Whitening:
    """Coordinates in which records have mean 0 and variance 1 in every direction they vary in.

    `n` records have this `mean` and `deviation` in every coordinate; the deviation is 0 where one
    does not vary. `into` is W, (size, directions), and `back` is W^+, (directions, size).
    """

    n: float
    mean: Tensor
    deviation: Tensor
    into: Tensor
    back: Tensor

    @staticmethod
    def of(factor: Tensor) -> Whitening:
        """From what `gather` gives. Coordinates are standardised first, which changes nothing of r
        and much of the rounding."""
        root = factor[0, 0]
        mean, rows = factor[0, 1:] / root, factor[1:, 1:] / root.abs()
        deviation = rows.square().sum(0).sqrt()
        deviation = torch.where(deviation > CONSTANT * mean.abs(), deviation, 0.0)
        scale = torch.where(deviation > 0, deviation, torch.inf)
        _, spread, directions = torch.linalg.svd(rows / scale, full_matrices=False)
        wide = spread > NARROW * spread[0]
        spread, directions = spread[wide], directions[wide]
        return Whitening(
            float(root.square()),
            mean,
            deviation,
            (directions / scale).T / spread,
            directions * deviation * spread[:, None],
        )

    def __call__(self, batch: Batch) -> Tensor:
        return (flat(batch.x) - self.mean) @ self.into


@dataclass(frozen=True)
class Erasure:
    """The map r(x) = x - ((x - mean) down) up.

    `rank` directions are taken out for the concept, and `rare` because few people differ in them.
    """

    down: Tensor
    up: Tensor
    rank: int
    rare: int


@dataclass(frozen=True)
class Concept:
    """Private attributes as columns side by side: classes as zeros and ones, numbers as they are.

    Standardised over the records of one part whose label is known; 0 where it is not, so that those
    records count for nothing. `mean` and `deviation` (1 where there is none) are those of every
    column, and `known` is in how many records its label is known.
    """

    attributes: tuple[Attribute, ...]
    mean: Tensor
    deviation: Tensor
    known: Tensor

    @staticmethod
    def of(attributes: Sequence[Attribute], feed: Feed) -> Concept:
        """The private attributes of the records of one part."""
        parts = [_moments(attribute, feed.labels[attribute.name]) for attribute in attributes]
        mean, variance, known = (torch.cat(column) for column in zip(*parts, strict=True))
        deviation = torch.where(variance > 0, variance.sqrt(), 1.0)
        return Concept(tuple(attributes), mean, deviation, known)

    @property
    def sizes(self) -> list[int]:
        """Columns per attribute."""
        return [attribute.classes or 1 for attribute in self.attributes]

    def __call__(self, batch: Batch) -> Tensor:
        columns, known = [], []
        for attribute, size in zip(self.attributes, self.sizes, strict=True):
            truth = batch.labels[attribute.name]
            classes = F.one_hot(truth.clamp(min=0), size) if attribute.is_class else truth[:, None]
            columns.append(classes.double())
            known.append(_known(attribute, truth).unsqueeze(1).expand(-1, size))
        standardised = (torch.cat(columns, 1) - self.mean) / self.deviation
        return torch.where(torch.cat(known, 1), standardised, 0.0)


def gather(feed: Feed, concept: Concept, size: int) -> tuple[Tensor, Tensor]:
    """All that is needed of the records, in one pass: R with R'R = A'A for A = [1, x], and x'z.

    R stands for as many records as it has columns, and its first row is sqrt(n) [1, mean]; the rows
    below it are those of the centred records. Unlike a covariance it does not square the ratio of
    the widest direction to the narrowest.
    """
    factor = torch.zeros(0, size + 1, dtype=torch.float64, device=feed.device)
    cross = torch.zeros(size, sum(concept.sizes), dtype=torch.float64, device=feed.device)
    for batch in _batches(feed):
        rows = flat(batch.x)
        factor = torch.linalg.qr(torch.cat([factor, F.pad(rows, (1, 0), value=1.0)]), mode="r").R
        cross += rows.T @ concept(batch)
    return factor, cross


def rare_directions(feed: Feed, people: Array, white: Whitening) -> Tensor:
    """Whitened directions that get more than half of their variance from people who each have much
    leverage, as columns.

    The leverage of a record is its squared whitened length over n; those of all records add up to
    the number of directions. One in which m people differ from all others gives each of them 1 / m.
    """
    size = white.into.shape[1]
    moments = torch.zeros(size, size, dtype=torch.float64, device=feed.device)
    leverage = torch.cat([white(batch).square().sum(1) / white.n for batch in _batches(feed)])
    _, who = np.unique(people, return_inverse=True)
    each = np.bincount(who, leverage.cpu().numpy())
    few = np.flatnonzero((each > max(1 / CARRIERS, HEAVY * size / len(each)))[who])
    for batch in feed.batches(few[start : start + CHUNK] for start in range(0, len(few), CHUNK)):
        moments += white(batch).T @ white(batch) / white.n
    share, directions = torch.linalg.eigh(moments)
    return torch.as_tensor(directions[:, share > 0.5])


def erasure(white: Whitening, cross: Tensor, rare: Tensor) -> Erasure:
    """The map that takes out the columns of W Sigma_xz and of `rare`, all others left as they are:
    P = E E' + L L'."""
    concept = white.into.T @ cross / white.n
    left, strength, _ = torch.linalg.svd(concept - rare @ (rare.T @ concept), full_matrices=False)
    left = left[:, strength > NO_CORRELATION]
    out = torch.cat([rare, left], dim=1)
    if not out.shape[1]:
        out = torch.zeros(len(out), 1, dtype=out.dtype, device=out.device)
    return Erasure(white.into @ out, out.T @ white.back, left.shape[1], rare.shape[1])


def certificate(
    module: Affine, white: Whitening, erased: Erasure, problem: Problem
) -> dict[str, Any]:
    """What holds by construction, and how far it holds for people the map was not fitted on.

    Per attribute, `fit` and `select` are the largest correlation of a released coordinate with a
    private column: 0 up to float32 on *fit*. On *select* the largest of d k of them is about
    `by_chance` = sqrt(2 log(2 d k) (1 / n_fit + 1 / n_select)), n people. Many small ones add up:
    the cross-covariance of n people is off by 1 / sqrt(n) in each of the directions that are left,
    so a linear adversary who knows other people well reaches a multiple correlation of about
    `on_others` = sqrt(directions / n_fit).
    """
    left = white.into.shape[1] - erased.rank - erased.rare
    figures: dict[str, dict[str, float]] = {attribute.name: {} for attribute in problem.private}
    for part in ("fit", "select"):
        feed, people = problem.feed(part), problem.view(part).people
        concept = Concept.of(problem.private, feed)
        for attribute, columns in correlations(module, white.deviation, feed, concept).items():
            known = _known(attribute, feed.labels[attribute.name]).cpu().numpy()
            figures[attribute.name] |= {
                part: float(columns.abs().max()),
                f"{part}_people": max(1, len(np.unique(people[known]))),
                "compared": columns.numel(),
            }
    for row in figures.values():
        row["by_chance"] = math.sqrt(
            2 * math.log(2 * row["compared"]) * (1 / row["fit_people"] + 1 / row["select_people"])
        )
        row["on_others"] = math.sqrt(min(1.0, left / row["fit_people"]))
    said = (
        f"No linear adversary reads {' or '.join(figures)} better than a constant from the people "
        "this was fitted on; from others like them, sampling error leaves it a correlation of "
        f"about {max(row['on_others'] for row in figures.values()):.2f}."
    )
    return {"kind": "linear", "said": said, "cross_covariance": figures}


def correlations(
    module: Affine, deviation: Tensor, feed: Feed, concept: Concept
) -> dict[Attribute, Tensor]:
    """Per attribute, the correlation of every released coordinate with each of its columns;
    `deviation` is that of raw ones on *fit*."""
    cross = torch.zeros(len(deviation), len(concept.mean), dtype=torch.float64, device=feed.device)
    sums, n = cross.new_zeros(2, len(deviation)), max(1, len(feed))
    for batch in _batches(feed):
        z = module(batch.x).flatten(1) - module.mean
        cross += z.T @ concept(batch)
        sums += torch.stack([z.sum(0), z.square().sum(0)])
    now = (sums[1] / n - (sums[0] / n).square()).clamp(min=0).sqrt()
    per_now = torch.where(now > ERASED * deviation, 1 / now, 0.0).unsqueeze(1)
    columns = torch.split(per_now * cross / concept.known.clamp(min=1), concept.sizes, dim=1)
    return dict(zip(concept.attributes, columns, strict=True))


def _batches(feed: Feed) -> Iterator[Batch]:
    return feed.batches(np.array_split(np.arange(len(feed)), max(1, math.ceil(len(feed) / CHUNK))))


def _moments(attribute: Attribute, truth: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, variance and number of known labels, per column of one attribute."""
    seen = truth[_known(attribute, truth)]
    n = max(1, len(seen))
    if attribute.is_class:
        mean = torch.bincount(seen, minlength=attribute.classes).double() / n
        variance = mean * (1 - mean)
    else:
        mean = seen.double().sum(0, keepdim=True) / n
        variance = (seen.double() - mean).square().sum(0, keepdim=True) / n
    return mean, variance, torch.full_like(mean, len(seen))


def _known(attribute: Attribute, truth: Tensor) -> Tensor:
    return truth >= 0 if attribute.is_class else truth.isfinite()


def _size(problem: Problem) -> int:
    return math.prod(axis or 0 for axis in problem.schema.shape)
