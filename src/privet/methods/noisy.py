"""Noisy: Gaussian noise on the raw record, and nothing else.

    z = x + sigma * N(0, I), fresh for every value of every record

The baseline of that name in Li et al., "TIPRDC", KDD 2020, section 5.2, where sigma is 40 of the
255 steps from black to white. Rows and windows have no such steps: there, 255 are taken for four
deviations, from two below the mean to two above, which is about what they are in a photograph. So
sigma = 63.75 is one deviation. A category is a zero or a one per value, and gets the same noise.
"""

from __future__ import annotations

from dataclasses import dataclass

from privet.methods.method import NUMERIC, Method, Problem, at_least, ranges_of
from privet.nets.additive import Additive
from privet.nets.record import Record
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.game import Run

# Steps of sigma that are 1 in the network's scale.
STEPS = {"image": 127.5, "table": 63.75, "signal": 63.75}


@dataclass(kw_only=True)
class Noisy(Method):
    """Gaussian noise on every value of the raw record: a baseline. Nothing is learned.

    Parameters:
        sigma: Standard deviation of the noise, in steps: a picture has 255 from black to white, and
            63.75 are one standard deviation of a column or channel.

    Example:
        >>> import privet
        >>> data = privet.load("toy:gaussian")
        >>> release = privet.Noisy(sigma=63.75).fit(data, "u")
        >>> release.noise.scale
        1.0
    """

    sigma: float = 40.0

    name = "noisy"
    title = "Noisy"
    modalities = NUMERIC
    instead = "words are no numbers that noise could be added to"
    numbers = True
    dial = "sigma"
    sweep = (10.0, 20.0, 40.0, 80.0, 160.0)
    ranges = ranges_of(sigma=at_least(1e-3))

    def learn(self, problem: Problem, run: Run) -> Release:
        scale = self.sigma / STEPS[problem.schema.modality]
        shape = problem.schema.shape
        return Release(
            problem.schema,
            ("noisy-record", {"scale": scale}),
            Additive(Record(shape), scale).to(problem.device),
            Noise("gaussian", shape, scale),
            {"form": "record"},
        )
