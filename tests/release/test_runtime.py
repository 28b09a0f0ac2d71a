"""A graph that takes data from another file is refused before onnxruntime sees it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from privet.core.errors import PrivetError
from privet.data.schema import learn_schema
from privet.nets import registry as nets
from privet.release.apply import apply
from privet.release.foreign import from_onnx
from privet.release.noise import Noise
from privet.release.quantised import Quantised
from privet.release.release import Release
from privet.release.runtime import session
from small import small

SECRET = "secret.bin"


def outside(name: str = "w") -> onnx.TensorProto:
    """Four numbers that are read from the file of the secret."""
    tensor = onnx.TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[4])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=SECRET)
    return tensor


def inside(name: str = "w") -> onnx.TensorProto:
    return numpy_helper.from_array(np.ones(4, np.float32), name)


def model(tensor: onnx.TensorProto, place: str = "initializer") -> bytes:
    """A graph z = x + w (or z = w) of rows of four numbers, which has a tensor at this place."""
    x, z = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in "xz")
    add, constant = (
        helper.make_node("Add", ["x", "w"], ["z"]),
        helper.make_node("Constant", [], ["w"], value=tensor),
    )
    graph = helper.make_graph([add], "g", [x], [z])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    if place == "initializer":
        made.graph.initializer.append(tensor)
    elif place == "attribute":
        made.graph.node.insert(0, constant)
    elif place == "list":
        made.graph.node[0].attribute.append(helper.make_attribute("given", [tensor]))
        made.graph.initializer.append(inside())
    elif place == "sparse":
        made.graph.sparse_initializer.add(
            values=tensor, indices=numpy_helper.from_array(np.arange(4)), dims=[4]
        )
    elif place == "subgraph":
        branch = helper.make_graph(
            [constant, helper.make_node("Add", ["x", "w"], ["y"])], "b", [], [z]
        )
        branch.output[0].name = "y"
        yes = helper.make_node(
            "Constant", [], ["yes"], value=numpy_helper.from_array(np.array(True))
        )
        del made.graph.node[:]
        made.graph.node.extend(
            [yes, helper.make_node("If", ["yes"], ["z"], then_branch=branch, else_branch=branch)]
        )
    elif place == "function":
        opsets = [helper.make_opsetid("", 18)]
        made.functions.append(
            helper.make_function("ours", "Plus", ["x"], ["z"], [constant, add], opsets)
        )
        made.opset_import.append(helper.make_opsetid("ours", 1))
        made.graph.node[0].CopyFrom(helper.make_node("Plus", ["x"], ["z"], domain="ours"))
    elif place == "training":
        made.graph.initializer.append(inside())
        made.training_info.add().initialization.initializer.append(tensor)
    content: bytes = made.SerializeToString()
    return content


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in the current folder that nobody means to share; making a session is a failure."""
    (tmp_path / SECRET).write_bytes(np.array([7, 8, 9, 10], np.float32).tobytes())
    monkeypatch.chdir(tmp_path)

    def made(*_args: object, **_words: object) -> None:
        raise AssertionError("a session was made")

    monkeypatch.setattr(onnxruntime, "InferenceSession", made)
    return tmp_path


PLACES = ["initializer", "attribute", "list", "sparse", "subgraph", "function", "training"]


@pytest.mark.parametrize("place", PLACES)
def test_no_tensor_may_be_in_another_file(secret: Path, place: str) -> None:
    with pytest.raises(PrivetError, match="read from another file"):
        session(model(outside(), place))
    hint = outside()
    hint.data_location = TensorProto.DEFAULT
    with pytest.raises(PrivetError, match="read from another file"):
        session(model(hint, place))


@pytest.mark.parametrize("place", [place for place in PLACES if place not in ("list", "sparse")])
def test_the_same_graph_with_its_data_inside_runs(place: str) -> None:
    given = session(model(inside(), place)).run(["z"], {"x": np.zeros((2, 4), np.float32)})[0]
    assert given.tolist() == [[1.0] * 4] * 2


@pytest.mark.parametrize("content", [b"no graph", b"\x12\x34\x12\x10ORTM" + b"\0" * 60])
def test_what_is_no_onnx_gets_a_sentence(secret: Path, content: bytes) -> None:
    with pytest.raises(PrivetError, match="cannot be run as ONNX"):
        session(content)


def test_the_runtimes_own_format_is_not_read() -> None:
    """Its marker may stand in a file that is also a graph: it is run as the graph that was seen."""
    content = b"\x08\x09\x12\x08ORTMORTM" + model(inside())
    assert session(content).run(["z"], {"x": np.zeros((1, 4), np.float32)})[0].tolist() == [
        [1.0] * 4
    ]


def _release(folder: Path) -> Path:
    """A release of rows, saved, whose graph was then exchanged and the card with it."""
    data = small("table", 40)
    schema, settings = learn_schema(data, ["u", "y"]), {"dims": 2, "sigma": 0.4, "width": 0.1}
    torch.manual_seed(0)
    card = {"method": "hedge", "private": ["u"]}
    Release(
        schema,
        ("hedge", settings),
        nets.build("hedge", schema, settings),
        Noise("gaussian", (2,), 0.4),
        card,
    ).save(folder)
    hostile = model(outside())
    (folder / "release.onnx").write_bytes(hostile)
    about = json.loads((folder / "card.json").read_text())
    about["sha256"]["graph"] = hashlib.sha256(hostile).hexdigest()
    (folder / "card.json").write_text(json.dumps(about))
    data.records.to_parquet(folder.parent / "rows.parquet")
    return folder


def test_apply_does_not_run_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    folder = _release(tmp_path / "release")
    request.getfixturevalue("secret")
    with pytest.raises(PrivetError, match="read from another file"):
        apply(folder, [tmp_path / "rows.parquet"], tmp_path / "out.parquet", progress=False)
    assert not (tmp_path / "out.parquet").exists()


def test_an_audit_of_a_foreign_graph_does_not_run_it(secret: Path) -> None:
    (secret / "theirs.onnx").write_bytes(model(outside()))
    with pytest.raises(PrivetError, match=r"theirs\.onnx.*read from another file"):
        from_onnx(secret / "theirs.onnx", small("table", 40), ["u"])


def test_a_graph_kept_as_weights_does_not_run(secret: Path) -> None:
    with pytest.raises(PrivetError, match="read from another file"):
        Quantised.of(model(outside()), (4,))(torch.zeros(1, 4))
