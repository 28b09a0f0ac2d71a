"""Hedge: a code of few numbers with noise on it, learned for a bound that no adversary can beat.

    z = c(x) + sigma xi,  xi ~ N(0, I_d) fresh for every record,  c(x) in [-1, 1]^d
    min over c, heads of  mean over tasks CE(head(z), y) [- information about x given u]
                          + weight * max(0, V(z; u) - allowed)

V is the success of the best adversary of all (methods/overlap_penalty.py). How it is learned, what
`allowed` is, and how state and sigma are chosen is in methods/certified.py. Certified on *test* by
`privet certify`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.core.errors import PrivetError
from privet.methods.certified import (
    HELD_OUT,
    CertifiedMethod,
    CertifiedNetworks,
    encode,
    small_reader,
)
from privet.methods.known_groups import Aim
from privet.methods.method import Problem, at_least, choices_of, ranges_of
from privet.methods.outcome_laws import Tallies, cells_per_axis, gaussian_laws
from privet.methods.overlap_penalty import CodeMemory, success
from privet.nets.additive import Additive
from privet.nets.code import Code
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.feed import Feed
from privet.train.game import Run

if TYPE_CHECKING:
    from privet.evidence.certificate.coded_people import CodedPeople

# Held-out records whose releases are judged at the end of an epoch.
JUDGED_RECORDS = 2048
# The noise that a state needs is looked for within this factor of learning's own.
SIGMA_RANGE = 4.0
# How often that range is halved.
HALVINGS = 7


@dataclass(kw_only=True)
class Hedge(CertifiedMethod):
    """A code of few numbers plus Gaussian noise, aimed at a certified bound on every adversary.

    A network turns a record into `dims` numbers between -1 and 1, and the release adds noise to
    them. It learns to serve the tasks (or, without a task, to keep information about the record)
    while the best possible adversary stays below `target`. The standard deviation of the released
    noise is then set to the smallest that is predicted to meet the target. `privet.certify` proves
    the bound on people that nothing was chosen on.

    Parameters:
        sigma: Standard deviation of the noise in learning; that of the release is chosen
            afterwards.
        per: Whether each record is released, or, with `person`, the mean code of `records` records
            of a person with one noise.

    Example:
        >>> import privet
        >>> data = privet.load("portraits:60", progress=False)
        >>> method = privet.Hedge(target=0.7, epochs=2, width=0.05, memory=64, batch=32)
        >>> release = method.fit(data, "beard", "smiling", run=privet.Run(progress=False))
        >>> release.shape, release.noise.law
        ((2,), 'gaussian')

    Notes:
        The fewer people *test* has, the more of the target its slack takes: a few hundred certify
        no target near guessing. The bound holds for one release of a record; more of them tell
        more. Attributes that were not named private are not hidden.
    """

    sigma: float = 0.4
    per: str = "record"

    name = "hedge"
    title = "Hedge"
    strength = "sigma"
    ranges = ranges_of(**CertifiedMethod.ranges, sigma=at_least(1e-3))
    choices = choices_of(per=("record", "person"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.one_per_person and self.records == 1:
            raise PrivetError(
                "With per=person one release is made of several records: say of how many with "
                "records=5."
            )

    @property
    def one_per_person(self) -> bool:
        return self.per == "person"

    @property
    def releases_seen(self) -> int:
        """How many releases of a person an adversary sees."""
        return 1 if self.one_per_person else self.records

    def learn(self, problem: Problem, run: Run) -> Release:
        networks = HedgeNetworks(problem, self)
        history = networks.game().play(run)
        code = networks.best()
        sigma, chosen = self.least_noise(encode(code, problem.feed(*HELD_OUT)), problem, run)
        settings = {"dims": self.dims, "width": self.width, "dropout": self.dropout, "sigma": sigma}
        return Release(
            problem.schema,
            ("hedge", settings),
            Additive(code, sigma),
            Noise("gaussian", (self.dims,), sigma),
            {"history": history, "chosen": chosen},
        )

    def smallest_noise(self, people: CodedPeople, aim: Aim) -> float | None:
        # Only the end of learning needs these.
        from privet.evidence.certificate.gaussian import smallest_sigma
        from privet.evidence.certificate.several_records import one_per_person, tuples_of_records
        from privet.evidence.certificate.smoothing import Draws

        if self.one_per_person:
            people = one_per_person(people, self.records)
        elif self.records > 1:
            people = tuples_of_records(people, self.records)
        return smallest_sigma(
            people.codes,
            people.labels,
            people.person,
            people.values,
            aim.target,
            people=aim.people,
            confidence=aim.confidence,
            margin=self.margin,
            between=(self.sigma / 20, 50 * self.sigma),
            draws=Draws(20_000, self.seed),
        )


class HedgeNetworks(CertifiedNetworks):
    """The networks of one game of Hedge."""

    def __init__(self, problem: Problem, method: Hedge) -> None:
        d, self.sigma = method.dims, method.sigma

        code = Code(problem.schema, d, method.width, method.dropout)
        self.earlier = CodeMemory(method.memory, d, len(problem.private))
        self.per_person = method.records if method.one_per_person else 1
        tallies, self.cells = None, 0
        if method.known or method.records > 1:
            # Cells that noise falls into, along each axis.
            self.cells = cells_per_axis(d, method.releases_seen)
            tallies = Tallies(self.cells**d, method.releases_seen)
        super().__init__(problem, method, code, partial(small_reader, d), d, self.earlier, tallies)

    def released(self, codes: Tensor) -> Tensor:
        if self.per_person > 1:
            means = codes.view(-1, self.per_person, codes.shape[1]).mean(1)
            noisy = means + self.sigma * torch.randn_like(means)
            return noisy.repeat_interleave(self.per_person, 0)
        return codes + self.sigma * torch.randn_like(codes)

    def laws(self, codes: Tensor) -> Tensor:
        return self._laws(codes, self.sigma)

    def _laws(self, codes: Tensor, sigma: float) -> Tensor:
        seen = codes.mean(1, keepdim=True) if self.per_person > 1 else codes
        laws = gaussian_laws(seen.flatten(0, 1), sigma, self.cells)
        return self.tallied(laws.view(*seen.shape[:2], -1))

    def task_loss(self, head: nn.Module, z: Tensor, codes: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(head(z).float(), labels, ignore_index=-1)

    def information_loss(self, x: Tensor, z: Tensor, values: Tensor) -> Tensor:
        return self.matcher(x, z, values)  # type: ignore[no-any-return]

    def success(self, z: Tensor, codes: Tensor, values: Tensor) -> list[Tensor]:
        memory, each = self.earlier, zip(self.private, values.T, self.earlier.values.T, strict=True)
        successes = [
            success(z, codes, mine, memory.codes, theirs, self.sigma, attribute.classes)
            for attribute, mine, theirs in each
        ]
        memory.add(codes, values)
        return successes

    def held_out_figures(self, codes: Tensor, others: Feed) -> tuple[list[float], list[Tensor]]:
        if self.several:
            return self._figures_of_all_aims(codes, others)
        order = np.random.default_rng(0).permutation(len(codes))
        shown, rest = torch.as_tensor(order, device=codes.device).tensor_split([JUDGED_RECORDS])
        generator = torch.Generator().manual_seed(0)
        noise = torch.randn(codes[shown].shape, generator=generator).to(codes.device)
        labels = [(others.labels[attribute.name], attribute.classes) for attribute in self.private]

        def successes(sigma: float) -> list[float]:
            z = codes[shown] + sigma * noise
            return [
                float(success(z, codes[shown], v[shown], codes[rest], v[rest], sigma, classes))
                for v, classes in labels
            ]

        sigma = self._least_sigma(successes)
        z = codes[shown] + sigma * noise
        tasks = zip(self.utility, self.heads, strict=True)
        return successes(sigma), [
            self.task_loss(head, z, codes, others.labels[task.name][shown]) for task, head in tasks
        ]

    def _least_sigma(self, successes: Callable[[float], list[float]]) -> float:
        """The least noise with which every success keeps its allowance, near learning's own."""
        low, high = math.log(self.sigma / SIGMA_RANGE), math.log(self.sigma * SIGMA_RANGE)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            pairs = zip(successes(math.exp(middle)), self.allowed, strict=True)
            enough = all(value <= allowed for value, allowed in pairs)
            low, high = (low, middle) if enough else (middle, high)
        return math.exp(high)

    def _figures_of_all_aims(self, codes: Tensor, others: Feed) -> tuple[list[float], list[Tensor]]:
        """The same where groups, or several records of a person, have bounds: over outcomes, of all
        held-out people, with tasks read from what is released of them."""
        rows = self.together(others)
        seen, first = (
            codes[rows],
            {name: column[rows[:, 0]] for name, column in others.labels.items()},
        )

        def successes(sigma: float) -> list[float]:
            return self.group_figures(self._laws(seen, sigma), first)

        sigma = self._least_sigma(successes)
        released = seen.mean(1, keepdim=True) if self.per_person > 1 else seen
        generator = torch.Generator().manual_seed(0)
        noise = torch.randn(released.shape, generator=generator).to(codes.device)
        z = (released + sigma * noise).expand_as(seen).flatten(0, 1)
        tasks = zip(self.utility, self.heads, strict=True)
        return successes(sigma), [
            self.task_loss(head, z, z, others.labels[task.name][rows].flatten())
            for task, head in tasks
        ]
