"""Hedge: a code of few numbers with noise on it, learned for a bound that no adversary can beat.

    z = c(x) + sigma xi,  xi ~ N(0, I_d) fresh for every record,  c(x) in [-1, 1]^d
    min over c, heads of  mean over tasks CE(head(z), y) [- information about x given u]
                          + weight * max(0, V(z; u) - allowed)

V is the success of the best adversary of all (methods/matching.py), the certificate's own functional; `allowed` is what the target
leaves after the certificate's slack for as many people as *test* has. The penalty comes in after a while and grows, or the
code collapses to a constant. Tasks may be known (losses on z) or not: then z is to tell which of the records *of the same
private value* it came from (InfoNCE with such negatives, van den Oord and others, 2018), which is information about x given u.

Afterwards the state that serves best among those that keep the target is kept, and sigma, which acts after the code, is set to the
smallest that meets the target: both judged on people of *attack* and *select*, whom the code was not learned from and who are
not those it is certified on. (*select* alone is often too small to tell 54 from 55 in 100.) Certified on *test* by `privet certify`.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.data.dataset import Array, Attribute, Dataset
from privet.errors import PrivetError
from privet.evidence.certificate import smallest_sigma
from privet.feed import Batch, Feed
from privet.game import Game, Move, Phase, Player, Run
from privet.methods.matching import Memory, success
from privet.methods.method import Method, Problem
from privet.nets.additive import Additive
from privet.nets.code import Code
from privet.noise import Noise
from privet.progress import console
from privet.release import Release

OTHERS = ("attack", "select")
"""Whom states and sigma are chosen on."""
JUDGED = 2048
"""Releases whose best reading is judged at the end of an epoch."""
HEAD = 64
"""Hidden units of a task's head; it sees d numbers."""


@dataclass(kw_only=True)
class Hedge(Method):
    target: float = 0.58
    """No adversary above this balanced accuracy, certified: what learning aims at."""
    dims: int = 4
    """d: how many numbers are released. More carry more, and are harder to certify."""
    sigma: float = 0.4
    """Standard deviation of the noise in learning; the release's own is chosen afterwards."""
    epochs: float = 60.0
    free: float = 0.25
    """Share of the epochs before the penalty comes in; it then grows over as many again."""
    weight: float = 20.0
    """Of the penalty on what lies above the allowance."""
    memory: int = 2048
    """Earlier codes to put kernels on."""
    margin: float = 0.003
    """Part of the allowance kept back, because the people of *test* are others than those it is chosen on."""
    information: float = -1.0
    """Weight of the information term; negative means 1 without a task and 0 with one."""
    width: float = 0.5
    batch: int = 256
    lr: float = 2e-3
    decay: float = 0.1
    dropout: float = 0.2
    confidence: float = 0.99

    name: ClassVar[str] = "hedge"
    title: ClassVar[str] = "Hedge"
    tasks: ClassVar[Literal["none", "optional", "needed"]] = "optional"
    dial: ClassVar[str] = "target"
    sweep: ClassVar[tuple[float, ...]] = (0.60, 0.58, 0.56, 0.54, 0.52)

    def __post_init__(self) -> None:
        if not 0 < self.target < 1:
            raise PrivetError(f"The target of hedge is a share between 0 and 1, such as 0.58, not {self.target}.")
        if not 0 < self.confidence < 1:
            raise PrivetError(f"A confidence lies between 0 and 1, {self.confidence} does not.")
        self.within(dims=(1, inf), sigma=(1e-3, inf), epochs=(0, inf), width=(0.01, inf), batch=(8, inf), lr=(1e-9, inf), memory=(1, inf))
        self.within(weight=(0, inf))

    def learn(self, problem: Problem, run: Run) -> Release:
        torch.manual_seed(self.seed)
        players = Players(problem, self)
        game = Game(players.modules(), [players.play()], problem.feed(), self.batch, self.seed, self.identity(problem))
        game.play(run)
        code = players.best()
        sigma, chosen = self._sigma(code, problem)
        if run.progress and not chosen["met"]:
            console.print(f"No noise brings this code to {self.target:g}, judged on other people: add people, or aim higher.")
        settings = {"dims": self.dims, "width": self.width, "dropout": self.dropout, "sigma": sigma}
        card = {"history": game.history, "chosen": chosen}
        return Release(problem.schema, ("hedge", settings), Additive(code, sigma), Noise("gaussian", (self.dims,), sigma), card)

    def allowed(self, problem: Problem, attribute: Attribute) -> float:
        """Success that the target leaves on the sample, given the slack that the people of *test* will cost."""
        people = people_of(problem.data.part("test"), attribute)
        blind = 1 / attribute.classes
        slack = math.sqrt(sum(1 / n for n in people) * math.log(1 / (1 - self.confidence)) / 2) / max(len(people), 1) if people else 0.0
        return max(self.target - slack - self.margin, blind + 0.002)

    def _sigma(self, code: Code, problem: Problem) -> tuple[float, dict[str, Any]]:
        """The smallest sigma that is predicted to meet the target for every private attribute; learning's own where none is."""
        others = problem.view(*OTHERS)
        codes = encode(code, problem.feed(*OTHERS))
        found = []
        for attribute in problem.private:
            labels = others.labels[attribute.name]
            there = labels >= 0
            people = people_of(problem.data.part("test"), attribute)
            found.append(
                smallest_sigma(
                    codes[there], labels[there], others.people[there], attribute.values, self.target, people=people,
                    confidence=self.confidence, margin=self.margin, between=(self.sigma / 20, 50 * self.sigma), seed=self.seed,
                )
            )  # fmt: skip
        met = [sigma for sigma in found if sigma is not None]
        sigma = max(met) if met and len(met) == len(found) else self.sigma
        said = {a.name: s for a, s in zip(problem.private, found, strict=True)}
        return float(sigma), {"sigma": said, "target": self.target, "met": len(met) == len(found), "on": list(OTHERS)}


class Players:
    """The code, the heads that read tasks from what is released, and the memory of codes."""

    def __init__(self, problem: Problem, method: Hedge) -> None:
        self.problem, self.method = problem, method
        self.private, self.utility = problem.private, problem.utility
        self.code = Code(problem.schema, method.dims, method.width, method.dropout)
        self.smooth = copy.deepcopy(self.code)
        self.kept = Kept(self.code)
        heads = [nn.Sequential(nn.Linear(method.dims, HEAD), nn.ReLU(), nn.Linear(HEAD, task.classes)) for task in self.utility]
        self.heads = nn.ModuleList(heads)
        self.informed = (0.0 if self.utility else 1.0) if method.information < 0 else method.information
        self.pair = Likeness(problem, method) if self.informed else nn.Identity()
        self.memory = Memory(method.memory, method.dims, len(self.private))
        self.allowed = [method.allowed(problem, attribute) for attribute in self.private]
        self.done = 0.0
        self.others: Feed | None = None

    def modules(self) -> dict[str, nn.Module]:
        return {
            "code": self.code, "heads": self.heads, "pair": self.pair, "memory": self.memory, "smooth": self.smooth, "kept": self.kept,
        }  # fmt: skip

    def play(self) -> Phase:
        m = self.method
        together = nn.ModuleList([self.code, self.heads, self.pair])

        def schedule(done: float) -> float:
            self.done = done
            return min(done / 0.1, 1.0) * 0.5 * (1 + math.cos(math.pi * done)) + 1e-3

        return Phase("hedging", m.epochs, [Player("code", together, self.hedge, m.lr, decay=m.decay)], schedule=schedule, after=self.judge)

    def hedge(self, batch: Batch) -> Move:
        self._smooth()
        m = self.method
        codes = self.code(batch.x).float()
        values = torch.stack([batch.labels[a.name] for a in self.private], 1)
        z = codes + m.sigma * torch.randn_like(codes)
        losses = [
            F.cross_entropy(head(z).float(), batch.labels[t.name], ignore_index=-1)
            for t, head in zip(self.utility, self.heads, strict=True)
        ]
        loss = torch.stack(losses).mean() if losses else z.new_zeros(())
        figures = {"task loss": loss} if losses else {}
        if self.informed:
            told = self.pair(batch.x, z, values)
            loss, figures = loss + self.informed * told, {**figures, "information loss": told}
        found = []
        for place, (attribute, allowed) in enumerate(zip(self.private, self.allowed, strict=True)):
            value = success(z, codes, values[:, place], self.memory.codes, self.memory.values[:, place], m.sigma, attribute.classes)
            found.append(value)
            loss = loss + self._grown() * m.weight * F.relu(value - allowed)
        self.memory.keep(codes, values)
        return Move(loss, {**figures, "best adversary": torch.stack(found).max()})

    def _grown(self) -> float:
        free = max(self.method.free, 1e-6)
        return min(max((self.done - free) / free, 0.0), 1.0)

    @torch.no_grad()
    def _smooth(self) -> None:
        """A slow average of the weights, which tells less of the people learned from than the last step does."""
        mine, latest = self.smooth.state_dict(), self.code.state_dict()
        for name, value in mine.items():
            if value.is_floating_point():
                value.lerp_(latest[name], 0.02 if self.done > 0.1 else 0.2)
            else:
                value.copy_(latest[name])

    @torch.no_grad()
    def judge(self) -> dict[str, float]:
        """At the end of an epoch, on people not learned from: how well tasks are served within the target. The best state is kept."""
        if self._grown() < 1:
            return {}
        self.others = self.others or self.problem.feed(*OTHERS)
        codes = torch.as_tensor(encode(self.smooth, self.others), dtype=torch.float32, device=self.others.device)
        some = torch.as_tensor(np.random.default_rng(0).permutation(len(codes)), device=codes.device)
        shown, rest = some[:JUDGED], some[JUDGED:]
        noise = torch.randn(codes[shown].shape, generator=torch.Generator().manual_seed(0)).to(codes.device)
        z = codes[shown] + self.method.sigma * noise
        over = 0.0
        for attribute, allowed in zip(self.private, self.allowed, strict=True):
            values = self.others.labels[attribute.name]
            value = success(z, codes[shown], values[shown], codes[rest], values[rest], self.method.sigma, attribute.classes)
            over = max(over, float(value) - allowed)
        losses = [
            F.cross_entropy(head(z).float(), self.others.labels[task.name][shown], ignore_index=-1)
            for task, head in zip(self.utility, self.heads, strict=True)
        ]
        # Without tasks the latest state counts; above the allowance, being over costs more than any task could gain.
        serves = -float(torch.stack(losses).mean()) if losses else self.done
        score = serves - 50 * max(over, 0.0)
        if score >= float(self.kept.score):
            self.kept.take(self.smooth, score)
        return {"over": over, "score": score}

    def best(self) -> Code:
        return self.kept.code if math.isfinite(float(self.kept.score)) else self.smooth


class Kept(nn.Module):
    """The best state so far, as part of the checkpoint."""

    score: Tensor

    def __init__(self, code: Code) -> None:
        super().__init__()
        self.code = copy.deepcopy(code)
        self.register_buffer("score", torch.tensor(-math.inf))

    def take(self, code: Code, score: float) -> None:
        self.code.load_state_dict(code.state_dict())
        self.score.fill_(score)


class Likeness(nn.Module):
    """Scores a release against records: which one of those with the same private values did it come from?"""

    def __init__(self, problem: Problem, method: Hedge, size: int = 64) -> None:
        super().__init__()
        self.of_x = Code(problem.schema, size, method.width, method.dropout)
        self.of_z = nn.Sequential(nn.Linear(method.dims, 256), nn.ReLU(), nn.Linear(256, size))
        self.sharp = nn.Parameter(torch.tensor(2.0))

    def forward(self, x: Tensor, z: Tensor, values: Tensor) -> Tensor:
        """InfoNCE, in nats, with negatives of the same private values; the record itself is seen in another pose."""
        scores = self.sharp.exp() * F.normalize(self.of_z(z), dim=1) @ F.normalize(self.of_x(x).float(), dim=1).T
        same = (values[:, None] == values[None]).all(2)
        return F.cross_entropy(scores.masked_fill(~same, -1e4), torch.arange(len(z), device=z.device))


@torch.no_grad()
def encode(code: nn.Module, feed: Feed, batch: int = 512) -> Array:
    """Codes of all records of a feed, without noise."""
    was = code.training
    code.eval()
    index = [np.arange(s, min(s + batch, len(feed))) for s in range(0, len(feed), batch)]
    codes = torch.cat([code(b.x).float() for b in feed.batches(index)]).cpu().numpy()
    code.train(was)
    return np.asarray(codes, dtype=np.float64)


def people_of(data: Dataset, attribute: Attribute) -> tuple[int, ...]:
    """How many people each value of the attribute has."""
    labels = data.labels[attribute.name]
    counts = [len(np.unique(data.people[labels == value])) for value in range(attribute.classes)]
    return tuple(n for n in counts if n)
