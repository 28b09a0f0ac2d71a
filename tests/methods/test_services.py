"""Services: what somebody else made is taken as it is, passes gradients on, and is refused in one
sentence where it does not fit."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from privet.core.errors import PrivetError
from privet.data.dataset import Attribute
from privet.methods.collaborative import Collaborative
from privet.methods.services import onnx_torch
from privet.methods.services.service import Service, new_service, provided_service
from privet.nets.code import body
from privet.nets.convolutions import prepare
from privet.train.game import Run
from small import small

DATA = {modality: small(modality, 120) for modality in ("image", "signal", "table")}
PROBLEMS = {
    m: Collaborative().problem(d, ["u"], ["y"], [], Run(device="cpu", progress=False))
    for m, d in DATA.items()
}
Y = PROBLEMS["table"].utility[0]


def _records(modality: str) -> torch.Tensor:
    problem = PROBLEMS[modality]
    return prepare(
        torch.from_numpy(np.ascontiguousarray(problem.schema.inputs(problem.view())[:24]))
    )


def _export(module: nn.Module, x: torch.Tensor, path, dynamo: bool = False, free: bool = True):
    """By the old exporter, as most models in use were, or by the new one, which is slow."""
    if dynamo:
        axes = ({0: torch.export.Dim.AUTO},)
        torch.onnx.export(
            module.eval(),
            (x,),
            str(path),
            dynamo=True,
            dynamic_shapes=axes,
            verbose=False,
            external_data=False,
        )
    else:
        axes = {"x": {0: "n"}} if free else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                module.eval(), (x,), str(path), dynamo=False, input_names=["x"], dynamic_axes=axes
            )
    return path


class Small(nn.Module):
    """The parts that convolutional classifiers are commonly made of."""

    def __init__(self, classes: int = 2) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.LeakyReLU(0.1),
            nn.MaxPool2d(2),
        )
        self.second = nn.Sequential(
            nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=2), nn.GELU(), nn.AvgPool2d(3, 2, 1)
        )
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 8, 1), nn.Hardsigmoid())
        self.head = nn.Sequential(
            nn.Linear(16, 12), nn.LayerNorm(12), nn.ELU(), nn.Dropout(0.2), nn.Linear(12, classes)
        )

    def forward(self, x):
        h = self.second(self.first(x))
        h = nn.functional.pad(h * self.gate(h), (0, 1, 1, 0)).clamp(-3, 3)
        return self.head(torch.cat([h.flatten(2).mean(2), h.amax((2, 3)) - h.mean((2, 3))], 1) / 2)


def _models(modality: str) -> nn.Module:
    torch.manual_seed(3)
    module = Small() if modality == "image" else body(PROBLEMS[modality].schema, 2, 0.05, 0.1)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2)
    return module.eval()


@pytest.mark.parametrize("modality", DATA)
def test_an_onnx_file_answers_and_passes_gradients_like_the_module_it_came_from(modality, tmp_path):
    module, x = _models(modality), _records(modality)
    path = _export(module, x[:3], tmp_path / "model.onnx", dynamo=modality == "image")
    (tmp_path / "model.json").write_text(json.dumps({"input": {"range": [-1, 1]}}))
    service = provided_service(path, PROBLEMS[modality], Y)
    given, wanted = x.clone().requires_grad_(), x.clone().requires_grad_()
    mine, theirs = service(given), module(wanted)
    torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-4)
    for scores in (mine, theirs):
        scores.softmax(1)[:, 1].sum().backward()
    assert wanted.grad.abs().max() > 0
    torch.testing.assert_close(given.grad, wanted.grad, atol=1e-5, rtol=1e-3)
    assert "model.onnx" in service.source and len(service.sha256) == 64
    assert any(p.requires_grad for p in service.module.parameters()), (
        "an adversarial game could not move it"
    )


def test_our_own_reader_of_pictures_is_converted_too(tmp_path):
    module, x = new_service(PROBLEMS["image"], Y, 0.05).module.eval(), _records("image")
    path = _export(module, x[:3], tmp_path / "m.onnx")
    torch.testing.assert_close(
        provided_service(path, PROBLEMS["image"], Y, {"input": {"range": [-1, 1]}})(x),
        module(x),
        atol=1e-4,
        rtol=1e-4,
    )


def _graph(
    nodes, constants=(), shape=("n", 2, 8, 8), opset=17, kind=TensorProto.FLOAT
) -> onnx.ModelProto:
    """A graph from `x` to `z`."""
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants]
    puts, gets = (
        helper.make_tensor_value_info("x", kind, shape),
        helper.make_tensor_value_info("z", TensorProto.FLOAT, None),
    )
    graph = helper.make_graph(nodes, "g", [puts], [gets], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


WEIGHT = np.random.default_rng(0).standard_normal((4, 2, 3, 3)).astype(np.float32)
NODES = {
    "uneven edges": ([("Conv", "x w", {"pads": [0, 1, 2, 0]})], [("w", WEIGHT)], 17),
    "same upper": (
        [("Conv", "x w", {"auto_pad": "SAME_UPPER", "strides": [2, 2]})],
        [("w", WEIGHT)],
        17,
    ),
    "same lower": (
        [("MaxPool", "x", {"auto_pad": "SAME_LOWER", "kernel_shape": [3, 3], "strides": [2, 2]})],
        [],
        17,
    ),
    "uneven average": (
        [
            (
                "AveragePool",
                "x",
                {"kernel_shape": [3, 3], "pads": [0, 1, 1, 0], "count_include_pad": 1},
            )
        ],
        [],
        17,
    ),
    "softmax of old": ([("Softmax", "x", {})], [], 11),
    "softmax of new": ([("Softmax", "x", {})], [], 17),
    "axes as attribute": ([("ReduceMean", "x", {"axes": [2, 3], "keepdims": 0})], [], 13),
    "axes as input": ([("ReduceMean", "x a", {"keepdims": 1})], [("a", np.array([1, 2]))], 18),
    "clip of old": ([("Clip", "x", {"min": -0.2, "max": 0.3})], [], 6),
    "clip from above": ([("Clip", "x  h", {})], [("h", np.float32(0.4))], 17),
    "mirrored edge": (
        [("Pad", "x p", {"mode": "reflect"})],
        [("p", np.array([0, 0, 1, 2, 0, 0, 2, 1]))],
        17,
    ),
    "slices": (
        [("Slice", "x s e a t", {})],
        [("s", [1, -1]), ("e", [8, -9]), ("a", [2, 3]), ("t", [3, -2])],
        17,
    ),
    "gather and shape": (
        [("Shape", "x", {}), ("Gather", "h0 i", {}), ("Reshape", "x h1", {})],
        [("i", np.array([0, 1, -1, 2]))],
        17,
    ),
    "reshape that copies": ([("Reshape", "x s", {})], [("s", np.array([0, 4, -1]))], 17),
    "gemm": (
        [("Flatten", "x", {}), ("Gemm", "h0 w b", {"transB": 1, "alpha": 0.5, "beta": 2.0})],
        [
            ("w", WEIGHT.reshape(-1)[:, None][:3] @ np.ones((1, 128), np.float32)),
            ("b", np.arange(3, dtype=np.float32)),
        ],
        17,
    ),
    "split and join": ([("Split", "x", {"axis": 1}, 2), ("Concat", "h0 x", {"axis": 1})], [], 13),
    "squeezed": (
        [("ReduceMax", "x", {"axes": [1]}), ("Squeeze", "h0 a", {}), ("Unsqueeze", "h1 b", {})],
        [("a", [1]), ("b", [-1])],
        17,
    ),
    "slopes": (
        [("PRelu", "x w", {}), ("HardSigmoid", "h0", {"alpha": 0.3})],
        [("w", WEIGHT[0, :, :1, :1])],
        17,
    ),
}


@pytest.mark.parametrize("case", NODES)
def test_operators_are_what_onnxruntime_makes_of_them(case):
    nodes, constants, opset = NODES[case]
    made = []
    for place, (op, puts, attributes, *several) in enumerate(nodes):
        out = "z" if place == len(nodes) - 1 else f"h{place}"
        made.append(
            helper.make_node(
                op,
                puts.split(" "),
                [out, *(f"o{i}" for i in range(1, *several))] if several else [out],
                **attributes,
            )
        )
    model = _graph(made, [(name, np.asarray(value)) for name, value in constants], opset=opset)
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((5, 2, 8, 8)).astype(np.float32))
    assert (
        onnx_torch.check(onnx_torch.Converted(model, case), model.SerializeToString(), x, case)
        <= 1e-5
    )


def test_an_operator_nobody_knows_is_named(tmp_path):
    onnx.save(_graph([helper.make_node("Xor", ["x", "x"], ["z"])]), tmp_path / "odd.onnx")
    with pytest.raises(PrivetError, match=r"odd\.onnx uses the ONNX operator Xor.*torch module"):
        onnx_torch.read(tmp_path / "odd.onnx")


def test_a_conversion_that_differs_is_not_believed(monkeypatch, tmp_path):
    path = _export(_models("image"), _records("image")[:3], tmp_path / "m.onnx")
    converted, graph, _ = onnx_torch.read(path)
    with torch.no_grad():
        next(converted.parameters()).add_(0.5)
    with pytest.raises(PrivetError, match="differs from onnxruntime"):
        onnx_torch.check(converted, graph, _records("image"), "m.onnx")


def test_a_batch_of_fixed_size_is_taken_where_the_graph_does_not_mind(tmp_path):
    module, x = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2)), _records("table")
    path = _export(module, x[:2], tmp_path / "m.onnx", free=False)
    assert onnx_torch.read(path)[0].shape[0] == 2
    torch.testing.assert_close(
        provided_service(path, PROBLEMS["table"], Y)(x), module(x), atol=1e-4, rtol=1e-4
    )
    minds = _graph(
        [helper.make_node("Reshape", ["x", "s"], ["z"])], [("s", np.array([2, -1]))], (2, 2, 8, 8)
    )
    with pytest.raises(PrivetError, match="exported for batches of 2"):
        onnx_torch.check(
            onnx_torch.Converted(minds, "m"),
            minds.SerializeToString(),
            torch.randn(6, 2, 8, 8),
            "m",
        )


def test_weights_beside_the_file_count(tmp_path):
    module, x = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 2)), _records("table")
    _export(module, x[:3], tmp_path / "m.onnx")
    whole = provided_service(tmp_path / "m.onnx", PROBLEMS["table"], Y)
    onnx.save(
        onnx.load(tmp_path / "m.onnx"),
        tmp_path / "apart.onnx",
        save_as_external_data=True,
        location="w.data",
        size_threshold=0,
    )
    apart = provided_service(tmp_path / "apart.onnx", PROBLEMS["table"], Y)
    torch.testing.assert_close(whole(x), apart(x))
    changed = bytearray((tmp_path / "w.data").read_bytes())
    changed[3] ^= 1
    (tmp_path / "w.data").write_bytes(changed)
    assert provided_service(tmp_path / "apart.onnx", PROBLEMS["table"], Y).sha256 != apart.sha256


class Says(nn.Module):
    """Anything that a model may say."""

    def __init__(self, say) -> None:
        super().__init__()
        self.say, self.weight = say, nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.say(x.flatten(1) * self.weight)


@pytest.mark.parametrize(
    "say",
    [
        lambda x: x[:, :2],
        lambda x: x[:, :2].softmax(1),
        lambda x: x[:, :2].log_softmax(1),
        lambda x: x[:, 1] - x[:, 0],
        lambda x: torch.sigmoid(x[:, 1:2] - x[:, :1]),
    ],
    ids=["scores", "probabilities", "logarithms", "one score", "one probability"],
)
def test_however_a_model_says_it_the_probabilities_are_the_same(say):
    x = _records("table")
    torch.testing.assert_close(
        provided_service(Says(say), PROBLEMS["table"], Y)(x).softmax(1),
        x[:, :2].softmax(1),
        atol=1e-5,
        rtol=1e-4,
    )


def test_pictures_come_in_the_range_and_layout_of_the_card():
    problem, x = PROBLEMS["image"], _records("image")
    card = {"input": {"range": [0, 255], "mean": [10, 20, 30], "std": [2, 3, 4], "layout": "NHWC"}}
    seen = provided_service(Says(lambda x: x[:, :2]), problem, Y, card)(x)
    bytes_ = problem.schema.inputs(problem.view())[:24].astype(np.float64)
    wanted = np.stack([(bytes_[:, 0, 0, 0] - 10) / 2, (bytes_[:, 1, 0, 0] - 20) / 3], 1)
    np.testing.assert_allclose(seen.numpy(force=True), wanted, atol=1e-3)


@pytest.mark.parametrize("modality", ["table", "signal"])
def test_records_come_in_their_own_units_where_the_card_says_so(modality):
    problem = PROBLEMS[modality]
    seen = provided_service(Says(lambda x: x[:, :2]), problem, Y, {"input": {"units": "raw"}})(
        _records(modality)
    ).numpy(force=True)
    view = problem.view()
    raw = (
        view.records.iloc[view.rows[:24]][["a", "b"]].to_numpy()
        if modality == "table"
        else view.records[view.rows[:24]][:, 0, :2]
    )
    np.testing.assert_allclose(seen, raw, atol=1e-4)


def test_classes_in_another_order_are_put_right():
    x, named = _records("table"), replace(Y, values=("no", "yes"))
    plain = provided_service(Says(lambda x: x[:, :2]), PROBLEMS["table"], named)(x)
    turned = provided_service(
        Says(lambda x: x[:, :2]), PROBLEMS["table"], named, {"output": {"classes": ["yes", "no"]}}
    )(x)
    torch.testing.assert_close(plain.flip(1), turned)


MANY = Attribute("colour", "categorical", ("red", "green", "blue"))


@pytest.mark.parametrize(
    ("model", "attribute", "card", "sentence"),
    [
        (nn.Linear(5, 2), Y, None, "does not take records of 6"),
        (nn.Linear(6, 3), Y, None, "knows 3 classes, and 'y' has 2"),
        (nn.Linear(6, 2), MANY, None, "knows 2 classes, and 'colour' has 3"),
        (nn.Linear(6, 2), Y, {"output": {"classes": ["a", "b"]}}, "names other classes"),
        (nn.Linear(6, 2), Y, {"output": {"kind": "odds"}}, "scores or probabilities"),
        (nn.Linear(6, 2), Y, {"input": {"mean": [1, 2]}}, "mean and std per channel"),
        (nn.Linear(6, 2), Y, {"input": 3}, "table of settings"),
        (Says(lambda x: x[:, :2] / 0), Y, None, "finite scores"),
        (Says(lambda x: x[:3, :2]), Y, None, "one row of finite scores per record"),
        ("absent.onnx", Y, None, "Cannot read absent.onnx"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(model, attribute, card, sentence):
    with pytest.raises(PrivetError, match=sentence) as refused:
        provided_service(model, PROBLEMS["table"], attribute, card)
    assert "\n" not in str(refused.value)


def test_files_that_do_not_fit_are_refused(tmp_path):
    (tmp_path / "no.onnx").write_bytes(b"hello")
    with pytest.raises(PrivetError, match="cannot be read as ONNX"):
        provided_service(tmp_path / "no.onnx", PROBLEMS["table"], Y)
    path = _export(nn.Linear(9, 2), torch.zeros(3, 9), tmp_path / "wide.onnx")
    with pytest.raises(PrivetError, match="takes records of 9, and these are 6"):
        provided_service(path, PROBLEMS["table"], Y)
    onnx.save(
        _graph([helper.make_node("Cast", ["x"], ["z"], to=1)], kind=TensorProto.UINT8),
        tmp_path / "bytes.onnx",
    )
    with pytest.raises(PrivetError, match="gradients pass through floats only"):
        provided_service(tmp_path / "bytes.onnx", PROBLEMS["image"], Y)


def test_the_model_that_was_brought_is_never_changed():
    module = nn.Linear(6, 2)
    service = provided_service(module, PROBLEMS["table"], Y)
    before = module.weight.clone()
    with torch.no_grad():
        for parameter in service.module.parameters():
            parameter.zero_()
    assert (
        torch.equal(module.weight, before)
        and provided_service(module, PROBLEMS["table"], Y).sha256 == service.sha256
    )


def test_a_service_answers_as_in_use_whatever_mode_it_is_in():
    service = Service(Y, nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 2)).train())
    x = _records("table")
    assert torch.equal(service(x), service(x))
