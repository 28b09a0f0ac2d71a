"""Multi-layer perceptrons of several depths, widths, rates and decays, on standardised and on whitened vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

from torch import Tensor

from privet.adversaries.adversary import Adversary, Tick, Trained, silent
from privet.adversaries.released import Released
from privet.adversaries.stack import Member, TrainedStack, train_stack
from privet.adversaries.white import as_they_are, whitening
from privet.data.dataset import Array, Attribute
from privet.nets.convolutions import scaled

WIDEST = 2048
"""Longer vectors are not whitened: the map would have more entries than there are records to learn it from."""
ROOM = 2**24
"""Most numbers that one layer of a stack gives for a batch, when many attributes are attacked at once."""

Turn = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class TrainedMLP:
    stack: TrainedStack
    """Of one member."""
    turn: Turn

    def answers(self, released: Released) -> Array:
        return self.stack.answers(0, self.turn(released.vectors()))


@dataclass(frozen=True, kw_only=True)
class MLP(Adversary):
    """One stack for every shape; the member that ranks the *select* people best, of all stacks, is kept."""

    shapes: tuple[tuple[int, ...], ...] = ((128,), (256, 256), (256, 128, 64))
    """Widths of the hidden layers; () is logistic regression."""
    rates: tuple[float, ...] = (1e-3, 3e-3, 1e-2, 3e-2)
    """Wide apart: what is plain is learned best slowly, and an exclusive or among noise is found only by the fast ones."""
    decays: tuple[float, ...] = (1e-2, 1.0)
    dropouts: tuple[float, ...] = (0.2,)
    whites: tuple[bool, ...] = (False, True)
    """Whether to look at vectors whose directions vary alike (True), or as they are (False)."""
    epochs: int = 20
    least: int = 400
    """Fewest steps: with few records there are more epochs, so that an attacker is never weak for want of time."""
    batch: int = 256
    width: float = 1.0
    """Factor on layer sizes."""
    name: ClassVar[str] = "mlp"
    title: ClassVar[str] = "multi-layer perceptrons"

    def attack(self, seen: Released, select: Released, attribute: Attribute, seed: int = 0, tick: Tick = silent) -> TrainedMLP:
        ways = [self._hidden(shape) for shape in self.shapes], self.dropouts
        turns = self._turns(seen)
        total = len(turns) * len(self.shapes) * len(self.dropouts)
        members = [Member(0, rate, decay, seed) for rate, decay in product(self.rates, self.decays)]
        tries: list[tuple[float, TrainedMLP]] = []
        for turn in turns:
            draw, judged = _draw(seen, turn), turn(select.vectors())
            for hidden, dropout in product(*ways):
                stack, scores = train_stack(
                    draw,
                    [seen.labels(attribute.name)],
                    [attribute.classes],
                    judged,
                    [select.labels(attribute.name)],
                    members,
                    hidden=hidden,
                    dropout=dropout,
                    epochs=self.epochs,
                    least=self.least,
                    batch=self.batch,
                    seed=seed,
                    tick=_part(tick, len(tries), total),
                )
                best = max(range(len(members)), key=scores.__getitem__)
                tries.append((scores[best], TrainedMLP(stack.only(best), turn)))
        return max(tries, key=lambda result: result[0])[1]

    def _hidden(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(scaled(size, self.width) for size in shape)

    def _turns(self, seen: Released) -> list[Turn]:
        x = seen.vectors()
        whites = self.whites if x.shape[1] <= WIDEST else (False,)
        return [whitening(x) if white else as_they_are for white in whites]


def attack_all(
    adversary: MLP, seen: Released, select: Released, attributes: Sequence[Attribute], seed: int = 0, tick: Tick = silent
) -> dict[str, Trained]:
    """Every attribute at once, for those that nobody named: of the adversary's settings the first shape, the middle rates."""
    hidden = adversary._hidden(adversary.shapes[0])
    rates = sorted(adversary.rates)[len(adversary.rates) // 4 :][:2]
    turn = adversary._turns(seen)[0]
    draw, judged = _draw(seen, turn), turn(select.vectors())
    found: dict[str, Trained] = {}
    for some in _groups(attributes, len(rates) * adversary.batch, max(hidden, default=1)):
        members = [Member(target, rate, adversary.decays[0], seed) for target in range(len(some)) for rate in rates]
        stack, scores = train_stack(
            draw,
            [seen.labels(attribute.name) for attribute in some],
            [attribute.classes for attribute in some],
            judged,
            [select.labels(attribute.name) for attribute in some],
            members,
            hidden=hidden,
            dropout=adversary.dropouts[0],
            epochs=adversary.epochs,
            least=adversary.least,
            batch=adversary.batch,
            seed=seed,
            tick=_part(tick, len(found), len(attributes), len(some)),
        )
        for target, attribute in enumerate(some):
            best = max((k for k, member in enumerate(members) if member.target == target), key=scores.__getitem__)
            found[attribute.name] = TrainedMLP(stack.only(best), turn)
    return found


def _groups(attributes: Sequence[Attribute], each: int, widest: int) -> Iterator[list[Attribute]]:
    """Attributes for one stack each, the ones with few classes first: outputs are as many as the largest of a stack has."""
    group: list[Attribute] = []
    for attribute in sorted(attributes, key=lambda one: one.classes):
        if group and (len(group) + 1) * each * max(widest, attribute.classes) > ROOM:
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


def _part(tick: Tick, done: int, total: int, size: int = 1) -> Tick:
    return lambda share: tick((done + size * share) / total)
