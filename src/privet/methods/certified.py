"""What the methods share that are learned for a certificate: they release a code with noise of a
known law, and aim at a bound.

    min over c, heads of  mean over tasks loss(head(z), y) [- information about x given u]  +  weight * max(0, V(z; u) - allowed)

V is the success of the best adversary of all, the certificate's own functional; `allowed` is what
the target leaves after the certificate's slack for as many people as *test* has. The penalty comes
in after a while and grows, or the code collapses to a constant. Tasks may be known (losses on z) or
not: then z is to tell which of the records *of the same private value* it came from (InfoNCE with
such negatives, van den Oord and others, 2018), which is information about x given u.

Afterwards the state that serves best among those that keep the target is kept, and the strength of
the noise, which acts after the code, is set to the smallest that meets the target: both judged on
people of *attack* and *select*, whom the code was not learned from and who are not those it is
certified on. (*select* alone is often too small to tell 54 from 55 in 100.)
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.core.errors import PrivetError
from privet.core.progress import console
from privet.data.dataset import Array, Attribute, Dataset
from privet.methods.method import Method, Problem
from privet.nets.code import Code
from privet.train.distributed import everyone, everyones
from privet.train.feed import Batch, Feed
from privet.train.game import Game, Move, Phase, Player, Run

HELD_OUT = ("attack", "select")
"""Whom states and noise are chosen on."""


@dataclass(kw_only=True)
class CertifiedMethod(Method):
    target: float = 0.58
    """No adversary above this balanced accuracy, certified: what learning aims at."""
    dims: int = 2
    """d: how many numbers the code has."""
    epochs: float = 60.0
    free: float = 0.25
    """Share of the epochs before the penalty comes in; it then grows over as many again."""
    weight: float = 20.0
    """Of the penalty on what lies above the allowance."""
    memory: int = 2048
    """Earlier records that the best adversary is found on, beside the batch."""
    margin: float = 0.003
    """Part of the allowance kept back, because the people of *test* are others than those it is
    chosen on."""
    information: float = -1.0
    """Weight of the information term; negative means 1 without a task and 0 with one."""
    weights: str = ""
    """Of the tasks, in their order and with commas, such as 2,2,1; empty for all alike."""
    width: float = 0.5
    batch: int = 256
    lr: float = 2e-3
    decay: float = 0.1
    dropout: float = 0.2
    confidence: float = 0.99

    tasks: ClassVar[Literal["none", "optional", "needed"]] = "optional"
    dial: ClassVar[str] = "target"
    sweep: ClassVar[tuple[float, ...]] = (0.60, 0.58, 0.56, 0.54, 0.52)
    strength: ClassVar[str]
    """The setting that says how strong the noise is in learning."""

    def __post_init__(self) -> None:
        if not 0 < self.target < 1:
            raise PrivetError(
                f"The target of {self.name} is a share between 0 and 1, such as 0.58, not {self.target}."
            )
        if not 0 < self.confidence < 1:
            raise PrivetError(f"A confidence lies between 0 and 1, {self.confidence} does not.")
        self.within(
            dims=(1, inf),
            epochs=(0, inf),
            width=(0.01, inf),
            batch=(8, inf),
            lr=(1e-9, inf),
            memory=(1, inf),
            weight=(0, inf),
        )

    def problem(
        self,
        data: Dataset,
        private: Sequence[str],
        utility: Sequence[str],
        without: Sequence[str],
        run: Run,
    ) -> Problem:
        self.task_weights(len(utility))
        return super().problem(data, private, utility, without, run)

    def task_weights(self, tasks: int) -> list[float]:
        """What each task counts, as shares of 1."""
        try:
            given = (
                [float(word) for word in self.weights.split(",")] if self.weights else [1.0] * tasks
            )
        except ValueError:
            given = []
        if (
            len(given) != tasks
            or not all(0 <= weight < inf for weight in given)
            or (tasks and not sum(given))
        ):
            raise PrivetError(
                f"The setting weights of {self.name} takes one number of 0 or more per task, with commas, not '{self.weights}' for {tasks}."
            )
        return [weight / sum(given) for weight in given]

    def play(self, networks: CertifiedNetworks, problem: Problem, run: Run) -> Game:
        game = Game(
            networks.modules(),
            [networks.play()],
            problem.feed(),
            self.batch,
            self.seed,
            self.identity(problem),
        )
        game.play(run)
        return game

    def allowed(self, problem: Problem, attribute: Attribute) -> float:
        """Success that the target leaves on the sample, given the slack that the people of *test*
        will cost."""
        people = people_per_value(problem.data.part("test"), attribute)
        blind = 1 / attribute.classes
        slack = (
            math.sqrt(sum(1 / n for n in people) * math.log(1 / (1 - self.confidence)) / 2)
            / max(len(people), 1)
            if people
            else 0.0
        )
        return max(self.target - slack - self.margin, blind + 0.002)

    def least_noise(self, codes: Array, problem: Problem, run: Run) -> tuple[float, dict[str, Any]]:
        """The least noise that is predicted to meet the target for every private attribute;
        learning's own where none is."""
        others = problem.view(*HELD_OUT)
        found: list[float | None] = []
        for attribute in problem.private:
            labels = others.labels[attribute.name]
            there = labels >= 0
            people = people_per_value(problem.data.part("test"), attribute)
            found.append(
                self.smallest_noise(
                    codes[there], labels[there], others.people[there], attribute, people
                )
            )
        met = [one for one in found if one is not None]
        enough = len(met) == len(found)
        if run.progress and not enough:
            console.print(
                f"No noise brings this code to {self.target:g}, judged on other people: add people, or aim higher."
            )
        said = {a.name: s for a, s in zip(problem.private, found, strict=True)}
        noise = float(max(met) if met and enough else getattr(self, self.strength))
        return noise, {
            self.strength: said,
            "target": self.target,
            "met": enough,
            "on": list(HELD_OUT),
        }

    @abstractmethod
    def smallest_noise(
        self,
        codes: Array,
        labels: Array,
        person: Array,
        attribute: Attribute,
        people: Sequence[int],
    ) -> float | None:
        """The least noise that is predicted to certify one attribute at the target on so many other
        people; None where none is."""


class CertifiedNetworks:
    """The code, the heads that read tasks from what is released, and what is remembered of earlier
    codes.

    What is released of codes, how a head's loss is taken, and what the best adversary makes of it
    are each method's own.
    """

    def __init__(
        self,
        problem: Problem,
        method: CertifiedMethod,
        code: nn.Module,
        head: Any,
        numbers: int,
        memory: nn.Module,
    ) -> None:
        """`head` makes a task's head from its number of classes; it sees `numbers`."""
        self.problem, self.method = problem, method
        self.private, self.utility = problem.private, problem.utility
        self.code = code
        self.smooth = copy.deepcopy(self.code)
        self.kept = BestState(self.code)
        self.heads = nn.ModuleList([head(task.classes) for task in self.utility])
        self.informed = (
            (0.0 if self.utility else 1.0) if method.information < 0 else method.information
        )
        self.pair = RecordMatcher(problem, method, numbers) if self.informed else nn.Identity()
        self.memory = memory
        self.allowed = [method.allowed(problem, attribute) for attribute in self.private]
        self.task_weights = method.task_weights(len(self.utility))
        self.done = 0.0
        self.pull, self.share = (
            torch.zeros((), device=problem.device),
            torch.zeros((), device=problem.device),
        )
        """Now: the weight of the penalty, and that of the latest state in the slow average."""
        self.others: Feed | None = None

    @abstractmethod
    def released(self, codes: Tensor) -> Tensor:
        """What leaves of these codes, in learning."""

    @abstractmethod
    def task_loss(self, head: nn.Module, z: Tensor, codes: Tensor, labels: Tensor) -> Tensor:
        """In learning."""

    @abstractmethod
    def information_loss(self, x: Tensor, z: Tensor, values: Tensor) -> Tensor:
        """The loss of information about x given u."""

    @abstractmethod
    def success(self, z: Tensor, codes: Tensor, values: Tensor) -> list[Tensor]:
        """V for each private attribute, given the batch's private values (n, attributes); and
        remember the batch."""

    @abstractmethod
    def held_out_figures(self, codes: Tensor, others: Feed) -> tuple[list[float], list[Tensor]]:
        """V for each private attribute, and each task's loss, among people not learned from: under
        the least noise that keeps the allowance, where the method can tell, because that is the
        noise the release will have."""

    def modules(self) -> dict[str, nn.Module]:
        return {
            "code": self.code,
            "heads": self.heads,
            "pair": self.pair,
            "memory": self.memory,
            "smooth": self.smooth,
            "kept": self.kept,
        }

    def play(self) -> Phase:
        m = self.method
        together = nn.ModuleList([self.code, self.heads, self.pair])

        def schedule(done: float) -> float:
            self.at(done)
            return min(done / 0.1, 1.0) * 0.5 * (1 + math.cos(math.pi * done)) + 1e-3

        player = Player("code", together, self.hedge, m.lr, decay=m.decay)
        return Phase(
            "hedging", m.epochs, [player], schedule=schedule, after=self.judge, steady=True
        )

    def at(self, done: float) -> None:
        """This share of the game is done; moves read what follows from it from tensors."""
        self.done = done
        self.pull.fill_(self.grown() * self.method.weight)
        self.share.fill_(0.02 if done > 0.1 else 0.2)

    def hedge(self, batch: Batch) -> Move:
        self._smooth()
        codes = self.code(batch.x).float()
        codes, z, labels = everyone(codes), everyone(self.released(codes)), everyones(batch.labels)
        values = torch.stack([labels[a.name] for a in self.private], 1)
        losses = [
            self.task_loss(head, z, codes, labels[t.name])
            for t, head in zip(self.utility, self.heads, strict=True)
        ]
        loss = self.weighed(losses) if losses else z.new_zeros(())
        figures = {"task loss": loss} if losses else {}
        if self.informed:
            told = self.information_loss(batch.x, z, values)
            loss, figures = loss + self.informed * told, {**figures, "information loss": told}
        found = self.success(z, codes, values)
        for value, allowed in zip(found, self.allowed, strict=True):
            loss = loss + self.pull * F.relu(value - allowed)
        return Move(loss, {**figures, "best adversary": torch.stack(found).max()})

    def weighed(self, losses: Sequence[Tensor]) -> Tensor:
        """The tasks' losses as one, by their weights."""
        return torch.stack(
            [share * loss for share, loss in zip(self.task_weights, losses, strict=True)]
        ).sum()

    def grown(self) -> float:
        """How much of the penalty has come in."""
        free = max(self.method.free, 1e-6)
        return min(max((self.done - free) / free, 0.0), 1.0)

    @torch.no_grad()
    def _smooth(self) -> None:
        """A slow average of the weights, which tells less of the people learned from than the last
        step does."""
        mine, latest = self.smooth.state_dict(), self.code.state_dict()
        for name, value in mine.items():
            if value.is_floating_point():
                value.lerp_(latest[name], self.share)
            else:
                value.copy_(latest[name])

    @torch.no_grad()
    def judge(self) -> dict[str, float]:
        """At the end of an epoch, on people not learned from: how well tasks are served within the
        target. The best state is kept."""
        if self.grown() < 1:
            return {}
        self.others = self.others or self.problem.feed(*HELD_OUT)
        codes = torch.as_tensor(
            encode(self.smooth, self.others), dtype=torch.float32, device=self.others.device
        )
        found, losses = self.held_out_figures(codes, self.others)
        over = max(
            0.0, *(value - allowed for value, allowed in zip(found, self.allowed, strict=True))
        )
        # Without tasks the latest state counts; above the allowance, being over costs more than any
        # task could gain.
        serves = -float(self.weighed(losses)) if losses else self.done
        score = serves - 50 * max(over, 0.0)
        if score >= float(self.kept.score):
            self.kept.take(self.smooth, score)
        return {"over": over, "score": score}

    def best(self) -> nn.Module:
        return self.kept.code if math.isfinite(float(self.kept.score)) else self.smooth


class BestState(nn.Module):
    """The best state so far, as part of the checkpoint."""

    score: Tensor

    def __init__(self, code: nn.Module) -> None:
        super().__init__()
        self.code = copy.deepcopy(code)
        self.register_buffer("score", torch.tensor(-math.inf))

    def take(self, code: nn.Module, score: float) -> None:
        self.code.load_state_dict(code.state_dict())
        self.score.fill_(score)


class RecordMatcher(nn.Module):
    """Scores a release against records: which one of those with the same private values did it come
    from?"""

    def __init__(
        self, problem: Problem, method: CertifiedMethod, numbers: int, size: int = 64
    ) -> None:
        super().__init__()
        self.of_x = Code(problem.schema, size, method.width, method.dropout)
        self.of_z = nn.Sequential(nn.Linear(numbers, 256), nn.ReLU(), nn.Linear(256, size))
        self.sharp = nn.Parameter(torch.tensor(2.0))

    def forward(self, x: Tensor, z: Tensor, values: Tensor) -> Tensor:
        """InfoNCE, in nats, with negatives of the same private values; the record itself is seen in
        another pose."""
        scores, same = self.scores(x, z), same_values(values)
        return F.cross_entropy(
            scores.masked_fill(~same, -1e4), torch.arange(len(z), device=z.device)
        )

    def scores(self, x: Tensor, z: Tensor) -> Tensor:
        """(releases, records)"""
        return (
            self.sharp.exp()
            * F.normalize(self.of_z(z), dim=1)
            @ F.normalize(everyone(self.of_x(x)).float(), dim=1).T
        )


def same_values(values: Tensor) -> Tensor:
    """Which records have the same private values as which."""
    return (values[:, None] == values[None]).all(2)


@torch.no_grad()
def encode(code: nn.Module, feed: Feed, batch: int = 512) -> Array:
    """Codes of all records of a feed, without noise."""
    was = code.training
    code.eval()
    index = [np.arange(s, min(s + batch, len(feed))) for s in range(0, len(feed), batch)]
    codes = torch.cat([code(b.x).float() for b in feed.batches(index)]).cpu().numpy()
    code.train(was)
    return np.asarray(codes, dtype=np.float64)


def people_per_value(data: Dataset, attribute: Attribute) -> tuple[int, ...]:
    """How many people each value of the attribute has."""
    labels = data.labels[attribute.name]
    counts = [len(np.unique(data.people[labels == value])) for value in range(attribute.classes)]
    return tuple(n for n in counts if n)
