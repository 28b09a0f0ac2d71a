"""Releases from elsewhere are audited end to end: an ONNX file with a small card, a Python
function, a bare parquet of vectors."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import privet
from privet.adversaries.linear import Logistic
from privet.adversaries.mlp import MLP
from privet.adversaries.quadratic import Quadratic
from privet.auditing.batteries import BATTERIES, Battery
from privet.cli.main import app
from privet.core.errors import PrivetError
from privet.evidence.figures import Audit
from privet.release.foreign import from_function, from_onnx, from_vectors
from small import small


@pytest.fixture(autouse=True, scope="module")
def _tiny():
    with pytest.MonkeyPatch.context() as patch:
        attackers = (Logistic(strengths=(0.1,)), Quadratic(shrinkages=(0.3,)))
        patch.setitem(
            BATTERIES,
            "quick",
            Battery(
                attackers,
                (MLP(shapes=((8,),), epochs=2, least=60),),
                (),
                reread=False,
                averages=(4,),
            ),
        )
        yield


def _export(module: nn.Module, *examples: torch.Tensor, names=("pixels",), out="features") -> bytes:
    batch = torch.export.Dim("batch")
    program = torch.onnx.export(
        module.eval(),
        examples,
        dynamo=True,
        input_names=list(names),
        output_names=[out],
        dynamic_shapes=tuple({0: batch} for _ in examples),
    )
    return program.model_proto.SerializeToString()


class Brightness(nn.Module):
    """Somebody else's release: means over quarters of the picture, in floats from 0 to 1, channels
    last."""

    def forward(self, pixels):
        return nn.functional.adaptive_avg_pool2d(pixels.permute(0, 3, 1, 2), 4).flatten(1)


class Noisy(nn.Module):
    def forward(self, rows, eps):
        return rows * 0.5 + 3.0 * eps


def _pictures(folder, n=400):
    """A parquet file of pictures with labels, as a third party would have it."""
    import io

    from PIL import Image

    data = small("image", n)
    cells = []
    for picture in np.asarray(data.records):
        buffer = io.BytesIO()
        Image.fromarray(picture.transpose(1, 2, 0).squeeze()).save(buffer, "PNG")
        cells.append(buffer.getvalue())
    frame = {
        "image": cells,
        **{k: pa.array(v) for k, v in data.labels.items() if k in ("u", "y")},
        "person": pa.array(data.people),
    }
    pq.write_table(pa.table(frame), folder / "faces.parquet")
    return folder / "faces.parquet"


def test_an_onnx_file_with_a_small_card_from_the_command_line(tmp_path):
    faces = _pictures(tmp_path)
    size = privet.load(str(faces)).records.shape[2:]
    (tmp_path / "theirs.onnx").write_bytes(_export(Brightness(), torch.rand(2, *size, 3)))
    card = {"name": "brightness", "private": ["u"], "input": {"layout": "NHWC", "range": [0, 1]}}
    (tmp_path / "theirs.json").write_text(json.dumps(card))
    done = CliRunner().invoke(
        app,
        [
            "audit",
            str(tmp_path / "theirs.onnx"),
            "--data",
            str(faces),
            "--utility",
            "y",
            "--out",
            str(tmp_path / "a"),
            "--device",
            "cpu",
        ],
    )
    assert done.exit_code == 0, done.output + str(done.exception)
    said = Audit.load(tmp_path / "a" / "audit.json")
    assert (
        said.release["method"] == "brightness"
        and said.release["private"] == ["u"]
        and len(said.release["sha256"]["graph"]) == 64
    )
    assert (
        said.reading("u").worst.score.n == said.data["parts"]["test"]["records"]
        and said.reading("u").raw
    )
    assert (tmp_path / "a" / "report.html").stat().st_size > 1000 and (
        tmp_path / "a" / "summary.md"
    ).exists()


def test_a_graph_that_takes_noise(tmp_path):
    data = small("table", 300)
    columns = [c for c in data.records.columns if c not in ("u", "y", "colour")]
    (tmp_path / "r.onnx").write_bytes(
        _export(
            Noisy(),
            torch.rand(2, len(columns)),
            torch.rand(2, len(columns)),
            names=("rows", "eps"),
            out="z",
        )
    )
    card = {
        "private": ["u"],
        "input": {"columns": columns},
        "noise": {"name": "eps", "law": "gaussian", "shape": [len(columns)], "scale": 3.0},
    }
    (tmp_path / "card.json").write_text(json.dumps(card))
    release = from_onnx(tmp_path / "r.onnx", data)
    assert release.noise is not None and release.is_random and release.shape == (len(columns),)
    said = privet.audit(release, data, ["y"], device="cpu", progress=False)
    assert [f.releases for f in said.reading("u").others] == [4] and said.reading("u").others[
        0
    ].source == "averaged"


def test_a_python_function():
    data = small("table", 400)
    said = privet.audit(
        lambda rows: rows[:, 0], data, ["y"], private=["u"], device="cpu", progress=False
    )
    assert (
        said.release["private"] == ["u"]
        and said.reading("u").worst.score.n > 0
        and said.reading("y").role == "utility"
    )
    with pytest.raises(PrivetError, match="what the function hides"):
        privet.audit(lambda rows: rows, data)
    with pytest.raises(PrivetError, match="one row per record"):
        from_function(lambda rows: rows[:1], data, ["u"])
    with pytest.raises(PrivetError, match="not finite"):
        from_function(lambda rows: rows * np.nan, data, ["u"])


def test_a_function_that_draws_its_own_noise_is_called_random():
    data = small("table", 200)
    rng = np.random.default_rng(0)
    assert from_function(lambda rows: rows + rng.standard_normal(rows.shape), data, ["u"]).is_random
    assert not from_function(lambda rows: rows, data, ["u"]).is_random


@pytest.mark.parametrize("form", ["list", "columns"])
def test_a_bare_parquet_of_vectors_from_the_command_line(tmp_path, form):
    """One list column, or many numeric columns; a private and a task label, and one that nobody
    names."""
    rng = np.random.default_rng(0)
    n = 900
    u, y, hat = rng.integers(0, 2, (3, n))
    x = rng.standard_normal((n, 12)).astype(np.float32)
    x[:, 2] += 2 * u
    x[:, 7] += 3 * y
    x[:, 9] += 3 * hat
    frame = pd.DataFrame(
        {"gender": np.where(u, "f", "m"), "smiling": y, "hat": hat, "person": np.arange(n) // 2}
    )
    if form == "list":
        frame["z"] = list(x)
    else:
        frame = pd.concat([frame, pd.DataFrame(x, columns=[f"z{i}" for i in range(12)])], axis=1)
    frame.to_parquet(tmp_path / "released.parquet")
    done = CliRunner().invoke(
        app,
        [
            "audit",
            str(tmp_path / "released.parquet"),
            "--private",
            "gender",
            "--utility",
            "smiling",
            "--out",
            str(tmp_path / "a"),
            "--device",
            "cpu",
        ],
    )
    assert done.exit_code == 0, done.output + str(done.exception)
    said = Audit.load(tmp_path / "a" / "audit.json")
    gender, smiling = said.reading("gender"), said.reading("smiling")
    assert (
        gender.role == "private"
        and smiling.role == "utility"
        and not gender.raw
        and not said.rebuilt
    )
    assert (
        abs(gender.worst.score.value - 0.841) < 0.1 and abs(smiling.worst.score.value - 0.933) < 0.1
    )  # normal laws 2 and 3 apart, as 180 records show them
    assert [r.attribute for r in said.undeclared] == ["hat"] and said.undeclared[
        0
    ].worst.score.value > 0.85
    assert (
        said.data["parts"]["fit"]["records"] == 0
        and sum(p["records"] for p in said.data["parts"].values()) == n
    )
    row = next(
        line
        for line in (tmp_path / "a" / "summary.md").read_text().splitlines()
        if line.startswith("| gender")
    )
    assert "not measured" in row, (
        "there are no raw records to compare with, and the summary says so"
    )


def test_what_apply_writes_is_audited_in_its_own_shape(tmp_path):
    data = small("image", 60)
    maps = np.random.default_rng(0).standard_normal((60, 4 * 3 * 5)).astype(np.float32)
    table = pa.table(
        {
            "z": pa.FixedSizeListArray.from_arrays(pa.array(maps.ravel()), 60),
            "u": pa.array(data.labels["u"]),
        }
    )
    pq.write_table(
        table.replace_schema_metadata(
            {"privet": json.dumps({"method": "tiprdc", "shape": [4, 3, 5]})}
        ),
        tmp_path / "r.parquet",
    )
    release, read = from_vectors(tmp_path / "r.parquet", ["u"])
    assert release.shape == (4, 3, 5) and release.card["method"] == "tiprdc"
    rows = torch.from_numpy(release.schema.inputs(read)[:])
    np.testing.assert_array_equal(release.forward(rows).numpy().reshape(60, -1), maps)


def test_vectors_are_taken_as_they_are(tmp_path):
    """No standardising, no filling in: the last digit of what was released is there to be
    attacked."""
    x = np.random.default_rng(1).standard_normal((50, 3)) * [1e-7, 1, 1e7]
    pd.DataFrame(
        {**{f"f{i}": x[:, i].astype(np.float32) for i in range(3)}, "u": np.arange(50) % 2}
    ).to_parquet(tmp_path / "v.parquet")
    release, data = from_vectors(tmp_path / "v.parquet", ["u"])
    np.testing.assert_array_equal(release.schema.inputs(data)[:], x.astype(np.float32))


WRONG = {
    "no private": ([], "must not be readable"),
    "unknown column": (["--private", "what"], "no column 'what'"),
    "data too": (["--private", "u", "--data", "portraits:40"], "leave out --data"),
    "no battery": (["--private", "u", "--battery", "huge"], "no battery 'huge'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_words_about_vectors(tmp_path, case):
    pd.DataFrame(
        {"a": np.random.default_rng(0).standard_normal(40), "u": np.arange(40) % 2}
    ).to_parquet(tmp_path / "v.parquet")
    words, said = WRONG[case]
    with pytest.raises(PrivetError, match=said):
        CliRunner().invoke(
            app,
            ["audit", str(tmp_path / "v.parquet"), "--out", str(tmp_path / "a"), *words],
            catch_exceptions=False,
        )
    assert not (tmp_path / "a").exists()


def test_wrong_words_about_graphs(tmp_path):
    data = small("table", 80)
    (tmp_path / "r.onnx").write_bytes(b"not a graph")
    with pytest.raises(PrivetError, match=r"Say what r\.onnx hides"):
        from_onnx(tmp_path / "r.onnx", data)
    with pytest.raises(PrivetError, match="cannot be run as ONNX"):
        from_onnx(tmp_path / "r.onnx", data, ["u"])
    (tmp_path / "r.json").write_text("[]")
    with pytest.raises(PrivetError, match="must be a JSON object"):
        from_onnx(tmp_path / "r.onnx", data, ["u"])
    (tmp_path / "r.json").write_text("{")
    with pytest.raises(PrivetError, match="is not JSON"):
        from_onnx(tmp_path / "r.onnx", data, ["u"])
    (tmp_path / "r.json").unlink()
    columns = [c for c in data.records.columns if c not in ("u", "y", "colour")]
    (tmp_path / "r.onnx").write_bytes(
        _export(
            Noisy(), torch.rand(2, len(columns)), torch.rand(2, len(columns)), names=("rows", "eps")
        )
    )
    with pytest.raises(PrivetError, match="another input 'eps'"):
        from_onnx(tmp_path / "r.onnx", data, ["u"])
    with pytest.raises(PrivetError, match="no card"):
        from_onnx(tmp_path / "r.onnx", data, ["u"], tmp_path / "none.json")
