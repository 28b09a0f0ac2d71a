"""How large the result of an operator is, worked out from the sizes of what it is given.

Nothing is computed but sizes, and the few whole numbers that sizes are made of (the shape of a
tensor, a part of it, its sum with a constant). What a graph declares about its own sizes is not
looked at. An operator whose result has a size that depends on what is in the record is refused.
web/static/graph_sizes.js is the same in JavaScript.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from privet.release.graph_values import known_values
from privet.release.graph_wire import LARGEST, LIMITS, RULES, Constant, Refused

INT64, BOOL, UINT8 = 7, 9, 2
FLOATS = (1, 10, 11)


class Tensor(NamedTuple):
    """What is known of a tensor before anything is computed.

    Parameters:
        kind: ONNX's number of its type.
        shape: Its sizes.
        values: Its numbers, where they are few and follow from sizes and constants alone.
        constant: All of its numbers, where it is part of the graph.
    """

    kind: int
    shape: tuple[int, ...]
    values: tuple[float, ...] | None = None
    constant: Constant | None = None


class Node(NamedTuple):
    """An operator with what it is given.

    Parameters:
        kind: Its name.
        inputs: What it takes; None where an input is left out.
        outputs: How many results it has.
        attributes: Its settings by name.
    """

    kind: str
    inputs: tuple[Tensor | None, ...]
    outputs: int
    attributes: dict[str, Any]

    def given(self, place: int) -> Tensor | None:
        return self.inputs[place] if place < len(self.inputs) else None

    def take(self, place: int) -> Tensor:
        tensor = self.given(place)
        if tensor is None:
            raise Refused("arity", self.kind)
        return tensor

    def setting(self, name: str, default: Any) -> Any:
        return self.attributes.get(name, default)

    def numbers(self, place: int) -> list[int]:
        """The values of an input that says how large something is."""
        kind, _, values, _ = self.take(place)
        if kind not in (6, INT64):
            raise Refused("wrong_type", self.kind)
        if values is None:
            raise Refused("data_sized", self.kind)
        return [int(value) for value in values]

    def misfit(self, wrong: bool) -> None:
        if wrong:
            raise Refused("shape", self.kind)

    def axis(self, value: int, rank: int) -> int:
        """An axis counted from the front."""
        self.misfit(not -rank <= value < rank)
        return value + rank if value < 0 else value


class Result(NamedTuple):
    """The results of an operator, and about how many products and sums they take."""

    tensors: list[Tensor]
    work: float = 0.0


Shape = tuple[int, ...]
Rule = Callable[[Node], Result]


def result(node: Node) -> Result:
    """What an operator of the list makes of what it is given; Refused where that does not fit."""
    about = RULES["operators"][node.kind]
    if about.get("alike"):
        kinds = {tensor.kind for tensor in node.inputs if tensor is not None}
        if len(kinds) > 1:
            raise Refused("wrong_type", node.kind)
    tensors, work = TABLE[about["rule"]](node)
    checked = []
    for tensor in tensors:
        check_computed(tensor.shape, node.kind)
        values: Sequence[float] | None = tensor.values
        if values is None and len(tensors) == 1:
            values = known_values(node.kind, node.inputs, node.attributes, tensor.shape)
        checked.append(tensor._replace(values=_kept(tensor, values)))
    return Result(checked, work + sum(math.prod(tensor.shape) for tensor in checked))


def check_computed(shape: Sequence[int], kind: str) -> None:
    """Refused where a result has sizes that no tensor may have."""
    if len(shape) > LIMITS["rank"]:
        raise Refused("rank", kind)
    if any(size < 0 for size in shape):
        raise Refused("negative_size", kind)
    if 0 in shape:
        raise Refused("zero_size", kind)
    if math.prod(shape) > LIMITS["tensor_numbers"]:
        raise Refused("too_large", kind)


def _kept(tensor: Tensor, values: Sequence[float] | None) -> tuple[float, ...] | None:
    """Values that are few enough and exact; the runtime counts modulo 2**32 or 2**64, so that what
    grew too large is not known."""
    size = math.prod(tensor.shape)
    if values is None or len(values) != size or size > LIMITS["known_numbers"]:
        return None
    most = 2**31 - 1 if tensor.kind in (2, 3, 4, 5, 6, 12) else LARGEST
    return tuple(values) if all(abs(value) <= most for value in values) else None


def broadcast(node: Node, shapes: Sequence[Shape]) -> Shape:
    """The size that tensors of these sizes are brought to."""
    rank = max(map(len, shapes))
    sizes = []
    for axis in range(-rank, 0):
        wanted = {shape[axis] for shape in shapes if -axis <= len(shape)} - {1}
        node.misfit(len(wanted) > 1)
        sizes.append(wanted.pop() if wanted else 1)
    return tuple(sizes)


def _present(node: Node) -> list[Tensor]:
    if not node.inputs or None in node.inputs:
        raise Refused("arity", node.kind)
    return [tensor for tensor in node.inputs if tensor is not None]


def _as(node: Node, shape: Sequence[int], work: float = 0.0, kind: int | None = None) -> Result:
    """One result of this size, of the first input's type unless another is named."""
    return Result([Tensor(node.take(0).kind if kind is None else kind, tuple(shape))], work)


def _same(node: Node) -> Result:
    if node.setting("training_mode", 0):
        raise Refused("training", node.kind)
    return _as(node, node.take(0).shape)


def _test(node: Node) -> Result:
    return _as(node, node.take(0).shape, kind=BOOL)


def _broadcast(node: Node) -> Result:
    return _as(node, broadcast(node, [tensor.shape for tensor in _present(node)]))


def _compare(node: Node) -> Result:
    shape = broadcast(node, [tensor.shape for tensor in _present(node)])
    return _as(node, shape, kind=BOOL)


def _where(node: Node) -> Result:
    asked, yes, no = _present(node)
    if asked.kind != BOOL or yes.kind != no.kind:
        raise Refused("wrong_type", node.kind)
    return _as(node, broadcast(node, [asked.shape, yes.shape, no.shape]), kind=yes.kind)


def _scale(node: Node) -> Tensor:
    """The scale of quantised numbers, which must be positive constants."""
    scale = node.take(1)
    if scale.constant is None or scale.kind not in FLOATS:
        raise Refused("quantisation", node.kind)
    if not all(0 < value < math.inf for value in scale.constant.numbers.tolist()):
        raise Refused("quantisation", node.kind)
    zero = node.given(2)
    if zero is not None and (zero.constant is None or zero.shape != scale.shape):
        raise Refused("quantisation", node.kind)
    if len(scale.shape) == 1 and scale.shape[0] > 1:
        shape = node.take(0).shape
        axis = node.axis(node.setting("axis", 1), len(shape))
        node.misfit(shape[axis] != scale.shape[0])
    node.misfit(len(scale.shape) > 1)
    return scale


def _quantize(node: Node) -> Result:
    _scale(node)
    zero, kind = node.given(2), node.setting("output_dtype", 0)
    return _as(node, node.take(0).shape, kind=zero.kind if zero else kind or UINT8)


def _dequantize(node: Node) -> Result:
    scale, zero = _scale(node), node.given(2)
    if zero is not None and zero.kind != node.take(0).kind:
        raise Refused("quantisation", node.kind)
    return _as(node, node.take(0).shape, kind=scale.kind)


def _matmul(node: Node) -> Result:
    first, second = node.take(0).shape, node.take(1).shape
    node.misfit(not first or not second)
    left, right = (1, *first) if len(first) == 1 else first, second
    right = (*second, 1) if len(second) == 1 else second
    node.misfit(left[-1] != right[-2])
    shape: Shape = (*broadcast(node, [left[:-2], right[:-2]]), left[-2], right[-1])
    work = math.prod(shape) * left[-1]
    if len(first) == 1:
        shape = (*shape[:-2], shape[-1])
    return _as(node, shape[:-1] if len(second) == 1 else shape, work)


def _gemm(node: Node) -> Result:
    first, second = node.take(0).shape, node.take(1).shape
    node.misfit(len(first) != 2 or len(second) != 2)
    rows, inner = first[::-1] if node.setting("transA", 0) else first
    other, columns = second[::-1] if node.setting("transB", 0) else second
    node.misfit(inner != other)
    added = node.given(2)
    node.misfit(
        added is not None and broadcast(node, [added.shape, (rows, columns)]) != (rows, columns)
    )
    return _as(node, (rows, columns), rows * columns * inner)


class _Window(NamedTuple):
    """Where the window of a convolution or a pool goes."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    before: list[int]
    after: list[int]


def _window(node: Node, kernel: Sequence[int]) -> _Window:
    rank = len(kernel)
    strides = node.setting("strides", [1] * rank)
    dilations = node.setting("dilations", [1] * rank)
    pads = node.setting("pads", [0] * (2 * rank))
    node.misfit(len(strides) != rank or len(dilations) != rank or len(pads) != 2 * rank)
    node.misfit(min([*kernel, *strides, *dilations, 1]) < 1 or min([*pads, 0]) < 0)
    return _Window(list(kernel), strides, dilations, pads[:rank], pads[rank:])


def _slid(node: Node, sizes: Sequence[int], window: _Window) -> list[int]:
    """The sizes of what a window gives that slides over these sizes."""
    padding, moved = node.setting("auto_pad", "NOTSET"), []
    for axis, size in enumerate(sizes):
        stride = window.strides[axis]
        reach = (window.kernel[axis] - 1) * window.dilations[axis] + 1
        if padding in ("SAME_UPPER", "SAME_LOWER"):
            moved.append(-(-size // stride))
            continue
        node.misfit(padding not in ("NOTSET", "VALID", ""))
        if padding != "VALID":
            size += window.before[axis] + window.after[axis]
        node.misfit(size < reach)
        # Runtimes differ in what they do with a window that hangs over the end.
        node.misfit(bool(node.setting("ceil_mode", 0)) and (size - reach) % stride != 0)
        moved.append((size - reach) // stride + 1)
    return moved


def _conv(node: Node) -> Result:
    shape, weights = node.take(0).shape, node.take(1).shape
    node.misfit(len(shape) < 3 or len(weights) != len(shape))
    groups, kernel = node.setting("group", 1), list(weights[2:])
    node.misfit(groups < 1 or shape[1] != weights[1] * groups or weights[0] % groups != 0)
    node.misfit(list(node.setting("kernel_shape", kernel)) != kernel)
    sizes = _slid(node, shape[2:], _window(node, kernel))
    # The runtime lays out every window of a record before it multiplies.
    check_computed((shape[1], *kernel, math.prod(sizes)), node.kind)
    made = (shape[0], weights[0], *sizes)
    return _as(node, made, math.prod(made) * weights[1] * math.prod(kernel))


def _conv_transpose(node: Node) -> Result:
    shape, weights = node.take(0).shape, node.take(1).shape
    node.misfit(len(shape) < 3 or len(weights) != len(shape))
    groups, kernel = node.setting("group", 1), list(weights[2:])
    node.misfit(groups < 1 or shape[1] != weights[0] or weights[0] % groups != 0)
    node.misfit(list(node.setting("kernel_shape", kernel)) != kernel)
    node.misfit(node.setting("auto_pad", "NOTSET") not in ("NOTSET", ""))
    window, more = _window(node, kernel), node.setting("output_padding", [0] * len(kernel))
    node.misfit(len(more) != len(kernel) or min([*more, 0]) < 0)
    sizes = [
        window.strides[k] * (size - 1)
        + more[k]
        + (kernel[k] - 1) * window.dilations[k]
        + 1
        - window.before[k]
        - window.after[k]
        for k, size in enumerate(shape[2:])
    ]
    check_computed((weights[1] * groups, *kernel, math.prod(shape[2:])), node.kind)
    work = math.prod(shape) * weights[1] * math.prod(kernel)
    return _as(node, (shape[0], weights[1] * groups, *sizes), work)


def _pool(node: Node) -> Result:
    shape, kernel = node.take(0).shape, node.setting("kernel_shape", [])
    node.misfit(len(shape) < 3 or len(kernel) != len(shape) - 2)
    made = (*shape[:2], *_slid(node, shape[2:], _window(node, kernel)))
    return _as(node, made, math.prod(made) * math.prod(kernel))


def _global_pool(node: Node) -> Result:
    shape = node.take(0).shape
    node.misfit(len(shape) < 3)
    return _as(node, (*shape[:2], *(1 for _ in shape[2:])), math.prod(shape))


def _axes(node: Node, rank: int) -> list[int] | None:
    """The axes that an operator names, as a setting or as its second input; None where it names
    none."""
    axes = node.setting("axes", None)
    if axes is None and node.given(1) is not None:
        axes = node.numbers(1)
    if axes is None:
        return None
    counted = [node.axis(axis, rank) for axis in axes]
    node.misfit(len(set(counted)) < len(counted))
    return counted


def _reduce(node: Node) -> Result:
    shape = node.take(0).shape
    axes = _axes(node, len(shape))
    if not axes:
        axes = [] if node.setting("noop_with_empty_axes", 0) else list(range(len(shape)))
    left = [size for k, size in enumerate(shape) if k not in axes]
    if node.setting("keepdims", 1):
        left = [1 if k in axes else size for k, size in enumerate(shape)]
    return _as(node, left, math.prod(shape))


def _arg(node: Node) -> Result:
    shape = node.take(0).shape
    axis = node.axis(node.setting("axis", 0), len(shape))
    middle = [1] if node.setting("keepdims", 1) else []
    return _as(node, [*shape[:axis], *middle, *shape[axis + 1 :]], math.prod(shape), INT64)


def _reshape(node: Node) -> Result:
    shape, sizes = node.take(0).shape, node.numbers(1)
    if not node.setting("allowzero", 0):
        node.misfit(any(size == 0 and k >= len(shape) for k, size in enumerate(sizes)))
        sizes = [shape[k] if size == 0 else size for k, size in enumerate(sizes)]
    free = sizes.count(-1)
    rest = math.prod(size for size in sizes if size != -1)
    node.misfit(free > 1 or any(size < -1 for size in sizes))
    if free:
        node.misfit(rest == 0 or math.prod(shape) % rest != 0)
        sizes = [math.prod(shape) // rest if size == -1 else size for size in sizes]
    node.misfit(math.prod(sizes) != math.prod(shape))
    return _as(node, sizes)


def _flatten(node: Node) -> Result:
    shape = node.take(0).shape
    axis = node.setting("axis", 1)
    axis = axis if axis == len(shape) else node.axis(axis, len(shape))
    return _as(node, (math.prod(shape[:axis]), math.prod(shape[axis:])))


def _squeeze(node: Node) -> Result:
    shape = node.take(0).shape
    axes = _axes(node, len(shape))
    if axes is None:
        axes = [k for k, size in enumerate(shape) if size == 1]
    node.misfit(any(shape[axis] != 1 for axis in axes))
    return _as(node, [size for k, size in enumerate(shape) if k not in axes])


def _unsqueeze(node: Node) -> Result:
    shape = list(node.take(0).shape)
    named = node.setting("axes", None)
    count = len(node.numbers(1) if named is None else named)
    axes = _axes(node, len(shape) + count)
    for axis in sorted(axes or ()):
        shape.insert(axis, 1)
    return _as(node, shape)


def _transpose(node: Node) -> Result:
    shape = node.take(0).shape
    order = node.setting("perm", list(range(len(shape)))[::-1])
    node.misfit(sorted(order) != list(range(len(shape))))
    return _as(node, [shape[axis] for axis in order])


def _concat(node: Node) -> Result:
    shapes = [tensor.shape for tensor in _present(node)]
    rank = len(shapes[0])
    axis = node.axis(node.setting("axis", 0), rank)
    node.misfit(any(len(shape) != rank for shape in shapes))
    for k in range(rank):
        node.misfit(k != axis and len({shape[k] for shape in shapes}) > 1)
    total = sum(shape[axis] for shape in shapes)
    return _as(node, (*shapes[0][:axis], total, *shapes[0][axis + 1 :]))


def _split(node: Node) -> Result:
    shape, kind = node.take(0).shape, node.take(0).kind
    axis = node.axis(node.setting("axis", 0), len(shape))
    parts = node.setting("split", None)
    if parts is None and node.given(1) is not None:
        parts = node.numbers(1)
    if parts is None:
        size = -(-shape[axis] // node.outputs)
        parts = [size] * (node.outputs - 1) + [shape[axis] - size * (node.outputs - 1)]
    node.misfit(len(parts) != node.outputs or sum(parts) != shape[axis] or min(parts) < 1)
    return Result([Tensor(kind, (*shape[:axis], part, *shape[axis + 1 :])) for part in parts])


def sliced(size: int, start: int, end: int, step: int) -> range:
    """The places of an axis that a slice takes, as ONNX counts them."""
    start, end = (value + size if value < 0 else value for value in (start, end))
    if step > 0:
        return range(max(0, min(start, size)), max(0, min(end, size)), step)
    return range(max(-1, min(start, size - 1)), max(-1, min(end, size - 1)), step)


def _slice(node: Node) -> Result:
    shape = list(node.take(0).shape)
    starts, ends = node.numbers(1), node.numbers(2)
    axes = list(range(len(starts))) if node.given(3) is None else node.numbers(3)
    steps = [1] * len(starts) if node.given(4) is None else node.numbers(4)
    node.misfit(not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps)
    axes = [node.axis(axis, len(shape)) for axis in axes]
    node.misfit(len(set(axes)) < len(axes))
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        shape[axis] = len(sliced(shape[axis], start, end, step))
    return _as(node, shape)


def _gather(node: Node) -> Result:
    shape, places = node.take(0).shape, node.take(1).shape
    axis = node.axis(node.setting("axis", 0), len(shape))
    return _as(node, (*shape[:axis], *places, *shape[axis + 1 :]))


def _gather_nd(node: Node) -> Result:
    shape, places = node.take(0).shape, node.take(1).shape
    batch = node.setting("batch_dims", 0)
    node.misfit(not places or not 0 <= batch < min(len(places), len(shape)))
    node.misfit(batch + places[-1] > len(shape) or shape[:batch] != places[:batch])
    return _as(node, (*places[:-1], *shape[batch + places[-1] :]))


def _gather_elements(node: Node) -> Result:
    node.misfit(len(node.take(0).shape) != len(node.take(1).shape))
    return _as(node, node.take(1).shape)


def _expand(node: Node) -> Result:
    sizes = tuple(node.numbers(1))
    check_computed(sizes, node.kind)
    return _as(node, broadcast(node, [node.take(0).shape, sizes]))


def _tile(node: Node) -> Result:
    shape, repeats = node.take(0).shape, node.numbers(1)
    node.misfit(len(repeats) != len(shape))
    return _as(node, [size * times for size, times in zip(shape, repeats, strict=True)])


def _pad(node: Node) -> Result:
    shape, pads = list(node.take(0).shape), node.numbers(1)
    axes = list(range(len(shape))) if node.given(3) is None else node.numbers(3)
    axes = [node.axis(axis, len(shape)) for axis in axes]
    node.misfit(len(pads) != 2 * len(axes) or len(set(axes)) < len(axes))
    for k, axis in enumerate(axes):
        shape[axis] += pads[k] + pads[k + len(axes)]
    return _as(node, shape)


def _resize(node: Node) -> Result:
    shape = node.take(0).shape
    node.misfit(node.setting("keep_aspect_ratio_policy", "stretch") != "stretch")
    sizes, scales = node.given(3), node.given(2)
    if sizes is not None:
        made = node.numbers(3)
    else:
        if scales is None or scales.values is None:
            raise Refused("data_sized", node.kind)
        node.misfit(len(scales.values) != len(shape))
        made = [math.floor(size * by) for size, by in zip(shape, scales.values, strict=True)]
    node.misfit(len(made) != len(shape))
    return _as(node, made, 16 * math.prod(made))


def _constant(node: Node) -> Result:
    named = [name for name in node.attributes if name.startswith("value")]
    if len(named) != 1:
        raise Refused("attribute", node.kind)
    value = node.attributes[named[0]]
    if named[0] == "value":
        return Result([constant_tensor(value)])
    kind = INT64 if "int" in named[0] else 1
    if named[0].endswith("s"):
        return Result([Tensor(kind, (len(value),), tuple(value))])
    return Result([Tensor(kind, (), (value,))])


def constant_tensor(value: Constant) -> Tensor:
    """A tensor that is part of the graph; its numbers are known where they are few."""
    few = len(value.numbers) <= LIMITS["known_numbers"]
    numbers = value.numbers.tolist() if few else None
    if numbers is not None and value.numbers.dtype.kind in "iu":
        numbers = [max(-LARGEST, min(LARGEST, number)) for number in numbers]
    if numbers is not None and any(abs(number) > LARGEST for number in numbers):
        numbers = None
    return Tensor(value.kind, value.shape, None if numbers is None else tuple(numbers), value)


def _constant_of_shape(node: Node) -> Result:
    sizes, fill = node.numbers(0), node.setting("value", None)
    if fill is not None and len(fill.numbers) != 1:
        raise Refused("attribute", node.kind)
    check_computed(sizes, node.kind)
    kind, number = (1, 0.0) if fill is None else (fill.kind, fill.numbers.tolist()[0])
    few = math.prod(sizes) <= LIMITS["known_numbers"]
    return Result([Tensor(kind, tuple(sizes), (number,) * math.prod(sizes) if few else None)])


def _shape(node: Node) -> Result:
    shape = node.take(0).shape
    rank = len(shape)
    ends = [node.setting("start", 0), node.setting("end", rank)]
    first, last = (max(0, min(rank, end + rank if end < 0 else end)) for end in ends)
    part = shape[first:last]
    return Result([Tensor(INT64, (len(part),), tuple(part))])


def _size(node: Node) -> Result:
    return Result([Tensor(INT64, (), (math.prod(node.take(0).shape),))])


def _range(node: Node) -> Result:
    start, limit, step = (node.take(place).values for place in range(3))
    if start is None or limit is None or step is None:
        raise Refused("data_sized", node.kind)
    node.misfit(not len(start) == len(limit) == len(step) == 1 or step[0] == 0)
    return _as(node, (max(0, math.ceil((limit[0] - start[0]) / step[0])),))


def _cast(node: Node) -> Result:
    kind = node.setting("to", 0)
    if kind == 8:
        raise Refused("string_tensor", node.kind)
    if str(kind) not in RULES["types"]:
        raise Refused("element_type", node.kind)
    return _as(node, node.take(0).shape, kind=kind)


def _cast_like(node: Node) -> Result:
    return _as(node, node.take(0).shape, kind=node.take(1).kind)


def _one_hot(node: Node) -> Result:
    shape, depth = node.take(0).shape, node.numbers(1)
    node.misfit(len(depth) != 1)
    axis = node.axis(node.setting("axis", -1), len(shape) + 1)
    return _as(node, (*shape[:axis], depth[0], *shape[axis:]), kind=node.take(2).kind)


def _recurrent(node: Node) -> Result:
    (kind, shape), weights = node.take(0)[:2], node.take(1).shape
    node.misfit(len(shape) != 3 or len(weights) != 3)
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[node.kind]
    ways = 2 if node.setting("direction", "forward") == "bidirectional" else 1
    hidden = node.setting("hidden_size", 0)
    node.misfit(hidden < 1 or weights != (ways, gates * hidden, shape[2]))
    node.misfit(node.take(2).shape != (ways, gates * hidden, hidden))
    if node.setting("layout", 0):
        rows, steps = shape[:2]
        all_steps: Shape = (rows, steps, ways, hidden)
        last: Shape = (rows, ways, hidden)
    else:
        steps, rows = shape[:2]
        all_steps, last = (steps, ways, rows, hidden), (ways, rows, hidden)
    node.misfit(node.outputs > (3 if node.kind == "LSTM" else 2))
    work = steps * rows * ways * gates * hidden * (shape[2] + hidden)
    return Result([Tensor(kind, size) for size in (all_steps, last, last)][: node.outputs], work)


def _depth_to_space(node: Node) -> Result:
    shape, block = node.take(0).shape, node.setting("blocksize", 0)
    node.misfit(len(shape) != 4 or block < 1 or shape[1] % max(1, block * block) != 0)
    return _as(node, (shape[0], shape[1] // block**2, shape[2] * block, shape[3] * block))


def _space_to_depth(node: Node) -> Result:
    shape, block = node.take(0).shape, node.setting("blocksize", 0)
    node.misfit(len(shape) != 4 or block < 1 or any(size % max(1, block) for size in shape[2:]))
    return _as(node, (shape[0], shape[1] * block**2, shape[2] // block, shape[3] // block))


def _top_k(node: Node) -> Result:
    (kind, shape), most = node.take(0)[:2], node.numbers(1)
    axis = node.axis(node.setting("axis", -1), len(shape))
    node.misfit(len(most) != 1 or most[0] > shape[axis])
    sizes = (*shape[:axis], most[0], *shape[axis + 1 :])
    return Result([Tensor(kind, sizes), Tensor(INT64, sizes)][: node.outputs], math.prod(shape))


def _einsum(node: Node) -> Result:
    equation = str(node.setting("equation", "")).replace(" ", "")
    taken, arrow, given = equation.partition("->")
    terms, tensors = taken.split(","), _present(node)
    letters = set(equation) - set(",->")
    node.misfit(not arrow or len(terms) != len(tensors) or len(set(given)) < len(given))
    node.misfit(not all("a" <= c.lower() <= "z" for c in letters))
    sizes: dict[str, int] = {}
    for term, tensor in zip(terms, tensors, strict=True):
        node.misfit(len(term) != len(tensor.shape))
        for letter, size in zip(term, tensor.shape, strict=True):
            node.misfit(sizes.setdefault(letter, size) != size)
    node.misfit(any(letter not in sizes for letter in given))
    return _as(node, [sizes[letter] for letter in given], math.prod(sizes.values()))


TABLE: dict[str, Rule] = {
    name.removeprefix("_"): rule
    for name, rule in list(globals().items())
    if name.removeprefix("_") in {about["rule"] for about in RULES["operators"].values()}
    and name.startswith("_")
}
