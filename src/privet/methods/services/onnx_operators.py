"""ONNX operators as torch functions: those that exported classifiers of pictures, windows and rows
are made of.

Each takes the node's attributes and then its inputs (None where one is left out), as
https://onnx.ai/onnx/operators defines them; to the attributes are added `opset`, the version of the
definitions, and `outputs`, how many the node has.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from torch import Tensor

Attributes = dict[str, Any]
Operator = Callable[..., Any]


def _ints(value: Any) -> list[int]:
    return [int(v) for v in (value.flatten().tolist() if isinstance(value, Tensor) else value)]


def _input_or(value: Tensor | None, a: Attributes, name: str) -> list[int] | None:
    """What newer graphs give as an input and older ones as an attribute."""
    value = a.get(name) if value is None else value
    return None if value is None else _ints(value)


def _edges(a: Attributes, x: Tensor, kernel: list[int]) -> list[int]:
    """Padding before and after every axis: begin_1, ..., begin_n, end_1, ..., end_n."""
    dims, mode = len(kernel), a.get("auto_pad", "NOTSET")
    if mode in ("NOTSET", "VALID"):
        return _ints(a.get("pads", [0] * 2 * dims)) if mode == "NOTSET" else [0] * 2 * dims
    steps, wide = a.get("strides", [1] * dims), a.get("dilations", [1] * dims)
    total = [
        max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        for n, s, k, d in zip(x.shape[-dims:], steps, kernel, wide, strict=True)
    ]
    small, large = [t // 2 for t in total], [t - t // 2 for t in total]
    return small + large if mode == "SAME_UPPER" else large + small


def _even(
    a: Attributes, x: Tensor, kernel: list[int], value: float = 0.0
) -> tuple[Tensor, list[int]]:
    """The padding that is the same on both sides, and x, padded here where it is not."""
    edges, dims = _edges(a, x, kernel), len(kernel)
    if edges[:dims] == edges[dims:]:
        return x, edges[:dims]
    return _padded(x, edges, value), [0] * dims


def _padded(x: Tensor, edges: list[int], value: float = 0.0, mode: str = "constant") -> Tensor:
    half = len(edges) // 2
    pairs = [p for axis in reversed(range(half)) for p in (edges[axis], edges[half + axis])]
    if mode == "constant":
        return F.pad(x, pairs, mode, value)
    while len(pairs) > 2 and pairs[-2:] == [0, 0]:
        pairs = pairs[:-2]
    return F.pad(x, pairs, {"edge": "replicate"}.get(mode, mode))


def _conv(a: Attributes, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    x, edges = _even(a, x, list(weight.shape[2:]))
    ones = (1,) * len(edges)
    steps, wide = tuple(a.get("strides", ones)), tuple(a.get("dilations", ones))
    conv = getattr(F, f"conv{len(edges)}d")
    return conv(x, weight, bias, steps, tuple(edges), wide, a.get("group", 1))


def _max_pool(a: Attributes, x: Tensor) -> Any:
    kernel, up = list(a["kernel_shape"]), bool(a.get("ceil_mode", 0))
    x, edges = _even(a, x, kernel, -torch.inf)
    steps = list(a.get("strides", [1] * len(kernel)))
    pool = getattr(F, f"max_pool{len(kernel)}d")
    return pool(x, kernel, steps, edges, a.get("dilations", 1), up)


def _average_pool(a: Attributes, x: Tensor) -> Any:
    kernel, counted = list(a["kernel_shape"]), bool(a.get("count_include_pad", 0))
    padded, edges = _even(a, x, kernel)
    if padded is not x and not counted:
        raise ValueError("an average over uneven edges that are not counted")
    steps = list(a.get("strides", [1] * len(kernel)))
    pool = getattr(F, f"avg_pool{len(kernel)}d")
    return pool(padded, kernel, steps, edges, bool(a.get("ceil_mode", 0)), counted)


def _gemm(a: Attributes, left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    left, right = left.T if a.get("transA") else left, right.T if a.get("transB") else right
    product: Tensor = a.get("alpha", 1.0) * left @ right
    return product if bias is None else product + a.get("beta", 1.0) * bias


def _flatten(x: Tensor, axis: int) -> Tensor:
    axis = axis + x.dim() if axis < 0 else axis
    return x.reshape(int(np.prod(x.shape[:axis])), -1) if axis != 1 else x.flatten(1)


def _reshape(a: Attributes, x: Tensor, shape: Tensor | None = None) -> Tensor:
    sizes = enumerate(_input_or(shape, a, "shape") or [])
    return x.reshape([x.shape[i] if s == 0 and not a.get("allowzero") else s for i, s in sizes])


def _reduced(call: Callable[..., Tensor]) -> Operator:
    def run(a: Attributes, x: Tensor, axes: Tensor | None = None) -> Tensor:
        dim = _input_or(axes, a, "axes")
        if dim is None and a.get("noop_with_empty_axes"):
            return x
        dim = list(range(x.dim())) if dim is None else dim
        return call(x, dim=dim, keepdim=bool(a.get("keepdims", 1)))

    return run


def _softmax(call: Callable[..., Tensor]) -> Operator:
    def run(a: Attributes, x: Tensor) -> Tensor:
        if a["opset"] >= 13:
            return call(x, dim=a.get("axis", -1))
        return call(_flatten(x, a.get("axis", 1)), dim=1).reshape(x.shape)

    return run


def _slice(a: Attributes, x: Tensor, *bounds: Tensor | None) -> Tensor:
    names = ("starts", "ends", "axes", "steps")
    given = dict(zip(names, bounds, strict=False))
    starts, ends, axes, steps = (_input_or(given.get(name), a, name) or [] for name in names)
    axes, steps = axes or list(range(len(starts))), steps or [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        places = torch.tensor(range(x.shape[axis])[start:end:step], dtype=torch.int64)
        x = x.index_select(axis, places.to(x.device))
    return x


def _gather(a: Attributes, x: Tensor, index: Tensor) -> Tensor:
    axis = a.get("axis", 0) % max(x.dim(), 1)
    index = torch.where(index < 0, index + x.shape[axis], index).to(x.device)
    shape = [*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]]
    return x.index_select(axis, index.flatten()).reshape(shape)


def _unsqueeze(a: Attributes, x: Tensor, axes: Tensor | None = None) -> Tensor:
    places = _input_or(axes, a, "axes") or []
    for axis in sorted(axis % (x.dim() + len(places)) for axis in places):
        x = x.unsqueeze(axis)
    return x


def _squeeze(a: Attributes, x: Tensor, axes: Tensor | None = None) -> Tensor:
    places = _input_or(axes, a, "axes")
    return x.squeeze() if places is None else x.squeeze(tuple(places))


def _pad(
    a: Attributes, x: Tensor, pads: Tensor | None = None, value: Any = None, *_: Any
) -> Tensor:
    value = a.get("value", 0.0) if value is None else value
    return _padded(x, _input_or(pads, a, "pads") or [], float(value), a.get("mode", "constant"))


def _clip(a: Attributes, x: Tensor, low: Any = None, high: Any = None) -> Tensor:
    low, high = a.get("min", low), a.get("max", high)
    return x.clamp(None if low is None else float(low), None if high is None else float(high))


def _split(a: Attributes, x: Tensor, sizes: Tensor | None = None) -> tuple[Tensor, ...]:
    axis = a.get("axis", 0)
    parts = _input_or(sizes, a, "split") or -(-x.shape[axis] // a["outputs"])
    return torch.split(x, parts, dim=axis)


def _divided(left: Tensor, right: Tensor) -> Tensor:
    whole = not (left.is_floating_point() or right.is_floating_point())
    return torch.div(left, right, rounding_mode="trunc") if whole else left / right


def _filled(a: Attributes, shape: Tensor) -> Tensor:
    value = torch.as_tensor(a.get("value", [0.0])).flatten()[0]
    return torch.full(_ints(shape), value.item(), dtype=value.dtype)


def _cast(a: Attributes, x: Tensor) -> Tensor:
    kind = onnx.helper.tensor_dtype_to_np_dtype(a["to"])
    if np.issubdtype(kind, np.floating):
        return x.float()
    return x.to(torch.bool if kind == np.bool_ else torch.int64)


def _plain(call: Callable[..., Any]) -> Operator:
    """An operator that has inputs only."""
    return lambda _, *inputs: call(*inputs)


def _all(call: Callable[[Any, Any], Any]) -> Operator:
    """An operator that joins any number of inputs, two at a time."""
    return lambda _, *inputs: reduce(call, inputs)


OPERATORS: dict[str, Operator] = {
    "Conv": _conv,
    "Gemm": _gemm,
    "MatMul": _plain(torch.matmul),
    "BatchNormalization": lambda a, x, scale, shift, mean, variance: F.batch_norm(
        x, mean, variance, scale, shift, training=False, eps=a.get("epsilon", 1e-5)
    ),
    "LayerNormalization": lambda a, x, scale, shift=None: F.layer_norm(
        x, list(x.shape[a.get("axis", -1) :]), scale, shift, a.get("epsilon", 1e-5)
    ),
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
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
    "LeakyRelu": lambda a, x: F.leaky_relu(x, a.get("alpha", 0.01)),
    "Elu": lambda a, x: F.elu(x, a.get("alpha", 1.0)),
    "HardSigmoid": lambda a, x: (a.get("alpha", 0.2) * x + a.get("beta", 0.5)).clamp(0, 1),
    "Gelu": lambda a, x: F.gelu(x, approximate=a.get("approximate", "none")),
    "PRelu": _plain(lambda x, slope: torch.where(x < 0, x * slope, x)),
    "Clip": _clip,
    "Softmax": _softmax(torch.softmax),
    "LogSoftmax": _softmax(torch.log_softmax),
    "Einsum": lambda a, *inputs: torch.einsum(a["equation"], *inputs),
    "ReduceMean": _reduced(torch.mean),
    "ReduceSum": _reduced(torch.sum),
    "ReduceMax": _reduced(torch.amax),
    "Flatten": lambda a, x: _flatten(x, a.get("axis", 1)),
    "Reshape": _reshape,
    "Transpose": lambda a, x: x.permute(a.get("perm") or list(reversed(range(x.dim())))),
    "Concat": lambda a, *inputs: torch.cat(inputs, dim=a["axis"]),
    "Split": _split,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Slice": _slice,
    "Gather": _gather,
    "Pad": _pad,
    "Expand": _plain(lambda x, shape: x * torch.ones(_ints(shape), dtype=x.dtype, device=x.device)),
    "Shape": lambda a, x: torch.tensor(
        x.shape[a.get("start", 0) : a.get("end")], dtype=torch.int64
    ),
    "ConstantOfShape": _filled,
    "Cast": _cast,
    "Identity": _plain(lambda x: x),
    "Dropout": lambda _, x, *ratio: x,
}
