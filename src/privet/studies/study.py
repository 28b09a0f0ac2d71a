"""A study: which questions, which methods with which budgets, how many seeds. All of it is checked
before anything runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
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
    """A method with some settings fixed, and the values of its dial to try.

    Parameters:
        method, settings: The method's name, and settings that differ from its defaults.
        budgets: Values of its dial; None: the method's own sweep.
        label: What tells it from another variant of the same method; else the method's title.
        told: Whether it is told of the tasks, if it takes any.
    """

    method: str
    settings: tuple[tuple[str, Any], ...] = ()
    budgets: tuple[float, ...] | None = None
    label: str = ""
    told: bool = True

    @property
    def called(self) -> str:
        return self.label or METHODS[self.method].title

    @property
    def dials(self) -> tuple[float | None, ...]:
        """The budgets; a single None where there is no dial."""
        kind = METHODS[self.method]
        return self.budgets or (kind.sweep if kind.dial and kind.sweep else (None,))

    def build(self, budget: float | None, seed: int) -> Method:
        kind = METHODS[self.method]
        if kind.dial in dict(self.settings):
            raise PrivetError(
                f"{kind.dial} is what the budgets of {kind.name} turn: give it with  "
                f"--budgets {kind.name}=..."
            )
        words = [
            f"{key}={str(value).lower() if isinstance(value, bool) else value}"
            for key, value in self.settings
        ]
        return kind.parse(words, budget=budget, seed=seed)


@dataclass(frozen=True)
class Question:
    """What to hide in which data, and for which tasks.

    A release may be attacked on other data than it was learned from.

    Parameters:
        learned_on, private, utility: The data a release is learned from, what to hide, the tasks.
        name, title: Short, and for people.
        elsewhere: The data of the audit, where it is not the same.
        hidden, asked: `private` and `utility` as that data calls them; empty: the same.
    """

    learned_on: Source
    private: tuple[str, ...]
    utility: tuple[str, ...]
    name: str = ""
    title: str = ""
    elsewhere: Source | None = None
    hidden: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()

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
        knows = variant.told and METHODS[variant.method].tasks != "none"
        return (self.utility, ()) if knows else ((), self.utility)


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
    """A figure of a paper, to be compared with ours.

    Parameters:
        attribute, value: Whose figure it is, and the figure as a share.
        source: Where it stands, in words.
        question, label, budget: The cell it belongs to; without a label, raw records.
        measure, adversary: What is counted, and which of our adversaries is the same; without one,
            one network of the papers' kind.
    """

    attribute: str
    value: float
    source: str
    question: str = ""
    label: str = ""
    budget: float | None = None
    measure: str = "plain accuracy"
    adversary: str = ""


@dataclass(frozen=True)
class Study:
    """Questions, and the variants of methods that answer each of them.

    Parameters:
        questions, variants, seeds, battery: Every variant learns every question from as many seeds,
            and is attacked with the battery.
        rebuild: Whether decoders try to rebuild records, which is most of the work of a large
            battery on pictures.
        chosen: Whether somebody named the methods; else those that do not take the data are left
            out.
        title, paper, about, notes: Sentences for the page.
        published: Figures of the paper.
        refused: Who was left out, once that is known.
        goals: What attackers should not exceed, by private attribute, for the page's verdict; of
            others a fifth of the way from guessing to what is read from raw records.
    """

    questions: tuple[Question, ...]
    variants: tuple[Variant, ...]
    seeds: int = 1
    battery: str = "quick"
    rebuild: bool = True
    chosen: bool = True
    title: str = ""
    paper: str = ""
    about: str = ""
    published: tuple[Published, ...] = ()
    notes: tuple[str, ...] = ()
    refused: tuple[Refused, ...] = ()
    goals: Mapping[str, float] = field(default_factory=dict)

    @staticmethod
    def of(
        data: str,
        private: Sequence[str],
        utility: Sequence[str],
        *,
        methods: Sequence[str] = (),
        budgets: Mapping[str, Sequence[float]] | None = None,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        seeds: int = 1,
        battery: str = "quick",
        schema: str | Path | None = None,
    ) -> Study:
        """One question, and a variant per method; without `methods`, every method there is.

        `budgets` and `settings` are those of each method, by its name; `data` and `schema` are as
        for `privet.load`.

        >>> Study.of("portraits", ["beard"], ["hat"], methods=["leace"]).variants
        (Variant(method='leace', settings=(), budgets=None, label='', told=True),)
        """
        budgets, settings = budgets or {}, settings or {}
        names = list(dict.fromkeys(methods)) or list(METHODS)
        for name in (*budgets, *settings):
            if name not in names:
                raise unknown("method in this comparison", name, names)
        variants = tuple(
            Variant(
                METHODS[name].name,
                tuple(settings.get(name, {}).items()),
                tuple(budgets[name]) if name in budgets else None,
            )
            for name in names
        )
        source = Source(data, None if schema is None else str(schema))
        question = Question(source, tuple(private), tuple(utility))
        return Study((question,), variants, seeds, battery, chosen=bool(methods))

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
        ordered: list[tuple[tuple[int, int], Cell]] = []
        refused: list[Refused] = []
        for question in self.questions:
            taken, left = self._taken(question, read, device)
            refused += left
            raws.append(self._raw(question, next(iter(taken.values())), read))
            for variant, seed in product(taken, range(self.seeds)):
                for step, budget in enumerate(variant.dials):
                    cell = self._cell(question, variant, budget, seed, read)
                    ordered.append(((seed, step), cell))
        ordered.sort(key=lambda pair: pair[0])
        cells = [*raws, *(cell for _, cell in ordered)]
        return list({(cell.question, cell.key): cell for cell in cells}.values()), refused

    def _taken(
        self, question: Question, read: Read, device: str
    ) -> tuple[dict[Variant, Problem], list[Refused]]:
        """The variants that take the question, and why others do not; an error where the user named
        them, or where none does."""
        data = read(question.learned_on)
        taken: dict[Variant, Problem] = {}
        left: list[Refused] = []
        errors: list[PrivetError] = []
        for variant in self.variants:
            try:
                built = variant.build(variant.dials[0], 0)
                tasks = question.tell(variant)
                run = Run(device=device)
                taken[variant] = built.problem(data, question.private, *tasks, run)
            except PrivetError as error:
                if self.chosen:
                    raise
                errors.append(error)
                left.append(Refused(question.name, variant.method, variant.called, str(error)))
        if not taken:
            raise errors[0] if errors else PrivetError("There is no method to compare.")
        _check_audit(question, next(iter(taken.values())), read(question.audited_on))
        return taken, left

    def _cell(
        self, question: Question, variant: Variant, budget: float | None, seed: int, read: Read
    ) -> Cell:
        built = variant.build(budget, seed)
        tasks, without = question.tell(variant)
        return Cell(
            built.name,
            built.settings(),
            seed,
            learned_print=read(question.learned_on).fingerprint,
            tasks=tasks,
            without=without,
            rebuild=self.rebuild,
            brought=_brought(built.settings()),
            label=variant.called,
            dial=built.dial if budget is not None else "",
            budget=budget,
            **self._audit(question, read),
        )

    def _raw(self, question: Question, problem: Problem, read: Read) -> Cell:
        """Raw records of one question; what matters of the data a release is learned from is how it
        takes records."""
        return Cell(
            RAW,
            {},
            0,
            learned_print=hashlib.sha256(canonical(problem.schema.to_json()).encode()).hexdigest(),
            tasks=(),
            without=question.utility,
            label="raw data",
            **self._audit(question, read),
        )

    def _audit(self, question: Question, read: Read) -> dict[str, Any]:
        """What all cells of a question share."""
        return {
            "learned_on": question.learned_on,
            "private": question.private,
            "audited_on": question.audited_on,
            "audited_print": read(question.audited_on).fingerprint,
            "hidden": question.audited_private,
            "utility": question.audited_utility,
            "battery": self.battery,
            "question": question.name,
        }


def _check_audit(question: Question, problem: Problem, data: Dataset) -> None:
    """What the audit will ask of its data, before anything is learned."""
    if not question.utility:
        raise PrivetError(
            "Name at least one task with --utility: a frontier weighs what leaks against what a "
            "task can still use."
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
