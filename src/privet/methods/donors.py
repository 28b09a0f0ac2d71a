"""Donors: a record becomes one of K donors, which come equally often for every private value.

    cells c of similar records, with the share P_a(c) of the people of value a in each
    donors k: the means of K groups of similar records, whatever their value
    T(c, k) >= 0, sum_k T(c, k) = 1:
    min over T of  sum_c P(c) sum_k T(c, k) |c - k|^2  +  price * sum_k max_a sum_c P_a(c) T(c, k)

Optimal transport of every value's people to common places. The last sum is k times the success V of
the best adversary of all who sees the donor, which is a linear program's to bound; at a high price
it is 1 and the laws of all values are the same. A vertex of the program sends nearly every cell to
one donor: each is then sent to its likeliest, so that the donor is a symbol that follows from the
record. (Marginals made equal in this way: Feldman and others, "Certifying and removing disparate
impact", KDD 2015, of one number; Gordaliza and others, "Obtaining fairness using optimal transport
theory", ICML 2019.) A symbol is replaced at random as often as the target takes, as in Codebook,
and certified as symbols are (evidence/certificate/symbols.py).

With `shared`, rows of a table are compared in what their columns tell about each other: what no
other column says of a record is hardly of use for a task that nobody has named.

How many donors there are and the price are those with which records of *attack* and *select* come
to the closest donors, after as much replacing as these people say that the target takes.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.optimize import linprog
from scipy.sparse import coo_array
from torch import Tensor

from privet.core.errors import PrivetError
from privet.core.progress import bar, console
from privet.data.dataset import Array, Dataset
from privet.data.schema import Schema, TableSchema
from privet.evidence.certificate.symbols import smallest_flip
from privet.methods.known_groups import people_per_value
from privet.methods.method import NUMERIC, Method, Problem, at_least, ranges_of, refuse_blind_target
from privet.nets.components import principal_axes
from privet.nets.convolutions import prepare
from privet.nets.donors import CellsToDonors, donor_symbols
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.game import Run

# The parts whose people the number of donors, the price and the replacing are chosen on.
HELD_OUT = ("attack", "select")
# Numbers of donors that are tried where none is asked for.
SIZES = (8, 16, 32, 64, 128, 256)
# Prices of what an adversary gains, in units of the records' variance.
PRICES = (0.5, 1.0, 2.0, 5.0, 20.0)
# Cells for each donor, donors that a cell may go to, and fewest records behind a cell or a donor.
CELLS = 8
NEAREST = 16
# The same on shared axes, which are few: there, more of both come closer at the same target.
SHARED_PRICES = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
SHARED_CELLS = 24
FEWEST = 5
# How far apart a certain guess of the private value puts two records, in deviations of a record.
TILT = 1.0
ROUNDS = 12
# Ridge of the regressions on other columns, and of the guess, in mean variances of a number.
RIDGE = 1e-2
GUESS_RIDGE = 1e-4
# Records that components are taken from.
MEASURED = 2000
CHUNK = 4096


@dataclass(kw_only=True)
class Donors(Method):
    """Every record becomes one of a few donor records, aimed at a certified bound.

    A donor is the mean of a group of similar records. Which donor a record gets is chosen such that
    every private value gets every donor about equally often, and records lie close to theirs. What
    is released is the donor's number; its record is read from a table in the release. With the
    probability `flip`, chosen for the target, another donor is drawn at random.

    Parameters:
        target: Balanced accuracy that no adversary shall exceed by the certificate.
        donors: How many there are; 0 for as many as serve the records best at this target.
        dims: Components of a record that records are compared in.
        shared: Of a table: compare in so many axes of what its columns tell about each other
            instead; 0 for components of all that a record holds.
        flip: Share of donors that are drawn at random where no share is predicted to meet the
            target.
        margin: Part of the allowance kept back, because the people of *test* are others than those
            it is chosen on.
        confidence: Probability with which the certificate shall hold.

    Example:
        >>> import privet
        >>> data = privet.load("toy:gaussian")
        >>> method = privet.Donors(target=0.6, donors=4)
        >>> release = method.fit(data, "u", run=privet.Run(progress=False))
        >>> release.shape, release.card["chosen"]["met"]
        ((4,), True)

    Notes:
        A release is one of `donors` records, log2(donors) bits: it keeps what kind of record it is,
        and little else. The bound is proved by `privet.certify`, for one release of a record.
    """

    target: float = 0.58
    donors: int = 0
    dims: int = 32
    shared: int = 0
    flip: float = 0.5
    margin: float = 0.003
    confidence: float = 0.99

    name = "donors"
    title = "Donors"
    modalities = NUMERIC
    instead = "turn texts into vectors first (privet embed)"
    dial = "target"
    sweep = (0.66, 0.62, 0.60, 0.58, 0.54)
    ranges = ranges_of(
        target=(0, 1),
        donors=(0, 1024),
        dims=at_least(1),
        shared=at_least(0),
        flip=(0, 1),
        confidence=(0, 1),
    )

    def accept(self, problem: Problem) -> Problem:
        refuse_blind_target(self.target, problem.private)
        if self.shared and len(_columns(problem.schema)) < 2:
            raise PrivetError(
                "shared= compares records in what columns tell about each other, and these records"
                " have no columns: leave it at 0."
            )
        return problem

    def learn(self, problem: Problem, run: Run) -> Release:
        fit, others = _Records(problem), _Records(problem, *HELD_OUT)
        basis = (
            Basis.shared(fit, _columns(problem.schema), self.shared)
            if self.shared
            else Basis.learn(fit, self.dims, self.seed)
        )
        known, held = (basis.components(one.rows) for one in (fit, others))
        sizes = [self.donors] if self.donors else list(SIZES)
        sizes = sorted({max(2, min(size, len(known) // FEWEST)) for size in sizes})
        prices = SHARED_PRICES if self.shared else PRICES
        best: tuple[float, _Choice] | None = None
        with bar("choosing donors", len(sizes) * len(prices), run.progress) as tick:
            for done, (size, price) in enumerate(product(sizes, prices)):
                if price == prices[0]:
                    layout = self._layout(problem, fit, known, basis, size)
                lost, choice = self._judged(layout.priced(price), problem, held, others)
                if best is None or (not choice.met, lost) < (not best[1].met, best[0]):
                    best = lost, choice
                tick(done + 1, f"{size} donors: lost {lost:.2f}, replaced {choice.flip:.2f}")
        assert best is not None, "there is at least one plan"
        lost, choice = best
        if run.progress and not choice.met:
            console.print(
                f"No replacing brings these donors to {self.target:g}, judged on other people: add "
                "people, or aim higher."
            )
        card = {
            "form": "code",
            "lost": {"share": lost, "part": " and ".join(HELD_OUT)},
            "chosen": {
                "target": self.target,
                "met": choice.met,
                "flip": choice.flip,
                "donors": choice.donors,
                "price": choice.price,
                "on": list(HELD_OUT),
            },
        }
        module = donor_symbols(problem.schema, **choice.settings)
        module.body.load_state_dict(choice.body.state_dict())
        noise = Noise("uniform", (2,), choice.flip)
        return Release(problem.schema, ("donors", choice.settings), module, noise, card)

    def _layout(
        self, problem: Problem, fit: _Records, known: Tensor, basis: Basis, k: int
    ) -> _Layout:
        """Donors and cells of *fit*."""
        each = SHARED_CELLS if self.shared else CELLS
        cells = min(each * k, max(len(known) // FEWEST, 2))
        guesses = basis.guess.shape[1]
        body = CellsToDonors(problem.schema, k, cells, known.shape[1], guesses)
        body.mean.copy_(basis.mean)
        body.axes.copy_(basis.axes)
        body.guess.copy_(basis.guess)
        compared = known[:, : basis.compared]
        group = grouped(compared, k, self.seed)
        body.records.copy_(_means(fit.rows, group, k))
        place = body.place(known)
        body.points.copy_(_means(place, grouped(place, cells, self.seed + 1), cells))
        cell = torch.cat([body.cell(part) for part in torch.split(place, CHUNK)])
        centres, middle = _means(compared, group, k), _means(compared, cell, cells)
        cost = torch.cdist(middle.double(), centres.double()).square() / basis.variance
        mass = np.bincount(cell.numpy(), minlength=cells) / len(cell)
        shares = _class_shares(cell.numpy(), cells, fit.labels)
        return _Layout(body, centres, basis.variance, cost.numpy(), mass, shares)

    def _judged(
        self, choice: _Choice, problem: Problem, held: Tensor, others: _Records
    ) -> tuple[float, _Choice]:
        """The share of other records' variance that is lost after the replacing that the target
        takes."""
        body, k = choice.body, choice.donors
        place = body.place(held)
        symbols = torch.cat(
            [body.donor_of[body.cell(part)].argmax(1) for part in torch.split(place, CHUNK)]
        )
        flips = []
        for attribute in problem.private:
            labels = others.view.labels[attribute.name]
            present = labels >= 0
            flips.append(
                smallest_flip(
                    symbols.numpy()[present],
                    k,
                    labels[present],
                    others.view.people[present],
                    attribute.values,
                    self.target,
                    people=people_per_value(problem.data.part("test"), attribute),
                    confidence=self.confidence,
                    margin=self.margin,
                )
            )
        met = None not in flips
        flip = max((one for one in flips if one is not None), default=1.0) if met else self.flip
        compared = held[:, : choice.centres.shape[1]].double()
        apart = torch.cdist(compared, choice.centres.double()).square() / choice.variance
        near = apart.gather(1, symbols[:, None]).mean()
        lost = float((1 - flip) * near + flip * apart.mean())
        return lost, choice._replace(flip=float(flip), met=met)


class _Layout(NamedTuple):
    """Donors and cells before it is known which cell gets which donor.

    Parameters:
        body: From records to donors, of which the donor of each cell is missing.
        centres: Components of the donors.
        variance: Of the records, in components.
        cost: Squared distance of each cell from each donor, (cells, donors), in variances.
        mass: Share of all records in each cell.
        shares: Per attribute (values, cells): share of each value's records in each cell.
    """

    body: CellsToDonors
    centres: Tensor
    variance: float
    cost: Array
    mass: Array
    shares: list[Array]

    def priced(self, price: float) -> _Choice:
        """Every cell with its donor, at a price."""
        body, to = copy.deepcopy(self.body), transport(self.cost, self.mass, self.shares, price)
        body.donor_of.copy_(torch.eye(len(self.centres))[torch.as_tensor(to)])
        return _Choice(body, self.centres, self.variance, price, 1.0, False)


class _Choice(NamedTuple):
    """One number of donors and one price.

    Parameters:
        body: From records to donors.
        centres: Components of the donors.
        variance: Of the records, in components.
        price: Of what an adversary gains.
        flip: How often a donor is replaced.
        met: Whether the target is predicted to be met.
    """

    body: CellsToDonors
    centres: Tensor
    variance: float
    price: float
    flip: float
    met: bool

    @property
    def donors(self) -> int:
        return len(self.centres)

    @property
    def settings(self) -> dict[str, Any]:
        body = self.body
        return {
            "donors": self.donors,
            "cells": len(body.points),
            "dims": body.axes.shape[1],
            "guesses": body.guess.shape[1],
            "flip": self.flip,
        }


class _Records:
    """The records of *fit*, or of other parts, as flat rows, with their private labels."""

    def __init__(self, problem: Problem, *parts: str) -> None:
        self.view: Dataset = problem.view(*parts)
        feed = problem.feed(*parts)
        flat = [prepare(batch.x).flatten(1).float().cpu() for batch in feed.in_order()]
        self.rows = torch.cat(flat)
        self.labels: list[tuple[Array, int]] = [
            (self.view.labels[a.name], a.classes) for a in problem.private
        ]


class Basis(NamedTuple):
    """What records are compared in.

    Parameters:
        mean: Of the rows.
        axes: Leading directions, (numbers, dims).
        variance: Of the components that count, summed.
        guess: From components to a guess of each private value, scaled, (dims, columns).
        compared: How many components count in how alike two records are; the others only say which
            cell a record is in.
    """

    mean: Tensor
    axes: Tensor
    variance: float
    guess: Tensor
    compared: int

    @staticmethod
    def learn(fit: _Records, dims: int, seed: int) -> Basis:
        generator = torch.Generator().manual_seed(seed)
        some = torch.randperm(len(fit.rows), generator=generator)[:MEASURED]
        exact = principal_axes(fit.rows[some], min(dims, len(some) - 1, fit.rows.shape[1]))
        mean, axes = (part.float() for part in exact)
        components = (fit.rows - mean) @ axes
        variance = float(components.double().var(0, unbiased=False).sum())
        guess = _linear_guess(components, fit.labels, TILT * variance**0.5)
        return Basis(mean, axes, variance, guess, axes.shape[1])

    @staticmethod
    def shared(fit: _Records, columns: Sequence[int], dims: int) -> Basis:
        """Axes of what the columns, of these sizes, tell about each other. They hold too little of
        a record to guess from, so that a guess from all of it is a component of its own."""
        mean = fit.rows.double().mean(0)
        rows = fit.rows.double() - mean
        axes = shared_axes(rows, columns, dims)
        variance = float((rows @ axes).var(0, unbiased=False).sum())
        guess = _linear_guess(rows, fit.labels, TILT * variance**0.5)
        whole = torch.cat([axes.float(), guess], 1)
        nothing = torch.zeros(whole.shape[1], guess.shape[1])
        return Basis(mean.float(), whole, variance, nothing, axes.shape[1])

    def components(self, rows: Tensor) -> Tensor:
        return (rows - self.mean) @ self.axes


def _columns(schema: Schema) -> list[int]:
    """How many numbers each column of a table has; none of other records."""
    plain = schema.plain
    return [column.size for column in plain.columns] if isinstance(plain, TableSchema) else []


def shared_axes(rows: Tensor, columns: Sequence[int], dims: int) -> Tensor:
    """Main axes of rows that are replaced by what a ridge regression on all other columns says of
    each column: what a column has alone does not count. The numbers of a category are one column,
    and all columns have variance 1.

    Parameters:
        rows: Without their mean, in float64.
        columns: How many numbers each column has.
        dims: How many axes.

    >>> common, own = torch.randn(2, 1000, generator=torch.Generator().manual_seed(0)).double()
    >>> rows = torch.stack([common, common, 100 * own], 1)
    >>> [round(abs(x), 1) for x in shared_axes(rows, [1, 1, 1], 1)[:, 0].tolist()]
    [0.7, 0.7, 0.0]
    """
    inner = rows.T @ rows / len(rows)
    blocks = torch.split(inner.diagonal(), list(columns))
    scale = torch.cat([block.sum().clamp(min=1e-9).rsqrt().expand(len(block)) for block in blocks])
    inner = inner * scale * scale[:, None]
    size, told = len(inner), torch.zeros_like(inner)
    for own in torch.split(torch.arange(size), list(columns)):
        mask = torch.ones(size, dtype=torch.bool)
        mask[own] = False
        others = torch.nonzero(mask)[:, 0]
        known = inner[others][:, others]
        known += RIDGE * known.diagonal().mean() * torch.eye(len(others), dtype=torch.float64)
        told[others[:, None], own] = torch.linalg.solve(known, inner[others][:, own])
    found = torch.linalg.eigh(told.T @ inner @ told).eigenvectors.flip(1)[:, :dims]
    axes: Tensor = scale[:, None] * (told @ found)
    return axes


def _linear_guess(components: Tensor, labels: Sequence[tuple[Array, int]], scale: float) -> Tensor:
    """Ridge regression on the indicator of every private value but the first."""
    rows, columns = components.double(), []
    inner = rows.T @ rows
    inner += GUESS_RIDGE * inner.diagonal().mean() * torch.eye(len(inner), dtype=torch.float64)
    for truth, classes in labels:
        for value in range(1, classes):
            wanted = torch.as_tensor((truth == value).astype(np.float64))
            columns.append(torch.linalg.solve(inner, rows.T @ (wanted - wanted.mean())))
    return (scale * torch.stack(columns, 1)).float()


def grouped(rows: Tensor, groups: int, seed: int) -> Tensor:
    """Groups of similar rows by Lloyd's iteration, from rows drawn at random; a group that loses
    all its rows starts again at the row that is farthest from its own."""
    generator = torch.Generator().manual_seed(seed)
    rows = rows.double()
    centres = rows[torch.randperm(len(rows), generator=generator)[:groups]]
    group = torch.zeros(len(rows), dtype=torch.int64)
    for _ in range(ROUNDS):
        near = [torch.cdist(part, centres).min(1) for part in torch.split(rows, CHUNK)]
        group = torch.cat([one.indices for one in near])
        apart = torch.cat([one.values for one in near])
        empty = torch.nonzero(torch.bincount(group, minlength=groups) == 0)[:, 0]
        far = torch.argsort(apart, descending=True, stable=True)[: len(empty)]
        group[far] = empty[: len(far)]
        centres = _means(rows, group, groups).double()
    return group


def _means(rows: Tensor, group: Tensor, groups: int) -> Tensor:
    """The mean row of every group; zeros for one without rows."""
    count = torch.bincount(group, minlength=groups).clamp(min=1)
    total = torch.zeros(groups, rows.shape[1], dtype=torch.float64)
    return (total.index_add_(0, group, rows.double()) / count.unsqueeze(1)).float()


def _class_shares(cell: Array, cells: int, labels: Sequence[tuple[Array, int]]) -> list[Array]:
    """Per private attribute, the share of each value's records that is in each cell, (values that
    occur, cells)."""
    tables = []
    for truth, classes in labels:
        counts = np.stack([np.bincount(cell[truth == a], minlength=cells) for a in range(classes)])
        counts = counts[counts.sum(1) > 0]
        tables.append(counts / counts.sum(1, keepdims=True))
    return tables


def transport(cost: Array, mass: Array, shares: Sequence[Array], price: float) -> Array:
    """The donor of every cell: the linear program at the top, each cell to its likeliest donor.

    Parameters:
        cost: Squared distance of each cell from each donor, (cells, donors).
        mass: Share of all records in each cell.
        shares: Per attribute (values, cells): share of each value's records in each cell.
        price: Of an adversary's success, summed over the attributes.

    >>> cost = np.array([[0.0, 1.0], [1.0, 0.0]])  # in each of two cells lives one value
    >>> half, apart = np.array([0.5, 0.5]), [np.eye(2)]
    >>> transport(cost, half, apart, 0.1), len(set(transport(cost, half, apart, 10.0)))
    (array([0, 1]), 1)
    """
    cells, donors = cost.shape
    near = np.argsort(cost, 1, kind="stable")[:, : min(NEAREST, donors)]
    width = near.shape[1]
    count = cells * width
    cell, donor = np.repeat(np.arange(cells), width), near.ravel()
    objective = [(mass[:, None] * np.take_along_axis(cost, near, 1)).ravel()]
    rows, columns, values, row = [], [], [], 0
    for place, table in enumerate(shares):
        objective.append(np.full(donors, price / len(table)))
        highest = count + place * donors
        for share in table:
            rows += [row + donor, row + np.arange(donors)]
            columns += [np.arange(count), highest + np.arange(donors)]
            values += [share[cell], np.full(donors, -1.0)]
            row += donors
    total = count + len(shares) * donors
    upper = coo_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), (row, total)
    ).tocsr()
    once = coo_array((np.ones(count), (cell, np.arange(count))), (cells, total)).tocsr()
    found = linprog(
        np.concatenate(objective), upper, np.zeros(row), once, np.ones(cells), method="highs"
    )
    if found.x is None:
        raise PrivetError(f"The donors could not be assigned ({found.message}); try fewer.")
    likeliest = found.x[:count].reshape(cells, width).argmax(1)
    chosen: Array = np.take_along_axis(near, likeliest[:, None], 1)[:, 0]
    return chosen
