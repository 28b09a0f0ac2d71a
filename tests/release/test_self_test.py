"""What anybody can find out about a release: the record in another form is recognised, whatever its
card says; a release that hides is not taken for one that does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privet.data.schema import Column, ImageSchema, Schema, SignalSchema, TableSchema
from privet.release.noise import Noise
from privet.release.runtime import Runnable
from privet.release.self_test import REBUILT, Finding, self_test

PICTURES = ImageSchema(3, 16, 16)
MEAN = np.array([0.485, 0.456, 0.406]).reshape(1, 3, 1, 1)
DEVIATION = np.array([0.229, 0.224, 0.225]).reshape(1, 3, 1, 1)


class Function:
    """A function of records and noise as a session."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def run(self, _names: Any, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        noise = inputs.get("noise")
        return [np.asarray(self.function(inputs["x"].astype(np.float64), noise))]


def findings(function: Any, schema: Schema, noise: Noise | None = None, seed: int = 0) -> Any:
    shape = tuple(schema.shape)
    found = self_test(Runnable(schema, shape, noise, {}), Function(function), seed)
    return {finding.code: finding for finding in found}


def mixed(x: np.ndarray, _noise: Any) -> np.ndarray:
    rows = x.reshape(len(x), -1)
    return rows @ np.random.default_rng(5).standard_normal((rows.shape[1], rows.shape[1]))


SAME: dict[str, Any] = {
    "the record": lambda x, e: x,
    "scaled": lambda x, e: x / 255,
    "shifted": lambda x, e: x / 127.5 - 1,
    "standardised": lambda x, e: (x / 255 - MEAN) / DEVIATION,
    "flipped": lambda x, e: 255 - x[..., ::-1],
    "flat": lambda x, e: x.reshape(len(x), -1),
    "shuffled": lambda x, e: x.reshape(len(x), -1)[:, np.random.default_rng(1).permutation(768)],
    "mixed": mixed,
    "smaller": lambda x, e: x[:, :, ::2, ::2],
    "with a trace of noise": lambda x, e: x / 255 + 1e-4 * e,
    "squeezed": lambda x, e: np.tanh(x / 127.5 - 1),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("seed", range(3))
def test_the_record_in_another_form_is_recognised(name: str, seed: int) -> None:
    noise = Noise("gaussian", (3, 16, 16), 0.4) if "noise" in name else None
    found = findings(SAME[name], PICTURES, noise, seed)
    assert found["rebuilt"].serious, found


@pytest.mark.parametrize("seed", range(3))
def test_a_release_that_hides_is_not_taken_for_the_record(seed: int) -> None:
    few = findings(lambda x, e: x.reshape(len(x), -1)[:, :2] / 255 + e, PICTURES, NOISE, seed)
    nothing = findings(lambda x, e: e, PICTURES, NOISE, seed)
    drowned = findings(
        lambda x, e: x / 255 + 3 * e, PICTURES, Noise("gaussian", (3, 16, 16), 1.0), seed
    )
    for found in (few, nothing, drowned):
        assert "hidden" in found or "partly" in found, found
        assert not any(finding.serious for finding in found.values())


NOISE = Noise("gaussian", (2,), 0.4)


def test_noise_that_is_not_used_is_noticed() -> None:
    unused = findings(lambda x, e: x.reshape(len(x), -1)[:, :2], PICTURES, NOISE)
    assert unused["noise_unused"].serious
    used = findings(lambda x, e: x.reshape(len(x), -1)[:, :2] + e, PICTURES, NOISE)
    assert not used["noise"].serious
    assert "no_noise" in findings(lambda x, e: x, PICTURES)


def test_rows_and_windows_too() -> None:
    rows = TableSchema(tuple(Column(f"c{k}") for k in range(6)))
    assert "rebuilt" in findings(lambda x, e: 3 * x - 1, rows)
    assert "rebuilt" not in findings(lambda x, e: x[:, :1], rows)
    windows = SignalSchema(2, 32, (0.0, 0.0), (1.0, 1.0))
    assert "rebuilt" in findings(lambda x, e: x[..., ::-1], windows)


def test_findings_say_what_was_done() -> None:
    found = findings(lambda x, e: x, PICTURES)["rebuilt"]
    assert isinstance(found, Finding) and "100 % of made-up records" in found.text
    assert 0.5 < REBUILT < 1
