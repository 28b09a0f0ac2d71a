"""The collector's model: what is kept answers as it did when it was chosen, and is as good as it
says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from privet.core.errors import PrivetError
from privet.exchange.owner.task import train_task
from privet.exchange.owner.trees import trees_to_onnx
from privet.release.runtime import session


@pytest.mark.parametrize("classes", [0, 2, 4])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_trees_in_onnx_answer_as_scikit_learn_does(classes: int, missing: float) -> None:
    """On the data, with cells missing, and where every number is one of the thresholds or the next
    float32 above or below one."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((600, 5)).astype(np.float32)
    x[rng.random(x.shape) < missing] = np.nan
    filled = np.nan_to_num(x)
    if classes:
        y = (np.abs(filled[:, 0] * 3 + filled[:, 1]).astype(int)) % classes
        model = HistGradientBoostingClassifier(max_iter=20).fit(x, y)
    else:
        model = HistGradientBoostingRegressor(max_iter=20).fit(x, filled[:, 0] ** 2 + filled[:, 1])
    nodes = np.concatenate([tree.nodes for trees in model._predictors for tree in trees])
    thresholds = nodes["num_threshold"][nodes["is_leaf"] == 0].astype(np.float32)
    edges = rng.choice(thresholds[np.isfinite(thresholds)], (600, 5))
    run = session(trees_to_onnx(model, 5))
    for rows in (x, edges, np.nextafter(edges, np.float32(9)), np.nextafter(edges, np.float32(-9))):
        wanted = model.predict_proba(rows) if classes else model.predict(rows)[:, None]
        assert np.abs(run.run(["answers"], {"z": rows})[0] - wanted).max() < 1e-5


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
    task = train_task(data, label, tmp_path / "model")
    assert task.score.low > least - 0.1 and task.score.value > least
    assert task.tried[task.model] == max(task.tried.values()) and len(task.tried) == 4
    assert json.loads((tmp_path / "model" / "task.json").read_text())["model"] == task.model
    z = np.stack(pq.read_table(data)["z"].to_numpy()).astype(np.float32)
    answers = session((tmp_path / "model" / "model.onnx").read_bytes()).run(["answers"], {"z": z})[
        0
    ]
    truth = pq.read_table(data)[label].to_numpy()
    if label == "smiling":
        assert np.mean((answers[:, 1] > 0.5) == (truth == "yes")) > least
    else:
        assert 1 - np.var(answers[:, 0] - truth) / np.var(truth) > least


def test_a_recipient_learns_from_the_csv_that_apply_writes(tmp_path: Path) -> None:
    exported = pq.read_table(table(tmp_path / "export.parquet"))
    z = np.stack(exported["z"].to_numpy())
    columns = {"smiling": exported["smiling"].to_numpy(), **{f"z{i}": z[:, i] for i in range(6)}}
    pd.DataFrame(columns).to_csv(tmp_path / "shared.csv", index=False)
    assert train_task(tmp_path / "shared.csv", "smiling", tmp_path / "model").score.value > 0.75


def test_what_is_hidden_is_no_task(tmp_path: Path) -> None:
    with pytest.raises(PrivetError, match="hides"):
        train_task(table(tmp_path / "export.parquet"), "beard", tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_wrong_words_get_a_sentence(tmp_path: Path) -> None:
    data = table(tmp_path / "export.parquet")
    for label in ("colour", "submission"):
        with pytest.raises(PrivetError):
            train_task(data, label, tmp_path / "model")
    with pytest.raises(PrivetError, match="at least 40"):
        train_task(table(tmp_path / "few.parquet", 30, 30), "smiling", tmp_path / "model")


def texts(path: Path, n: int = 400, dims: int = 3) -> list[np.ndarray]:
    """An export of texts: as many vectors as words. Whether the last word's first number is large
    is the label."""
    rng = np.random.default_rng(0)
    records = [
        rng.standard_normal((int(rng.integers(1, 9)), dims)).astype(np.float32) for _ in range(n)
    ]
    columns = {
        "person": pa.array([f"p{k % 100}" for k in range(n)]),
        "liked": pa.array(
            ["yes" if z[-1, 0] + 0.3 * rng.standard_normal() > 0 else "no" for z in records]
        ),
        "z": pa.array([z.ravel() for z in records], pa.list_(pa.float32())),
    }
    about = {"method": "tiprdc", "private": ["author"], "shape": [None, dims]}
    pq.write_table(pa.table(columns).replace_schema_metadata({"privet": json.dumps(about)}), path)
    return records


def test_a_task_is_learned_from_texts_of_every_length(tmp_path: Path) -> None:
    records = texts(tmp_path / "export.parquet")
    task = train_task(tmp_path / "export.parquet", "liked", tmp_path / "model")
    assert task.score.low > 0.6
    padded = np.zeros((len(records), 12, 3), dtype=np.float32)
    for row, z in zip(padded, records, strict=True):
        row[: len(z)] = z
    run = session((tmp_path / "model" / "model.onnx").read_bytes())
    answers = run.run(["answers"], {"z": padded})[0]
    truth = pq.read_table(tmp_path / "export.parquet")["liked"].to_numpy()
    assert np.mean((answers[:, 1] > 0.5) == (truth == "yes")) > 0.8
    for k in range(20):
        np.testing.assert_allclose(
            run.run(["answers"], {"z": records[k][None]})[0][0], answers[k], atol=1e-6
        )
    assert (
        "zeros after the last word"
        in json.loads((tmp_path / "model" / "task.json").read_text())["input"]
    )
