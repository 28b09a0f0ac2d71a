"""Erase: LEACE that trusts what it measured only as far as its people allow, and may also take out
directions in which the classes spread differently.

    c = W Sigma_xz, one row per principal direction i, estimated from n people with the error e_i
    c_i <- c_i * t / (t + e_i),    t = mean of (c_i^2 - e_i) over directions of similar variance
    r(x) = x - W^+ P W (x - E x),  P the orthogonal projection onto the columns of c, and onto
           leading eigenvectors of the sum over z of (E[z w w'])^2,  w = W (x - E x)

The map is that of LEACE (Belrose and others, NeurIPS 2023). With hundreds of people and hundreds of
numbers a record, most of the estimated cross-covariance is error: taking it out protects nobody but
the people of *fit*. Its rows are therefore shrunk as in empirical Bayes (Efron and Morris, Stein's
estimation rule and its competitors, JASA 1973), in groups of directions, with the errors of people,
not of records: ten posts of an author are one author.

What is left to an attacker who looks at squares and products are the differences of the classes'
covariances. `directions` takes the directions out in which they are largest: a dial that costs more
than the first direction, since the differences are spread over many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from privet.data.dataset import Array
from privet.data.schema import TableSchema
from privet.methods.leace import Concept, Whitening, erasure, gather, rare_directions
from privet.methods.method import Method, Problem, at_least, ranges_of
from privet.methods.vectors import one_length_of
from privet.nets.affine import Affine
from privet.nets.one_length import OneLength
from privet.release.release import Release
from privet.train.feed import Feed
from privet.train.game import Run

# Records at a time, and up to a person's more.
CHUNK = 4096
# Leading directions that are shrunk together; every further group is twice as large.
FIRST_GROUP = 5


@dataclass(kw_only=True)
class Erase(Method):
    """Linear erasure for few people: what was estimated is shrunk by its error before it is taken
    out.

    Parameters:
        directions: So many directions in which the covariances of the classes differ most are taken
            out as well, against attackers who are not linear; each costs utility.
        components: Principal directions among which those are looked for.

    Example:
        >>> import privet
        >>> data = privet.load("toy:gaussian")
        >>> release = privet.Erase().fit(data, "u")
        >>> release.card["rank"], release.card["kept"] > 0.9
        (1, True)

    Notes:
        Rows and vectors of numbers, in closed form, without a certificate. Records that all have
        one length, as embeddings mostly do, keep it.
    """

    directions: int = 0
    components: int = 100

    name = "erase"
    title = "Erase"
    modalities = ("table",)
    instead = "erase an embedding of each record, one column per number"
    numbers = True
    dial = "directions"
    sweep = (0, 3, 10, 30)
    ranges = ranges_of(directions=at_least(0), components=at_least(1))

    def learn(self, problem: Problem, run: Run) -> Release:
        feed, people = problem.feed(), problem.view().people
        size = problem.schema.shape[0] or 0
        concept = Concept.of(problem.private, feed)
        factor, cross = gather(feed, concept, size)
        white = Whitening.of(factor)
        share = trust(feed, people, white, concept, white.into.T @ cross / white.n)
        # W^+' turns the shrunk rows back into a cross-covariance of x, which is what LEACE takes.
        shrunk = white.back.T @ (share[:, None] * (white.into.T @ cross))
        out = rare_directions(feed, people, white)
        if self.directions:
            out = torch.linalg.qr(torch.cat([out, self.spread(feed, white, concept)], 1)).Q
        erased = erasure(white, shrunk, out)
        module, network = Affine(problem.schema.shape, len(erased.up)), "affine"
        length = one_length_of(problem)
        if length and isinstance(problem.schema, TableSchema):
            module = OneLength(problem.schema.shape, len(erased.up))
            module.measure(problem.schema, length)
            network = "one-length"
        module.to(problem.device).fill(white.mean, erased.down, erased.up, white.deviation)
        before = (white.into.T @ cross).square().sum(1)
        card = {
            "form": "record",
            "rank": erased.rank,
            "also": erased.rare,
            "kept": float((share.square() * before).sum() / before.sum().clamp(min=1e-300)),
            "length": length,
        }
        return Release(problem.schema, (network, {"rank": len(erased.up)}), module, None, card)

    def spread(self, feed: Feed, white: Whitening, concept: Concept) -> Tensor:
        """Whitened directions in which the covariance depends most on the private columns."""
        size, columns = white.into.shape[1], len(concept.mean)
        lead = min(self.components, size)
        moments = torch.zeros(columns, lead, lead, dtype=torch.float64, device=feed.device)
        for batch in feed.batches(np.array_split(np.arange(len(feed)), 1 + len(feed) // CHUNK)):
            w, z = white(batch)[:, :lead], concept(batch)
            for column in range(columns):
                moments[column] += (w * z[:, column : column + 1]).T @ w / white.n
        _, axes = torch.linalg.eigh((moments @ moments).sum(0))
        return torch.nn.functional.pad(axes[:, -self.directions :], (0, 0, 0, size - lead))


def trust(feed: Feed, people: Array, white: Whitening, concept: Concept, found: Tensor) -> Tensor:
    """Per whitened direction, the share t / (t + e) of its cross-covariance that is no error.

    Parameters:
        found: The cross-covariance of whitened records, (directions, columns).
    """
    error = person_errors(feed, people, white, concept, found).sum(1)
    signal = found.square().sum(1) - error
    share, start, size = torch.zeros_like(error), 0, FIRST_GROUP
    while start < len(error):
        group = slice(start, start + size)
        t = signal[group].mean().clamp(min=0.0)
        share[group] = t / (t + error[group]).clamp(min=1e-300)
        start, size = start + size, size * 2 if start else size
    return share


def person_errors(
    feed: Feed, people: Array, white: Whitening, concept: Concept, found: Tensor
) -> Tensor:
    """Squared standard error of every entry of `found`: sum over people of the square of what their
    records together differ from it, over n^2."""
    _, who = np.unique(people, return_inverse=True)
    total = torch.zeros_like(found)
    for rows in whole_people(who):
        batch = next(iter(feed.batches([rows])))
        w, z = white(batch), concept(batch)
        places = torch.as_tensor(np.unique(who[rows], return_inverse=True)[1], device=feed.device)
        for column in range(found.shape[1]):
            apart = w * z[:, column : column + 1] - found[:, column]
            sums = apart.new_zeros(int(places.max()) + 1, w.shape[1]).index_add_(0, places, apart)
            total[:, column] += sums.square().sum(0) / white.n**2
    return total


def whole_people(who: Array) -> Iterator[Array]:
    """Positions of records in pieces of about CHUNK; no person is in two.

    >>> [piece.tolist() for piece in whole_people(np.array([1, 0, 1]))]
    [[1, 0, 2]]
    """
    order = np.argsort(who, kind="stable")
    borders = np.flatnonzero(np.diff(who[order])) + 1
    cuts = [0]
    for border in borders.tolist():
        if border - cuts[-1] >= CHUNK:
            cuts.append(border)
    yield from np.split(order, cuts[1:])
