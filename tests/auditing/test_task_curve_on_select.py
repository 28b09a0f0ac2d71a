"""The curve of noise levels shows the task model that was best on *select*, counted on *test*."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from privet.auditing.certify import certify
from privet.data.dataset import PARTS, Dataset
from privet.data.schema import learn_schema
from privet.nets.additive import Additive
from privet.nets.identity import Identity
from privet.release.noise import Noise
from privet.release.release import Release
from small import small


def turned(data: Dataset, part: str) -> Dataset:
    """The same people, of whom those in one part have the other value of y."""
    there = data.part_of == PARTS.index(part)
    return replace(
        data, labels={**data.labels, "y": np.where(there, 1 - data.labels["y"], data.labels["y"])}
    )


def test_the_model_of_a_task_is_not_chosen_on_test() -> None:
    """Other labels on *test* make a share s of right answers 1 - s, if the model stays the same.

    Trees find whether a number is far from 0, logistic regression does not. Chosen on *test*, the
    model would be logistic regression for the other labels, and its share not 1 - s.
    """
    data = small("table", 1000)
    x = np.random.default_rng(0).standard_normal(len(data))
    y = (abs(x) > 0.67).astype(np.int64)
    data = replace(data, records=pd.DataFrame({"a": x}), labels={**data.labels, "y": y})
    schema = learn_schema(data, ["u", "y"])
    module = Additive(Identity(schema.shape), 0.1)
    release = Release(
        schema, ("code", {}), module, Noise("gaussian", (1,), 0.1), {"private": ["u"]}
    )

    def served(data: Dataset) -> list[float]:
        _, found = certify(release, data, ["y"], curve=True, device="cpu", progress=False)
        return [step.utility["y"].value for step in found.curve]

    usual, other = served(data), served(turned(data, "test"))
    assert max(usual) > 0.85
    assert other == pytest.approx([1 - share for share in usual])
