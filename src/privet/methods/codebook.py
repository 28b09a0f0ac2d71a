"""Codebook: one symbol out of K, replaced now and then by one drawn at random, learned for a bound
that no adversary can beat.

    s(x) = the word of a codebook nearest to c(x)
    z = s(x) with probability 1 - flip, else uniform on 1 .. K
    min over c, codebook, heads of  mean over tasks E_z CE(head(z), y)
                                    [- information about x given u]
                                    + weight * max(0, V(z; u) - allowed)

Vector quantisation (van den Oord, Vinyals and Kavukcuoglu, Neural discrete representation learning,
NeurIPS 2017) and randomised response (Warner, 1965). Over a finite alphabet nothing has to be
sampled: with P_a(z) the share of the symbol z among the people of value a, the best adversary is
right with probability V = (1 / k) sum_z max_a P_a(z), the best answer to a task is the histogram of
its values at each symbol, and expected losses are sums over K symbols. In learning a record's
symbol is a softmax of its distances, which sharpens until it is the nearest word; judged and
released is the nearest word itself. How it is learned, what `allowed` is, and how state and flip
are chosen is in methods/certified.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.evidence.certificate.coded_people import CodedPeople
from privet.evidence.certificate.mechanisms import RandomisedSymbols
from privet.evidence.certificate.several_records import tuples_of_records
from privet.evidence.certificate.symbols import response, smallest_flip
from privet.methods.certified import (
    HELD_OUT,
    CertifiedMethod,
    CertifiedNetworks,
    RecordMatcher,
    encode,
    same_values,
    small_reader,
)
from privet.methods.known_groups import Aim
from privet.methods.known_labels import one_hot_known
from privet.methods.method import Problem, ranges_of
from privet.methods.outcome_laws import Tallies
from privet.nets.code import Code
from privet.nets.symbols import Quantiser, Symbols
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.feed import Feed
from privet.train.game import Run

# About so many earlier records are in the histogram of a task's answers: fewer than of private
# values, since they follow a code that moves.
TASK_MEMORY = 4096
# How often the range of flips is halved where several symbols of a person are seen.
FLIP_HALVINGS = 12
# Temperature of the softmax over squared distances, at the start and at the end.
TEMPERATURES = (0.3, 0.05)


@dataclass(kw_only=True)
class Codebook(CertifiedMethod):
    """One symbol per record, sometimes replaced at random, aimed at a certified bound.

    A network turns a record into the nearest of `symbols` learned code words; the release replaces
    it, with the probability `flip`, by a symbol drawn at random. It learns to serve the tasks (or
    to keep information about the record) while the best possible adversary stays below `target`.
    The smallest flip that is predicted to meet the target is chosen afterwards.

    Parameters:
        symbols: K: how many symbols there are. More carry more, and people are spread thinner over
            them.
        dims: d: how many numbers the code has before it becomes a symbol.
        flip: Share of symbols replaced at random in learning; that of the release is chosen
            afterwards.
        memory: About so many earlier records are in the histogram that the best adversary is found
            on.

    Example:
        >>> import privet
        >>> data = privet.load("portraits:60", progress=False)
        >>> method = privet.Codebook(symbols=4, epochs=2, width=0.05, batch=32, flip=0.4)
        >>> release = method.fit(data, "beard", "smiling", run=privet.Run(progress=False))
        >>> release.shape, release.noise.law
        ((4,), 'uniform')

    Notes:
        A release is one symbol: it carries log2(symbols) bits at most. As with Hedge, the bound is
        proved by `privet.certify`, for one release of a record.
    """

    symbols: int = 8
    dims: int = 2
    flip: float = 0.02
    memory: int = 16384

    name = "codebook"
    title = "Codebook"
    strength = "flip"
    ranges = ranges_of(**CertifiedMethod.ranges, symbols=(2, 1024), flip=(0, 1))

    def learn(self, problem: Problem, run: Run) -> Release:
        networks = CodebookNetworks(problem, self)
        history = networks.game().play(run)
        code = networks.best()
        symbols = encode(code, problem.feed(*HELD_OUT)).argmax(1)
        flip, chosen = self.least_noise(symbols, problem, run)
        settings = {name: getattr(self, name) for name in ("symbols", "dims", "width", "dropout")}
        return Release(
            problem.schema,
            ("codebook", {**settings, "flip": flip}),
            Symbols(code, flip),
            Noise("uniform", (2,), flip),
            {"history": history, "chosen": chosen},
        )

    def smallest_noise(self, people: CodedPeople, aim: Aim) -> float | None:
        if self.records > 1:
            return self._smallest_flip_of_several(people, aim)
        return smallest_flip(
            people.codes[:, 0],
            self.symbols,
            people.labels,
            people.person,
            people.values,
            aim.target,
            people=aim.people,
            confidence=aim.confidence,
            margin=self.margin,
        )

    def _smallest_flip_of_several(self, people: CodedPeople, aim: Aim) -> float | None:
        """By halving: of several symbols V is no straight line in flip."""
        sample = (tuples := tuples_of_records(people, self.records)).sample()
        table = [sample.within / len(tuples.values)]

        def enough(flip: float) -> bool:
            mechanism = RandomisedSymbols(self.symbols, response(self.symbols, flip))
            return mechanism.integrals(sample.codes, table, 1.0).values[0].value <= aim.allowed

        if min(sample.people, default=0) < 2 or not enough(1.0):
            return None
        if enough(0.0):
            return 0.0
        low, high = 0.0, 1.0
        for _ in range(FLIP_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high


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
    def add(self, z: Tensor, values: Tensor, used: Tensor | float = 1.0) -> None:
        """`used` is how much of the memory is used: forget sooner at first, when the code moves
        fast."""
        fade = torch.as_tensor(1 - len(z) / (self.size * used)).clamp(min=0)
        sums, counts = symbol_sums(z, values, len(self.sums))
        self.sums.mul_(fade).add_(sums)
        self.counts.mul_(fade).add_(counts)

    def success(self, z: Tensor, values: Tensor, used: Tensor | float = 1.0) -> Tensor:
        """V of the symbols' laws z (n, K) of a batch and of those before it.

        Its value is that of all records, its gradient the one that the batch would have by itself:
        the best adversary of all people, let loose on these.
        """
        self.add(z, values, used)
        sums, counts = symbol_sums(z, values, len(self.sums))
        mine = sums / counts.clamp(min=1)
        shares = self.sums / self.counts.clamp(min=1e-6) + mine - mine.detach()
        return best_success(shares, self.counts)

    def answer(self, z: Tensor) -> Tensor:
        """Expected log-probability of each value, given the law of the symbol: the best answer
        there is to each symbol."""
        with full_precision(z):
            return z @ ((self.sums + 1e-3) / (self.sums + 1e-3).sum(0)).log().T


def flipped(laws: Tensor, flip: float) -> Tensor:
    """Laws (..., K) of symbols of which so many are replaced by one drawn at random."""
    return (1 - flip) * laws + flip / laws.shape[-1]


def symbol_sums(z: Tensor, values: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Summed laws (classes, K) and numbers (classes, 1) of the records of each value; -1 is
    none."""
    inside = one_hot_known(values, classes).to(z.dtype)
    with full_precision(z):
        return inside.T @ z, inside.sum(0).unsqueeze(1)


def full_precision(z: Tensor) -> torch.autocast:
    """In half precision a point of balanced accuracy is rounding."""
    return torch.autocast(z.device.type, enabled=False)


def best_success(shares: Tensor, counts: Tensor) -> Tensor:
    """(1 / k) sum over symbols of the largest share (k, K), over the values that occur."""
    occurs = counts > 0
    return torch.where(occurs, shares, 0.0).amax(0).sum() / occurs.sum().clamp(min=1)


class CodebookNetworks(CertifiedNetworks):
    """The networks of one game of Codebook; a task's head is a histogram and a reader."""

    def __init__(self, problem: Problem, method: Codebook) -> None:
        size, self.flip = method.symbols, method.flip
        code = Quantiser(Code(problem.schema, method.dims, method.width, method.dropout), size)
        memory = nn.ModuleList(
            [SymbolFrequencies(a.classes, size, method.memory) for a in problem.private]
        )

        def head(classes: int) -> nn.Module:
            reader = small_reader(size, classes)
            answers = SymbolFrequencies(classes, size, min(TASK_MEMORY, method.memory))
            return nn.ModuleList([answers, reader])

        several = method.known or method.records > 1
        tallies = Tallies(size, method.records) if several else None
        super().__init__(problem, method, code, head, size, memory, tallies)
        # Now: how soft the choice of a symbol is, how much of the memory is used, and the weight of
        # the tasks on the code itself.
        ones = (torch.ones((), device=problem.device) for _ in range(3))
        self.temperature, self.used, self.early = ones
        self.set_progress(0.0)

    def set_progress(self, done: float) -> None:
        super().set_progress(done)
        first, last = TEMPERATURES
        self.temperature.fill_(first * (last / first) ** done)
        self.used.fill_(max(done, 0.1))
        self.early.fill_(1 - self.penalty_share())

    def released(self, codes: Tensor) -> Tensor:
        """The law of what is released, (n, K)."""
        return flipped(F.softmax(codes / self.temperature, 1), self.flip)

    def laws(self, codes: Tensor) -> Tensor:
        law = self.released(codes.flatten(0, 1))
        return self.tallied(law.view(*codes.shape[:2], -1))

    def task_loss(self, head: nn.Module, z: Tensor, codes: Tensor, labels: Tensor) -> Tensor:
        """Of the symbols; and, until the penalty is there, of the code: symbols that all mean the
        same show no way out of it."""
        answers, reader = cast(nn.ModuleList, head)
        cast(SymbolFrequencies, answers).add(z, labels, self.used)
        early = F.cross_entropy(reader(codes).float(), labels, ignore_index=-1)
        return self._symbol_loss(head, z, labels) + self.early * early

    def _symbol_loss(self, head: nn.Module, z: Tensor, labels: Tensor) -> Tensor:
        answers = cast(SymbolFrequencies, cast(nn.ModuleList, head)[0])
        return F.nll_loss(answers.answer(z), labels, ignore_index=-1)

    def information_loss(self, x: Tensor, z: Tensor, values: Tensor) -> Tensor:
        """InfoNCE expected over the symbols: each is scored against all records, among those of the
        same private values."""
        symbols = torch.eye(z.shape[1], device=z.device)
        scores = cast(RecordMatcher, self.matcher).scores(x, symbols).float()
        top = scores.detach().amax(1, keepdim=True)
        with full_precision(z):
            peers = ((scores - top).exp() @ same_values(values).to(scores.dtype)).log() + top
        return -(z.T * (scores - peers)).sum(0).mean()

    def success(self, z: Tensor, codes: Tensor, values: Tensor) -> list[Tensor]:
        memories = cast(Sequence[SymbolFrequencies], self.memory)
        pairs = zip(memories, values.T, strict=True)
        return [memory.success(z, mine, self.used) for memory, mine in pairs]

    def held_out_figures(self, codes: Tensor, others: Feed) -> tuple[list[float], list[Tensor]]:
        z = flipped(F.one_hot(codes.argmax(1), codes.shape[1]).to(codes.dtype), self.flip)
        successes = []
        for attribute in [] if self.several else self.private:
            sums, counts = symbol_sums(z, others.labels[attribute.name], attribute.classes)
            successes.append(float(best_success(sums / counts.clamp(min=1), counts)))
        if self.several:
            rows = self.together(others)
            first = {name: column[rows[:, 0]] for name, column in others.labels.items()}
            successes = self.group_figures(self.tallied(z[rows]), first)
        return successes, [
            self._symbol_loss(head, z, others.labels[task.name])
            for task, head in zip(self.utility, self.heads, strict=True)
        ]
