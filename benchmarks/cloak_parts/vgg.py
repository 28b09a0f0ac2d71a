"""Cloak around VGG-16 as the frozen service, with noise that is learned once for several shares of
suppression.

VGG-16 is 13 convolutions in blocks of 2, 2, 3, 3, 3 with 64 to 512 channels, and three fully
connected layers (Simonyan and Zisserman, ICLR 2015): TIPRDC's extractor and its V-CL#16, which
normalise each convolution's output, as a network that is taught from scratch needs.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from privet.methods.cloak import Cloak, CloakNetworks, substitute
from privet.methods.method import Problem
from privet.methods.services.segmentation import cosine
from privet.methods.services.service import Service, teaching_phase
from privet.release.release import Release
from privet.train.game import Game, Phase, Run

RATE = 2e-4
"""Of Adam while the service is taught."""


class CloakedVgg(CloakNetworks):
    """VGG-16 for every task of the problem, and the noise that it bears."""

    def __init__(self, problem: Problem, method: Cloak) -> None:
        super().__init__(problem, method)
        self.served = self.guides = self.services(problem, method.width)
        self.taught = []

    @staticmethod
    def services(problem: Problem, width: float) -> list[Service]:
        """Not taught yet."""
        made = [substitute(problem, task, width) for task in problem.utility]
        return [replace(one, source="VGG-16") for one in made]

    def learn(self, run: Run) -> None:
        """The service first, then the noise that it bears."""
        lessons = [
            replace(
                teaching_phase(one, self.method.lessons, RATE, jitter=True),
                name=f"teaching {one.attribute.name}",
                schedule=cosine,
            )
            for one in self.served
        ]
        noise = [phase for phase in self.phases() if phase.name == "learning noise"]
        self._play([*lessons, *noise], run)

    def suppress(self, share: float, run: Run) -> Release:
        """The release with this share suppressed and constants learned for it."""
        self.method = replace(self.method, suppression=share)
        self._keep = None
        with torch.no_grad():
            self.cover.instead.shift.zero_()
        constants = [phase for phase in self.phases() if phase.name == "learning constants"]
        self._play(constants, run)
        return self.release()

    def _play(self, phases: list[Phase], run: Run) -> None:
        method = self.method
        modules: dict[str, nn.Module] = self.modules()
        identity = method.identity(self.problem)
        Game(modules, phases, self.feed, method.batch, method.seed, identity).play(run)
