"""What the methods share that learn a code with noise of a known law, aiming at a certified bound.

    min over c, heads of  mean over tasks loss(head(z), y) [- information about x given u]
                          + weight * max(0, V(z; u) - allowed)

V is the success of the best adversary of all, the certificate's own functional; `allowed` is what
the target leaves after the certificate's slack for as many people as *test* has. The penalty comes
in after a while and grows, or the code collapses to a constant. Tasks may be known (losses on z) or
not: then z is to tell which of the records *of the same private value* it came from (InfoNCE with
such negatives, van den Oord and others, 2018), which is information about x given u.

Afterwards the state that serves best among those that keep the target is kept, and the strength of
the noise, which acts after the code, is set to the smallest that meets the target: both judged on
people of *attack* and *select*, whom the code was not learned from and who are not those it is
certified on. (*select* alone is often too small to tell 54 from 55 in 100.)

An adversary may know more: other attributes of a person (known_groups.py), or several records. The
penalty is then on V within every group, or of several releases of a person at once, from laws over
outcomes (outcome_laws.py); state and noise are chosen for all of these bounds.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.core.errors import PrivetError, refuse
from privet.core.progress import console
from privet.core.settings import names
from privet.data.dataset import PARTS, Array, Attribute, Dataset
from privet.methods.known_groups import (
    FOR_EVERYBODY,
    Aim,
    group_aims,
    members,
    people_per_value,
)
from privet.methods.method import Method, Problem, at_least, ranges_of, refuse_blind_target
from privet.methods.outcome_laws import LawMemory, Tallies, group_success
from privet.nets.code import Code
from privet.nets.weights_average import update_average
from privet.train.distributed import everyone, everyones
from privet.train.feed import PERSON, Batch, Feed
from privet.train.game import Game, Move, Phase, Player, Run

if TYPE_CHECKING:
    from privet.evidence.certificate.coded_people import CodedPeople

# The parts whose people a state and its noise are chosen on.
HELD_OUT = ("attack", "select")
# Records of these that are looked at; of more, so many as whole people are drawn.
MOST_HELD_OUT = 100_000
# Up to this excess, a bound of a group pulls the less, the less it is exceeded.
SOFT = 0.02
# People of every part who have several records, at least, where these are to be seen together.
FEWEST_PEOPLE = 8


@dataclass(kw_only=True)
class CertifiedMethod(Method):
    """The settings of methods that aim at a certified bound.

    Parameters:
        target: Balanced accuracy that no adversary shall exceed by the certificate: what learning
            aims at.
        dims: d: how many numbers the code has. More carry more and are harder to certify.
        epochs: How often every record of *fit* is seen.
        free: Share of the epochs before the penalty comes in; it then grows over as many again.
        weight: Weight of the penalty on success above what is allowed.
        memory: Earlier records that the best adversary is found on, beside the batch.
        margin: Part of the allowance kept back, because the people of *test* are others than those
            it is chosen on.
        information: Weight of the information term; negative means 1 without a task and 0 with one.
        weights: Weights of the tasks, in their order and with commas, such as 2,2,1; empty for
            equal ones.
        width: Factor on the layer sizes of the code's network.
        batch: Records per step.
        lr: Largest learning rate of AdamW; it rises over a tenth of the epochs and falls along a
            cosine.
        decay: Weight decay of AdamW.
        dropout: Share of units dropped in learning.
        confidence: Probability with which the certificate shall hold.
        known: Attributes that the adversary knows beside the release, with commas: the bound is
            also aimed at within every group of people with one value of one of them.
        known_target: Bound to aim at within such groups. Where a group is too small for it, the
            bound is what its people allow; the smallest groups are left out.
        records: How many records of a person the adversary sees at once: the target is for all of
            them together.

    Attributes:
        strength: The setting that says how strong the noise is in learning.
    """

    target: float = 0.58
    dims: int = 2
    epochs: float = 60.0
    free: float = 0.25
    weight: float = 20.0
    memory: int = 2048
    margin: float = 0.003
    information: float = -1.0
    weights: str = ""
    width: float = 0.5
    batch: int = 256
    lr: float = 2e-3
    decay: float = 0.1
    dropout: float = 0.2
    confidence: float = 0.99
    known: str = ""
    known_target: float = 0.6
    records: int = 1

    tasks = "optional"
    dial = "target"
    sweep = (0.60, 0.58, 0.56, 0.54, 0.52)
    ranges = ranges_of(
        dims=at_least(1),
        batch=at_least(8),
        memory=at_least(1),
        weight=at_least(0),
        records=(1, 16),
    )
    strength: ClassVar[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse(
            (
                not 0 < self.target < 1,
                (
                    f"The target of {self.name} is a share between 0 and 1, such as 0.58, not "
                    f"{self.target}."
                ),
            ),
            (
                not 0 < self.confidence < 1,
                f"A confidence lies between 0 and 1, {self.confidence} does not.",
            ),
            (
                not 0 < self.known_target < 1,
                (
                    f"The setting known_target of {self.name} is a share between 0 and 1, such as "
                    f"0.6, not {self.known_target}."
                ),
            ),
        )

    def accept(self, problem: Problem) -> Problem:
        self.task_weights(len(problem.utility))
        refuse_blind_target(self.target, problem.private)
        known = problem.data.require_classes(names(self.known), "known")
        if hidden := {a.name for a in known} & {a.name for a in problem.private}:
            raise PrivetError(
                f"'{min(hidden)}' is named both private and known: what the adversary knows cannot "
                "be hidden from it."
            )
        for parts in (("fit",), HELD_OUT, ("test",)) if self.records > 1 else ():
            able = len(records_together(problem.view(*parts).people, self.records))
            if able < FEWEST_PEOPLE:
                raise PrivetError(
                    f"The setting records of {self.name} is {self.records}, and {able} people of "
                    f"{' and '.join(parts)} have so many records: at least {FEWEST_PEOPLE} are "
                    "needed."
                )
        data = fewer_held_out(problem.data)
        return replace(problem, data=data, known=tuple(known), together=self.records)

    @property
    def one_per_person(self) -> bool:
        """Whether one release is made of the records of a person."""
        return False

    @property
    def whole_batch(self) -> int:
        """Records per step, a multiple of those that stay together."""
        return self.batch // self.records * self.records

    def aims(self, problem: Problem) -> tuple[list[list[Aim]], list[str]]:
        """Per private attribute the bound of everybody, then that of every group that is large
        enough; and the names of groups that are not."""
        test = problem.data.part("test")
        if self.records > 1:
            test = test.take(records_together(test.people, self.records)[:, 0])
        delta = (1 - self.confidence) * (1 - FOR_EVERYBODY)
        each, small = [], []
        for attribute in problem.private:
            allowed = self.allowed_success(test, attribute)
            groups, left_out = group_aims(
                test, attribute, problem.known, self.known_target, delta, self.margin
            )
            everybody = Aim(
                attribute,
                None,
                0,
                people_per_value(test, attribute),
                self.target,
                self.confidence_of_everybody,
                allowed,
            )
            each.append([everybody, *groups])
            small += left_out
        return each, list(dict.fromkeys(small))

    @property
    def confidence_of_everybody(self) -> float:
        """How sure the bound of everybody has to be, where groups have bounds too."""
        return 1 - (1 - self.confidence) * FOR_EVERYBODY if self.known else self.confidence

    def task_weights(self, tasks: int) -> list[float]:
        """The weight of each task; they sum to 1."""
        try:
            words = self.weights.split(",") if self.weights else ["1"] * tasks
            weights = [float(word) for word in words]
        except ValueError:
            weights = []
        allowed = all(0 <= weight < inf for weight in weights) and (sum(weights) > 0 or not tasks)
        if len(weights) != tasks or not allowed:
            raise PrivetError(
                f"The setting weights of {self.name} takes one number of 0 or more per task, with "
                f"commas, not '{self.weights}' for {tasks}."
            )
        return [weight / sum(weights) for weight in weights]

    def allowed_success(self, test: Dataset, attribute: Attribute) -> float:
        """Success that the target leaves on the sample, after the slack of the people of *test*."""
        from privet.evidence.certificate.sampling import balanced_slack

        people = people_per_value(test, attribute)
        slack = balanced_slack(people, 1 - self.confidence_of_everybody) if people else 0.0
        return max(self.target - slack - self.margin, 1 / attribute.classes + 0.002)

    def least_noise(self, codes: Array, problem: Problem, run: Run) -> tuple[float, dict[str, Any]]:
        """The least noise that is predicted to meet the target for every private attribute, or that
        of learning where none does; and what the card says about it."""
        # Only the end of learning needs it.
        from privet.evidence.certificate.coded_people import CodedPeople

        others = problem.view(*HELD_OUT)
        each, small = self.aims(problem)
        noises: dict[str, float | None] = {}
        for aim in (aim for aims in each for aim in aims):
            inside = aim.inside(others.labels)
            people = CodedPeople(
                codes[inside],
                others.labels[aim.attribute.name][inside],
                others.people[inside],
                aim.attribute.name,
                aim.attribute.values,
            )
            noises[aim.name] = self.smallest_noise(people, aim)
        enough = [noise for noise in noises.values() if noise is not None]
        met = len(enough) == len(noises)
        if run.progress and not met:
            console.print(
                f"No noise brings this code to {self.target:g}, judged on other people: add "
                "people, or aim higher."
            )
        return float(max(enough) if met else getattr(self, self.strength)), {
            self.strength: noises,
            "target": self.target,
            "met": met,
            "on": list(HELD_OUT),
            **self._known_on_card(each, small),
        }

    def _known_on_card(self, each: Sequence[Sequence[Aim]], small: Sequence[str]) -> dict[str, Any]:
        """What the card says of groups: the bound aimed at in each, and which are too small."""
        if not self.known:
            return {}
        groups = {aim.name: round(aim.target, 4) for aims in each for aim in aims if aim.by}
        return {"known": {"targets": groups, "too small": list(small)}}

    @abstractmethod
    def smallest_noise(self, people: CodedPeople, aim: Aim) -> float | None:
        """The least noise that is predicted to certify one attribute at the aim's target on other
        people than these; None where none is."""


def fewer_held_out(data: Dataset, most: int = MOST_HELD_OUT) -> Dataset:
    """The data with at most about so many records of HELD_OUT: those of people drawn at random."""
    held_out = np.isin(data.part_of, [PARTS.index(part) for part in HELD_OUT])
    if (many := int(held_out.sum())) <= most:
        return data
    _, who = np.unique(data.people[held_out], return_inverse=True)
    drawn = np.random.default_rng(0).random(int(who.max()) + 1) < most / many
    left = ~held_out
    left[np.flatnonzero(held_out)[drawn[who]]] = True
    return data.take(np.flatnonzero(left))


class CertifiedNetworks(ABC):
    """The code, the heads that read tasks from what is released, and a memory of earlier codes.

    What is released of codes, how a head's loss is taken, and the success of the best adversary
    are each method's own.
    """

    def __init__(
        self,
        problem: Problem,
        method: CertifiedMethod,
        code: nn.Module,
        head: Callable[[int], nn.Module],
        numbers: int,
        memory: nn.Module,
        tallies: Tallies | None,
    ) -> None:
        """`head` makes a task's head from its number of classes; it sees `numbers`. `tallies` are
        of what an adversary sees of a person, where there are several bounds."""
        self.problem, self.method = problem, method
        self.private, self.utility = problem.private, problem.utility
        self.code = code
        self.average = copy.deepcopy(self.code)
        self.best_state = BestState(self.code)
        self.heads = nn.ModuleList([head(task.classes) for task in self.utility])
        default = 0.0 if self.utility else 1.0
        self.information = default if method.information < 0 else method.information
        self.matcher: nn.Module = nn.Identity()
        if self.information:
            self.matcher = RecordMatcher(problem, method, numbers)
        self.memory = memory
        self.aims = method.aims(problem)[0]
        self.allowed = [aim.allowed for aims in self.aims for aim in aims]
        # Whether there are other bounds than that of one record of anybody.
        self.several, self.tallies = tallies is not None, tallies
        if tallies:
            tallies.to(problem.device)
        kept = max(1, method.memory // method.records)
        self.laws_of_cells = nn.ModuleList(
            LawMemory(len(aims), aims[0].attribute.classes, tallies.number, kept)
            for aims in self.aims
            if tallies
        )
        self.task_weights = method.task_weights(len(self.utility))
        self.done = 0.0
        # The weight of the penalty now, and that of the latest state in the slow average.
        self.penalty, self.newest = (torch.zeros((), device=problem.device) for _ in range(2))
        self.memory_used = torch.ones((), device=problem.device)
        self._limits = torch.tensor(self.allowed, device=problem.device)
        self.others: Feed | None = None

    @abstractmethod
    def released(self, codes: Tensor) -> Tensor:
        """What leaves of these codes, in learning."""

    @abstractmethod
    def task_loss(self, head: nn.Module, z: Tensor, codes: Tensor, labels: Tensor) -> Tensor:
        """The loss of one task's head, in learning."""

    @abstractmethod
    def information_loss(self, x: Tensor, z: Tensor, values: Tensor) -> Tensor:
        """The loss of information about x given u."""

    @abstractmethod
    def success(self, z: Tensor, codes: Tensor, values: Tensor) -> list[Tensor]:
        """V for each private attribute, given the batch's private values (n, attributes); the batch
        is added to the memory."""

    @abstractmethod
    def laws(self, codes: Tensor) -> Tensor:
        """Laws over outcomes of what an adversary sees of people, in learning: codes (people,
        records that are seen at once, ...)."""

    @abstractmethod
    def held_out_figures(self, codes: Tensor, others: Feed) -> tuple[list[float], list[Tensor]]:
        """V for each private attribute, and each task's loss, among people not learned from: under
        the least noise that keeps the allowance, where the method can tell, because that is the
        noise the release will have."""

    def modules(self) -> dict[str, nn.Module]:
        return {
            "code": self.code,
            "heads": self.heads,
            "pair": self.matcher,
            "memory": self.memory,
            "smooth": self.average,
            "kept": self.best_state,
            **({"cells": self.laws_of_cells} if self.several else {}),
        }

    def game(self) -> Game:
        """The game in which all of them learn."""
        method = self.method
        return method.game(self.problem, self.modules(), [self.play()], method.whole_batch)

    def play(self) -> Phase:
        m = self.method
        together = nn.ModuleList([self.code, self.heads, self.matcher])

        def schedule(done: float) -> float:
            self.set_progress(done)
            return min(done / 0.1, 1.0) * 0.5 * (1 + math.cos(math.pi * done)) + 1e-3

        return Phase(
            "hedging",
            m.epochs,
            [Player("code", together, self.hedge, m.lr, decay=m.decay)],
            schedule=schedule,
            after=self.judge,
            steady=True,
        )

    def set_progress(self, done: float) -> None:
        """This share of the game is done; moves read what follows from it from tensors."""
        self.done = done
        self.penalty.fill_(self.penalty_share() * self.method.weight)
        self.newest.fill_(0.02 if done > 0.1 else 0.2)
        self.memory_used.fill_(max(done, 0.1))

    def hedge(self, batch: Batch) -> Move:
        """The one move: tasks and information against the success of the best adversary."""
        update_average(self.average, self.code, self.newest)
        codes = self.code(batch.x).float()
        codes, z, labels = everyone(codes), everyone(self.released(codes)), everyones(batch.labels)
        if self.method.records > 1:
            labels = self._of_whole_people(labels)
        values = torch.stack([labels[a.name] for a in self.private], 1)
        losses = [
            self.task_loss(head, z, codes, labels[t.name])
            for t, head in zip(self.utility, self.heads, strict=True)
        ]
        loss = self.weighted(losses) if losses else z.new_zeros(())
        figures = {"task loss": loss} if losses else {}
        if self.information:
            missing = self.information_loss(batch.x, z, values)
            loss = loss + self.information * missing
            figures["information loss"] = missing
        if self.several:
            successes = self._successes(codes, labels)
            over = torch.cat(successes) - self._limits
            # Not in full each: many bounds together would crush the code.
            loss = loss + self.penalty * soft_excess(over).sum() / math.sqrt(len(over))
            everybody = torch.stack([each[0] for each in successes]).max()
            return Move(loss, {**figures, "best adversary": everybody, "above": over.max()})
        success = self.success(z, codes, values)
        for value, allowed in zip(success, self.allowed, strict=True):
            loss = loss + self.penalty * F.relu(value - allowed)
        return Move(loss, {**figures, "best adversary": torch.stack(success).max()})

    def _successes(self, codes: Tensor, labels: Mapping[str, Tensor]) -> list[Tensor]:
        """V for each private attribute: of everybody, then of every group."""
        m = self.method.records
        laws = self.laws(codes.view(-1, m, *codes.shape[1:]))
        first = {name: column[::m] for name, column in labels.items()}
        memories = cast(Sequence[LawMemory], self.laws_of_cells)
        return [
            memory.success(laws, members(aims, first), self.memory_used)
            for memory, aims in zip(memories, self.aims, strict=True)
        ]

    def tallied(self, laws: Tensor) -> Tensor:
        """Laws of all that is seen of people, from those of each release (people, m, outcomes)."""
        assert self.tallies is not None
        return cast(Tensor, self.tallies(laws))

    def _of_whole_people(self, labels: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The labels without those of records that stand beside another person's: nobody's records
        are seen together with them."""
        m = self.method.records
        beside = labels[PERSON].view(-1, m)
        alone = (beside != beside[:, :1]).any(1).repeat_interleave(m)
        return {name: column.masked_fill(alone, -1) for name, column in labels.items()}

    def together(self, others: Feed) -> Tensor:
        """Which held-out records are seen together, (people, records)."""
        if self.method.records == 1:
            return torch.arange(len(others), device=others.device).unsqueeze(1)
        people = others.labels[PERSON].cpu().numpy()
        rows = records_together(people, self.method.records)
        return torch.as_tensor(rows, device=others.device)

    def group_figures(self, laws: Tensor, first: Mapping[str, Tensor]) -> list[float]:
        """V of all aims, of laws of held-out people with these labels."""
        each = [group_success(laws, members(aims, first)) for aims in self.aims]
        return [float(value) for value in torch.cat(each)]

    def weighted(self, losses: Sequence[Tensor]) -> Tensor:
        """The tasks' losses as one, by their weights."""
        return torch.stack(
            [w * loss for w, loss in zip(self.task_weights, losses, strict=True)]
        ).sum()

    def penalty_share(self) -> float:
        """How much of the penalty has come in."""
        free = max(self.method.free, 1e-6)
        return min(max((self.done - free) / free, 0.0), 1.0)

    @torch.no_grad()
    def judge(self) -> dict[str, float]:
        """At the end of an epoch, on people not learned from: how well tasks are served within the
        target. The best state is kept."""
        if self.penalty_share() < 1:
            return {}
        self.others = self.others or self.problem.feed(*HELD_OUT)
        codes = torch.as_tensor(
            encode(self.average, self.others), dtype=torch.float32, device=self.others.device
        )
        success, losses = self.held_out_figures(codes, self.others)
        over = max(0.0, *(v - allowed for v, allowed in zip(success, self.allowed, strict=True)))
        # Without tasks the latest state counts; above the allowance, being over costs more than any
        # task could gain.
        score = (-float(self.weighted(losses)) if losses else self.done) - 50 * over
        if score >= float(self.best_state.score):
            self.best_state.code.load_state_dict(self.average.state_dict())
            self.best_state.score.fill_(score)
        return {"over": over, "score": score}

    def best(self) -> nn.Module:
        """The code to release: the best state, or the average where none was judged."""
        return self.best_state.code if self.best_state.score.isfinite() else self.average


class BestState(nn.Module):
    """The best state so far and its score, as a module, so that they are part of a checkpoint."""

    score: Tensor

    def __init__(self, code: nn.Module) -> None:
        super().__init__()
        self.code = copy.deepcopy(code)
        self.register_buffer("score", torch.tensor(-math.inf))


class RecordMatcher(nn.Module):
    """Scores releases against records: which record of the same private values is a release of?"""

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
        scores = self.scores(x, z).masked_fill(~same_values(values), -1e4)
        return F.cross_entropy(scores, torch.arange(len(z), device=z.device))

    def scores(self, x: Tensor, z: Tensor) -> Tensor:
        """(releases, records)"""
        records = F.normalize(everyone(self.of_x(x)).float(), dim=1)
        return self.sharp.exp() * F.normalize(self.of_z(z), dim=1) @ records.T


def small_reader(numbers: int, classes: int) -> nn.Module:
    """A network that reads a task from few numbers."""
    return nn.Sequential(nn.Linear(numbers, 64), nn.ReLU(), nn.Linear(64, classes))


def soft_excess(over: Tensor) -> Tensor:
    """max(0, over), rounded at the corner: where many bounds pull, and their figures lag behind the
    code, a full pull on the least excess drives the code to a constant."""
    return F.huber_loss(F.relu(over), torch.zeros_like(over), reduction="none", delta=SOFT) / SOFT


def same_values(values: Tensor) -> Tensor:
    """Which records have the same private values as which."""
    return (values[:, None] == values[None]).all(2)


@torch.no_grad()
def encode(code: nn.Module, feed: Feed) -> Array:
    """Codes of all records of a feed, without noise."""
    was_training = code.training
    code.eval()
    codes = torch.cat([code(batch.x).float() for batch in feed.in_order()]).cpu().numpy()
    code.train(was_training)
    return np.asarray(codes, dtype=np.float64)


def records_together(people: Array, records: int) -> Array:
    """Which records (people, records) are seen together: the first so many of everybody who has
    them.

    >>> records_together(np.array([7, 3, 7, 7, 3, 5]), 2)
    array([[1, 4],
           [0, 2]])
    """
    order = np.argsort(people, kind="stable")
    _, starts, counts = np.unique(people[order], return_index=True, return_counts=True)
    return np.asarray(order[starts[counts >= records][:, None] + np.arange(records)])
