"""ONNX operators as torch functions: those that exported classifiers of pictures, windows and rows
are made of.

Each takes its inputs (None where one is left out) and its attributes, as
https://onnx.ai/onnx/operators defines them; to the attributes are added `opset`, the version of the
definitions, and `outputs`, how many the node has.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, cast

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from torch import Tensor

Given = list[Tensor | None]
Operator = Callable[[Given, dict[str, Any]], Any]


def _ints(value: Any) -> list[int]:
    return [int(v) for v in (value.flatten().tolist() if isinstance(value, Tensor) else value)]


def _first(given: Given) -> Tensor:
    return cast(Tensor, given[0])


def _second(given: Given, a: dict[str, Any], name: str, place: int = 1) -> list[int] | None:
    """What newer graphs give as an input and older ones as an attribute."""
    value = given[place] if len(given) > place else a.get(name)
    return None if value is None else _ints(value)


def _edges(a: dict[str, Any], size: list[int], kernel: list[int]) -> list[int]:
    """Padding before and after every axis: begin_1, ..., begin_n, end_1, ..., end_n."""
    dims, mode = len(kernel), a.get("auto_pad", "NOTSET")
    if mode in ("NOTSET", "VALID"):
        return _ints(a.get("pads", [0] * 2 * dims)) if mode == "NOTSET" else [0] * 2 * dims
    steps, wide = a.get("strides", [1] * dims), a.get("dilations", [1] * dims)
    total = [
        max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        for n, s, k, d in zip(size[-dims:], steps, kernel, wide, strict=True)
    ]
    small, large = [t // 2 for t in total], [t - t // 2 for t in total]
    return small + large if mode == "SAME_UPPER" else large + small


def _around(x: Tensor, edges: list[int], value: float = 0.0, mode: str = "constant") -> Tensor:
    half = len(edges) // 2
    pairs = [p for axis in reversed(range(half)) for p in (edges[axis], edges[half + axis])]
    while len(pairs) > 2 and mode != "constant" and pairs[-2:] == [0, 0]:
        pairs = pairs[:-2]
    return (
        F.pad(x, pairs, mode, value)
        if mode == "constant"
        else F.pad(x, pairs, {"edge": "replicate"}.get(mode, mode))
    )


def _conv(given: Given, a: dict[str, Any]) -> Tensor:
    x, weight, bias = (*given, None)[:3]
    assert x is not None and weight is not None
    kernel = list(weight.shape[2:])
    edges, dims = _edges(a, list(x.shape), kernel), len(kernel)
    call: Any = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[dims]
    even = edges[:dims] == edges[dims:]
    x = x if even else _around(x, edges)
    steps, wide = a.get("strides", [1] * dims), a.get("dilations", [1] * dims)
    out: Tensor = call(
        x,
        weight,
        bias,
        tuple(steps),
        tuple(edges[:dims]) if even else 0,
        tuple(wide),
        a.get("group", 1),
    )
    return out


def _pool(given: Given, a: dict[str, Any], largest: bool) -> Tensor:
    x = given[0]
    assert x is not None
    kernel = list(a["kernel_shape"])
    edges, dims = _edges(a, list(x.shape), kernel), len(kernel)
    even, counted, up = (
        edges[:dims] == edges[dims:],
        bool(a.get("count_include_pad", 0)),
        bool(a.get("ceil_mode", 0)),
    )
    if not even:
        if not (largest or counted):
            raise ValueError("an average over uneven edges that are not counted")
        x = _around(x, edges, -torch.inf if largest else 0.0)
    edge, steps = edges[:dims] if even else [0] * dims, list(a.get("strides", [1] * dims))
    most: Any = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}[dims]
    mean: Any = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}[dims]
    out: Tensor = (
        most(x, kernel, steps, edge, a.get("dilations", 1), up)
        if largest
        else mean(x, kernel, steps, edge, up, counted)
    )
    return out


def _gemm(given: Given, a: dict[str, Any]) -> Tensor:
    left, right, bias = (*given, None)[:3]
    assert left is not None and right is not None
    out: Tensor = (
        a.get("alpha", 1.0)
        * (left.T if a.get("transA") else left)
        @ (right.T if a.get("transB") else right)
    )
    return out if bias is None else out + a.get("beta", 1.0) * bias


def _flatten(x: Tensor, axis: int) -> Tensor:
    axis = axis + x.dim() if axis < 0 else axis
    return x.reshape(int(np.prod(x.shape[:axis])), -1) if axis != 1 else x.flatten(1)


def _reshape(given: Given, a: dict[str, Any]) -> Tensor:
    x, wanted = given[0], _second(given, a, "shape")
    assert x is not None and wanted is not None
    return x.reshape(
        [x.shape[i] if s == 0 and not a.get("allowzero") else s for i, s in enumerate(wanted)]
    )


def _reduced(call: Callable[..., Tensor]) -> Operator:
    def run(given: Given, a: dict[str, Any]) -> Tensor:
        x, axes = given[0], _second(given, a, "axes")
        assert x is not None
        if axes is None and a.get("noop_with_empty_axes"):
            return x
        return call(
            x,
            dim=axes if axes is not None else list(range(x.dim())),
            keepdim=bool(a.get("keepdims", 1)),
        )

    return run


def _softmax(call: Callable[..., Tensor]) -> Operator:
    def run(given: Given, a: dict[str, Any]) -> Tensor:
        x = given[0]
        assert x is not None
        if a["opset"] >= 13:
            return call(x, dim=a.get("axis", -1))
        return call(_flatten(x, a.get("axis", 1)), dim=1).reshape(x.shape)

    return run


def _slice(given: Given, a: dict[str, Any]) -> Tensor:
    x, starts, ends = given[0], _second(given, a, "starts"), _second(given, a, "ends", 2)
    assert x is not None and starts is not None and ends is not None
    axes, steps = (
        _second(given, a, "axes", 3) or list(range(len(starts))),
        _second(given, a, "steps", 4) or [1] * len(starts),
    )
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = x.shape[axis]
        places = (
            torch.arange(size)[slice(start, end, step)]
            if step > 0
            else torch.tensor(range(size)[start:end:step], dtype=torch.int64)
        )
        x = x.index_select(axis, places.to(x.device))
    return x


def _gather(given: Given, a: dict[str, Any]) -> Tensor:
    x, index = given
    assert x is not None and index is not None
    axis = a.get("axis", 0) % max(x.dim(), 1)
    index = torch.where(index < 0, index + x.shape[axis], index).to(x.device)
    return x.index_select(axis, index.flatten()).reshape(
        [*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]]
    )


def _unsqueeze(given: Given, a: dict[str, Any]) -> Tensor:
    x, axes = given[0], _second(given, a, "axes") or []
    assert x is not None
    for axis in sorted(axis % (x.dim() + len(axes)) for axis in axes):
        x = x.unsqueeze(axis)
    return x


def _squeeze(given: Given, a: dict[str, Any]) -> Tensor:
    x, axes = given[0], _second(given, a, "axes")
    assert x is not None
    return x.squeeze() if axes is None else x.squeeze(tuple(axes))


def _pad(given: Given, a: dict[str, Any]) -> Tensor:
    x, edges = given[0], _second(given, a, "pads")
    assert x is not None and edges is not None
    value = given[2] if len(given) > 2 and given[2] is not None else a.get("value", 0.0)
    return _around(x, edges, float(value), a.get("mode", "constant"))


def _clip(given: Given, a: dict[str, Any]) -> Tensor:
    x, low, high = (*given, None, None)[:3]
    assert x is not None
    low, high = a.get("min", low), a.get("max", high)
    return x.clamp(None if low is None else float(low), None if high is None else float(high))


def _split(given: Given, a: dict[str, Any]) -> tuple[Tensor, ...]:
    x, sizes, axis = given[0], _second(given, a, "split"), a.get("axis", 0)
    assert x is not None
    return torch.split(x, sizes or -(-x.shape[axis] // a["outputs"]), dim=axis)


def _divided(left: Tensor, right: Tensor) -> Tensor:
    whole = not (left.is_floating_point() or right.is_floating_point())
    return torch.div(left, right, rounding_mode="trunc") if whole else left / right


def _normal(given: Given, a: dict[str, Any]) -> Tensor:
    x, scale, shift, mean, var = given
    assert x is not None
    return F.batch_norm(x, mean, var, scale, shift, training=False, eps=a.get("epsilon", 1e-5))


def _layer_normal(given: Given, a: dict[str, Any]) -> Tensor:
    x, scale, shift = (*given, None)[:3]
    assert x is not None
    return F.layer_norm(x, list(x.shape[a.get("axis", -1) :]), scale, shift, a.get("epsilon", 1e-5))


def _filled(given: Given, a: dict[str, Any]) -> Tensor:
    value = torch.as_tensor(a.get("value", [0.0])).flatten()[0]
    return torch.full(_ints(given[0]), value.item(), dtype=value.dtype)


def _cast(given: Given, a: dict[str, Any]) -> Tensor:
    x = given[0]
    assert x is not None
    kind = onnx.helper.tensor_dtype_to_np_dtype(a["to"])
    return (
        x.float()
        if np.issubdtype(kind, np.floating)
        else x.to(torch.bool if kind == np.bool_ else torch.int64)
    )


def _plain(call: Callable[..., Any]) -> Operator:
    """An operator that has inputs only."""
    return lambda given, _: call(*given)


def _all(call: Callable[[Any, Any], Any]) -> Operator:
    """An operator that joins any number of inputs, two at a time."""
    return lambda given, _: reduce(call, given)


OPERATORS: dict[str, Operator] = {
    "Conv": _conv,
    "Gemm": _gemm,
    "MatMul": _plain(torch.matmul),
    "BatchNormalization": _normal,
    "LayerNormalization": _layer_normal,
    "MaxPool": lambda given, a: _pool(given, a, True),
    "AveragePool": lambda given, a: _pool(given, a, False),
    "GlobalAveragePool": _plain(lambda x: x.mean(tuple(range(2, x.dim())), keepdim=True)),
    "GlobalMaxPool": _plain(lambda x: x.amax(tuple(range(2, x.dim())), keepdim=True)),
    "Add": _plain(torch.add),
    "Sub": _plain(torch.sub),
    "Mul": _plain(torch.mul),
    "Div": _plain(_divided),
    "Pow": _plain(torch.pow),
    "Max": _all(torch.maximum),
    "Min": _all(torch.minimum),
    "Sum": _all(torch.add),
    "Neg": _plain(torch.neg),
    "Abs": _plain(torch.abs),
    "Sqrt": _plain(torch.sqrt),
    "Reciprocal": _plain(torch.reciprocal),
    "Exp": _plain(torch.exp),
    "Log": _plain(torch.log),
    "Sin": _plain(torch.sin),
    "Cos": _plain(torch.cos),
    "Erf": _plain(torch.erf),
    "Tanh": _plain(torch.tanh),
    "Relu": _plain(torch.relu),
    "Sigmoid": _plain(torch.sigmoid),
    "Softplus": _plain(F.softplus),
    "HardSwish": _plain(F.hardswish),
    "LeakyRelu": lambda given, a: F.leaky_relu(given[0], a.get("alpha", 0.01)),  # type: ignore[arg-type]
    "Elu": lambda given, a: F.elu(given[0], a.get("alpha", 1.0)),  # type: ignore[arg-type]
    "HardSigmoid": lambda given, a: (a.get("alpha", 0.2) * given[0] + a.get("beta", 0.5)).clamp(
        0, 1
    ),
    "Gelu": lambda given, a: F.gelu(given[0], approximate=a.get("approximate", "none")),  # type: ignore[arg-type]
    "PRelu": _plain(lambda x, slope: torch.where(x < 0, x * slope, x)),
    "Clip": _clip,
    "Softmax": _softmax(torch.softmax),
    "LogSoftmax": _softmax(torch.log_softmax),
    "Einsum": lambda g, a: torch.einsum(a["equation"], *g),
    "ReduceMean": _reduced(torch.mean),
    "ReduceSum": _reduced(torch.sum),
    "ReduceMax": _reduced(torch.amax),
    "Flatten": lambda given, a: _flatten(_first(given), a.get("axis", 1)),
    "Reshape": _reshape,
    "Transpose": lambda given, a: _first(given).permute(
        a.get("perm") or list(reversed(range(_first(given).dim())))
    ),
    "Concat": lambda given, a: torch.cat(cast(list[Tensor], given), dim=a["axis"]),
    "Split": _split,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Slice": _slice,
    "Gather": _gather,
    "Pad": _pad,
    "Expand": _plain(lambda x, shape: x * torch.ones(_ints(shape), dtype=x.dtype, device=x.device)),
    "Shape": lambda given, a: torch.tensor(
        _first(given).shape[a.get("start", 0) : a.get("end")], dtype=torch.int64
    ),
    "ConstantOfShape": _filled,
    "Cast": _cast,
    "Identity": _plain(lambda x: x),
    "Dropout": lambda given, _: given[0],
}
