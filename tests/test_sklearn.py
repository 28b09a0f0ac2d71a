"""Privatizer is an estimator as scikit-learn understands it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import privet
from privet.core.errors import PrivetError
from privet.sklearn import Privatizer

N = 600


@parametrize_with_checks([Privatizer()])
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def rows(seed: int = 0) -> pd.DataFrame:
    """A sex that every number shows, and an income that one of them and the job show."""
    random = np.random.default_rng(seed)
    sex, income = random.integers(0, 2, (2, N))
    frame = pd.DataFrame(random.normal(size=(N, 3)), columns=["a", "b", "c"])
    frame += 1.5 * sex[:, None]
    frame["a"] += 2 * income
    job = np.where(income + random.normal(size=N) > 0.5, "manager", "clerk")
    return frame.assign(job=job, sex=np.where(sex, "m", "f"), income=income)


def test_columns_are_hidden_by_name_and_y_is_the_task() -> None:
    frame = rows()
    X, y = frame.drop(columns="income"), frame["income"]
    released = Privatizer(private="sex").fit_transform(X, y)
    reader = make_pipeline(LogisticRegression())
    assert cross_val_score(reader, released, frame["sex"]).mean() < 0.6
    assert cross_val_score(reader, released, y).mean() > 0.75
    raw = X[["a", "b", "c"]]
    assert cross_val_score(reader, raw, frame["sex"]).mean() > 0.8


def test_in_a_pipeline_with_names_and_frames() -> None:
    frame = rows()
    privatizer = Privatizer(private="sex").set_output(transform="pandas")
    released = privatizer.fit_transform(frame.drop(columns="income"))
    assert list(released.columns) == list(privatizer.get_feature_names_out())
    assert released.index.equals(frame.index)
    model = make_pipeline(Privatizer(private="sex"), RandomForestClassifier(20, random_state=0))
    model.fit(frame.drop(columns="income"), frame["income"])
    assert model.score(frame.drop(columns="income"), frame["income"]) > 0.8


def test_beside_columns_that_stay() -> None:
    frame = rows()
    both = make_column_transformer(
        (Privatizer(private="sex"), ["a", "b", "c", "sex"]), ("passthrough", ["income"])
    )
    assert both.fit_transform(frame).shape == (N, 4)


def test_a_grid_search_reaches_the_methods_settings() -> None:
    frame = rows()
    model = make_pipeline(
        Privatizer(privet.Noisy(), private="sex", random_state=0), LogisticRegression()
    )
    grid = {"privatizer__method__sigma": [0.1, 100.0]}
    X, y = frame[["a", "b", "c", "sex"]], frame["income"]
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert search.best_params_["privatizer__method__sigma"] == 0.1


def test_a_clone_is_new_and_equal() -> None:
    first = Privatizer(privet.Hedge(target=0.6, dims=1), private="sex", random_state=3)
    second = clone(first)
    assert second.method is not first.method
    assert second.method.get_params() == first.method.get_params()
    assert second.get_params()["method__target"] == 0.6


def test_a_certified_method_chooses_its_noise_on_rows_apart() -> None:
    frame = rows()
    hedge = privet.Hedge(target=0.8, dims=1, epochs=2, width=0.1, memory=64, batch=64)
    privatizer = Privatizer(hedge, private="sex").fit(frame.drop(columns="income"), frame["income"])
    assert privatizer.release_.card["chosen"]["on"] == ["attack", "select"]
    once, again = (privatizer.transform(frame.drop(columns="income")) for _ in range(2))
    assert once.shape == (N, 1) and not np.array_equal(once, again)


@pytest.mark.parametrize("words", [False, True])
def test_a_large_network_runs_as_a_graph_and_gives_what_torch_gives(
    words: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = rows().drop(columns="income")
    if not words:
        X = X.drop(columns="job").assign(sex=(X["sex"] == "m").astype(int))
    noisy = Privatizer(privet.Noisy(sigma=0.5), private="sex", random_state=0)
    by_torch = noisy.fit(X).transform(X)
    assert noisy.release_.graph is None
    monkeypatch.setattr("privet.sklearn.FEW_WEIGHTS", -1)
    by_graph = noisy.fit(X)
    assert by_graph.release_.graph is not None
    # Two runtimes may round to neighbouring steps of the noise's grid.
    step = by_graph.release_.module.step
    assert np.abs(by_graph.transform(X) - by_torch).max() <= 1.01 * step
    again = copy.deepcopy(by_graph)
    assert np.array_equal(again.transform(X), by_graph.transform(X))
    assert np.array_equal(by_graph.transform(X[:256]), by_graph.transform(X)[:256])


def test_numbers_keep_their_type_and_are_encoded_as_by_the_release() -> None:
    frame = rows()[["a", "b", "c"]].assign(sex=rows()["sex"] == "m").astype(np.float32)
    privatizer = Privatizer(private="sex").fit(frame)
    released = privatizer.transform(frame)
    assert released.dtype == np.float32
    assert privatizer.transform(frame.astype(np.float64)).dtype == np.float64
    assert np.array_equal(released, privatizer.release_.transform(frame).to_numpy())
    turned = privatizer.release_.transform(frame[["sex", "c", "b", "a"]])
    assert np.array_equal(released, turned.to_numpy())


def test_what_is_missing_is_said() -> None:
    with pytest.raises(PrivetError, match="sexx"):
        Privatizer(private="sexx").fit(rows())
