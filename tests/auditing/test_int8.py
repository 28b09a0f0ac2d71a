"""Releases in int8: the same noise on nearly the same code, a card of their own, and none that an
audit finds worse."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

from privet.auditing import int8 as quantize
from privet.auditing.certify import noise_free_codes, why_not_certifiable, with_noise_scale
from privet.auditing.int8 import FigureChange, export_int8
from privet.cli.main import app
from privet.core.errors import PrivetError
from privet.data.dataset import Dataset
from privet.data.schema import learn_schema
from privet.evidence.figures import Figure
from privet.nets import registry as nets
from privet.release.int8 import quantise, static
from privet.release.noise import Noise
from privet.release.release import Release
from privet.release.runtime import read_graph
from small import small

SIGMA = 0.4


@pytest.fixture(scope="module")
def data() -> Dataset:
    return small("table", 600)


@pytest.fixture(scope="module")
def plain(data) -> Release:
    torch.manual_seed(0)
    schema, settings = learn_schema(data, ["u", "y"]), {"dims": 2, "sigma": SIGMA, "width": 0.1}
    card = {
        "method": "hedge",
        "private": ["u"],
        "certificate": {"bound": 0.5},
        "in_game": {},
        "sha256": {"graph": "of the float graph"},
    }
    return Release(
        schema,
        ("hedge", settings),
        nets.build("hedge", schema, settings),
        Noise("gaussian", (2,), SIGMA),
        card,
    )


@pytest.fixture(scope="module")
def made(plain, data) -> Release:
    return quantise(plain, data)


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("int8")
    made.save(path)
    return path


def test_codes_are_nearly_those_of_the_float_network(plain, made, data):
    device = torch.device("cpu")
    before, after = (
        noise_free_codes(release, data.part("test"), device) for release in (plain, made)
    )
    assert 0 < np.abs(before - after).max() < 0.1 * np.ptp(before)
    assert np.corrcoef(before.ravel(), after.ravel())[0, 1] > 0.99


def test_weights_are_in_eight_bits(made):
    model = onnx.load_from_string(made.module.body.content)
    kinds = {
        tensor.data_type
        for tensor in model.graph.initializer
        if len(tensor.dims) == 2 and np.prod(tensor.dims) > 100
    }
    assert kinds == {TensorProto.INT8}


def test_noise_is_added_in_float_as_before(made, data):
    """Two releases of a record with the same code differ by sigma times the difference of the
    noise, up to the grid."""
    x = torch.from_numpy(made.schema.inputs(data.part("test"))[:])
    first, second = (torch.from_numpy(made.noise.draw(len(x), seed=seed)) for seed in (1, 2))
    found = made.forward(x, first) - made.forward(x, second)
    np.testing.assert_allclose(
        found.numpy(), (SIGMA * (first - second)).numpy(), atol=1.01 * made.module.step
    )


def test_products_that_depend_on_noise_stay_float():
    weights = numpy_helper.from_array(
        np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32), "w"
    )
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="of_x"),
        helper.make_node("Add", ["h", "noise"], ["sum"], name="add"),
        helper.make_node("MatMul", ["sum", "w"], ["z"], name="of_noise"),
    ]
    puts = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4])
        for name in ("x", "noise", "z")
    ]
    graph = helper.make_graph(nodes, "g", puts[:2], puts[2:], [weights])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10
    ).SerializeToString()
    x, noise = np.random.default_rng(1).standard_normal((2, 64, 4)).astype(np.float32)
    found = onnx.load_from_string(static(model, x, noise))
    given = {node.name: node.input[0] for node in found.graph.node if node.op_type == "MatMul"}
    made_by = {name: node.op_type for node in found.graph.node for name in node.output}
    assert made_by[given["of_x"]] == "DequantizeLinear" and made_by[given["of_noise"]] == "Add"
    graph.node.pop(0)
    graph.node[0].input[0] = "x"
    with pytest.raises(PrivetError, match="Nothing in this release's graph"):
        static(
            helper.make_model(
                graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10
            ).SerializeToString(),
            x,
            noise,
        )


def test_a_release_in_int8_is_saved_and_loaded_whole(made, folder, data):
    card = json.loads((folder / "card.json").read_text())
    assert (
        card["int8"]["of"] == {"graph": "of the float graph"}
        and card["sha256"]["graph"] != "of the float graph"
    )
    assert not {"certificate", "in_game"} & set(card)
    again, x = Release.load(folder), made.schema.inputs(data.part("test"))[:]
    np.testing.assert_array_equal(made(x, seed=1), again(x, seed=1))
    assert len(read_graph(folder)) > 0
    with pytest.raises(PrivetError, match="in int8 already"):
        quantise(again, data)


def test_it_can_be_certified_and_given_other_noise(made, tmp_path, data):
    assert why_not_certifiable(made) == ""
    louder = with_noise_scale(made, 2 * SIGMA)
    louder.save(tmp_path)
    x = made.schema.inputs(data.part("test"))[:]
    np.testing.assert_allclose(
        np.std(
            Release.load(tmp_path)(x, seed=1)
            - noise_free_codes(made, data.part("test"), torch.device("cpu"))
        ),
        0.8,
        rtol=0.2,
    )


def _figure(value: float, better: str) -> Figure:
    return Figure(value, value - 0.02, value + 0.02, 100, 0.5, better=better)


@pytest.mark.parametrize(
    "role,after,worse",
    [
        ("private", 0.63, True),
        ("private", 0.61, False),
        ("private", 0.4, False),
        ("utility", 0.57, True),
        ("utility", 0.59, False),
        ("utility", 0.9, False),
    ],
)
def test_worse_is_what_lies_beyond_the_interval_on_the_wrong_side(role, after, worse):
    moved = FigureChange("u", role, _figure(0.6, "lower"), _figure(after, "lower"))
    assert moved.worse is worse
    assert "0.600 (0.580 to 0.620) in float" in moved.line and f"{after:.3f} in int8" in moved.line


@pytest.fixture
def words(plain, made, tmp_path, monkeypatch, data):
    """`export_int8` with an audit that says what it is told to say of the second release."""

    def run(out: Path, leak: float) -> list[FigureChange]:
        monkeypatch.setattr(quantize, "load", lambda *_: data)
        monkeypatch.setattr(Release, "load", staticmethod(lambda *_: plain))
        monkeypatch.setattr(
            quantize, "quantise", lambda *_: replace(made, card=json.loads(json.dumps(made.card)))
        )
        monkeypatch.setattr(
            quantize, "audit", lambda release, *_, **__: leak if "int8" in release.card else 0.6
        )
        monkeypatch.setattr(
            quantize,
            "compare",
            lambda a, b: [FigureChange("u", "private", _figure(a, "lower"), _figure(b, "lower"))],
        )
        return export_int8(out, tmp_path / "release", "data", ["y"], progress=False)[1]

    return run


def test_what_the_audit_finds_worse_is_not_written(words, tmp_path):
    with pytest.raises(
        PrivetError,
        match=r"u \(private\): balanced accuracy 0.600 \(0.580 to 0.620\) in float, 0.700 in int8",
    ):
        words(tmp_path / "deep" / "out", 0.7)
    assert not (tmp_path / "deep").exists()


def test_what_holds_is_written_with_its_figures(words, tmp_path):
    words(tmp_path / "out", 0.61)
    card = json.loads((tmp_path / "out" / "card.json").read_text())
    assert "0.610 in int8" in card["int8"]["audit"]["figures"][0]


def test_wrong_words_are_one_sentence(tmp_path, folder):
    said = CliRunner().invoke(
        app, ["export", str(folder), "--data", "portraits", "--out", str(tmp_path / "x")]
    )
    assert isinstance(said.exception, PrivetError) and "add --int8" in str(said.exception)
    said = CliRunner().invoke(
        app, ["export", str(folder), "--int8", "--data", "portraits", "--out", str(folder)]
    )
    assert isinstance(said.exception, PrivetError) and "choose another --out" in str(said.exception)
