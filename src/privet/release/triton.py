"""A release as a model folder of NVIDIA's Triton server, which KServe runs too:

    models/NAME/config.pbtxt      names, types and sizes of inputs and outputs
    models/NAME/1/model.onnx      the release's graph, byte for byte

What the folder says is read from the graph itself. The noise is one of the inputs: whoever calls
the server draws it (docs/serve.md).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from privet.core.errors import PrivetError, refuse_if
from privet.core.files import writable_folder, write_bytes, write_text
from privet.release.randomness import NOISE_BATCH
from privet.release.runtime import read_graph, refuse_external_data

CONFIG = "config.pbtxt"
GRAPH = Path("1") / "model.onnx"
# Triton's names of the types that a graph may take and give, by ONNX's numbers.
TYPES = {1: "TYPE_FP32", 2: "TYPE_UINT8", 6: "TYPE_INT32", 7: "TYPE_INT64", 11: "TYPE_FP64"}


def export_triton(
    release: str | Path, models: str | Path, name: str = "privet", force: bool = False
) -> Path:
    """Write a release as a model of a Triton model repository; returns the model's folder.

    Parameters:
        release: The folder of a release.
        models: The model repository: the folder that the server is given.
        name: What the model is called there.
        force: Replace a model of this name.

    Example:
        >>> import tempfile, numpy as np, privet
        >>> rows = {f"c{i}": np.random.default_rng(i).standard_normal(80) for i in range(3)}
        >>> rows["sex"] = np.where(rows["c0"] > 0, "f", "m")
        >>> data = privet.load(rows, progress=False)
        >>> folder = tempfile.mkdtemp()
        >>> run = privet.Run(progress=False)
        >>> privet.LEACE().fit(data, "sex", run=run).save(folder + "/r")
        >>> made = privet.export_triton(folder + "/r", folder + "/models")
        >>> sorted(path.name for path in made.rglob("*") if path.is_file())
        ['config.pbtxt', 'model.onnx']
    """
    refuse_if(
        re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name) is None,
        f"'{name}' is no name of a model: use letters, digits, - and _.",
    )
    graph = read_graph(Path(release))
    config = model_config(graph, name)
    folder = Path(models) / name
    refuse_if(
        folder.exists() and not force, f"{folder} is there already: --force replaces its files."
    )
    undo = writable_folder(folder / GRAPH.parent)
    try:
        write_bytes(folder / GRAPH, graph)
        # Last: a server that looks at the folder in between finds no model, and not half of one.
        write_text(folder / CONFIG, config)
    except BaseException:
        undo()
        raise
    return folder


def model_config(graph: bytes, name: str) -> str:
    """The text of a model's `config.pbtxt`."""
    import onnx

    refuse_external_data(graph)
    model = onnx.ModelProto.FromString(graph).graph
    constants = {one.name for one in model.initializer}
    inputs = [value for value in model.input if value.name not in constants]
    return "\n".join(
        [
            f'name: "{name}"',
            'backend: "onnxruntime"',
            f"max_batch_size: {NOISE_BATCH}",
            f"input [\n{_tensors(inputs)}\n]",
            f"output [\n{_tensors(model.output)}\n]",
            "dynamic_batching { }",
            "",
        ]
    )


def _tensors(values: Any) -> str:
    return ",\n".join(_tensor(value) for value in values)


def _tensor(value: Any) -> str:
    tensor = value.type.tensor_type
    batch, *axes = tensor.shape.dim
    if batch.HasField("dim_value") or tensor.elem_type not in TYPES or not axes:
        raise PrivetError(f"Triton cannot run this graph in batches: look at its '{value.name}'.")
    dims = ", ".join(str(axis.dim_value if axis.HasField("dim_value") else -1) for axis in axes)
    return f'  {{ name: "{value.name}", data_type: {TYPES[tensor.elem_type]}, dims: [ {dims} ] }}'
