"""The audit's own learners on raw pictures, told to the device move by move and recorded."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest import mock

from learning_parts.bench import Bench, release_memory
from learning_parts.works import loaded, run_data
from privet.adversaries import decoder, network_training, raw_classifiers, reidentification
from privet.adversaries import stacked_mlps as stack
from privet.adversaries.adversary import Adversary, ranking_score
from privet.adversaries.decoder import Reconstruction, ReversedExtractor
from privet.adversaries.mlp import MLP
from privet.adversaries.rebuilder import Rebuilder
from privet.adversaries.released import released_parts
from privet.adversaries.resnet import ResNet
from privet.data.schema import learn_schema
from privet.evidence.figures import People
from privet.release.release import Release

RECORDING = (stack, decoder, network_training, reidentification)
"""Where steps are recorded."""


def part_A(bench: Bench) -> dict[str, Any]:
    """Seconds of each, plain and recorded, with how well it does: the same, but for rounding. The
    first run of all also wakes the device, so the first learner runs once before."""
    data = loaded(run_data(bench))
    name = "Male" if "Male" in data.attributes else "beard"
    release, attribute = Release.identity(learn_schema(data, [name])), data.attributes[name]
    parts = released_parts(release, data, [name], bench.device)
    parts["attack"].vectors()
    width = 0.1 if bench.small else 0.5

    def ranked(adversary: Adversary) -> Callable[[], float]:
        def work() -> float:
            trained = adversary.attack(parts["attack"], parts["select"], attribute)
            return ranking_score(parts["select"].labels(name), trained.answers(parts["select"]))

        return work

    def found_again() -> float:
        said = reidentification.reidentification(parts, None)
        return said.figures["top_1"].value if isinstance(said, People) else float("nan")

    def rebuilt(one: Reconstruction) -> Callable[[], float]:
        return lambda: (
            one.attack(
                parts["attack"], parts["select"], parts["test"], release.schema.plain, 0, False
            )[0].value
        )

    works: dict[str, Callable[[], float]] = {
        "perceptron": ranked(MLP(shapes=((256, 256),), rates=(3e-3,), decays=(1e-2,))),
        "ResNet, half width": ranked(
            ResNet(rates=(2e-3,), epochs=1 if bench.small else 12, width=width)
        ),
        "people": found_again,
        "extractor reversed, 2 epochs": rebuilt(
            ReversedExtractor(epochs=2, width=width if bench.small else 1.0)
        ),
        "residual decoder, 2 epochs": rebuilt(
            Rebuilder(epochs=2, least=0, width=width if bench.small else 1.0)
        ),
    }
    next(iter(works.values()))()
    found: dict[str, Any] = {}
    for label, work in works.items():
        for pace in ("plain", "recorded"):
            with ExitStack() as here:
                here.enter_context(
                    mock.patch.dict(raw_classifiers._memory, clear=True)
                )  # what was learned before is to be learned again
                for module in RECORDING if pace == "plain" else ():
                    here.enter_context(
                        mock.patch.object(module, "ReplayedStep", lambda step, _dice=None: step)
                    )
                bench.wait()
                start = time.perf_counter()
                value = work()
                bench.wait()
                found.setdefault(label, {})[pace] = {
                    "s": round(time.perf_counter() - start, 2),
                    "value": round(value, 5),
                }
        bench.say(f"A: {label}: {found[label]}")
        release_memory(bench)
    return found
