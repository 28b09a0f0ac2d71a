"""Codebook: one symbol out of K, replaced now and then by one drawn at random, learned for a bound
that no adversary can beat.

    s(x) = the word of a codebook nearest to c(x);    z = s(x) with probability 1 - flip, else uniform on 1 .. K
    min over c, codebook, heads of  mean over tasks E_z CE(head(z), y) [- information about x given u]
                                    + weight * max(0, V(z; u) - allowed)

Vector quantisation (van den Oord, Vinyals and Kavukcuoglu, Neural discrete representation learning,
NeurIPS 2017) and randomised response (Warner, 1965). Over a finite alphabet nothing has to be
sampled: with P_a(z) the share of the symbol z among the people of value a, the best adversary is
right with probability V = (1 / k) sum_z max_a P_a(z), the best answer to a task is the histogram of
its values at each symbol, and expected losses are sums over K symbols. In learning a record's
symbol is a softmax of its distances, which sharpens until it is the nearest word; judged and
released is the nearest word itself. How it is learned, what `allowed` is, and how state and flip
are chosen is in methods/aiming.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.data.dataset import Array, Attribute
from privet.evidence.certificate.symbols import smallest_flip
from privet.methods.certified import (
    HELD_OUT,
    CertifiedMethod,
    CertifiedNetworks,
    RecordMatcher,
    encode,
    same_values,
)
from privet.methods.method import Problem
from privet.nets.code import Code
from privet.nets.symbols import Quantiser, Symbols
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.feed import Feed
from privet.train.game import Run

ANSWERS = 4096
"""About so many earlier records are in the histogram of a task's answers: fewer, since they follow
a code that moves."""
HEAD = 64
"""Hidden units of what reads a task from the code at first."""
SOFT = (0.3, 0.05)
"""Temperature of the softmax over squared distances, at the start and at the end."""


@dataclass(kw_only=True)
class Codebook(CertifiedMethod):
    symbols: int = 8
    """K: how many symbols there are. More carry more, and people are spread thinner over them."""
    dims: int = 2
    """d: how many numbers the code has before it becomes a symbol."""
    flip: float = 0.02
    """Share of symbols replaced at random in learning; the release's own is chosen afterwards."""
    memory: int = 16384
    """About so many earlier records are in the histogram that the best adversary is found on."""

    name: ClassVar[str] = "codebook"
    title: ClassVar[str] = "Codebook"
    strength: ClassVar[str] = "flip"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.within(symbols=(2, 1024), flip=(0, 1))

    def learn(self, problem: Problem, run: Run) -> Release:
        torch.manual_seed(self.seed)
        networks = CodebookNetworks(problem, self)
        game = self.play(networks, problem, run)
        best = networks.best()
        flip, chosen = self.least_noise(
            encode(best, problem.feed(*HELD_OUT)).argmax(1), problem, run
        )
        settings = {
            "symbols": self.symbols,
            "dims": self.dims,
            "width": self.width,
            "dropout": self.dropout,
            "flip": flip,
        }
        card = {"history": game.history, "chosen": chosen}
        return Release(
            problem.schema,
            ("codebook", settings),
            Symbols(best, flip),
            Noise("uniform", (2,), flip),
            card,
        )

    def smallest_noise(
        self,
        codes: Array,
        labels: Array,
        person: Array,
        attribute: Attribute,
        people: Sequence[int],
    ) -> float | None:
        return smallest_flip(
            codes,
            self.symbols,
            labels,
            person,
            attribute.values,
            self.target,
            people=people,
            confidence=self.confidence,
            margin=self.margin,
        )


class SymbolFrequencies(nn.Module):
    """How often each value of an attribute has each symbol: a running mean over earlier batches,
    which learns nothing by gradient."""

    sums: Tensor
    counts: Tensor

    def __init__(self, classes: int, symbols: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.register_buffer("sums", torch.zeros(classes, symbols))
        self.register_buffer("counts", torch.zeros(classes, 1))

    @torch.no_grad()
    def keep(self, z: Tensor, values: Tensor, reach: Tensor | float = 1.0) -> None:
        """`reach` is how much of the memory is used: forget sooner at first, when the code moves
        fast."""
        fade = torch.as_tensor(1 - len(z) / (self.size * reach)).clamp(min=0)
        sums, counts = tally(z, values, len(self.sums))
        self.sums.mul_(fade).add_(sums)
        self.counts.mul_(fade).add_(counts)

    def success(self, z: Tensor, values: Tensor, reach: Tensor | float = 1.0) -> Tensor:
        """V of the symbols' laws z (n, K) of a batch and of those before it.

        Its value is that of all records, its gradient the one that the batch would have by itself:
        the best adversary of all people, let loose on these.
        """
        self.keep(z, values, reach)
        sums, counts = tally(z, values, len(self.sums))
        mine = sums / counts.clamp(min=1)
        return best(self.sums / self.counts.clamp(min=1e-6) + mine - mine.detach(), self.counts)

    def answer(self, z: Tensor) -> Tensor:
        """Expected log-probability of each value, given the law of the symbol: the best answer
        there is to each symbol."""
        with exactly(z):
            return z @ ((self.sums + 1e-3) / (self.sums + 1e-3).sum(0)).log().T


def tally(z: Tensor, values: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Summed laws (classes, K) and numbers (classes, 1) of the records of each value; -1 is
    none."""
    inside = F.one_hot(values.clamp(min=0), classes).to(z.dtype) * (values >= 0).unsqueeze(1)
    with exactly(z):
        return inside.T @ z, inside.sum(0).unsqueeze(1)


def exactly(z: Tensor) -> torch.autocast:
    """In half precision a point of balanced accuracy is rounding."""
    return torch.autocast(z.device.type, enabled=False)


def best(shares: Tensor, counts: Tensor) -> Tensor:
    """(1 / k) sum over symbols of the largest share (k, K), over the values that occur."""
    there = counts > 0
    return torch.where(there, shares, 0.0).amax(0).sum() / there.sum().clamp(min=1)


class CodebookNetworks(CertifiedNetworks):
    def __init__(self, problem: Problem, method: Codebook) -> None:
        size, self.flip = method.symbols, method.flip
        code = Quantiser(Code(problem.schema, method.dims, method.width, method.dropout), size)
        memory = nn.ModuleList(
            [
                SymbolFrequencies(attribute.classes, size, method.memory)
                for attribute in problem.private
            ]
        )

        def head(classes: int) -> nn.Module:
            reader = nn.Sequential(nn.Linear(size, HEAD), nn.ReLU(), nn.Linear(HEAD, classes))
            return nn.ModuleList(
                [SymbolFrequencies(classes, size, min(ANSWERS, method.memory)), reader]
            )

        super().__init__(problem, method, code, head, size, memory)
        self.heat, self.reach, self.early = (
            torch.ones((), device=problem.device) for _ in range(3)
        )
        """Now: how soft the choice of a symbol is, how much of the memory is used, the weight of
        the tasks on the code itself."""
        self.at(0.0)

    def at(self, done: float) -> None:
        super().at(done)
        first, last = SOFT
        self.heat.fill_(first * (last / first) ** done)
        self.reach.fill_(max(done, 0.1))
        self.early.fill_(1 - self.grown())

    def released(self, codes: Tensor) -> Tensor:
        """The law of what is released, (n, K)."""
        return self._replaced(F.softmax(codes / self.heat, 1))

    def _replaced(self, law: Tensor) -> Tensor:
        return (1 - self.flip) * law + self.flip / law.shape[1]

    def task_loss(self, head: nn.Module, z: Tensor, codes: Tensor, labels: Tensor) -> Tensor:
        """Of the symbols; and, until the penalty is there, of the code: symbols that all mean the
        same show no way out of it."""
        answers, reader = cast(nn.ModuleList, head)
        cast(SymbolFrequencies, answers).keep(z, labels, self.reach)
        early = F.cross_entropy(reader(codes).float(), labels, ignore_index=-1)
        return self._answered(head, z, labels) + self.early * early

    def _answered(self, head: nn.Module, z: Tensor, labels: Tensor) -> Tensor:
        return F.nll_loss(
            cast(SymbolFrequencies, cast(nn.ModuleList, head)[0]).answer(z), labels, ignore_index=-1
        )

    def information_loss(self, x: Tensor, z: Tensor, values: Tensor) -> Tensor:
        """InfoNCE expected over the symbols: each is scored against all records, among those of the
        same private values."""
        pair = cast(RecordMatcher, self.pair)
        scores = pair.scores(x, torch.eye(z.shape[1], device=z.device)).float()
        top = scores.detach().amax(1, keepdim=True)
        with exactly(z):
            peers = ((scores - top).exp() @ same_values(values).to(scores.dtype)).log() + top
        return -(z.T * (scores - peers)).sum(0).mean()

    def success(self, z: Tensor, codes: Tensor, values: Tensor) -> list[Tensor]:
        return [
            cast(SymbolFrequencies, one).success(z, values[:, place], self.reach)
            for place, one in enumerate(cast(nn.ModuleList, self.memory))
        ]

    def held_out_figures(self, codes: Tensor, others: Feed) -> tuple[list[float], list[Tensor]]:
        z = self._replaced(F.one_hot(codes.argmax(1), codes.shape[1]).to(codes.dtype))
        found = []
        for attribute in self.private:
            sums, counts = tally(z, others.labels[attribute.name], attribute.classes)
            found.append(float(best(sums / counts.clamp(min=1), counts)))
        return found, [
            self._answered(head, z, others.labels[task.name])
            for task, head in zip(self.utility, self.heads, strict=True)
        ]
