"""Multi-layer perceptrons of several depths, widths, rates and decays, on standardised and on
whitened vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, NamedTuple

from torch import Tensor

from privet.adversaries.adversary import Adversary, Tick, Trained, silent
from privet.adversaries.released import Released
from privet.adversaries.stacked_mlps import Member, TrainedStack, train_stack
from privet.adversaries.whitening import as_they_are, whitening
from privet.data.dataset import Array, Attribute
from privet.nets.convolutions import scaled

WIDEST = 2048
"""Longer vectors are not whitened: the map would have more entries than there are records to learn
it from."""
ROOM = 2**24
"""Most numbers that one layer of a stack gives for a batch, when many attributes are attacked at
once."""

Turn = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class TrainedMLP:
    stack: TrainedStack
    """Of one member."""
    turn: Turn

    def answers(self, released: Released) -> Array:
        return self.stack.answers(0, self.turn(released.vectors()))


class _Try(NamedTuple):
    """A member that has learned, and how well it ranks the *select* people."""

    score: float
    way: int
    member: Member
    stack: TrainedStack
    place: int
    """In the stack."""


@dataclass(frozen=True, kw_only=True)
class MLP(Adversary):
    """One stack for every shape and way to look; the member that ranks the *select* people best, of
    all stacks, is kept.

    All members learn along a short cycle of the rate, and the best of them along a whole one as
    well. Both count: what is easily learned by heart is read better by those that stop early. This
    is successive halving with one halving, after Jamieson and Talwalkar, Non-stochastic best arm
    identification and hyperparameter optimization, AISTATS 2016.
    """

    shapes: tuple[tuple[int, ...], ...] = ((128,), (256, 256), (256, 128, 64))
    """Widths of the hidden layers; () is logistic regression."""
    rates: tuple[float, ...] = (1e-3, 3e-3, 1e-2, 3e-2)
    """Wide apart: what is plain is learned best slowly, and an exclusive or among noise is found
    only by the fast ones."""
    decays: tuple[float, ...] = (1e-2, 1.0)
    dropouts: tuple[float, ...] = (0.2,)
    whites: tuple[bool, ...] = (False, True)
    """Whether to look at vectors whose directions vary alike (True), or as they are (False)."""
    epochs: int = 20
    least: int = 400
    """Fewest steps: with few records there are more epochs, so that an attacker is never weak for
    want of time."""
    short: float = 0.15
    """Length of the short cycle, next to a whole one."""
    finalists: int = 4
    """Members that learn along a whole cycle; where there are no more than these, nobody runs the
    short one."""
    batch: int = 256
    width: float = 1.0
    """Factor on layer sizes."""
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
        looks = [(turn, _draw(seen, turn), turn(select.vectors())) for turn in self._turns(seen)]
        ways = list(product(looks, [self._hidden(shape) for shape in self.shapes], self.dropouts))
        settings = [
            Member(0, rate, decay, seed) for rate, decay in product(self.rates, self.decays)
        ]
        known, truth = seen.labels(attribute.name), select.labels(attribute.name)

        def learn(entrants: Sequence[tuple[int, Member]], share: float, tick: Tick) -> list[_Try]:
            """Along so much of a cycle; members of one way are a stack."""
            tries: list[_Try] = []
            for way in sorted({way for way, _ in entrants}):
                members = [member for own, member in entrants if own == way]
                (_, draw, judged), hidden, dropout = ways[way]
                stack, scores = train_stack(
                    draw,
                    [known],
                    [attribute.classes],
                    judged,
                    [truth],
                    members,
                    hidden=hidden,
                    dropout=dropout,
                    epochs=math.ceil(share * self.epochs),
                    least=math.ceil(share * self.least),
                    batch=self.batch,
                    seed=seed,
                    tick=_part(tick, len(tries), len(entrants), len(members)),
                )
                tries += [_Try(score, way, members[k], stack, k) for k, score in enumerate(scores)]
            return tries

        entrants, tries, first = list(product(range(len(ways)), settings)), [], 0.0
        if len(entrants) > self.finalists:
            first = self.short * len(entrants) / (self.short * len(entrants) + self.finalists)
            tries = learn(entrants, self.short, lambda share: tick(first * share))
            best = sorted(tries, key=lambda one: -one.score)[: self.finalists]
            entrants = [(one.way, one.member) for one in best]
        tries += learn(entrants, 1.0, lambda share: tick(first + (1 - first) * share))
        kept = max(tries, key=lambda one: one.score)
        return TrainedMLP(kept.stack.only(kept.place), ways[kept.way][0][0])

    def _hidden(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(scaled(size, self.width) for size in shape)

    def _turns(self, seen: Released) -> list[Turn]:
        x = seen.vectors()
        whites = self.whites if x.shape[1] <= WIDEST else (False,)
        return [whitening(x) if white else as_they_are for white in whites]


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
    hidden = adversary._hidden(adversary.shapes[0])
    rates = sorted(adversary.rates)[len(adversary.rates) // 4 :][:2]
    turn = adversary._turns(seen)[0]
    draw, judged = _draw(seen, turn), turn(select.vectors())
    found: dict[str, Trained] = {}
    for some in _groups(attributes, len(rates) * adversary.batch, max(hidden, default=1)):
        best: dict[int, _Try] = {}
        members = [
            Member(target, rate, adversary.decays[0], seed)
            for target in range(len(some))
            for rate in rates
        ]
        rounds = (adversary.short, 1.0) if len(rates) > 1 else (1.0,)
        for done, share in enumerate(rounds):
            stack, scores = train_stack(
                draw,
                [seen.labels(attribute.name) for attribute in some],
                [attribute.classes for attribute in some],
                judged,
                [select.labels(attribute.name) for attribute in some],
                members,
                hidden=hidden,
                dropout=adversary.dropouts[0],
                epochs=math.ceil(share * adversary.epochs),
                least=math.ceil(share * adversary.least),
                batch=adversary.batch,
                seed=seed,
                tick=_part(
                    tick,
                    len(found) + len(some) * done / len(rounds),
                    len(attributes),
                    len(some) / len(rounds),
                ),
            )
            for place, (member, score) in enumerate(zip(members, scores, strict=True)):
                if member.target not in best or score > best[member.target].score:
                    best[member.target] = _Try(score, 0, member, stack, place)
            members = [best[target].member for target in range(len(some))]
        found |= {
            attribute.name: TrainedMLP(best[k].stack.only(best[k].place), turn)
            for k, attribute in enumerate(some)
        }
    return found


def _groups(attributes: Sequence[Attribute], each: int, widest: int) -> Iterator[list[Attribute]]:
    """Attributes for one stack each, the ones with few classes first: outputs are as many as the
    largest of a stack has, for all of it."""
    group: list[Attribute] = []
    for attribute in sorted(attributes, key=lambda one: one.classes):
        many = attribute.classes > 2 * max(8, group[0].classes) if group else False
        if group and (many or (len(group) + 1) * each * max(widest, attribute.classes) > ROOM):
            yield group
            group = []
        group.append(attribute)
    if group:
        yield group


def _draw(seen: Released, turn: Turn) -> Callable[[], Tensor]:
    """Vectors of an epoch; turned once where every pass would show the same."""
    if seen.fresh:
        return lambda: turn(seen.vectors())
    x = turn(seen.vectors())
    return lambda: x


def _part(tick: Tick, done: float, total: int, size: float = 1.0) -> Tick:
    return lambda share: tick((done + size * share) / total)
