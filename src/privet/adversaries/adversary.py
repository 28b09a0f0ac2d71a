"""Adversary: hyper-parameters in the constructor, data in `attack`. Sees released records only.

It learns from the *attack* people, is tuned on the *select* people, and is then asked about people
whom neither it nor the release has seen. A task model is the same thing with another label, a
number is guessed like a class with another loss.
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

Tick = Callable[[float], None]
"""Hears the share that is done."""


def silent(_done: float) -> None:
    return None


class Trained(Protocol):
    """An adversary that has learned."""

    def answers(self, released: Released) -> Array:
        """For classes probabilities (n, classes), for a number the guesses (n,), float64, in the
        order of the data."""
        ...


@dataclass(frozen=True, kw_only=True)
class Adversary(ABC):
    name: ClassVar[str]
    """A word, for tables and files."""
    title: ClassVar[str]
    """What people call it."""
    hosted: ClassVar[bool] = False
    """Whether it learns on the processor even where there is a GPU; then it does so while networks
    learn there."""

    def suits(self, view: View, attribute: Attribute) -> bool:
        """Whether it can look at records like these and guess an attribute like this."""
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
        """Learn to read the attribute from released records of the *attack* people."""


def known(labels: Array) -> Array:
    """Which labels are there: codes are -1 and numbers NaN where they are missing."""
    return labels >= 0 if labels.dtype.kind in "iu" else np.isfinite(labels)


def rank(truth: Array, answers: Array) -> float:
    """How well answers order the records, whatever the threshold: AUC of classes, explained
    variance of numbers.

    This is what tuning maximises: unlike accuracy it depends neither on a threshold nor on how
    frequent a class is.
    """
    there = known(truth)
    if answers.ndim == 1:
        spread = float(np.var(truth[there])) if there.any() else 0.0
        return (
            1 - float(np.mean((truth[there] - answers[there]) ** 2)) / spread if spread > 0 else 0.0
        )
    value = auc(truth[there], answers[there])
    return 0.5 if value is None else value
