"""Metric: noise on a vector that makes near vectors hard to tell apart, and far ones less so.

    z = x + v,    density of v proportional to exp(-epsilon |v|)

Chatzikokolakis, Andres, Bordenabe and Palamidessi, "Broadening the scope of differential privacy
using metrics", PETS 2013; for vectors of words Feyisetan, Balle, Drake and Diethe, WSDM 2020, as in
`privet words`. Two records at the distance r give any z with probabilities within a factor
e^(epsilon r). Records are shortened to the longest of *fit*, R, so no two are further apart than
2 R, and the whole record's epsilon is 2 R epsilon, as in local differential privacy.

The noise has a length of about d / epsilon. For hundreds of numbers a bound that means something
leaves nothing of the record: it is a baseline.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from privet.data.schema import TableSchema
from privet.methods.dp import accuracy_bound
from privet.methods.method import Method, Problem, ranges_of
from privet.nets.radial import Radial, length
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.game import Run


@dataclass(kw_only=True)
class Metric(Method):
    """Noise with a metric-DP law on rows and vectors: a baseline. Nothing is learned.

    Parameters:
        epsilon: Privacy loss for every unit of Euclidean distance, in the units of the file.

    Example:
        >>> import privet
        >>> data = privet.load("toy:gaussian")
        >>> release = privet.Metric(epsilon=0.1).fit(data, "u")
        >>> release.noise.law, release.card["certificate"]["bounds"]["u"] < 0.8
        ('gaussian', True)

    Notes:
        Every further release of the same record costs as much again. Lengths and means come from
        *fit* and are not protected.
    """

    epsilon: float = 100.0

    name = "metric"
    title = "Metric DP"
    modalities = ("table",)
    instead = "add the noise to an embedding of each record, one column per number"
    numbers = True
    dial = "epsilon"
    sweep = (3000.0, 1000.0, 300.0, 100.0)
    ranges = ranges_of(epsilon=(1e-6, 1e9))

    def learn(self, problem: Problem, run: Run) -> Release:
        schema = problem.schema
        assert isinstance(schema, TableSchema), "only rows are taken"
        size = schema.shape[0] or 0
        rows = torch.as_tensor(schema.inputs(problem.view())[:])
        radius = float(length(Radial(size, 1.0, 1.0).measure(schema).own(rows)).max().clamp(1e-9))
        module = Radial(size, self.epsilon, radius).measure(schema).to(problem.device)
        whole = 2 * radius * self.epsilon
        bounds = {a.name: accuracy_bound(whole, a.classes) for a in problem.private if a.is_class}
        said = (
            f"Epsilon {self.epsilon:g} for a unit of distance is {whole:,.4g} for records of a "
            f"length of up to {radius:.4g}; the noise has a length of about "
            f"{size / self.epsilon:.3g}."
        )
        claim = {"kind": "local-dp", "said": said, "epsilon": whole, "bounds": bounds}
        return Release(
            schema,
            ("radial", {"epsilon": self.epsilon, "radius": radius}),
            module,
            Noise("gaussian", (3, size), 1 / self.epsilon),
            {"form": "record", "radius": radius, "epsilon_record": whole, "certificate": claim},
        )
