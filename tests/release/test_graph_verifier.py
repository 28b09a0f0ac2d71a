"""A release is a stranger's program: what may not run is refused before it runs, by the verifier in
Python and by the one in the browser, for the same reason."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from release_scripts import RULES_FILE, scripts

from hostile_graphs import HOSTILE, constant, graph, node, value
from privet import Run
from privet.data.schema import learn_schema
from privet.methods.veil import Veil
from privet.nets import registry as nets
from privet.release.decoder_graph import decoder_graph
from privet.release.graph import export
from privet.release.graph_verifier import verify_graph
from privet.release.graph_wire import RULES, Refused
from privet.release.int8 import quantise
from privet.release.noise import Noise
from privet.release.release import Release
from small import small

NODE = shutil.which("node")


def test_there_are_enough_of_them() -> None:
    """Forty different graphs, and more than half of all reasons."""
    assert len({content for _, content in HOSTILE.values()}) >= 40
    assert len({code for code, _ in HOSTILE.values()}) > len(RULES["reasons"]) / 2


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_graph_is_refused(name: str) -> None:
    code, content = HOSTILE[name]
    with pytest.raises(Refused) as refused:
        verify_graph(content)
    assert refused.value.code == code, str(refused.value)
    sentence = str(refused.value)
    assert sentence.startswith("The graph is not run: ") and "\n" not in sentence


def test_the_harmless_graph_they_are_made_from_may_run() -> None:
    assert verify_graph(graph()).cost({"x": (5, 4)}).outputs == {"z": (5, 4)}


def answers(folder: Path, contents: dict[str, bytes]) -> dict[str, Any]:
    """What the browser's verifier says of graphs: a reason, or the sizes of what they give."""
    made = scripts(folder)
    for k, content in enumerate(contents.values()):
        (made / f"{k}.onnx").write_bytes(content)
    (made / "run.js").write_text(
        """import fs from "node:fs";
import { verifyGraph } from "./verifier.js";
const many = Number(process.argv[2]);
const said = [];
for (let k = 0; k < many; k++) {
  try {
    const checked = verifyGraph(fs.readFileSync(new URL(`./${k}.onnx`, import.meta.url)));
    const sizes = (rows) => Object.fromEntries(checked.inputs.map(({ name, shape }) =>
      [name, shape.map((size, axis) => (typeof size === "number" ? size : axis ? 7 : rows))]));
    try {
      said.push(checked.cost(sizes(2)));
    } catch (error) {
      said.push(error.code);
    }
  } catch (error) {
    said.push(error.code ?? String(error.stack));
  }
}
console.log(JSON.stringify(said));
""",
        encoding="utf-8",
    )
    ran = subprocess.run(
        [str(NODE), "run.js", str(len(contents))],
        cwd=made,
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return dict(zip(contents, json.loads(ran.stdout), strict=True))


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_the_browsers_verifier_gives_the_same_reasons(tmp_path: Path) -> None:
    wanted = {name: code for name, (code, _) in HOSTILE.items()}
    assert answers(tmp_path, {name: content for name, (_, content) in HOSTILE.items()}) == wanted


def cut_graphs(content: bytes, many: int = 300) -> dict[str, bytes]:
    """A graph with one byte changed, or cut off somewhere."""
    rng = np.random.default_rng(0)
    made = {}
    for k in range(many):
        changed = bytearray(content)
        changed[rng.integers(len(content))] = rng.integers(256)
        made[f"changed {k}"] = bytes(changed)
        made[f"cut {k}"] = content[: rng.integers(len(content))]
    return made


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_both_verifiers_agree_on_damaged_graphs(tmp_path: Path) -> None:
    """Whatever a byte of a file becomes: the same reason, or the same sizes; never a crash."""
    nodes = [
        node("Shape", ["x"], "n", start=0, end=1),
        node("Concat", ["n", "rest"], "sizes", axis=0),
        node("Reshape", ["x", "sizes"], "p"),
        node("Conv", ["p", "w"], "c", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Slice", ["c", "from", "to"], "s"),
        node("Flatten", ["s"], "f"),
        node("Gemm", ["f", "m"], transB=1),
    ]
    constants = [
        constant("rest", np.array([1, 2, 2])),
        constant("w", np.ones((3, 1, 3, 3))),
        constant("from", np.array([0, 1])),
        constant("to", np.array([9223372036854775807, 9223372036854775807])),
        constant("m", np.ones((4, 2))),
    ]
    damaged = cut_graphs(graph(nodes, constants))
    said, wanted = answers(tmp_path, damaged), {}
    for name, content in damaged.items():
        try:
            checked = verify_graph(content)
            shapes = {
                port.name: tuple(
                    size if isinstance(size, int) else (7 if axis else 2)
                    for axis, size in enumerate(port.shape)
                )
                for port in checked.inputs
            }
            cost = checked.cost(shapes)
            wanted[name] = {
                "numbers": cost.numbers,
                "work": cost.work,
                "outputs": {key: list(shape) for key, shape in cost.outputs.items()},
            }
        except Refused as refused:
            wanted[name] = refused.code
    assert said == wanted
    assert {str(type(one)) for one in wanted.values()} == {str(dict), str(str)}


def test_sizes_are_looked_at_again_for_every_run() -> None:
    """x times its own transpose: harmless for ten records, 10 ** 12 numbers for a million."""
    nodes = [
        node("Transpose", ["x"], "t"),
        node("MatMul", ["x", "t"], "s"),
        node("ReduceSum", ["s"], "r", keepdims=0),
        node("Add", ["x", "r"]),
    ]
    checked = verify_graph(graph(nodes))
    assert checked.cost({"x": (10, 4)}).outputs == {"z": (10, 4)}
    with pytest.raises(Refused) as refused:
        checked.cost({"x": (1_000_000, 4)})
    assert refused.value.code == "too_large"


def test_the_rules_know_operators_as_onnx_does() -> None:
    """No operator, setting or number of inputs in the rules that ONNX has not."""
    schemas: dict[str, list[Any]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            schemas.setdefault(schema.name, []).append(schema)
    for name, about in RULES["operators"].items():
        known = {key for schema in schemas[name] for key in schema.attributes}
        assert set(about.get("attributes", {})) <= known, name
        assert about["inputs"][1] <= max(schema.max_input for schema in schemas[name]), name
    assert not set(RULES["refused_operators"]) & set(RULES["operators"])
    assert RULES_FILE.read_text(encoding="utf-8").isascii()


def test_declared_sizes_are_not_believed() -> None:
    """A value of a billion numbers that is declared to be small."""
    nodes = [node("Tile", ["x", "k"], "y"), node("ReduceSum", ["y"], "s", keepdims=0)]

    def change(model: onnx.ModelProto) -> None:
        model.graph.value_info.append(value("y", shape=(1, 4)))

    content = graph(
        [*nodes, node("Add", ["x", "s"])], [constant("k", np.array([1 << 20, 1 << 10]))], change
    )
    with pytest.raises(Refused) as refused:
        verify_graph(content)
    assert refused.value.code == "too_large"


def test_a_branch_is_refused_whatever_it_is_called() -> None:
    """Neither an overload nor a reference to a function's setting gets through."""
    made = node("Relu", ["x"])
    made.overload = "mine"
    with pytest.raises(Refused) as refused:
        verify_graph(graph([made]))
    assert refused.value.code == "function"
    made = node("Softmax", ["x"])
    made.attribute.add(name="axis", ref_attr_name="a", type=onnx.AttributeProto.INT)
    with pytest.raises(Refused) as refused:
        verify_graph(graph([made]))
    assert refused.value.code == "function"


def test_int8_graphs_and_decoders_may_run() -> None:
    """What `privet export --int8` and the decoder of a veil give."""
    data = small("image", 240)
    made = Veil(width=0.05, lessons=1, epochs=1, dims=8, batch=32).fit(
        data, ["u"], run=Run(progress=False, device="cpu")
    )
    decoder = verify_graph(decoder_graph(made))
    assert decoder.cost({"z": (3, 8)}).outputs == {"x": (3, 3, 32, 32)}
    schema, settings = learn_schema(data, ["u"]), {"dims": 2, "sigma": 0.4, "width": 0.1}
    noise = Noise("gaussian", (2,), 0.4)
    hedge = Release(schema, ("hedge", settings), nets.build("hedge", schema, settings), noise)
    small_graph = export(quantise(hedge, data))
    assert "QuantizeLinear" in {step.kind for step in verify_graph(small_graph)._steps}
