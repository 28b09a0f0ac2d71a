"""A study: which questions, which methods with which budgets, how many seeds. All of it is checked
before anything runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from privet.auditing.batteries import BATTERIES
from privet.core.errors import PrivetError, unknown
from privet.data.cache import content_of
from privet.data.dataset import Dataset
from privet.data.sources import load
from privet.methods.method import Method, Problem
from privet.methods.registry import METHODS
from privet.studies.cells import RAW, Cell, Source, canonical
from privet.train.game import Run

MOST_SEEDS = 1000

Read = Callable[[Source], Dataset]


@dataclass(frozen=True)
class Variant:
    """A method with some settings fixed, and the values of its dial to try."""

    method: str
    settings: tuple[tuple[str, Any], ...] = ()
    budgets: tuple[float, ...] | None = None
    """None: the method's own sweep."""
    label: str = ""
    """What tells it from another variant of the same method; the method's title where nothing is
    said."""
    told: bool = True
    """Whether it is told of the tasks, if it takes any."""

    @property
    def called(self) -> str:
        return self.label or METHODS[self.method].title

    @property
    def dials(self) -> tuple[float | None, ...]:
        """The budgets; a single None where there is nothing to turn."""
        kind = METHODS[self.method]
        return self.budgets or (kind.sweep if kind.dial and kind.sweep else (None,))

    def build(self, budget: float | None, seed: int) -> Method:
        kind = METHODS[self.method]
        if kind.dial in dict(self.settings):
            raise PrivetError(
                f"{kind.dial} is what the budgets of {kind.name} turn: give it with  --budgets {kind.name}=..."
            )
        words = [
            f"{key}={str(value).lower() if isinstance(value, bool) else value}"
            for key, value in self.settings
        ]
        return kind.from_words(words, budget=budget, seed=seed)


@dataclass(frozen=True)
class Question:
    """What to hide in which data, and for which tasks. A release may be attacked on other data than
    it was learned from."""

    learned_on: Source
    private: tuple[str, ...]
    utility: tuple[str, ...]
    name: str = ""
    title: str = ""
    elsewhere: Source | None = None
    """The data of the audit, where it is not the same."""
    hidden: tuple[str, ...] = ()
    """`private` as the data of the audit calls it; empty: the same."""
    asked: tuple[str, ...] = ()
    """`utility` as the data of the audit calls it; empty: the same."""

    @property
    def audited_on(self) -> Source:
        return self.elsewhere or self.learned_on

    @property
    def audited_private(self) -> tuple[str, ...]:
        """`private` as the data of the audit calls it."""
        return self.hidden or self.private

    @property
    def audited_utility(self) -> tuple[str, ...]:
        """`utility` as the data of the audit calls it."""
        return self.asked or self.utility

    def tell(self, variant: Variant) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The tasks that a variant is told of, and the columns that are no input. Whatever it is
        told, no method gets a task's column: all then see the same input, and none looks useful by
        handing the task on."""
        return (
            (self.utility, ())
            if variant.told and METHODS[variant.method].tasks != "none"
            else ((), self.utility)
        )


@dataclass(frozen=True)
class Refused:
    """A method that does not take the data of a question."""

    question: str
    method: str
    label: str
    reason: str

    @property
    def said(self) -> str:
        return f"{self.label} is left out: {self.reason}"


@dataclass(frozen=True)
class Published:
    """A figure of a paper, to stand beside ours."""

    attribute: str
    value: float
    """As a share."""
    source: str
    """Where it stands, in words."""
    question: str = ""
    label: str = ""
    """The variant's; empty: raw records."""
    budget: float | None = None
    measure: str = "plain accuracy"
    adversary: str = ""
    """Which of our adversaries is the same; empty: one network, of the papers' kind."""


@dataclass(frozen=True)
class Study:
    questions: tuple[Question, ...]
    variants: tuple[Variant, ...]
    seeds: int = 1
    battery: str = "quick"
    rebuild: bool = True
    """Whether decoders try to rebuild records, which is most of the work of a large battery on
    pictures."""
    chosen: bool = True
    """Whether somebody named the methods; else those that do not take the data are left out."""
    title: str = ""
    paper: str = ""
    about: str = ""
    published: tuple[Published, ...] = ()
    notes: tuple[str, ...] = ()
    """What is to be known about it, in sentences; in the end also who was left out, and why."""
    refused: tuple[Refused, ...] = ()
    """Who was left out, once that is known."""

    def cells(
        self, device: str = "auto", progress: bool = True
    ) -> tuple[list[Cell], list[Refused]]:
        """Every cell, raw records first and then one of each method before the next budget; and who
        was left out, with the reason.

        Reads the data, builds every method and asks it whether it takes the data: a wrong word
        costs no work.
        """
        if self.battery not in BATTERIES:
            raise unknown("battery", self.battery, BATTERIES)
        if not 1 <= self.seeds <= MOST_SEEDS:
            raise PrivetError(
                f"The number of seeds lies between 1 and {MOST_SEEDS}, not at {self.seeds}."
            )
        for variant in self.variants:
            for budget in variant.dials:
                variant.build(budget, 0)

        @cache
        def read(source: Source) -> Dataset:
            return load(source.spec, source.schema, progress)

        raws: list[Cell] = []
        ranked: list[tuple[tuple[int, ...], Cell]] = []
        refused: list[Refused] = []
        for place, question in enumerate(self.questions):
            taken, left = self._taken(question, read, device)
            refused += left
            raws.append(_raw(question, next(iter(taken.values())), read, self.battery))
            for at, variant in enumerate(taken):
                for seed in range(self.seeds):
                    for turn, budget in enumerate(variant.dials):
                        ranked.append(
                            (
                                (seed, turn, place, at),
                                self._cell(question, variant, budget, seed, read),
                            )
                        )
        ordered = [cell for _, cell in sorted(ranked, key=lambda pair: pair[0])]
        return list(
            {(cell.question, cell.key): cell for cell in (*raws, *ordered)}.values()
        ), refused

    def _taken(
        self, question: Question, read: Read, device: str
    ) -> tuple[dict[Variant, Problem], list[Refused]]:
        """The variants that take the question, and why others do not; an error where the user named
        them, or where none does."""
        data = read(question.learned_on)
        taken: dict[Variant, Problem] = {}
        left: list[Refused] = []
        first: PrivetError | None = None
        for variant in self.variants:
            try:
                tasks, without = question.tell(variant)
                built = variant.build(variant.dials[0], 0)
                taken[variant] = built.problem(
                    data, question.private, tasks, without, Run(device=device)
                )
            except PrivetError as error:
                if self.chosen:
                    raise
                first = first or error
                left.append(Refused(question.name, variant.method, variant.called, str(error)))
        if not taken:
            raise first or PrivetError("There is no method to compare.")
        _check_audit(question, next(iter(taken.values())), read(question.audited_on))
        return taken, left

    def _cell(
        self, question: Question, variant: Variant, budget: float | None, seed: int, read: Read
    ) -> Cell:
        built = variant.build(budget, seed)
        tasks, without = question.tell(variant)
        dial = built.dial if budget is not None else ""
        return Cell(
            built.name,
            built.settings(),
            seed,
            question.learned_on,
            read(question.learned_on).fingerprint,
            question.private,
            tasks,
            without,
            question.audited_on,
            read(question.audited_on).fingerprint,
            question.audited_private,
            question.audited_utility,
            self.battery,
            rebuild=self.rebuild,
            brought=_brought(built.settings()),
            question=question.name,
            label=variant.called,
            dial=dial,
            budget=budget,
        )


def _check_audit(question: Question, problem: Problem, data: Dataset) -> None:
    """What the audit will ask of its data, before anything is learned."""
    if not question.utility:
        raise PrivetError(
            "Name at least one task with --utility: a frontier weighs what leaks against what a task can still use."
        )
    data.require_labels(question.audited_private, "private", "attack")
    data.require_labels(question.audited_utility, "utility", "attack")
    data.require_records("attack", "select", "test")
    problem.schema.check(data)


def _brought(settings: dict[str, Any]) -> tuple[str, ...]:
    """Digests of the files that settings name, such as somebody's model: another file under the
    same name is another cell."""
    words = [
        part
        for value in settings.values()
        if isinstance(value, str) and value
        for part in value.split(",")
    ]
    paths = [Path(word.partition("=")[2] or word).expanduser() for word in words]
    return tuple(content_of([path]) for path in paths if path.is_file())


def _raw(question: Question, problem: Problem, read: Read, battery: str) -> Cell:
    """Raw records of one question; what matters of the data a release is learned from is how it
    takes records."""
    inputs = hashlib.sha256(canonical(problem.schema.to_json()).encode()).hexdigest()
    return Cell(
        RAW,
        {},
        0,
        question.learned_on,
        inputs,
        question.private,
        (),
        question.utility,
        question.audited_on,
        read(question.audited_on).fingerprint,
        question.audited_private,
        question.audited_utility,
        battery,
        question=question.name,
        label="raw data",
    )
