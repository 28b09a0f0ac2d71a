"""The contract of an adversary: settings in the constructor, data in `attack`.

An adversary sees released records only. It learns from the *attack* people, is tuned on the
*select* people, and is then judged on *test* people whom neither it nor the release has seen. A
model for a task is the same thing with another label; a number is guessed like a class, with
another loss.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from privet.adversaries.released import Released, View
from privet.data.dataset import Array, Attribute
from privet.evidence.leakage import auc

# Is called with the share of the work that is done, from 0 to 1.
Tick = Callable[[float], None]


def silent(_share: float) -> None:
    """The tick of whoever shows no progress."""


def span(tick: Tick, start: float, end: float) -> Tick:
    """A tick for a part of the work: what it calls 0 to 1 is `start` to `end` of the whole."""
    return lambda share: tick(start + (end - start) * share)


class Trained(Protocol):
    """An adversary that has learned."""

    def answers(self, released: Released) -> Array:
        """Float64, in the order of the data: probabilities (n, classes), or guesses (n,) of a
        number."""
        ...


@dataclass(frozen=True)
class TrainedFunction:
    """A trained adversary that is one function.

    Parameters:
        answers: From released records to probabilities (n, classes), or to guesses (n,) of a
            number, float64, in the order of the data.
    """

    answers: Callable[[Released], Array]


@dataclass(frozen=True, kw_only=True)
class Adversary(ABC):
    """A way to read an attribute from released records. Subclass it to add another.

    A subclass defines

    - `name`, a word for tables and files, and `title`, what people call it;
    - `attack`, which learns from released records of the *attack* people and may choose among its
      settings by how well they do on the *select* people (`ranking_score`). It returns an object
      with a method `answers(released)`; `TrainedFunction` makes one of a function;
    - `suits`, where it cannot attack every shape of record or every kind of attribute;
    - its settings, as fields of a dataclass with `frozen=True, kw_only=True`.

    It sees what `Released` shows: `vectors()`, every record as one standardised vector;
    `batches(size, seed)`, records as they were released, in the shape that `view` describes;
    `labels(name)`, with -1 (classes) or NaN (numbers) where a label is missing. Where the release
    adds noise, every call shows fresh noise. The same seed must give the same answers.

    >>> import torch
    >>> from privet import Release, load
    >>> from privet.data.schema import learn_schema
    >>> class ClassMeans(Adversary):
    ...     name, title = "class-means", "nearest class mean"
    ...
    ...     def suits(self, view, attribute):
    ...         return attribute.is_class
    ...
    ...     def attack(self, seen, select, attribute, seed=0, tick=silent):
    ...         x, y = seen.vectors(), torch.as_tensor(seen.labels(attribute.name))
    ...         means = torch.stack([x[y == c].mean(0) for c in range(attribute.classes)])
    ...         return TrainedFunction(
    ...             lambda released: (-torch.cdist(released.vectors(), means)).softmax(1).numpy()
    ...         )
    >>> data = load("toy:gaussian")
    >>> release = Release.identity(learn_schema(data, ["u"]))
    >>> attack = Released(release, data.part("attack"), ["u"], torch.device("cpu"))
    >>> test = Released(release, data.part("test"), ["u"], torch.device("cpu"), like=attack)
    >>> trained = ClassMeans().attack(attack, attack, data.attribute("u"))
    >>> ranking_score(test.labels("u"), trained.answers(test)) > 0.7
    True

    Attributes:
        name: A word, for tables and files.
        title: What people call it.
        on_cpu: Whether it learns on the CPU even where there is a GPU. It then does so while
            networks learn on the GPU.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    on_cpu: ClassVar[bool] = False

    def suits(self, view: View, attribute: Attribute) -> bool:
        """Whether it can attack records that look like this, and guess this attribute."""
        return True

    @abstractmethod
    def attack(
        self,
        seen: Released,
        select: Released,
        attribute: Attribute,
        seed: int = 0,
        tick: Tick = silent,
    ) -> Trained:
        """Learn to read `attribute` from `seen`, released records of the *attack* people.

        Parameters:
            seen: Released records of the *attack* people, and their labels.
            select: The same of the *select* people, to choose among settings by.
            attribute: What to guess.
            seed: Of everything that is random.
            tick: Is called with the share of the work that is done.
        """


def has_label(labels: Array) -> Array:
    """Which labels are present: codes are -1 and numbers NaN where they are missing."""
    return labels >= 0 if labels.dtype.kind in "iu" else np.isfinite(labels)


def ranking_score(truth: Array, answers: Array) -> float:
    """How well answers order the records: AUC of classes, share of variance explained of numbers.

    This is what tuning maximises: unlike accuracy it depends neither on a threshold nor on how
    frequent a class is.
    """
    present = has_label(truth)
    if answers.ndim == 2:
        area = auc(truth[present], answers[present])
        return 0.5 if area is None else area
    variance = float(np.var(truth[present])) if present.any() else 0.0
    error = float(np.mean((truth[present] - answers[present]) ** 2)) if variance > 0 else 0.0
    return 1 - error / variance if variance > 0 else 0.0
