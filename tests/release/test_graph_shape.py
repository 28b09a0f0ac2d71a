"""What a graph does with its noise is read from the graph: two shapes are known, and everything
else is refused with a reason."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from privet.auditing.certify import noise_free_codes
from privet.data.dataset import Dataset
from privet.data.schema import learn_schema
from privet.nets.additive import Additive
from privet.nets.code import Code
from privet.nets.symbols import Quantiser, Symbols
from privet.release.graph import export
from privet.release.graph_shape import UnknownShape, graph_codes, read_shape
from privet.release.noise import Noise
from privet.release.release import Release
from small import small

CPU = torch.device("cpu")


def additive(data: Dataset, scale: float = 0.4) -> Release:
    schema = learn_schema(data, ["u", "y", "colour"])
    torch.manual_seed(0)
    module = Additive(Code(schema, 2, 0.25), scale)
    return Release(schema, ("code", {}), module, Noise("gaussian", (2,), scale), {"private": ["u"]})


def symbols(data: Dataset, flip: float = 0.3) -> Release:
    schema = learn_schema(data, ["u", "y", "colour"])
    torch.manual_seed(0)
    module = Symbols(Quantiser(Code(schema, 2, 0.25), 4), flip)
    return Release(schema, ("symbols", {}), module, Noise("uniform", (2,), flip), {"private": []})


@pytest.mark.parametrize("modality", ["table", "image", "text", "signal"])
def test_the_graphs_codes_are_the_networks(modality: str) -> None:
    data = small(modality, 60)
    release = additive(data)
    graph = export(release)
    shape = read_shape(graph)
    assert shape.kind == "numbers" and shape.scale == pytest.approx(0.4)
    assert shape.reach == (-1.0, 1.0), "behind tanh, also of a picture and its mirror image"
    codes = graph_codes(graph, shape, (2,), release.schema.inputs(data), batch=16)
    assert np.allclose(codes, noise_free_codes(release, data, CPU), atol=1e-4)


def test_the_graphs_symbols_are_the_networks() -> None:
    data = small("table", 300)
    release = symbols(data)
    graph = export(release)
    shape = read_shape(graph)
    assert (shape.kind, shape.symbols) == ("symbols", 4) and shape.scale == pytest.approx(0.3)
    codes = graph_codes(graph, shape, (2,), release.schema.inputs(data))
    assert np.array_equal(codes, noise_free_codes(release, data, CPU))


@pytest.mark.parametrize("scale", [1.0, 5000.0], ids=["a factor of 1", "a grid of 1"])
def test_what_an_exporter_leaves_out_changes_nothing(scale: float) -> None:
    shape = read_shape(export(additive(small("table", 60), scale)))
    assert shape.scale == pytest.approx(scale)


def node(kind: str, given: list[str], made: str, **rest: object) -> onnx.NodeProto:
    return helper.make_node(kind, given, [made], **rest)


def graph(
    nodes: list[onnx.NodeProto],
    scale: object = 0.5,
    inputs: tuple[str, ...] = ("x", "noise"),
    noise: int = 2,
) -> bytes:
    widths = {"noise": noise}
    sizes = {name: ["rows", widths.get(name, 2)] for name in inputs}
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in sizes.items()]
    result = helper.make_tensor_value_info("z", TensorProto.FLOAT, ["rows", 2])
    tensors = [
        numpy_helper.from_array(np.asarray(value, np.float32), name)
        for name, value in (("scale", scale), ("step", 0.001), ("weak", 0.01))
    ]
    model = helper.make_model(
        helper.make_graph(nodes, "g", values, [result], tensors),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=10,
    )
    content: bytes = model.SerializeToString()
    return content


CODE = node("Tanh", ["x"], "code")
SCALED = node("Mul", ["scale", "noise"], "scaled")
SUM = node("Add", ["code", "scaled"], "z")
HIDDEN: dict[str, tuple[Callable[[], bytes], str]] = {
    "noise in the code": (
        lambda: graph([SCALED, node("Add", ["x", "noise"], "code"), SUM]),
        "simply add noise",
    ),
    "the scaled noise in the code": (
        lambda: graph([SCALED, node("Add", ["x", "scaled"], "code"), SUM]),
        "computed from the noise",
    ),
    "a scale from the record": (
        lambda: graph([CODE, node("Mul", ["x", "noise"], "scaled"), SUM]),
        "one constant",
    ),
    "a scale per coordinate": (lambda: graph([CODE, SCALED, SUM], [0.5, 0.1]), "one constant"),
    "a scale that is no number": (lambda: graph([CODE, SCALED, SUM], np.nan), "from 0 on"),
    "a record behind the noise": (
        lambda: graph(
            [CODE, SCALED, node("Add", ["code", "scaled"], "s"), node("Mul", ["s", "x"], "z")]
        ),
        "else than rounding",
    ),
    "the code comes back after the noise": (
        lambda: graph(
            [
                CODE,
                SCALED,
                node("Add", ["code", "scaled"], "s"),
                node("Mul", ["code", "weak"], "trace"),
                node("Add", ["s", "trace"], "z"),
            ]
        ),
        "simply add noise",
    ),
    "another step than was divided by": (
        lambda: graph(
            [
                CODE,
                SCALED,
                node("Add", ["code", "scaled"], "s"),
                node("Div", ["s", "step"], "t"),
                node("Round", ["t"], "r"),
                node("Mul", ["r", "code"], "z"),
            ]
        ),
        "else than rounding",
    ),
    "noise of its own": (
        lambda: graph(
            [
                node("RandomNormalLike", ["x"], "drawn"),
                node("Add", ["x", "drawn"], "code"),
                SCALED,
                SUM,
            ]
        ),
        "draws random numbers",
    ),
    "no noise": (lambda: graph([node("Add", ["x", "scale"], "z")]), "simply add noise"),
    "a third input": (
        lambda: graph([CODE, SCALED, SUM], inputs=("x", "noise", "more")),
        "take a record and noise",
    ),
    "no graph": (lambda: b"what", "cannot be parsed"),
}


@pytest.mark.parametrize("case", HIDDEN)
def test_other_shapes_are_refused_with_a_reason(case: str) -> None:
    make, said = HIDDEN[case]
    with pytest.raises(UnknownShape, match=said):
        read_shape(make())


def test_the_plain_shape_that_the_others_are_made_from_is_known() -> None:
    shape = read_shape(graph([CODE, SCALED, SUM]))
    assert (shape.scale, shape.code, shape.reach) == (0.5, "code", (-1.0, 1.0))


def test_coordinates_that_share_noise_are_refused() -> None:
    content = graph([CODE, SCALED, SUM], noise=1)
    with pytest.raises(UnknownShape, match="noise of their own"):
        graph_codes(content, read_shape(content), (1,), np.zeros((3, 2), np.float32))


@pytest.mark.parametrize("tensor,value", [("flip", 0.001), ("scalar_tensor_default", 1.0)])
def test_the_flip_is_the_graphs_and_other_draws_are_refused(tensor: str, value: float) -> None:
    model = onnx.load_from_string(export(symbols(small("table", 60))))
    for one in model.graph.initializer:
        if one.name == tensor:
            one.CopyFrom(numpy_helper.from_array(np.float32(value), tensor))
    if tensor == "flip":
        assert read_shape(model.SerializeToString()).scale == pytest.approx(value)
    else:
        with pytest.raises(UnknownShape, match="replace symbols"):
            read_shape(model.SerializeToString())
