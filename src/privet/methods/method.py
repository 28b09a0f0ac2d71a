"""Method: settings in the constructor, data in `fit`, a Release out.

Everything that a method needs when its release is used is in the Release.
"""

from __future__ import annotations

import inspect
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import torch
from torch import nn

from privet.core.errors import PrivetError, refuse, unknown
from privet.core.settings import field_docs, names, settings_from_words
from privet.core.version import __version__
from privet.data.dataset import PARTS, Attribute, Dataset, Modality
from privet.data.schema import SHARED, Schema, learn_schema
from privet.nets.device import pick
from privet.release.drift import typical
from privet.release.release import Release
from privet.train.feed import PERSON, Feed
from privet.train.game import Game, Phase, Run

# One attribute's name, or several, in a list or with commas.
Names = str | Iterable[str]
# Smallest and largest value that a setting may have.
Range = tuple[float, float]
# Kinds of records that noise can be added to.
NUMERIC: tuple[Modality, ...] = ("image", "table", "signal")


def at_least(low: float) -> Range:
    """The range that has no upper end."""
    return (low, inf)


COMMON_RANGES: dict[str, Range] = {
    "width": at_least(0.01),
    "batch": at_least(2),
    "lr": at_least(1e-9),
    "noise": at_least(0),
    "epochs": at_least(0),
    "warmup": at_least(0),
    "lessons": at_least(0),
}


def ranges_of(**ranges: Range) -> dict[str, Range]:
    """The ranges of a method's own settings beside those that all methods share."""
    return {**COMMON_RANGES, **ranges}


def choices_of(**choices: Collection[str]) -> dict[str, Collection[str]]:
    """The words that each of these settings may be."""
    return choices


@dataclass(frozen=True)
class Problem:
    """What to learn from, what to hide and what to keep: a user's request, checked.

    Parameters:
        schema: How records are encoded.
        data: All four parts; a method learns from *fit* and may choose on *select*.
        private: Attributes to hide.
        utility: Tasks: attributes to keep readable.
        device: Where to learn.
        known: Attributes that an adversary may know beside the release.
        together: How many records of a person a batch keeps together.
    """

    schema: Schema
    data: Dataset
    private: tuple[Attribute, ...]
    utility: tuple[Attribute, ...]
    device: torch.device
    known: tuple[Attribute, ...] = ()
    together: int = 1

    def feed(self, *parts: str) -> Feed:
        """Batches of *fit*, or of the parts named, with the labels of the declared attributes."""
        view = self.view(*parts)
        declared = (*self.private, *self.utility, *self.known)
        labels = {a.name: view.labels[a.name] for a in declared}
        inputs = self.schema.inputs(view)
        if self.together == 1:
            return Feed(inputs, labels, self.device)
        labels[PERSON] = view.people
        return Feed(inputs, labels, self.device, self.together)

    def view(self, *parts: str) -> Dataset:
        """The records of *fit*, or of the parts named."""
        wanted = [PARTS.index(part) for part in parts or ("fit",)]
        return self.data.take(np.flatnonzero(np.isin(self.data.part_of, wanted)))


@dataclass(kw_only=True)
class Method(ABC):
    """A way to learn a release. Settings go into the constructor, data into `fit`.

    Some settings mean the same in every method that has them: `width` is a factor on layer sizes,
    `epochs` how often a record is seen, `batch` records per step, `lr` a learning rate, `lessons`
    the epochs in which a model of a task is taught before anything is hidden.

    A new method is a dataclass that inherits from this class. Its fields are its settings, which
    its docstring explains under `Parameters:`; it has a `name` and a `title`, and writes `learn`:

        @dataclass(kw_only=True)
        class Nothing(Method):
            name = "nothing"
            title = "Raw records"

            def learn(self, problem, run):
                return Release.identity(problem.schema)

    Parameters:
        seed: Seed of everything random in learning: on a CPU the same seed gives the same release.

    Attributes:
        name: The name on the command line and in cards.
        title: The name as its authors write it.
        tasks: Whether the method learns from task labels. One that does not only leaves them out
            of its input: its claim is to work without.
        modalities: Kinds of records it takes.
        instead: What to do with records of another kind.
        numbers: Whether a private attribute may be a number; classes are always taken.
        masks: Whether a task may be a mask; classes are always taken.
        dial: The setting that `--budget` sets: how much privacy for how much utility. Empty where
            there is none.
        sweep: Values of the dial that `privet compare` tries, from most useful to most private.
        ranges: Which values settings may have; both ends belong to the range.
        choices: Which words settings may have.
    """

    seed: int = 0

    name: ClassVar[str]
    title: ClassVar[str]
    tasks: ClassVar[Literal["none", "optional", "needed"]] = "none"
    modalities: ClassVar[tuple[Modality, ...]] = get_args(Modality)
    instead: ClassVar[str] = "choose another method"
    numbers: ClassVar[bool] = False
    masks: ClassVar[bool] = False
    dial: ClassVar[str] = ""
    sweep: ClassVar[tuple[float, ...]] = ()
    ranges: ClassVar[Mapping[str, Range]] = COMMON_RANGES
    choices: ClassVar[Mapping[str, Collection[str]]] = {}

    def __init_subclass__(cls) -> None:
        """Add inherited settings, and the ranges of all, to the docstring that `help` shows."""
        super().__init_subclass__()
        own, inherited = field_docs(cls), dict[str, str]()
        for base in reversed(cls.__mro__[1:-2]):
            inherited |= {k: v for k, v in field_docs(base).items() if k not in own}
        ranges = [f"{k} {range_text(v)}" for k, v in cls.ranges.items() if k in own | inherited]
        cls.__doc__ = "\n".join(
            [
                inspect.cleandoc(cls.__doc__ or cls.__name__),
                "\nInherited parameters:",
                *(_indented(f"{name}: {text}", 4) for name, text in inherited.items()),
                *(["\nRanges:", _indented("; ".join(ranges) + ".", 0)] if ranges else []),
            ]
        )

    def __post_init__(self) -> None:
        for key, known in self.choices.items():
            if getattr(self, key) not in known:
                raise unknown(f"{key} of {self.name}", getattr(self, key), known)
        for key, (low, high) in self.ranges.items():
            value = getattr(self, key, low)
            if not low <= value <= high:
                raise PrivetError(
                    f"The setting {key} of {self.name} {range_text((low, high))}, not {value:g}."
                )

    @abstractmethod
    def learn(self, problem: Problem, run: Run) -> Release:
        """Learn a release; written by every method. Torch's generator has been seeded."""

    def fit(
        self,
        data: Any,
        private: Names,
        utility: Names = (),
        *,
        without: Names = (),
        run: Run | None = None,
    ) -> Release:
        """Learn a release of `data` that hides `private`.

        `data` is a Dataset or rows in memory: a frame of pandas or polars, an Arrow table, a
        dataset of Hugging Face, a mapping of columns.

        Methods that take tasks also keep `utility` readable. All others only leave it out of a
        table's input: a release that hands a task's own label on would look useful. Only the *fit*
        part is learned from. `without` names further table columns to leave out of the release's
        input. Each of the three is one name or several.
        """
        if not isinstance(data, Dataset):
            # Reads what is in memory; few who learn need it.
            from privet.data.in_memory import as_dataset

            data = as_dataset(data)
        problem = self.problem(data, private, utility, without, run)
        return self.fit_problem(problem, run)

    def fit_problem(self, problem: Problem, run: Run | None = None) -> Release:
        """The same for what `problem` gave."""
        torch.manual_seed(self.seed)
        release = self.learn(problem, run or Run())
        release.card = {
            "method": self.name,
            "title": self.title,
            "settings": self.settings(),
            "private": [attribute.name for attribute in problem.private],
            "utility": [attribute.name for attribute in problem.utility],
            "seed": self.seed,
            "data": {
                "name": problem.data.name,
                "fingerprint": problem.data.fingerprint,
                "fit_records": len(problem.data.part("fit")),
                "content": problem.data.content,
                **problem.data.said_of_sample,
            },
            **release.card,
        }
        inputs = release.schema.inputs(problem.data.part("fit"))
        if (summary := typical(release.schema, inputs, self.seed)) is not None:
            release.card["typical"] = summary
        return release

    def problem(
        self,
        data: Dataset,
        private: Names,
        utility: Names = (),
        without: Names = (),
        run: Run | None = None,
    ) -> Problem:
        """Check a request against the data, before anything is written or learned."""
        private, utility, without = names(private), names(utility), names(without)
        both = set(private) & set(utility)
        refuse(
            (not private, "Name at least one private attribute, for example  --private beard."),
            (
                both,
                (
                    f"'{min(both, default='')}' is named both private and a task: a release cannot "
                    "hide it and keep it readable."
                ),
            ),
            (
                self.tasks == "needed" and not utility,
                f"The method {self.name} needs at least one task: name it with --utility.",
            ),
            (
                data.modality not in self.modalities,
                f"The method {self.name} does not take {data.modality} records: {self.instead}.",
            ),
        )
        tasks = [data.attribute(name) for name in utility]
        if self.tasks == "none":  # the method must not learn from them, nor may they be input
            tasks = []
        for attribute in (*map(data.attribute, private), *tasks):
            if attribute.kind == "mask" and not (self.masks and attribute.name in utility):
                only = "it takes masks as tasks only"
                other = "choose another attribute, or a method whose tasks may be masks"
                raise PrivetError(
                    f"'{attribute.name}' is a mask, and {self.name} needs a class there: "
                    f"{only if self.masks else other}."
                )
        data.require_classes([task.name for task in tasks if task.kind != "mask"], "utility")
        hidden = (
            data.require_labels(private, "private", "fit")
            if self.numbers
            else data.require_classes(private, "private")
        )
        data.require_records("fit")
        schema = learn_schema(data, [*private, *utility, *without], people=SHARED)
        device = pick((run or Run()).device)
        return self.accept(Problem(schema, data, tuple(hidden), tuple(tasks), device))

    def accept(self, problem: Problem) -> Problem:
        """Refuse a problem that this method cannot learn, or adapt it; the default takes all."""
        return problem

    def game(
        self,
        problem: Problem,
        modules: Mapping[str, nn.Module],
        phases: Sequence[Phase],
        batch: int,
        models: Sequence[str] = (),
    ) -> Game:
        """The game in which `modules` learn from *fit*; `models` are hashes of provided models."""
        identity = f"{self.identity(problem)} {list(models)}" if models else self.identity(problem)
        return Game(modules, phases, problem.feed(), batch, self.seed, identity)

    def identity(self, problem: Problem) -> str:
        """Names the work, so that a checkpoint of other work is refused."""
        attributes = [a.name for a in (*problem.private, *problem.utility)]
        about = (attributes, problem.data.fingerprint, problem.schema.shape)
        return " ".join(map(str, (__version__, self.name, self.settings(), self.seed, *about)))

    def settings(self) -> dict[str, Any]:
        """Every setting but the seed, as the card holds them."""
        return {key: value for key, value in self.get_params().items() if key != "seed"}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every setting by name, as in scikit-learn; `deep` changes nothing here."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Change settings, as in scikit-learn; nothing is changed where one of them is refused."""
        for key in params.keys() - self.get_params().keys():
            raise unknown(f"setting of {self.name}", key, self.get_params())
        type(self)(**self.get_params() | params)
        vars(self).update(params)
        return self

    @classmethod
    def parse(
        cls, settings: Sequence[str], *, budget: float | None = None, seed: int | None = None
    ) -> Self:
        """A method from `key=value` settings of the command line; `budget` sets the dial."""
        if budget is not None:
            if not cls.dial:
                raise PrivetError(f"The method {cls.name} has no budget to set.")
            settings = [f"{cls.dial}={budget:g}", *settings]
        values = {} if seed is None else {"seed": seed}
        return cls(**values | settings_from_words(cls, settings, f"setting of {cls.name}"))


def refuse_blind_target(target: float, private: Iterable[Attribute]) -> None:
    """Refuse a target for balanced accuracy that guessing blindly exceeds."""
    for attribute in private:
        blind = 1 / attribute.classes
        if target <= blind:
            raise PrivetError(
                f"A target of {target:g} for '{attribute.name}' cannot be met: guessing "
                f"blindly among {attribute.classes} values is right {blind:.2g} of the time."
            )


def _indented(text: str, further: int) -> str:
    return textwrap.fill(text, 96, initial_indent=" " * 4, subsequent_indent=" " * (4 + further))


def range_text(limits: Range) -> str:
    """A range in words.

    >>> range_text((0, inf)), range_text((0, 1))
    ('must be at least 0', 'lies between 0 and 1')
    """
    low, high = limits
    return f"must be at least {low:g}" if high == inf else f"lies between {low:g} and {high:g}"
