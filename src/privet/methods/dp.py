"""DP: Laplace noise on every value of the raw record, and what that amounts to for the whole
record.

    z = x + range * Laplace(b),     x clipped to its range, value by value;      b = 1 / epsilon  or  b = sensitivity / epsilon

The baseline of that name in Li et al., "TIPRDC", KDD 2020, section 5.2 (epsilon 0.1, 0.2, 0.5,
0.9), after Dwork, McSherry, Nissim and Smith, "Calibrating noise to sensitivity in private data
analysis", TCC 2006. As published, epsilon is spent on *each value* (`per=value`), while a record
has many: an adversary who reads one attribute from all of them faces the record's epsilon, which is
sensitivity * epsilon. With `per=record` epsilon is that of the whole record, as in local
differential privacy (Duchi, Jordan and Wainwright, FOCS 2013). The card says both numbers.

Sensitivity is the largest L1 distance of two records with each value scaled to 0..1: one for every
number, and two for a category, however many values it has, since only one of its zeros and ones can
be a one.

If any two records give any release with probabilities within a factor e^E, then so do people of any
two values of any attribute, and whoever guesses which of c equally frequent values it was is right
at most e^E / (e^E + c - 1) of the time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

from privet.core.errors import PrivetError, unknown
from privet.core.progress import console
from privet.data.dataset import Attribute, Modality
from privet.data.schema import Schema, TableSchema
from privet.methods.method import Method, Problem
from privet.nets.laplace import Laplace
from privet.nets.record import Record
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.game import Run

PER = ("value", "record")
LARGEST = 1000.0
"""An epsilon above this is no privacy at all."""


@dataclass(kw_only=True)
class DP(Method):
    epsilon: float = 0.9
    per: str = "value"
    """What epsilon is spent on: each `value`, as published, or the whole `record`."""
    clip: float = 3.0
    """Numbers of rows and windows are clipped to so many deviations on both sides of the mean;
    pictures have a range already."""

    name: ClassVar[str] = "dp"
    title: ClassVar[str] = "DP"
    modalities: ClassVar[tuple[Modality, ...]] = ("image", "table", "signal")
    instead: ClassVar[str] = "words are no numbers that noise could be added to"
    numbers: ClassVar[bool] = True
    dial: ClassVar[str] = "epsilon"
    sweep: ClassVar[tuple[float, ...]] = (0.9, 0.5, 0.2, 0.1)

    def __post_init__(self) -> None:
        check_epsilon(self)
        self.within(clip=(1e-3, inf))

    def learn(self, problem: Problem, run: Run) -> Release:
        low, high = limits(problem.schema, self.clip)
        spent = LaplaceBudget.of(self.epsilon, self.per, len(low), sensitivity(problem.schema))
        shape = problem.schema.shape
        module = Laplace(Record(shape), spent.scale)
        module.bound(low, high).to(problem.device)
        card = {"form": "record", **spent.card(problem.private, run)}
        return Release(
            problem.schema,
            ("dp", {"scale": spent.scale}),
            module,
            Noise("laplace", shape, spent.scale),
            card,
        )


def check_epsilon(method: Method) -> None:
    """The settings `epsilon` and `per` of a method with Laplace noise."""
    method.within(epsilon=(1e-6, LARGEST))
    if method.per not in PER:  # type: ignore[attr-defined]
        raise unknown(f"way to spend epsilon in {method.name}: per =", method.per, PER)  # type: ignore[attr-defined]


def limits(schema: Schema, clip: float) -> tuple[list[float], list[float]]:
    """The range of every value of a record laid flat, in the network's scale."""
    if isinstance(schema, TableSchema):
        low = [
            bound
            for column in schema.columns
            for bound in ([0.0] * column.size if column.values else [-clip])
        ]
        high = [
            bound
            for column in schema.columns
            for bound in ([1.0] * column.size if column.values else [clip])
        ]
        return low, high
    size = math.prod(axis or 1 for axis in schema.shape)
    reach = 1.0 if schema.modality == "image" else clip
    return [-reach] * size, [reach] * size


def sensitivity(schema: Schema) -> int:
    """The largest L1 distance of two records, each value scaled to 0..1."""
    if isinstance(schema, TableSchema):
        return sum(min(2, column.size) for column in schema.columns)
    return math.prod(axis or 1 for axis in schema.shape)


@dataclass(frozen=True)
class LaplaceBudget:
    """What an epsilon buys: the noise, and the epsilon of the whole record."""

    epsilon: float
    per: str
    values: int
    """Numbers in a record."""
    sensitivity: int
    """How many of them, each between 0 and 1, two records can differ in."""
    scale: float
    """b, for numbers between 0 and 1."""
    record: float
    """Epsilon of one release of one record."""

    @staticmethod
    def of(epsilon: float, per: str, values: int, sensitivity: int) -> LaplaceBudget:
        if sensitivity < 1:
            raise PrivetError(
                "These records hold no value that differs between people, so there is nothing to add noise to."
            )
        if per == "record":
            return LaplaceBudget(epsilon, per, values, sensitivity, sensitivity / epsilon, epsilon)
        return LaplaceBudget(epsilon, per, values, sensitivity, 1 / epsilon, sensitivity * epsilon)

    def card(self, private: Sequence[Attribute], run: Run) -> dict[str, Any]:
        """What the card says about it; said on the console as well, since the published number
        alone misleads."""
        bounds = {
            attribute.name: accuracy_bound(self.record, attribute.classes)
            for attribute in private
            if attribute.is_class
        }
        said = self.sentence(bounds)
        if run.progress:
            console.print(said, highlight=False, soft_wrap=True)
        return {
            "epsilon_record": self.record,
            "epsilon_value": 1 / self.scale,
            "values": self.values,
            "sensitivity": self.sensitivity,
            "said": said,
            "certificate": {
                "kind": "local-dp",
                "said": said,
                "epsilon": self.record,
                "bounds": bounds,
            },
        }

    def sentence(self, bounds: dict[str, float]) -> str:
        """
        >>> print(
        ...     LaplaceBudget.of(0.9, "value", 4, 3)
        ...     .sentence({"sex": accuracy_bound(2.7, 2)})
        ...     .replace(". ", ".\\n")
        ...     .replace(", and", ",\\nand")
        ... )
        Laplace noise of 1.11 times its range on each of 4 values is epsilon 0.9 for a value,
        and 3 x 0.9 = 2.7 for the record, whose sensitivity is 3.
        By this alone, nobody who sees one release reads sex in more than 93.8 % of balanced guesses.
        Every further release of the same record costs as much again.
        """
        if self.per == "record":
            each = f"{1 / self.scale:.3g} for a value"
            spent = f"epsilon {self.epsilon:g} for the record, whose sensitivity is {self.sensitivity:,}, and {each}"
        else:
            product = f"{self.sensitivity:,} x {self.epsilon:g} = {self.record:,.6g}"
            spent = f"epsilon {self.epsilon:g} for a value, and {product} for the record, whose sensitivity is {self.sensitivity:,}"
        noise = f"Laplace noise of {self.scale:,.3g} times its range on each of {self.values:,} values is {spent}."
        most = {
            name: math.ceil(1000 * share) / 10 for name, share in bounds.items() if share < 0.999
        }
        told = [
            f"{name} in more than {share:g} % of balanced guesses" for name, share in most.items()
        ]
        if bounds and not told:
            return f"{noise} So large an epsilon bounds no adversary: what protects here, if anything, is only what attackers fail to do."
        if told:
            noise = f"{noise} By this alone, nobody who sees one release reads {' or '.join(told)}."
        return f"{noise} Every further release of the same record costs as much again."


def accuracy_bound(epsilon: float, classes: int) -> float:
    """The largest balanced accuracy that epsilon, of the whole record, leaves to any adversary.

    >>> accuracy_bound(0.0, 2), round(accuracy_bound(1.0, 2), 3), accuracy_bound(11059.2, 2)
    (0.5, 0.731, 1.0)
    """
    return 1 / (1 + (classes - 1) * math.exp(-epsilon))
