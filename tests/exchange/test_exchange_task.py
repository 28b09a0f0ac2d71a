"""The collector's model: what is kept answers as it did when it was chosen, and is as good as it says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from privet.errors import PrivetError
from privet.exchange.task import train
from privet.exchange.trees import trees_to_onnx
from privet.graph import session


@pytest.mark.parametrize("classes", [0, 2, 4])
def test_trees_in_onnx_answer_as_scikit_learn_does(classes: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((600, 5)).astype(np.float32)
    if classes:
        y = (np.abs(x[:, 0] * 3 + x[:, 1]).astype(int)) % classes
        model = HistGradientBoostingClassifier(max_iter=20).fit(x, y)
        wanted = model.predict_proba(x)
    else:
        model = HistGradientBoostingRegressor(max_iter=20).fit(x, x[:, 0] ** 2 + x[:, 1])
        wanted = model.predict(x)[:, None]
    given = session(trees_to_onnx(model, 5)).run(["answers"], {"z": x})[0]
    assert np.abs(given - wanted).max() < 1e-5
    edges = np.repeat(model._predictors[0][0].nodes["num_threshold"][:1].astype(np.float32), 5)[None]
    exact = model.predict_proba(edges) if classes else model.predict(edges)[:, None]
    assert np.abs(session(trees_to_onnx(model, 5)).run(["answers"], {"z": edges})[0] - exact).max() < 1e-5


def table(path: Path, n: int = 800, people: int = 200) -> Path:
    rng = np.random.default_rng(0)
    z = rng.standard_normal((n, 6)).astype(np.float32)
    y = z[:, 0] + 0.5 * rng.standard_normal(n) > 0
    columns = {
        "submission": pa.array([f"{k:032x}" for k in range(n)]),
        "person": pa.array([f"p{k % people}" for k in range(n)]),
        "smiling": pa.array(np.where(y, "yes", "no")),
        "age": pa.array((40 + 10 * z[:, 1] + rng.standard_normal(n)).astype(float)),
        "beard": pa.array(np.where(z[:, 2] > 0, "yes", "no")),
        "z": pa.FixedSizeListArray.from_arrays(pa.array(z.ravel()), 6),
    }
    about = {"method": "hedge", "private": ["beard"], "shape": [6]}
    pq.write_table(pa.table(columns).replace_schema_metadata({"privet": json.dumps(about)}), path)
    return path


@pytest.mark.parametrize(("label", "least"), [("smiling", 0.75), ("age", 0.9)])
def test_a_task_is_learned_counted_and_kept(tmp_path: Path, label: str, least: float) -> None:
    data = table(tmp_path / "export.parquet")
    task = train(data, label, tmp_path / "model")
    assert task.score.low > least - 0.1 and task.score.value > least
    assert task.tried[task.model] == max(task.tried.values()) and len(task.tried) == 4
    assert json.loads((tmp_path / "model" / "task.json").read_text())["model"] == task.model
    z = np.stack(pq.read_table(data)["z"].to_numpy()).astype(np.float32)
    answers = session((tmp_path / "model" / "model.onnx").read_bytes()).run(["answers"], {"z": z})[0]
    truth = pq.read_table(data)[label].to_numpy()
    if label == "smiling":
        assert np.mean((answers[:, 1] > 0.5) == (truth == "yes")) > least
    else:
        assert 1 - np.var(answers[:, 0] - truth) / np.var(truth) > least


def test_what_is_hidden_is_no_task(tmp_path: Path) -> None:
    with pytest.raises(PrivetError, match="hides"):
        train(table(tmp_path / "export.parquet"), "beard", tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_wrong_words_get_a_sentence(tmp_path: Path) -> None:
    data = table(tmp_path / "export.parquet")
    for label in ("colour", "submission"):
        with pytest.raises(PrivetError):
            train(data, label, tmp_path / "model")
    with pytest.raises(PrivetError, match="at least 40"):
        train(table(tmp_path / "few.parquet", 30, 30), "smiling", tmp_path / "model")
