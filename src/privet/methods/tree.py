"""Tree: the leaf of a small decision tree, released as a symbol whose bound can be proved.

    leaf(x)  of a tree grown for   (1 - gamma) gini(task)  +  gamma (1 - gini(private))
    s(x)     symbol of the leaf: leaves are merged until the best adversary is where it may be
    z        s(x) with probability 1 - flip, else uniform on 1 .. K;   flip is mostly 0

The tree and its criterion: Jovanovic, Balunovic, Dimitrov and Vechev, FARE: Provably fair
representation learning with practical certificates, ICML 2023. Written from the paper. What is
ours: private values count equally in the criterion, since what is bounded is balanced accuracy;
leaves are merged (tree_merging.py; merge=false leaves that out); gamma, the number of leaves and
the merging are those that serve the tasks best on people of *attack* and *select* within the
target; and the certificate is that of symbols (evidence/certificate/symbols.py), which uses all
people for every leaf where FARE's splits them in three parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from privet.core.errors import PrivetError
from privet.core.progress import bar, console
from privet.data.dataset import Array, Attribute
from privet.evidence.certificate.sampling import balanced_slack
from privet.evidence.certificate.symbols import smallest_flip
from privet.methods.known_groups import people_per_value
from privet.methods.method import Method, Problem, at_least, ranges_of, refuse_blind_target
from privet.methods.tree_growing import Shares, Split, grow, leaf_of, paths
from privet.methods.tree_merging import merges, success
from privet.nets.tree import TreeSymbols, tree_symbols
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.game import Run

# The parts whose people the tree is chosen on.
HELD_OUT = ("attack", "select")
# Weights of the private attribute that are tried where none is asked for.
GAMMAS = (0.0, 0.3, 0.5, 0.7, 0.85, 0.95)
# Numbers of leaves that are tried, up to the setting `leaves`.
SIZES = (2, 4, 8, 16, 32, 64, 128, 256)
# How far below what is allowed merging goes on, on the people of *fit*.
FURTHER = 0.03
# Counts added to every answer of a symbol, before its logarithm is taken.
PRIOR = 0.5


@dataclass(kw_only=True)
class Tree(Method):
    """The leaf of a small decision tree, one symbol per record, aimed at a certified bound.

    The tree's splits separate the values of a task and keep the private values mixed. It is fitted
    in seconds, and is a list of comparisons that a person can read. Leaves that tell the private
    attribute are merged until the target is met; only where that does not suffice is a symbol
    replaced at random now and then.

    Parameters:
        target: Balanced accuracy that no adversary shall exceed by the certificate.
        gamma: Weight of the private attribute in a split, from 0 to 1; negative tries several.
        leaves: Most leaves of the tree.
        fewest: Records of *fit* that a leaf has at least.
        merge: Whether leaves are merged into symbols; false is the published tree.
        flip: Share of symbols that are drawn at random where no share is predicted to meet the
            target.
        margin: Part of the allowance kept back, because the people of *test* are others than those
            it is chosen on.
        confidence: Probability with which the certificate shall hold.

    Example:
        >>> import privet, numpy as np
        >>> random = np.random.default_rng(0)
        >>> u, y = random.integers(0, 2, (2, 8000))
        >>> rows = {"a": u + random.normal(size=8000), "b": y + random.normal(size=8000)}
        >>> method = privet.Tree(target=0.56, leaves=8)
        >>> release = method.fit({**rows, "u": u, "y": y}, "u", "y", run=privet.Run(progress=False))
        >>> release.card["chosen"]["met"]
        True

    Notes:
        A release is one of a few symbols: it serves the tasks named, and little else. The bound is
        proved by `privet.certify`. With flip 0, releasing a record again adds nothing.
    """

    target: float = 0.58
    gamma: float = -1.0
    leaves: int = 64
    fewest: int = 20
    merge: bool = True
    flip: float = 0.5
    margin: float = 0.003
    confidence: float = 0.99

    name = "tree"
    title = "Tree"
    tasks = "needed"
    modalities = ("table",)
    instead = "its splits are on a table's columns; use hedge or codebook"
    dial = "target"
    sweep = (0.60, 0.58, 0.56, 0.54, 0.52)
    ranges = ranges_of(
        target=(0, 1),
        gamma=(-1, 1),
        leaves=(2, 256),
        fewest=at_least(1),
        flip=(0, 1),
        confidence=(0, 1),
    )

    def accept(self, problem: Problem) -> Problem:
        refuse_blind_target(self.target, problem.private)
        return problem

    def learn(self, problem: Problem, run: Run) -> Release:
        fit, others = _Leaves(problem), _Leaves(problem, *HELD_OUT)
        gammas = GAMMAS if self.gamma < 0 else (self.gamma,)
        best: _Choice | None = None
        with bar("growing trees", len(gammas), run.progress) as tick:
            for done, gamma in enumerate(gammas, start=1):
                splits = self._grown(fit, gamma)
                for choice in self._choices(problem, fit, others, splits, gamma):
                    best = choice if best is None or choice.loss < best.loss else best
                tick(done, f"gamma {gamma:g}: {len(splits) + 1} leaves")
        if best is None:
            raise PrivetError(
                "No column of this table divides its records into two parts that are large enough:"
                " set fewest lower, or add records."
            )
        flips = self._flips(problem, others, best)
        met = None not in flips.values()
        flip = float(max((one for one in flips.values() if one is not None), default=self.flip))
        flip = flip if met else max(flip, self.flip)
        if run.progress and not met:
            console.print(
                f"No tree is predicted to meet {self.target:g}, judged on other people: add "
                "people, or aim higher."
            )
        chosen = {
            "target": self.target,
            "met": met,
            "flip": flips,
            "gamma": best.gamma,
            "leaves": len(best.splits) + 1,
            "symbols": best.symbols,
            "on": list(HELD_OUT),
        }
        settings: dict[str, Any] = {
            "leaves": len(best.splits) + 1,
            "symbols": best.symbols,
            "flip": flip,
        }
        module = tree_symbols(problem.schema, **settings)
        _fill(module.body, best)  # type: ignore[arg-type]
        noise = Noise("uniform", (2,), flip)
        return Release(problem.schema, ("tree", settings), module, noise, {"chosen": chosen})

    def _grown(self, fit: _Leaves, gamma: float) -> list[Split]:
        fewest = max(1, min(self.fewest, len(fit.x) // 8))
        return grow(fit.x, fit.shares, gamma, self.leaves, fewest)

    def _choices(
        self, problem: Problem, fit: _Leaves, others: _Leaves, splits: list[Split], gamma: float
    ) -> Iterator[_Choice]:
        """Every size of a tree and every stage of merging, with what the tasks lose on others."""
        allowed = [self._allowed(problem, attribute) for attribute in problem.private]
        sizes = {min(size, self.leaves, len(splits) + 1) for size in SIZES}
        for size in sorted(sizes - {1}):
            first = splits[: size - 1]
            here, there = fit.tables(first), others.tables(first)
            stages = (
                merges(*here, allowed, FURTHER) if self.merge else [np.arange(size, dtype=np.int64)]
            )
            for symbol in stages:
                mine, theirs = (_merged(tables, symbol) for tables in (here, there))
                flip = max(
                    _least_flip(float(success(table)), limit, 1 / table.shape[1])
                    for table, limit in zip(theirs[0], allowed, strict=True)
                )
                loss = _loss(mine[1], theirs[1], flip, len(fit.x))
                yield _Choice(loss, first, symbol, gamma, int(symbol.max()) + 1)

    def _allowed(self, problem: Problem, attribute: Attribute) -> float:
        """Success that the target leaves on a sample, after the slack of the people of *test*."""
        people = people_per_value(problem.data.part("test"), attribute)
        slack = balanced_slack(people, 1 - self.confidence) if people else 0.0
        return max(self.target - slack - self.margin, 1 / attribute.classes + 0.002)

    def _flips(self, problem: Problem, others: _Leaves, choice: _Choice) -> dict[str, float | None]:
        """The least share replaced at random that is predicted to certify each attribute."""
        symbols = choice.symbol[leaf_of(others.x, choice.splits)]
        flips: dict[str, float | None] = {}
        for attribute in problem.private:
            labels = others.labels[attribute.name]
            flips[attribute.name] = smallest_flip(
                symbols[labels >= 0],
                choice.symbols,
                labels[labels >= 0],
                others.people[labels >= 0],
                attribute.values,
                self.target,
                people=people_per_value(problem.data.part("test"), attribute),
                confidence=self.confidence,
                margin=self.margin,
            )
        return flips


class _Choice(NamedTuple):
    """One tree with its symbols.

    Parameters:
        loss: Of the tasks on other people, in nats, after the replacing that the target takes.
        splits: The tree.
        symbol: The symbol of each leaf.
        gamma: Weight of the private attribute that it was grown with.
        symbols: How many there are.
    """

    loss: float
    splits: Sequence[Split]
    symbol: Array
    gamma: float
    symbols: int


class _Leaves:
    """Records of some parts, encoded, and what each counts."""

    def __init__(self, problem: Problem, *parts: str) -> None:
        view = problem.view(*parts)
        self.x = np.asarray(problem.schema.inputs(view)[:], dtype=np.float32)
        self.labels, self.people = view.labels, view.people
        self.private = [
            Shares.of(view.labels[a.name], a.classes, private=True) for a in problem.private
        ]
        self.tasks = [
            Shares.of(view.labels[a.name], a.classes, private=False) for a in problem.utility
        ]
        self.shares = [*self.private, *self.tasks]

    def tables(self, splits: Sequence[Split]) -> tuple[list[Array], list[Array]]:
        """Per private attribute, and per task, the mass (leaves, classes) in every leaf."""
        leaf = leaf_of(self.x, splits)

        def table(shares: Shares) -> Array:
            columns = [np.bincount(leaf, w, minlength=len(splits) + 1) for w in shares.weights.T]
            mass = np.stack(columns, 1)
            return mass / np.maximum(mass.sum(0), 1e-300) if shares.private else mass

        return [table(one) for one in self.private], [table(one) for one in self.tasks]


def _merged(
    tables: tuple[list[Array], list[Array]], symbol: Array
) -> tuple[list[Array], list[Array]]:
    """Tables of leaves as tables of symbols."""
    to = np.eye(int(symbol.max()) + 1)[symbol].T
    return [to @ table for table in tables[0]], [to @ table for table in tables[1]]


def _least_flip(value: float, allowed: float, blind: float) -> float:
    return max(0.0, 1 - (allowed - blind) / (value - blind)) if value > allowed else 0.0


def _loss(mine: Sequence[Array], theirs: Sequence[Array], flip: float, records: int) -> float:
    """Cross-entropy of other people's task values, answered by the frequencies of those learned
    from at every released symbol."""
    total = 0.0
    for known, asked in zip(mine, theirs, strict=True):
        released = [(1 - flip) * table + flip * table.mean(0) for table in (known, asked)]
        odds = released[0] * records + PRIOR
        total -= float((released[1] * np.log(odds / odds.sum(1, keepdims=True))).sum())
    return total / len(mine)


def _fill(body: TreeSymbols, choice: _Choice) -> None:
    """Write the tree into its network."""
    values: dict[str, Any] = {
        "feature": np.array([split.feature for split in choice.splits], dtype=np.int64),
        "threshold": np.array([split.threshold for split in choice.splits], dtype=np.float32),
        "paths": paths(choice.splits),
        "symbol_of": np.eye(choice.symbols, dtype=np.float32)[choice.symbol],
    }
    body.load_state_dict({name: torch.as_tensor(value) for name, value in values.items()})
