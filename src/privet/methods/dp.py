"""DP: Laplace noise on every value of the raw record, and what that amounts to for the whole
record.

    z = x + range * Laplace(b),     x clipped to its range, value by value
    b = 1 / epsilon  or  b = sensitivity / epsilon

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
from typing import Any

from privet.core.errors import PrivetError
from privet.core.progress import console
from privet.data.dataset import Attribute
from privet.data.schema import Schema, TableSchema
from privet.evidence.sentences import say
from privet.methods.method import NUMERIC, Method, Problem, at_least, choices_of, ranges_of
from privet.nets.laplace import Laplace
from privet.nets.record import Record
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.game import Run

# An epsilon above this is no privacy at all.
LARGEST = 1000.0


@dataclass(kw_only=True)
class LaplaceMethod(Method):
    """The settings of methods whose Laplace noise follows from an epsilon.

    Parameters:
        epsilon: Privacy loss of one release, see `per`; smaller is more private.
        per: What epsilon is spent on: each `value`, as published, or the whole `record`.
        clip: Numbers are clipped to so many standard deviations on both sides of their mean;
            pictures have a range already.
    """

    epsilon: float = 0.9
    per: str = "value"
    clip: float = 3.0

    numbers = True
    dial = "epsilon"
    sweep = (0.9, 0.5, 0.2, 0.1)
    ranges = ranges_of(epsilon=(1e-6, LARGEST), clip=at_least(1e-3))
    choices = choices_of(per=("value", "record"))


@dataclass(kw_only=True)
class DP(LaplaceMethod):
    """Laplace noise on every value of the raw record: local differential privacy, a baseline.

    Nothing is learned. The card says the epsilon of a value and of the whole record, and the
    balanced accuracy that the latter leaves to any adversary.

    Example:
        >>> import privet
        >>> data = privet.load("toy:gaussian")
        >>> method = privet.DP(epsilon=1, per="record")
        >>> release = method.fit(data, "u", run=privet.Run(progress=False))
        >>> round(release.card["certificate"]["bounds"]["u"], 3)
        0.731

    Notes:
        With `per="value"` the record's epsilon is that of a value times the number of values, which
        soon promises nothing. Every further release of the same record costs as much again.
    """

    name = "dp"
    title = "DP"
    modalities = NUMERIC
    instead = "words are no numbers that noise could be added to"

    def learn(self, problem: Problem, run: Run) -> Release:
        low, high = limits(problem.schema, self.clip)
        budget = LaplaceBudget.of(self.epsilon, self.per, len(low), sensitivity(problem.schema))
        shape = problem.schema.shape
        module = Laplace(Record(shape), budget.scale)
        module.bound(low, high).to(problem.device)
        return Release(
            problem.schema,
            ("dp", {"scale": budget.scale}),
            module,
            Noise("laplace", shape, budget.scale),
            {"form": "record", **budget.card(problem.private, run)},
        )


def limits(schema: Schema, clip: float) -> tuple[list[float], list[float]]:
    """The range of every value of a record laid flat, in the network's scale."""
    if isinstance(schema, TableSchema):
        ends = [
            (0.0, 1.0) if column.values else (-clip, clip)
            for column in schema.columns
            for _ in range(column.size)
        ]
        return [low for low, _ in ends], [high for _, high in ends]
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
    """How much Laplace noise an epsilon asks for, and the epsilon of the whole record.

    Parameters:
        epsilon: As the user set it.
        per: What that is spent on: a value or the record.
        values: Numbers in a record.
        sensitivity: How many of them, each between 0 and 1, two records can differ in.
        scale: b, for numbers between 0 and 1.
        record: Epsilon of one release of one record.
    """

    epsilon: float
    per: str
    values: int
    sensitivity: int
    scale: float
    record: float

    @staticmethod
    def of(epsilon: float, per: str, values: int, sensitivity: int) -> LaplaceBudget:
        """The budget of records with this many values and this sensitivity."""
        if sensitivity < 1:
            raise PrivetError(
                "These records hold no value that differs between people, so there is nothing to "
                "add noise to."
            )
        if per == "record":
            return LaplaceBudget(epsilon, per, values, sensitivity, sensitivity / epsilon, epsilon)
        return LaplaceBudget(epsilon, per, values, sensitivity, 1 / epsilon, sensitivity * epsilon)

    def card(self, private: Sequence[Attribute], run: Run) -> dict[str, Any]:
        """What the card says about it. It is printed as well, since the published number alone
        misleads."""
        bounds = {a.name: accuracy_bound(self.record, a.classes) for a in private if a.is_class}
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
        """The budget in words; `bounds` has the `accuracy_bound` of each private attribute.

        >>> budget = LaplaceBudget.of(0.9, "value", 4, 3)
        >>> for line in budget.sentence({"sex": accuracy_bound(2.7, 2)}).split(". "):
        ...     print(line)
        Laplace noise of 1.11 times its range on each of 4 values is epsilon 0.9 for a value, and \
3 x 0.9 = 2.7 for the record, whose sensitivity is 3
        By this alone, nobody who sees one release of one record reads sex in more than 93.8 % of \
balanced guesses
        Every further release of the same record costs as much again, and so does every further \
record of the same person.
        """
        if self.per == "record":
            spent = (
                f"epsilon {self.epsilon:g} for the record, whose sensitivity is "
                f"{self.sensitivity:,}, and {1 / self.scale:.3g} for a value"
            )
        else:
            product = f"{self.sensitivity:,} x {self.epsilon:g} = {self.record:,.6g}"
            spent = (
                f"epsilon {self.epsilon:g} for a value, and {product} for the record, whose "
                f"sensitivity is {self.sensitivity:,}"
            )
        scale, values = f"{self.scale:,.3g}", f"{self.values:,}"
        said = [say("dp_noise", scale=scale, values=values, spent=spent)]
        bounded = [
            say("dp_part", attribute=name, share=f"{math.ceil(1000 * share) / 10:g}")
            for name, share in bounds.items()
            if share < 0.999
        ]
        if bounds and not bounded:
            return f"{said[0]} {say('dp_unbounded')}"
        if bounded:
            said.append(say("dp_bound", bounds=" or ".join(bounded)))
        return " ".join([*said, say("dp_more")])


def accuracy_bound(epsilon: float, classes: int) -> float:
    """The largest balanced accuracy that epsilon, of the whole record, leaves to any adversary.

    >>> accuracy_bound(0.0, 2), round(accuracy_bound(1.0, 2), 3), accuracy_bound(11059.2, 2)
    (0.5, 0.731, 1.0)
    """
    return 1 / (1 + (classes - 1) * math.exp(-epsilon))
