"""Multi-layer perceptrons of several depths, widths, rates and decays, on standardised and on
whitened vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar, NamedTuple

from torch import Tensor

from privet.adversaries.adversary import Adversary, Tick, Trained, silent, span
from privet.adversaries.released import Released
from privet.adversaries.stacked_mlps import Member, Target, TrainedStack, train_stack
from privet.adversaries.whitening import Transform, unchanged, whitening
from privet.data.dataset import Array, Attribute
from privet.nets.convolutions import scaled

# Longer vectors are not whitened: the map would have more entries than there are records to learn
# it from.
LONGEST_WHITENED = 2048
# Most numbers that one layer of a stack gives for a batch, when many attributes are attacked at
# once.
LAYER_NUMBERS = 2**24


@dataclass(frozen=True)
class TrainedMLP:
    """A perceptron that has learned.

    Parameters:
        stack: A stack of it alone.
        transform: What it looks at, of standardised vectors.
    """

    stack: TrainedStack
    transform: Transform

    def answers(self, released: Released) -> Array:
        return self.stack.answers(self.transform(released.vectors()))[0]


class _Way(NamedTuple):
    """What the members of one stack share: vectors to learn from and to be judged on, a shape."""

    transform: Transform
    draw: Callable[[], Tensor]
    select: Tensor
    hidden: tuple[int, ...]
    dropout: float


class _Try(NamedTuple):
    """A member that has learned, and how well it ranks the *select* people."""

    score: float
    way: _Way
    member: Member
    stack: TrainedStack
    place: int

    def trained(self) -> TrainedMLP:
        return TrainedMLP(self.stack.member(self.place), self.way.transform)


@dataclass(frozen=True, kw_only=True)
class MLP(Adversary):
    """One stack for every shape and way to look; the member that ranks the *select* people best, of
    all stacks, is kept.

    All members learn along a short cycle of the rate, and the best of them along a whole one as
    well. Both count: what is easily learned by heart is read better by those that stop early. This
    is successive halving with one halving, after Jamieson and Talwalkar, Non-stochastic best arm
    identification and hyperparameter optimization, AISTATS 2016.

    Parameters:
        shapes: Widths of the hidden layers to try; () is logistic regression.
        rates: Learning rates to try. They are wide apart: what is plain is learned best slowly, and
            an exclusive or among noise is found only by the fast ones.
        decays: Weight decays to try.
        dropouts: Shares of units left out in training to try.
        whites: Whether to look at whitened vectors (True) or at standardised ones (False).
        epochs: Passes over the records.
        least: Fewest steps: with few records there are more epochs, so that an attacker is never
            weak for want of time.
        short: Length of the short cycle, relative to a whole one.
        finalists: Members that learn along a whole cycle; where there are no more than these,
            nobody runs the short one.
        batch: Records in a batch.
        width: Factor on layer sizes.
    """

    shapes: tuple[tuple[int, ...], ...] = ((128,), (256, 256), (256, 128, 64))
    rates: tuple[float, ...] = (1e-3, 3e-3, 1e-2, 3e-2)
    decays: tuple[float, ...] = (1e-2, 1.0)
    dropouts: tuple[float, ...] = (0.2,)
    whites: tuple[bool, ...] = (False, True)
    epochs: int = 20
    least: int = 400
    short: float = 0.15
    finalists: int = 4
    batch: int = 256
    width: float = 1.0
    name: ClassVar[str] = "mlp"
    title: ClassVar[str] = "multi-layer perceptrons"

    def attack(
        self,
        seen: Released,
        select: Released,
        attribute: Attribute,
        seed: int = 0,
        tick: Tick = silent,
    ) -> TrainedMLP:
        ways = self._ways(seen, select)
        settings = [Member(0, *pair, seed) for pair in product(self.rates, self.decays)]
        targets = _targets(seen, select, [attribute])

        def learn(entrants: Sequence[tuple[_Way, Member]], share: float, tick: Tick) -> list[_Try]:
            """Along so much of a cycle; members of one way are a stack."""
            tries: list[_Try] = []
            for way in ways:
                if members := [member for its_way, member in entrants if its_way is way]:
                    ends = (len(tries), len(tries) + len(members))
                    part = span(tick, *(end / len(entrants) for end in ends))
                    tries += self._train(way, targets, members, share, seed, part)
            return tries

        entrants, tries, first = list(product(ways, settings)), [], 0.0
        if len(entrants) > self.finalists:
            first = self.short * len(entrants) / (self.short * len(entrants) + self.finalists)
            tries = learn(entrants, self.short, span(tick, 0, first))
            best = sorted(tries, key=lambda one: -one.score)[: self.finalists]
            entrants = [(one.way, one.member) for one in best]
        tries += learn(entrants, 1.0, span(tick, first, 1))
        return max(tries, key=lambda one: one.score).trained()

    def _ways(self, seen: Released, select: Released) -> list[_Way]:
        """Every shape and dropout on every kind of vector."""
        x = seen.vectors()
        # One number whitened is the number standardised.
        whites = self.whites if 1 < x.shape[1] <= LONGEST_WHITENED else (False,)
        inputs = [
            (transform, _draw(seen, transform), transform(select.vectors()))
            for transform in [whitening(x) if white else unchanged for white in whites]
        ]
        shapes = [tuple(scaled(size, self.width) for size in shape) for shape in self.shapes]
        ways = product(inputs, shapes, self.dropouts)
        return [_Way(*vectors, hidden, dropout) for vectors, hidden, dropout in ways]

    def _train(
        self,
        way: _Way,
        targets: Sequence[Target],
        members: Sequence[Member],
        share: float,
        seed: int,
        tick: Tick,
    ) -> list[_Try]:
        """Members of one stack, along so much of a cycle."""
        stack, scores = train_stack(
            way.draw,
            targets,
            way.select,
            members,
            hidden=way.hidden,
            dropout=way.dropout,
            epochs=math.ceil(share * self.epochs),
            least=math.ceil(share * self.least),
            batch=self.batch,
            seed=seed,
            tick=tick,
        )
        return [_Try(score, way, members[k], stack, k) for k, score in enumerate(scores)]


def attack_all(
    adversary: MLP,
    seen: Released,
    select: Released,
    attributes: Sequence[Attribute],
    seed: int = 0,
    tick: Tick = silent,
) -> dict[str, Trained]:
    """Every attribute at once, for those that nobody named: of the adversary's settings the first
    shape, the middle rates; the rate that is better of each along the short cycle goes on to the
    whole one."""
    first = {name: getattr(adversary, name)[:1] for name in ("shapes", "dropouts", "whites")}
    (way,) = replace(adversary, **first)._ways(seen, select)
    rates = sorted(adversary.rates)[len(adversary.rates) // 4 :][:2]
    shares = (adversary.short, 1.0) if len(rates) > 1 else (1.0,)
    trained: dict[str, Trained] = {}
    for group in _groups(attributes, len(rates) * adversary.batch, max(way.hidden, default=1)):
        targets, best = _targets(seen, select, group), dict[int, _Try]()
        pairs = product(range(len(group)), rates)
        members = [Member(target, rate, adversary.decays[0], seed) for target, rate in pairs]
        for k, share in enumerate(shares):
            ends = ((len(trained) + len(group) * (k + j) / len(shares)) for j in (0, 1))
            part = span(tick, *(end / len(attributes) for end in ends))
            for one in adversary._train(way, targets, members, share, seed, part):
                place = one.member.target
                best[place] = max(best.get(place, one), one, key=lambda one: one.score)
            members = [best[target].member for target in range(len(group))]
        trained |= {attribute.name: best[k].trained() for k, attribute in enumerate(group)}
    return trained


def _targets(seen: Released, select: Released, attributes: Sequence[Attribute]) -> list[Target]:
    return [Target(seen.labels(a.name), a.classes, select.labels(a.name)) for a in attributes]


def _groups(attributes: Sequence[Attribute], each: int, widest: int) -> Iterator[list[Attribute]]:
    """Attributes for one stack each, the ones with few classes first: outputs are as many as the
    largest of a stack has, for all of it."""
    group: list[Attribute] = []
    for attribute in sorted(attributes, key=lambda one: one.classes):
        many = bool(group) and attribute.classes > 2 * max(8, group[0].classes)
        numbers = (len(group) + 1) * each * max(widest, attribute.classes)
        if group and (many or numbers > LAYER_NUMBERS):
            yield group
            group = []
        group.append(attribute)
    if group:
        yield group


def _draw(seen: Released, transform: Transform) -> Callable[[], Tensor]:
    """Vectors of an epoch; computed once where every pass would show the same."""
    if seen.fresh_noise:
        return lambda: transform(seen.vectors())
    x = transform(seen.vectors())
    return lambda: x
