"""Noisy: Gaussian noise on the raw record, and nothing else.

    z = x + sigma * N(0, I), fresh for every value of every record

The baseline of that name in Li et al., "TIPRDC", KDD 2020, section 5.2, where sigma is 40 of the
255 steps from black to white. Rows and windows have no such steps: there, 255 are taken for four
deviations, from two below the mean to two above, which is about what they are in a photograph. So
sigma = 63.75 is one deviation. A category is a zero or a one per value, and gets the same noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar

from privet.data.dataset import Modality
from privet.methods.method import Method, Problem
from privet.nets.additive import Additive
from privet.nets.record import Record
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.game import Run

STEPS = {"image": 127.5, "table": 63.75, "signal": 63.75}
"""Steps of sigma that are 1 in the network's scale."""


@dataclass(kw_only=True)
class Noisy(Method):
    sigma: float = 40.0
    """Standard deviation of the noise, in steps of which a picture has 255, and rows and windows
    63.75 per deviation."""

    name: ClassVar[str] = "noisy"
    title: ClassVar[str] = "Noisy"
    modalities: ClassVar[tuple[Modality, ...]] = ("image", "table", "signal")
    instead: ClassVar[str] = "words are no numbers that noise could be added to"
    numbers: ClassVar[bool] = True
    dial: ClassVar[str] = "sigma"
    sweep: ClassVar[tuple[float, ...]] = (10.0, 20.0, 40.0, 80.0, 160.0)

    def __post_init__(self) -> None:
        self.within(sigma=(1e-3, inf))

    def learn(self, problem: Problem, run: Run) -> Release:
        scale = self.sigma / STEPS[problem.schema.modality]
        shape = problem.schema.shape
        module = Additive(Record(shape), scale).to(problem.device)
        return Release(
            problem.schema,
            ("noisy-record", {"scale": scale}),
            module,
            Noise("gaussian", shape, scale),
            {"form": "record"},
        )
