"""Blend: what it compares, and that it hides what it is told to and keeps the rest."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import PolynomialFeatures

from privet import Blend, Run
from privet.core.errors import PrivetError
from privet.data.in_memory import as_dataset
from privet.methods.blend import Components, distance_in_kernels, near
from small import small

QUIET = Run(progress=False, device="cpu")


def slow_distance(kernel: np.ndarray, one: np.ndarray, other: np.ndarray) -> float:
    """The unbiased estimate, pair by pair."""

    def mean(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.mean([kernel[i, j] for i in a for j in b if i != j]))

    return mean(one, one) + mean(other, other) - 2 * mean(one, other)


def test_the_distance_in_kernels_is_that_of_all_pairs():
    torch.manual_seed(0)
    z, truth = torch.randn(40, 3), torch.arange(40) % 3
    truth[:4] = -1
    kernel, known = near(z), truth.numpy()
    each = [
        slow_distance(
            kernel.numpy(), np.flatnonzero(known == c), np.flatnonzero((known >= 0) & (known != c))
        )
        for c in range(3)
    ]
    assert float(distance_in_kernels(kernel, truth, 3)) == pytest.approx(np.mean(each), abs=1e-5)


def test_every_value_is_drawn_about_equally_often():
    torch.manual_seed(1)
    values = torch.tensor([[0]] * 900 + [[1]] * 90 + [[-1]] * 10)
    components = Components(1000, 2, 1)
    components.fill(torch.randn(1000, 2), values, [2])
    drawn = components.draw(4000)[1][:, 0]
    assert abs(float((drawn == 1).float().mean()) - 0.5) < 0.04 and not (drawn == -1).any()


def rows(n: int) -> pd.DataFrame:
    """u moves two columns and widens a third; the task is two others."""
    rng = np.random.default_rng(2)
    u = rng.integers(0, 2, n)
    columns = {f"x{i}": rng.standard_normal(n) for i in range(6)}
    columns["x0"] += 1.5 * u
    columns["x1"] -= 1.0 * u
    columns["x2"] *= 1 + u
    return pd.DataFrame({**columns, "u": u.astype(str)})


def read(train: np.ndarray, truth: np.ndarray, other: np.ndarray, there: np.ndarray) -> float:
    """How often a quadratic reader is right about people that it did not learn from."""
    curved = PolynomialFeatures(2)
    reader = LogisticRegression(max_iter=2000).fit(curved.fit_transform(train), truth)
    return float((reader.predict(curved.transform(other)) == there).mean())


def test_it_hides_what_it_is_told_to_and_keeps_the_rest():
    data = as_dataset(rows(4000))
    settings = {"dims": 6, "width": 0.05, "lessons": 20, "drawing": 1, "batch": 256, "sample": 512}
    found = {}
    for hide in (0.0, 3.0):
        release = Blend(hide=hide, epochs=50, **settings).fit(data, "u", run=QUIET)
        parts = {part: data.part(part) for part in ("attack", "test")}
        x = {part: release.schema.inputs(view)[:] for part, view in parts.items()}
        z = {part: release(some, seed=1) for part, some in x.items()}
        u = {part: view.labels["u"] for part, view in parts.items()}
        task = {part: (some[:, 3] + some[:, 4] > 0).astype(int) for part, some in x.items()}
        found[hide] = [read(z["attack"], c["attack"], z["test"], c["test"]) for c in (u, task)]
    assert found[0.0][0] > 0.78 and found[3.0][0] < 0.72
    assert found[0.0][1] > 0.9 and found[3.0][1] > 0.9


def test_releasing_a_record_again_gives_nearly_the_same_code():
    data = small("image")
    method = Blend(
        dims=4, width=0.05, lessons=1, epochs=1, drawing=1, copies=1, sample=32, batch=32
    )
    release = method.fit(data, "u", run=QUIET)
    x = release.schema.inputs(data.part("test"))[:]
    one, other = release(x, seed=1), release(x, seed=2)
    assert 0 < np.abs(one - other).max() < 0.15


def test_features_are_for_pictures():
    with pytest.raises(PrivetError, match="pictures only"):
        Blend(features=1).fit(as_dataset(rows(200)), "u", run=QUIET)
