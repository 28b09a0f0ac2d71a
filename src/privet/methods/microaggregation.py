"""Microaggregation: everybody's row becomes the mean row of at least k people.

    z(x) = the nearest of m_1 ... m_G to x
    m_g = mean of the rows of group g of *fit*,  k people or more in each

Domingo-Ferrer and Mateo-Sanz, "Practical data-oriented microaggregation for statistical disclosure
control", IEEE TKDE 2002. Their MDAV takes time that grows with the square of the people. Groups are
made here as in Mondrian (LeFevre, DeWitt and Ramakrishnan, "Mondrian multidimensional k-anonymity",
ICDE 2006), by halving at the median while both halves have k people, but across the direction in
which a group is widest (Boley, "Principal direction divisive partitioning", Data Mining and
Knowledge Discovery 1998) instead of one column.

A release has to work for one new person at a time, so it holds the means and answers with the
nearest. Someone of *fit* may be nearer to another group's mean; means that fewer than k people of
*fit* come to are therefore dropped. After that the released *fit* table is k-anonymous in all its
columns together, and every row in it is a mean of k people. That is all: groups in which everybody
has the same private value give it away, which the card counts (`alike`), and new people are
promised nothing but to get the mean of k others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from privet.core.errors import PrivetError
from privet.data.dataset import Array
from privet.methods.method import Method, Problem, at_least, ranges_of
from privet.nets.nearest import Nearest
from privet.release.release import Release
from privet.train.game import Run

# Steps of the power iteration towards the widest direction; nearly the widest is good enough.
POWER_STEPS = 20
# Records at a time.
CHUNK = 1024


@dataclass(kw_only=True)
class Microaggregation(Method):
    """Every row becomes the mean row of at least k people: a baseline for tables.

    The people of *fit* are put into groups of similar rows. A record is released as the mean of the
    group that is nearest to it.

    Parameters:
        k: People behind every released row, at least; more are more private.

    Example:
        >>> import privet
        >>> data = privet.load("toy:gaussian")
        >>> release = privet.Microaggregation(k=1000).fit(data, "u")
        >>> release.card["smallest"] >= 1000
        True

    Notes:
        The released *fit* table is k-anonymous; new people only get the mean of k others. A group
        in which everybody has the same private value gives it away: the card's `alike` counts them.
    """

    k: int = 10

    name = "microaggregation"
    title = "Microaggregation"
    modalities = ("table",)
    instead = "means of rows make sense for tables only"
    numbers = True
    dial = "k"
    sweep = (3, 10, 30, 100)
    ranges = ranges_of(k=at_least(2))

    def learn(self, problem: Problem, run: Run) -> Release:
        view = problem.view()
        _, who = np.unique(view.people, return_inverse=True)
        if who.max() + 1 < self.k:
            raise PrivetError(
                f"The setting k of microaggregation is {self.k}, and only {who.max() + 1} people "
                "are there to learn from."
            )
        rows = torch.as_tensor(problem.schema.inputs(view)[:], device=problem.device)
        people = means(rows, torch.as_tensor(who, device=problem.device))
        groups = split(people, self.k, self.seed)
        module = Nearest(rows.shape[1], int(groups.max()) + 1).to(problem.device)
        module.centroids.copy_(means(people, groups))
        nearest = prune(module, people, self.k)
        count = torch.bincount(nearest, minlength=len(module.centroids))
        group = nearest.cpu().numpy()[who]
        card: dict[str, Any] = {
            "form": "record",
            "groups": len(module.centroids),
            "smallest": int(count.min()),
            "largest": int(count.max()),
            "alike": {
                a.name: alike(view.labels[a.name], group) for a in problem.private if a.is_class
            },
        }
        return Release(
            problem.schema, ("nearest", {"groups": len(module.centroids)}), module, None, card
        )


def split(rows: Tensor, k: int, seed: int = 0) -> Tensor:
    """Groups of k to 2k - 1 rows: halved again and again across the direction in which each is
    widest. All of a level at once."""
    generator = torch.Generator().manual_seed(seed)
    group = torch.zeros(len(rows), dtype=torch.int64, device=rows.device)
    while True:
        size = torch.bincount(group)
        halved = size >= 2 * k
        if not halved.any():
            return group
        centred = rows - means(rows, group)[group]
        axis = torch.randn(len(size), rows.shape[1], generator=generator).to(rows)
        for _ in range(POWER_STEPS):
            pull = torch.zeros_like(axis).index_add_(
                0, group, centred * (centred * axis[group]).sum(1, keepdim=True)
            )
            axis = torch.nn.functional.normalize(pull, dim=1)
        along = (centred * axis[group]).sum(1)
        order = torch.argsort(along, stable=True)
        order = order[torch.argsort(group[order], stable=True)]
        start = torch.cumsum(size, 0) - size
        rank = torch.empty_like(group)
        rank[order] = torch.arange(len(rows), device=rows.device) - start[group[order]]
        upper = halved[group] & (rank >= (size // 2)[group])
        group = torch.unique(2 * group + upper, return_inverse=True)[1]


def prune(module: Nearest, rows: Tensor, k: int) -> Tensor:
    """Drop centroids until k rows or more come to each that is left, the least wanted first; gives
    the group of every row."""
    group = torch.cat([module.group(part) for part in torch.split(rows, CHUNK)])
    while True:
        count = torch.bincount(group, minlength=len(module.centroids))
        few = count < k
        if not few.any():
            return group
        # Half of them at a time: those who leave may bring others up to k.
        order = torch.argsort(torch.where(few, count, len(rows) + 1), stable=True)
        gone = torch.zeros_like(few)
        gone[order[: (int(few.sum()) + 1) // 2]] = True
        module.centroids = module.centroids[~gone]
        homeless = gone[group]
        group = (torch.cumsum(~gone, 0) - 1)[group]
        if homeless.any():
            group[homeless] = torch.cat(
                [module.group(part) for part in torch.split(rows[homeless], CHUNK)]
            )


def means(rows: Tensor, group: Tensor) -> Tensor:
    """The mean row of every group, groups being numbered from 0 without gaps."""
    count = torch.bincount(group)
    total = torch.zeros(
        len(count), rows.shape[1], dtype=torch.float64, device=rows.device
    ).index_add_(0, group, rows.double())
    return (total / count.unsqueeze(1)).to(rows.dtype)


def alike(labels: Array, group: Array) -> float:
    """The share of records whose group has one private value only, as far as it is known."""
    known = labels >= 0
    values = pd.Series(labels[known]).groupby(group[known]).transform("nunique")
    return float((values == 1).mean()) if known.any() else 0.0
