"""Method: hyper-parameters in the constructor, data in `fit`, a Release out. Everything it knows at
run time is in the Release."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import torch

from privet.core.errors import PrivetError
from privet.core.settings import settings_from_words
from privet.core.version import __version__
from privet.data.dataset import PARTS, Attribute, Dataset, Modality
from privet.data.schema import SHARED, Schema, learn_schema
from privet.nets.device import pick
from privet.release.release import Release
from privet.train.feed import Feed
from privet.train.game import Run


@dataclass(frozen=True)
class Problem:
    """What a method is given: the *fit* records, encoded, and who must not be told from whom."""

    schema: Schema
    data: Dataset
    """All parts; a method learns from *fit* and may choose on *select*."""
    private: tuple[Attribute, ...]
    utility: tuple[Attribute, ...]
    device: torch.device

    def feed(self, *parts: str) -> Feed:
        """Batches of *fit*, or of the parts named, with the labels of the declared attributes."""
        view = self.view(*parts)
        names = [attribute.name for attribute in (*self.private, *self.utility)]
        return Feed(
            self.schema.inputs(view), {name: view.labels[name] for name in names}, self.device
        )

    def view(self, *parts: str) -> Dataset:
        return self.data.take(
            np.flatnonzero(
                np.isin(self.data.part_of, [PARTS.index(part) for part in parts or ("fit",)])
            )
        )


@dataclass(kw_only=True)
class Method(ABC):
    seed: int = 0

    name: ClassVar[str]
    title: ClassVar[str]
    """The name as its authors write it."""
    tasks: ClassVar[Literal["none", "optional", "needed"]] = "none"
    """Whether the method uses task labels. One that does not must not be given any: its claim is to
    work without."""
    modalities: ClassVar[tuple[Modality, ...]] = get_args(Modality)
    """Kinds of records it takes."""
    instead: ClassVar[str] = "choose another method"
    """What to do with records of another kind."""
    numbers: ClassVar[bool] = False
    """Whether a private attribute may be a number; classes are always taken."""
    masks: ClassVar[bool] = False
    """Whether a task may be a mask; classes are always taken."""
    dial: ClassVar[str] = ""
    """The setting that `--budget` turns: how much privacy for how much use. Empty where there is
    nothing to turn."""
    sweep: ClassVar[tuple[float, ...]] = ()
    """Values of the dial that `privet compare` tries, from most useful to most private."""

    @abstractmethod
    def learn(self, problem: Problem, run: Run) -> Release:
        """Learn a release; written by every method."""

    def fit(
        self,
        data: Dataset,
        private: Sequence[str],
        utility: Sequence[str] = (),
        *,
        without: Sequence[str] = (),
        run: Run | None = None,
    ) -> Release:
        """Learn a release of `data` that hides `private` (and keeps `utility` readable, for methods
        that take tasks).

        Only the *fit* part is learned from. `without` names table columns to leave out of the
        release's input.
        """
        run = run or Run()
        problem = self.problem(data, private, utility, without, run)
        release = self.learn(problem, run)
        release.card = {
            "method": self.name,
            "title": self.title,
            "settings": self.settings(),
            "private": list(private),
            "utility": list(utility),
            "seed": self.seed,
            "data": {
                "name": data.name,
                "fingerprint": data.fingerprint,
                "fit_records": len(data.part("fit")),
            },
            **release.card,
        }
        return release

    def problem(
        self,
        data: Dataset,
        private: Sequence[str],
        utility: Sequence[str],
        without: Sequence[str],
        run: Run,
    ) -> Problem:
        """Check the user's words against the data, before anything is written or learned."""
        if not private:
            raise PrivetError("Name at least one private attribute, for example  --private beard.")
        both = set(private) & set(utility)
        if both:
            raise PrivetError(
                f"'{min(both)}' is named both private and a task: a release cannot hide it and keep it readable."
            )
        if self.tasks == "none" and utility:
            raise PrivetError(
                f"The method {self.name} learns without knowing a task: give --utility to  privet audit  instead."
            )
        if self.tasks == "needed" and not utility:
            raise PrivetError(
                f"The method {self.name} needs at least one task: name it with --utility."
            )
        if data.modality not in self.modalities:
            raise PrivetError(
                f"The method {self.name} does not take {data.modality} records: {self.instead}."
            )
        self._refuse_masks(data, private, utility)
        hidden = (
            data.require_labels(private, "private", "fit")
            if self.numbers
            else data.require_classes(private, "private")
        )
        classes = [name for name in utility if data.attribute(name).kind != "mask"]
        data.require_classes(classes, "utility")
        kept = [data.attribute(name) for name in utility]
        data.require_records("fit")
        schema = learn_schema(data, [*private, *utility, *without], people=SHARED)
        return Problem(schema, data, tuple(hidden), tuple(kept), pick(run.device))

    def _refuse_masks(self, data: Dataset, private: Sequence[str], utility: Sequence[str]) -> None:
        for name in (*private, *utility):
            if data.attribute(name).kind == "mask" and not (self.masks and name in utility):
                instead = (
                    "it takes masks as tasks only"
                    if self.masks
                    else "choose another attribute, or a method whose tasks may be masks"
                )
                raise PrivetError(
                    f"'{name}' is a mask, and {self.name} needs a class there: {instead}."
                )

    def within(self, **ranges: tuple[float, float]) -> None:
        """Refuse a setting outside its range (both ends belong to it), before anything is
        learned."""
        for key, (low, high) in ranges.items():
            value = getattr(self, key)
            if not low <= value <= high:
                limits = (
                    f"must be at least {low:g}"
                    if math.isinf(high)
                    else f"lies between {low:g} and {high:g}"
                )
                raise PrivetError(f"The setting {key} of {self.name} {limits}, not {value:g}.")

    def settings(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "seed"}

    def identity(self, problem: Problem) -> str:
        """Names the work, so that a checkpoint of other work is refused."""
        names = [a.name for a in (*problem.private, *problem.utility)]
        return f"{__version__} {self.name} {self.settings()} {self.seed} {names} {problem.data.fingerprint} {problem.schema.shape}"

    @classmethod
    def from_words(
        cls, words: Sequence[str], *, budget: float | None = None, seed: int | None = None
    ) -> Method:
        """A method from `key=value` words of the command line; `budget` turns the method's dial."""
        given: dict[str, Any] = {} if seed is None else {"seed": seed}
        if budget is not None:
            if not cls.dial:
                raise PrivetError(f"The method {cls.name} has no budget to set.")
            words = [f"{cls.dial}={budget:g}", *words]
        given |= settings_from_words(cls, words, f"setting of {cls.name}")
        return cls(**given)
