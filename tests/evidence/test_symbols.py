"""Releases of symbols: the flip that is chosen is the smallest that meets the target."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from privet.evidence.certificate.symbols import certify_alphabet, response, smallest_flip

Array = npt.NDArray[Any]
VALUES = ("a", "b", "c")


def drawn(k: int, size: int = 5, n: int = 3000) -> tuple[Array, Array, Array]:
    """Symbols that tell something about k values; one record per person."""
    random = np.random.default_rng(k)
    labels = np.arange(n) % k
    laws = random.dirichlet(np.ones(size), k)
    symbols = np.array([random.choice(size, p=laws[label]) for label in labels])
    return symbols, labels, np.arange(n)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("confidence", [0.9, 0.99])
def test_the_chosen_flip_is_what_the_certificate_needs(k: int, confidence: float) -> None:
    """On the very people it was chosen on, and without margin, the bound is the target itself."""
    symbols, labels, person = drawn(k)
    size, target = 5, 1 / k + 0.1
    people = [int(n) for n in np.bincount(labels)]
    given = (symbols, size, labels, person, VALUES[:k])
    flip = smallest_flip(*given, target, people=people, confidence=confidence, margin=0.0)
    assert flip is not None and 0 < flip < 1

    def bound(flip: float) -> float:
        channel = response(size, flip)
        found = certify_alphabet(
            symbols, size, channel, labels, person, "x", VALUES[:k], confidence=confidence
        )
        assert found.bound is not None
        return found.bound

    assert bound(flip) == pytest.approx(target, abs=1e-6) and bound(0.9 * flip) > target + 1e-3
    kept_back = smallest_flip(*given, target, people=people, confidence=confidence, margin=0.02)
    assert kept_back is not None and bound(kept_back) == pytest.approx(target - 0.02, abs=1e-6)
    usual = smallest_flip(*given, target, people=people, confidence=confidence)
    fewer = smallest_flip(*given, target, people=[n // 2 for n in people], confidence=confidence)
    assert usual is not None and fewer is not None and flip < usual < fewer


def test_no_flip_where_none_is_needed_or_none_would_do() -> None:
    symbols, labels, person = drawn(2)
    given = (symbols, 5, labels, person, VALUES[:2])
    assert smallest_flip(*given, 0.999, people=(1500, 1500)) == 0.0
    nearly_all = smallest_flip(*given, 0.51, people=(1500, 1500))
    assert nearly_all is not None and 0.6 < nearly_all < 1, "slack shrinks with what is told"
    assert smallest_flip(*given, 0.49, people=(1500, 1500)) is None, "guessing is better"
    assert smallest_flip(*given, 0.9, people=(1, 1500)) is None
    assert smallest_flip(*given, 0.9, people=()) is None
    one = (symbols, 5, np.zeros_like(labels), person, VALUES[:2])
    assert smallest_flip(*one, 0.9, people=(1500, 1500)) is None


def test_one_value_leaves_nothing_to_guess() -> None:
    symbols, labels, person = drawn(2)
    found = certify_alphabet(symbols, 5, None, 0 * labels, person, "x", VALUES[:1])
    assert found.bound is None and "fewer than two values" in found.reason


def test_outputs_that_never_come_are_counted_as_such() -> None:
    """Two releases through a channel whose last output has no weight, against all pairs."""
    channel = np.array([[0.7, 0.3, 0.0], [0.2, 0.8, 0.0]])
    labels, people = np.arange(800) % 2, np.arange(800)
    found = certify_alphabet(labels, 2, channel, labels, people, "x", VALUES[:2], releases=2)
    pairs = [channel[:, a] * channel[:, b] for a, b in product(range(3), repeat=2)]
    assert found.empirical == pytest.approx(sum(max(pair) for pair in pairs) / 2)
