"""A Triton model folder says what the graph takes and gives. No server runs here: the configuration
is parsed by protobuf's own text format, and compared with what onnxruntime says of the graph."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from typer.testing import CliRunner

from privet import PrivetError, Release
from privet.cli.main import app
from privet.data.schema import learn_schema
from privet.nets import registry as nets
from privet.release.noise import Noise
from privet.release.triton import export_triton
from small import small

TYPES = ["TYPE_INVALID", "TYPE_BOOL", "TYPE_UINT8", "TYPE_INT64", "TYPE_FP32"]
ONNXRUNTIME = {"tensor(uint8)": "TYPE_UINT8", "tensor(int64)": "TYPE_INT64"} | {
    "tensor(float)": "TYPE_FP32"
}


def fields_we_use() -> Any:
    """Those fields of Triton's ModelConfig that a folder of ours has, under their names."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="used.proto", package="used", syntax="proto3")
    kinds = file.enum_type.add(name="DataType")
    for number, name in enumerate(TYPES):
        kinds.value.add(name=name, number=number)
    tensor = file.message_type.add(name="Tensor")
    tensor.field.add(name="name", number=1, type=field.TYPE_STRING, label=1)
    tensor.field.add(
        name="data_type", number=2, type=field.TYPE_ENUM, label=1, type_name=".used.DataType"
    )
    tensor.field.add(name="dims", number=3, type=field.TYPE_INT64, label=3)
    file.message_type.add(name="Batching")
    config = file.message_type.add(name="ModelConfig")
    config.field.add(name="name", number=1, type=field.TYPE_STRING, label=1)
    config.field.add(name="backend", number=17, type=field.TYPE_STRING, label=1)
    config.field.add(name="max_batch_size", number=4, type=field.TYPE_INT32, label=1)
    for name, number, label, kind in (
        ("input", 5, 3, "Tensor"),
        ("output", 6, 3, "Tensor"),
        ("dynamic_batching", 11, 1, "Batching"),
    ):
        config.field.add(
            name=name,
            number=number,
            type=field.TYPE_MESSAGE,
            label=label,
            type_name=f".used.{kind}",
        )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("used.ModelConfig"))


def tritons_own() -> Any:
    """Triton's schema from the package tritonclient, whose other parts would need grpc."""
    found = importlib.util.find_spec("tritonclient")
    if found is None or not found.submodule_search_locations:
        pytest.skip("tritonclient, which has Triton's schema, is not installed")
    path = Path(found.submodule_search_locations[0]) / "grpc" / "model_config_pb2.py"
    spec = importlib.util.spec_from_file_location("model_config_pb2", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ModelConfig


@pytest.fixture(scope="module", params=["table", "image", "text"])
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Networks that have learned nothing: a table's has noise."""
    torch.manual_seed(0)
    schema = learn_schema(small(request.param, 60), ["u", "y"])
    name, settings, noise = "extractor", {"width": 0.05}, None
    if request.param == "table":
        name, noise = "hedge", Noise("gaussian", (2,), 0.4)
        settings = {"dims": 2, "sigma": 0.4, "width": 0.05}
    folder = tmp_path_factory.mktemp(request.param) / "r"
    card = {"method": "none", "private": ["u"]}
    Release(schema, (name, settings), nets.build(name, schema, settings), noise, card).save(folder)
    return folder


@pytest.mark.parametrize("schema", [fields_we_use, tritons_own])
def test_the_configuration_is_the_graphs(release: Path, schema: Any, tmp_path: Path) -> None:
    model = export_triton(release, tmp_path / "models", "people")
    graph = (model / "1" / "model.onnx").read_bytes()
    assert graph == (release / "release.onnx").read_bytes()
    config = text_format.Parse((model / "config.pbtxt").read_text(), schema()())
    assert config.name == model.name == "people" and config.backend == "onnxruntime"
    run = onnxruntime.InferenceSession(graph)
    enum = config.DESCRIPTOR.fields_by_name["input"].message_type.fields_by_name["data_type"]
    for ours, theirs in ((config.input, run.get_inputs()), (config.output, run.get_outputs())):
        assert [one.name for one in ours] == [one.name for one in theirs]
        for one, other in zip(ours, theirs, strict=True):
            free = [size if isinstance(size, int) else -1 for size in other.shape]
            assert free[0] == -1 and list(one.dims) == free[1:]
            assert enum.enum_type.values_by_number[one.data_type].name == ONNXRUNTIME[other.type]
    # A batch of the largest size that the configuration allows does run.
    given = {
        one.name: np.ones((config.max_batch_size, *(7 if d < 0 else d for d in one.dims)), kind)
        for one, kind in zip(
            config.input,
            ({"tensor(uint8)": np.uint8, "tensor(int64)": np.int64}.get(i.type, np.float32)
             for i in run.get_inputs()),
            strict=True,
        )
    }  # fmt: skip
    (z,) = run.run(["z"], given)
    assert len(z) == config.max_batch_size


def test_nothing_is_overwritten_and_names_are_plain(release: Path, tmp_path: Path) -> None:
    export_triton(release, tmp_path / "models")
    with pytest.raises(PrivetError, match="--force"):
        export_triton(release, tmp_path / "models")
    export_triton(release, tmp_path / "models", force=True)
    for name in ("../up", "", 'a"b'):
        with pytest.raises(PrivetError, match="no name of a model"):
            export_triton(release, tmp_path / "models", name)


def test_the_command(release: Path, tmp_path: Path) -> None:
    words = ["export", str(release), "--triton", "--out", str(tmp_path / "models")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0 and (tmp_path / "models" / "privet" / "config.pbtxt").is_file()
    if (tmp_path / "models" / "privet" / "config.pbtxt").read_text().count('"noise"'):
        assert "draws the noise" in " ".join(done.output.split())
