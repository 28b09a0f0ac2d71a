"""Graphs that a stranger might publish as a release, each with the reason why it must not run.

Made by code, so that no hostile file is in the repository. Most of them onnxruntime would run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
Change = Callable[[onnx.ModelProto], None]


def value(name: str, kind: int = FLOAT, shape: Sequence[Any] | None = ("n", 4)) -> Any:
    return helper.make_tensor_value_info(name, kind, None if shape is None else list(shape))


def constant(name: str, numbers: Any) -> onnx.TensorProto:
    array = np.asarray(numbers)
    return numpy_helper.from_array(
        array.astype(np.float32) if array.dtype == np.float64 else array, name
    )


def graph(
    nodes: Sequence[Any] | None = None,
    constants: Sequence[onnx.TensorProto] = (),
    change: Change = lambda model: None,
    inputs: Sequence[Any] | None = None,
    outputs: Sequence[Any] | None = None,
    opset: int = 18,
    ir: int = 9,
) -> bytes:
    """A graph from rows of four numbers to rows of four numbers; harmless unless told otherwise."""
    made = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["z"])] if nodes is None else list(nodes),
        "g",
        [value("x")] if inputs is None else list(inputs),
        [value("z")] if outputs is None else list(outputs),
        list(constants),
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)
    change(model)
    content: bytes = model.SerializeToString()
    return content


def node(kind: str, inputs: Sequence[str], output: str = "z", **settings: Any) -> Any:
    return helper.make_node(kind, list(inputs), [output], **settings)


# What was made is summed, so that a runtime cannot leave it out.
SUMMED = [node("ReduceSum", ["y"], "s", keepdims=0), node("Add", ["x", "s"])]


def _external(location: str, hint_only: bool = False) -> bytes:
    def change(model: onnx.ModelProto) -> None:
        tensor = model.graph.initializer.add(name="w", data_type=FLOAT, dims=[4])
        tensor.external_data.add(key="location", value=location)
        if not hint_only:
            tensor.data_location = TensorProto.EXTERNAL

    return graph([node("Add", ["x", "w"])], change=change)


def _loop(times: int | None = None) -> bytes:
    """A loop that goes on as long as its condition, which is always true."""
    body = helper.make_graph(
        [node("Identity", ["c"], "d"), node("Add", ["v", "v"], "w")],
        "b",
        [value("i", INT64, []), value("c", TensorProto.BOOL, []), value("v")],
        [value("d", TensorProto.BOOL, []), value("w")],
    )
    inputs = ["" if times is None else "most", "yes", "x"]
    constants = [constant("yes", np.array(True))]
    if times is not None:
        constants.append(constant("most", np.array(times)))
    return graph([node("Loop", inputs, body=body)], constants)


def _nested() -> bytes:
    inner = helper.make_graph([node("Relu", ["x"], "y")], "i", [], [value("y")])
    for _ in range(30):
        branch = node("If", ["yes"], "y", then_branch=inner, else_branch=inner)
        inner = helper.make_graph([branch], "i", [], [value("y")])
        if len(inner.SerializeToString()) > 1 << 16:
            break
    outer = node("If", ["yes"], then_branch=inner, else_branch=inner)
    return graph([outer], [constant("yes", np.array(True))])


def _scan() -> bytes:
    body = helper.make_graph(
        [node("Add", ["s", "e"], "t"), node("Identity", ["t"], "u")],
        "b",
        [value("s", FLOAT, [4]), value("e", FLOAT, [4])],
        [value("t", FLOAT, [4]), value("u", FLOAT, [4])],
    )
    scan = helper.make_node("Scan", ["w", "x"], ["last", "z"], body=body, num_scan_inputs=1)
    return graph([scan], [constant("w", np.zeros(4))])


def _hidden_subgraph() -> bytes:
    """A graph in the setting of an operator that takes none."""
    inner = helper.make_graph([node("Relu", ["x"], "y")], "i", [], [value("y")])
    return graph([node("Relu", ["x"], body=inner)])


def _function() -> bytes:
    def change(model: onnx.ModelProto) -> None:
        opsets = [helper.make_opsetid("", 18)]
        body = [node("Add", ["a", "a"], "b")]
        model.functions.append(helper.make_function("ours", "Double", ["a"], ["b"], body, opsets))
        model.opset_import.append(helper.make_opsetid("ours", 1))

    return graph([node("Double", ["x"], domain="ours")], change=change)


def _sparse() -> bytes:
    def change(model: onnx.ModelProto) -> None:
        model.graph.sparse_initializer.add(
            values=constant("w", np.ones(1)), indices=constant("k", np.arange(1)), dims=[1 << 40]
        )

    return graph([node("Add", ["x", "w"])], change=change)


def _training() -> bytes:
    def change(model: onnx.ModelProto) -> None:
        model.training_info.add().initialization.initializer.append(constant("w", np.ones(4)))

    return graph(change=change)


def _claims(dims: Sequence[int], data: bytes = b"") -> bytes:
    """A constant that says it is larger, or smaller, than it is."""

    def change(model: onnx.ModelProto) -> None:
        model.graph.initializer.add(name="w", data_type=FLOAT, dims=dims, raw_data=data)

    return graph([node("Add", ["x", "w"])], change=change)


def _sequence() -> bytes:
    nodes = [
        node("SequenceConstruct", ["x", "x"], "s"),
        node("ConcatFromSequence", ["s"], axis=0),
    ]
    return graph(nodes)


def _optional_input() -> bytes:
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, [4]))
    return graph(inputs=[value("x"), helper.make_value_info("noise", kind)])


def _sequence_input() -> bytes:
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, [4]))
    return graph(inputs=[value("x"), helper.make_value_info("noise", kind)])


def _strings() -> bytes:
    words = helper.make_tensor("w", TensorProto.STRING, [2], [b"a", b"b"])
    return graph([node("Identity", ["w"], "v"), node("Relu", ["x"])], [words])


def _opened(change: Change) -> bytes:
    return graph(change=change)


def _doubling() -> bytes:
    """Each step gives twice what it takes: forty small nodes, 2 ** 40 numbers."""
    nodes = [node("Concat", [f"t{k}", f"t{k}"], f"t{k + 1}", axis=1) for k in range(40)]
    return graph([node("Relu", ["x"], "t0"), *nodes, node("Relu", ["t40"])])


def _many_products() -> bytes:
    """Small tensors, but products that take for ever: 512 squares of a matrix of 4096."""
    nodes = [node("MatMul", [f"m{k}", f"m{k}"], f"m{k + 1}") for k in range(512)]
    last = node("Gather", ["m512", "first"], "row", axis=1)
    picked = [last, node("Gather", ["row", "first"], "four", axis=0), node("Add", ["x", "four"])]
    fill = constant("", np.zeros(1))
    square = node("ConstantOfShape", ["sides"], "m0", value=fill)
    given = [constant("sides", np.array([4096, 4096])), constant("first", np.arange(4)[:1])]
    return graph([square, *nodes, *picked], given)


def _quantised(scale: Any, zero: Any = 0) -> bytes:
    given = [constant("s", np.float32(scale)), constant("k", np.uint8(zero))]
    nodes = [
        node("QuantizeLinear", ["x", "s", "k"], "q"),
        node("DequantizeLinear", ["q", "s", "k"]),
    ]
    return graph(nodes, given)


def _scale_from_record() -> bytes:
    nodes = [
        node("ReduceMax", ["x"], "s", keepdims=0),
        node("QuantizeLinear", ["x", "s"], "q"),
        node("DequantizeLinear", ["q", "s"]),
    ]
    return graph(nodes)


def _length_from_record() -> bytes:
    nodes = [
        node("ReduceMax", ["x"], "m", keepdims=0),
        node("Cast", ["m"], "k", to=INT64),
        node("Range", ["zero", "k", "one"], "r"),
        node("Cast", ["r"], "f", to=FLOAT),
        node("ReduceSum", ["f"], "s", keepdims=0),
        node("Add", ["x", "s"]),
    ]
    return graph(nodes, [constant("zero", np.array(0)), constant("one", np.array(1))])


def _cycle() -> bytes:
    return graph([node("Add", ["x", "b"], "a"), node("Relu", ["a"], "b"), node("Relu", ["b"])])


def _field(number: int, wire: int, body: bytes) -> bytes:
    """A field of protobuf as it is written."""
    return bytes([number << 3 | wire]) + body


def _deep() -> bytes:
    """A field that ONNX does not have, a thousand messages deep."""
    inner = b""
    for _ in range(1000):
        size, length = len(inner), b""
        while size >= 128:
            length, size = length + bytes([size & 127 | 128]), size >> 7
        inner = _field(15, 2, length + bytes([size]) + inner)
    return graph() + inner


def _wide_type() -> bytes:
    """The type of a tensor as a number of 33 bits, of which a runtime would take the lower ones."""
    content = graph([node("Add", ["x", "w"])], [constant("w", np.ones(4))])
    tensor = constant("w", np.ones(4)).SerializeToString()
    wide = tensor.replace(b"\x10\x01", b"\x10\x81\x80\x80\x80\x10", 1)
    model = onnx.ModelProto.FromString(content)
    del model.graph.initializer[:]
    inner = model.graph.SerializeToString() + _field(5, 2, bytes([len(wide)]) + wide)
    model.ClearField("graph")
    return model.SerializeToString() + _field(
        7, 2, bytes([len(inner) & 127 | 128, len(inner) >> 7]) + inner
    )


def _sized(kind: str, sizes: Any, **settings: Any) -> bytes:
    """An operator that makes something of the size that a constant names."""
    first = node(kind, ["x", "k"], "y", **settings)
    return graph([first, *SUMMED], [constant("k", np.array(sizes))])


def _filled(sizes: Any) -> bytes:
    first = node("ConstantOfShape", ["k"], "y")
    return graph([first, *SUMMED], [constant("k", np.array(sizes))])


def _ranged() -> bytes:
    ends = [constant(name, np.array(k)) for name, k in (("a", 0), ("b", 1 << 40), ("c", 1))]
    nodes = [node("Range", ["a", "b", "c"], "r"), node("Cast", ["r"], "f", to=FLOAT)]
    rest = [node("ReduceSum", ["f"], "s", keepdims=0), node("Add", ["x", "s"])]
    return graph([*nodes, *rest], ends)


def _one_hot() -> bytes:
    given = [constant("d", np.array(1 << 40)), constant("v", np.array([0.0, 1.0]))]
    nodes = [node("Cast", ["x"], "k", to=INT64), node("OneHot", ["k", "d", "v"], "h")]
    return graph(
        [*nodes, node("ReduceSum", ["h"], "s", keepdims=0), node("Add", ["x", "s"])], given
    )


def _resized() -> bytes:
    nodes = [
        node("Reshape", ["x", "four"], "p"),
        node("Resize", ["p", "", "scales"], "r"),
        node("ReduceSum", ["r"], "s", keepdims=0),
        node("Add", ["x", "s"]),
    ]
    scales = constant("scales", np.array([1.0, 1.0, 1e6, 1e6]))
    return graph(nodes, [constant("four", np.array([-1, 1, 2, 2])), scales])


def _wide_padding() -> bytes:
    given = [constant("w", np.ones((1, 1, 1, 1))), constant("four", np.array([-1, 1, 2, 2]))]
    nodes = [
        node("Reshape", ["x", "four"], "p"),
        node("Conv", ["p", "w"], "c", pads=[1 << 30] * 4),
        node("ReduceSum", ["c"], "s", keepdims=0),
        node("Add", ["x", "s"]),
    ]
    return graph(nodes, given)


def _by_rows() -> bytes:
    """Harmless for the one record that is looked at, enormous for three: its size is a power of the
    number of records."""
    nodes = [node("Shape", ["x"], "n", start=0, end=1)]
    nodes += [node("Mul", [f"{'n' if k == 0 else f'n{k}'}"] * 2, f"n{k + 1}") for k in range(5)]
    nodes += [
        node("ConstantOfShape", ["n5"], "y"),
        node("ReduceSum", ["y"], "s", keepdims=0),
        node("Add", ["x", "s"]),
    ]
    return graph(nodes)


def _random(kind: str) -> bytes:
    return graph([node(kind, ["x"], "e"), node("Add", ["x", "e"])])


def _imports(domain: str, version: int) -> bytes:
    def change(model: onnx.ModelProto) -> None:
        model.opset_import.append(helper.make_opsetid(domain, version))

    return graph(change=change)


def _twice() -> bytes:
    """Two graphs in one file: a parser that takes the first sees another one than one that joins
    them."""
    other = onnx.ModelProto.FromString(_external("secret")).graph.SerializeToString()
    return graph() + _field(7, 2, bytes([len(other) & 127 | 128, len(other) >> 7]) + other)


HOSTILE: dict[str, tuple[str, bytes]] = {
    "a key file in the current folder": ("external_data", _external(".ssh/id_ed25519")),
    "a file by its absolute path": ("external_data", _external("/etc/passwd")),
    "a file above the current folder": ("external_data", _external("../../secret.bin")),
    "a file behind a symbolic link": ("external_data", _external("./link/secret.bin")),
    "a file that is only hinted at": ("external_data", _external("secret", hint_only=True)),
    "a second graph in the file": ("repeated_field", _twice()),
    "an endless loop": ("subgraph", _loop()),
    "a loop of 2 ** 62 rounds": ("subgraph", _loop(1 << 62)),
    "branches within branches": ("subgraph", _nested()),
    "a scan": ("subgraph", _scan()),
    "a loop without a body": ("loop", graph([node("Loop", ["", "x", "x"])])),
    "a graph where none belongs": ("subgraph", _hidden_subgraph()),
    "a function": ("function", _function()),
    "an operator of another domain": ("domain", graph([node("FusedGemm", ["x"], domain="com.x")])),
    "an operator that is not known": ("operator", graph([node("GridSample", ["x", "x"])])),
    "sparse weights of 2 ** 40": ("sparse", _sparse()),
    "instructions for training": ("training", _training()),
    "weights that are not there": ("tensor_size", _claims([1 << 12, 1 << 12])),
    "weights of 2 ** 60 numbers": ("too_large", _claims([1 << 30, 1 << 30])),
    "more bytes than sizes": ("tensor_size", _claims([4], b"\0" * 64)),
    "a negative size": ("negative_size", _claims([-1, 4], b"\0" * 16)),
    "an empty weight": ("zero_size", _claims([0, 4])),
    "a constant of 2 ** 40": ("too_large", _filled([1 << 20, 1 << 20])),
    "a constant of negative size": ("negative_size", _filled([-5])),
    "expand to 2 ** 40": ("too_large", _sized("Expand", [1 << 20, 1 << 18, 4])),
    "tile to 2 ** 40": ("too_large", _sized("Tile", [1 << 20, 1 << 20])),
    "pad to 2 ** 40": ("too_large", _sized("Pad", [0, 0, 1 << 40, 0])),
    "pads of a convolution": ("too_large", _wide_padding()),
    "resize to 10 ** 12": ("too_large", _resized()),
    "range to 2 ** 40": ("too_large", _ranged()),
    "one-hot of 2 ** 40 classes": ("too_large", _one_hot()),
    "doubling forty times": ("too_large", _doubling()),
    "enormous for three records": ("too_large", _by_rows()),
    "products for ever": ("work", _many_products()),
    "a length that the record names": ("data_sized", _length_from_record()),
    "the places that are not zero": ("data_sized", graph([node("NonZero", ["x"])])),
    "unique values": ("data_sized", graph([node("Unique", ["x"])])),
    "noise of its own, normal": ("random", _random("RandomNormalLike")),
    "noise of its own, uniform": ("random", _random("RandomUniformLike")),
    "noise by dropout": ("random", graph([node("Dropout", ["x"])])),
    "noise by coins": ("random", graph([node("Bernoulli", ["x"])])),
    "strings": ("string_tensor", _strings()),
    "a cast to strings": (
        "string_tensor",
        graph([node("Cast", ["x"], "s", to=TensorProto.STRING), node("Relu", ["x"])]),
    ),
    "an input of strings": (
        "string_tensor",
        graph(inputs=[value("x"), value("noise", TensorProto.STRING)]),
    ),
    "sequences": ("value_type", _sequence()),
    "a sequence as an input": ("value_type", _sequence_input()),
    "an optional input": ("value_type", _optional_input()),
    "a cycle": ("order", _cycle()),
    "an input that nothing makes": ("order", graph([node("Add", ["x", "nothing"])])),
    "an output that nothing makes": ("order", graph(outputs=[value("nothing")])),
    "one name for two values": (
        "duplicate_name",
        graph([node("Relu", ["x"]), node("Sigmoid", ["x"])]),
    ),
    "a weight in place of the record": (
        "duplicate_name",
        graph(constants=[constant("x", np.ones((1, 4)))]),
    ),
    "numbers of two kinds": (
        "wrong_type",
        graph([node("Add", ["x", "w"])], [constant("w", np.arange(4))]),
    ),
    "another kind than it declares": ("wrong_type", graph(outputs=[value("z", INT64)])),
    "sizes that do not fit": (
        "shape",
        graph([node("MatMul", ["x", "w"])], [constant("w", np.ones((5, 4)))]),
    ),
    "an old set of operators": ("version", graph(opset=6)),
    "a set of operators from the future": ("version", graph(opset=99)),
    "two sets of operators": ("version", _imports("ai.onnx", 11)),
    "a file format from the future": ("version", graph(ir=99)),
    "a file that ends early": ("malformed", graph()[:-7]),
    "no graph": ("no_graph", onnx.ModelProto(ir_version=9).SerializeToString()),
    "a thousand messages deep": ("unknown_field", _deep()),
    "a field that is not known": ("unknown_field", graph() + _field(13, 0, b"\x01")),
    "a type of 33 bits": ("element_type", _wide_type()),
    "a number of 70 bits": ("malformed", graph() + _field(5, 0, b"\xff" * 9 + b"\x7f")),
    "a very long name": ("name_length", graph([node("Relu", ["x"], name="n" * 4096)])),
    "a weight that is no number": (
        "not_a_number",
        graph([node("Add", ["x", "w"])], [constant("w", np.array([0, 1, np.nan, 3.0]))]),
    ),
    "a scale of zero": ("quantisation", _quantised(0.0)),
    "a negative scale": ("quantisation", _quantised(-1.0)),
    "an infinite scale": ("quantisation", _quantised(np.inf)),
    "a scale that the record sets": ("quantisation", _scale_from_record()),
    "a setting that the operator lacks": ("attribute", graph([node("Relu", ["x"], alpha=2.0)])),
    "a setting of another kind": ("attribute", graph([node("Softmax", ["x"], axis=1.5)])),
    "too many inputs": ("too_many", graph(inputs=[value(f"x{k}") for k in range(9)])),
    "an input of any rank": ("inputs", graph(inputs=[value("x", FLOAT, None)])),
    "an input of negative size": ("negative_size", graph(inputs=[value("x", FLOAT, [-3, 4])])),
    "an input without records": ("zero_size", graph(inputs=[value("x", FLOAT, [0, 4])])),
    "an input of twelve axes": ("rank", graph(inputs=[value("x", FLOAT, [1] * 12)])),
    "eight-bit floats": (
        "element_type",
        graph(inputs=[value("x"), value("noise", TensorProto.FLOAT8E4M3FN)]),
    ),
    "a list as two inputs": ("arity", graph([node("Relu", ["x", "x"])])),
    "a normalisation that learns": (
        "training",
        graph(
            [node("BatchNormalization", ["x", *"abcd"], training_mode=1)],
            [constant(name, np.ones(4)) for name in "abcd"],
        ),
    ),
}
