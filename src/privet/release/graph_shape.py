"""What the graph of a release does with its noise, read from the graph itself.

Two shapes are known, those of nets/additive.py and nets/symbols.py ::

    z = code(x) + scale * noise, rounded to a grid or not
    z = symbol(x), replaced by a symbol drawn at random where a draw lies below `flip`

In both, code and symbol must not depend on the noise, scale and flip must be constants of the
graph, and the noise must be used nowhere else. Everything else is refused with a reason: a
certificate is a statement about a graph of known shape, and the graph is what people run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from privet.core.errors import PrivetError, first_line
from privet.data.dataset import Array
from privet.release.graph_verifier import verify_graph
from privet.release.runtime import refuse_external_data, session
from privet.release.sandbox import Guarded
from privet.release.strangers import is_trusted

# Operators whose answers differ from run to run: a code that they made would not be one code.
RANDOM = ("Random", "Bernoulli", "Multinomial", "Dropout", "Sampling")

# Name of the code as a second result of the graph.
CODE = "privet_code_before_noise"


class UnknownShape(PrivetError):
    """Why a graph is not of a shape that is known, as the end of a sentence."""


@dataclass(frozen=True)
class NoisyGraph:
    """How a graph makes what it gives out of a code and noise.

    Parameters:
        kind: Whether noise is added to numbers, or replaces a symbol.
        scale: What unit noise is multiplied with; of symbols, how often one is replaced.
        code: Name of the tensor that noise is added to; of symbols, of the record's own symbol.
        symbols: How many symbols there are; 0 for numbers.
        reach: The lowest and highest value that the graph lets a number of the code have; None
            where nothing limits it.
        step: Of the grid that what is released is rounded to; 0 without one.
    """

    kind: Literal["numbers", "symbols"]
    scale: float
    code: str
    symbols: int = 0
    reach: tuple[float, float] | None = None
    step: float = 0.0


class _Parts:
    """A parsed graph: which node makes a tensor, and which tensors are constants."""

    def __init__(self, content: bytes) -> None:
        import onnx

        try:
            refuse_external_data(content)
            self.model = onnx.ModelProto.FromString(content)
        except PrivetError as error:
            raise UnknownShape(f"its graph is not read: {error}") from None
        except Exception:  # protobuf's own error, which has no types
            raise UnknownShape("its graph cannot be parsed") from None
        graph = self.model.graph
        self.nodes = list(graph.node)
        self.makers = {name: node for node in self.nodes for name in node.output if name}
        self.constants: dict[str, Array] = {
            tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer
        }
        self.inputs = [value.name for value in graph.input]
        self.outputs = [value.name for value in graph.output]

    def check_plain(self) -> None:
        """UnknownShape where something could use the noise, or draw other noise, out of sight."""
        if sorted(self.inputs) != ["noise", "x"] or self.outputs != ["z"]:
            raise UnknownShape("its graph does not take a record and noise and give one result")
        made = [name for node in self.nodes for name in node.output if name]
        if len({*made, *self.inputs, *self.constants}) != sum(
            map(len, (made, self.inputs, self.constants))
        ):
            raise UnknownShape("its graph uses one name for two things")
        if self.model.functions or any(
            attribute.HasField("g") or attribute.graphs
            for node in self.nodes
            for attribute in node.attribute
        ):
            raise UnknownShape("its graph has graphs within it, which are not looked through")
        if loud := [n.op_type for n in self.nodes if n.op_type.startswith(RANDOM)]:
            raise UnknownShape(f"its graph draws random numbers itself ({loud[0]})")

    def made_by(self, name: str, *kinds: str) -> Any:
        """The node that makes a tensor, if it is of one of these kinds; else None."""
        node = self.makers.get(name)
        return node if node is not None and node.op_type in kinds else None

    def number(self, name: str) -> float | None:
        """A constant of one number; None for anything else."""
        value = self.constants.get(name)
        return float(value.reshape(-1)[0]) if value is not None and value.size == 1 else None

    def depends_on(self, name: str, source: str) -> bool:
        """Whether a tensor is computed from another; how many rows it has tells nothing of it."""
        waiting, seen = [name], set()
        while waiting:
            tensor = waiting.pop()
            if tensor == source:
                return True
            node = self.makers.get(tensor)
            if node is not None and node.op_type != "Shape" and tensor not in seen:
                waiting.extend(node.input)
            seen.add(tensor)
        return False

    def uses(self, source: str) -> Iterator[Any]:
        """The nodes that take the values of a tensor."""
        return (n for n in self.nodes if source in n.input and n.op_type != "Shape")


def read_shape(content: bytes) -> NoisyGraph:
    """What a release's graph does with its noise; UnknownShape, with the reason, where that is
    neither of the two shapes that are known."""
    parts = _Parts(content)
    parts.check_plain()
    shape = _symbols(parts) if parts.made_by("z", "Cast") else _numbers(parts)
    if parts.depends_on(shape.code, "noise"):
        raise UnknownShape("its code is computed from the noise")
    if not parts.depends_on(shape.code, "x"):
        raise UnknownShape("its code is not computed from the record")
    if not (math.isfinite(shape.scale) and shape.scale >= 0):
        raise UnknownShape("its noise is not multiplied with a number from 0 on")
    return shape


def _numbers(parts: _Parts) -> NoisyGraph:
    rounded_from, step = _before_rounding(parts)
    total = parts.made_by(rounded_from, "Add")
    uses = list(parts.uses("noise"))
    if total is None or len(uses) != 1:
        raise UnknownShape("its graph does not simply add noise to a code")
    # An exporter leaves out a product with 1.
    scaled, scale = "noise", 1.0
    if uses[0] is not total:
        constants = [parts.number(name) for name in uses[0].input if name != "noise"]
        if uses[0].op_type != "Mul" or len(constants) != 1 or constants[0] is None:
            raise UnknownShape("its graph does not multiply noise with one constant")
        scaled, scale = uses[0].output[0], abs(constants[0])
    codes = [name for name in total.input if name != scaled]
    if len(codes) != 1:
        raise UnknownShape("its graph does not simply add noise to a code")
    return NoisyGraph("numbers", scale, codes[0], reach=_reach(parts, codes[0]), step=step)


def _before_rounding(parts: _Parts) -> tuple[str, float]:
    """The tensor that z is rounded from, round(sum / step) * step, where a step of 1 is left out,
    and the step; z itself and 0 where it is not rounded."""
    if rounded := parts.made_by("z", "Round"):
        return str(rounded.input[0]), 1.0
    last = parts.made_by("z", "Mul")
    if last is None:
        return "z", 0.0
    for whole, step in (last.input, last.input[::-1]):
        rounded = parts.made_by(whole, "Round")
        divided = parts.made_by(rounded.input[0], "Div") if rounded is not None else None
        size = parts.number(step)
        if divided is not None and size and size == parts.number(divided.input[1]):
            return str(divided.input[0]), abs(size)
    raise UnknownShape("its graph does something else than rounding after the noise")


def _symbols(parts: _Parts) -> NoisyGraph:
    """nets/symbols.py: one_hot(where(noise_0 < flip, min(int(noise_1 * K), K - 1), argmax))."""
    wrong = UnknownShape("its graph does not replace symbols the way that is known")

    def need(name: str, kind: str) -> Any:
        node = parts.made_by(name, kind)
        if node is None:
            raise wrong
        return node

    equal = need(need("z", "Cast").input[0], "Equal")
    alphabet = parts.constants.get(equal.input[1])
    if alphabet is None or not np.array_equal(alphabet.reshape(-1), np.arange(alphabet.size)):
        raise wrong
    chosen = need(need(equal.input[0], "Unsqueeze").input[0], "Where")
    less, clip, own = (
        need(name, kind)
        for name, kind in zip(chosen.input, ("Less", "Clip", "ArgMax"), strict=True)
    )
    whole = need(clip.input[0], "Cast")
    drawn = need(whole.input[0], "Mul")
    size = alphabet.size
    limits = [parts.number(name) if name else None for name in (*clip.input[1:], "")[:2]]
    picks = [need(drawn.input[0], "Gather"), need(less.input[0], "Gather")]
    right = (
        parts.number(drawn.input[1]) == size
        and limits in ([None, size - 1], [0, size - 1])
        and [_picked(parts, node) for node in picks] == [1, 0]
        and all(node in picks for node in parts.uses("noise"))
        and _attribute(whole, "to") == 7  # whole numbers of 64 bits
        and _attribute(own, "axis") == 1
    )
    flip = parts.number(less.input[1])
    if not right or flip is None:
        raise wrong
    return NoisyGraph("symbols", flip, chosen.input[2], symbols=size)


def _picked(parts: _Parts, gather: Any) -> float | None:
    """Which column of the noise a node takes."""
    if gather.input[0] != "noise" or _attribute(gather, "axis") != 1:
        return None
    return parts.number(gather.input[1])


def _attribute(node: Any, name: str) -> int | None:
    return next((int(a.i) for a in node.attribute if a.name == name), None)


def _reach(parts: _Parts, name: str) -> tuple[float, float] | None:
    """Between which values the graph keeps the numbers of a tensor: behind tanh, behind a sigmoid,
    clipped, or a sum or a multiple of such; None where nothing is known."""
    node = parts.makers.get(name)
    if node is None:
        return None
    if node.op_type in ("Tanh", "Sigmoid"):
        return (-1.0, 1.0) if node.op_type == "Tanh" else (0.0, 1.0)
    if node.op_type == "Clip":
        ends = [parts.number(name) for name in node.input[1:]]
        low, high = ends if len(ends) == 2 else (None, None)
        return None if low is None or high is None else (low, high)
    if node.op_type == "Add":
        first, second = (_reach(parts, one) for one in node.input)
        return (first[0] + second[0], first[1] + second[1]) if first and second else None
    factor = parts.number(node.input[1]) if node.op_type in ("Mul", "Div") else None
    inner = _reach(parts, node.input[0]) if factor and factor > 0 else None
    if inner is None or factor is None:
        return None
    factor = factor if node.op_type == "Mul" else 1 / factor
    return inner[0] * factor, inner[1] * factor


def graph_codes(
    content: bytes, shape: NoisyGraph, width: Sequence[int], x: Any, batch: int = 256
) -> Array:
    """What the graph adds noise to: (n, d), or symbols (n,), of encoded records.

    The graph itself is run, with its code as a second result; what it releases without noise must
    be that code, or UnknownShape is raised.

    Parameters:
        content: The graph.
        shape: Of that graph.
        width: Shape of the noise of one record.
        x: Encoded records.
        batch: How many are run at once.
    """
    import onnx

    model = onnx.ModelProto.FromString(content)
    kind = onnx.TensorProto.INT64 if shape.symbols else onnx.TensorProto.FLOAT
    model.graph.node.append(onnx.helper.make_node("Identity", [shape.code], [CODE]))
    model.graph.output.append(onnx.helper.make_tensor_value_info(CODE, kind, None))
    more = model.SerializeToString()
    run: Any = session(more) if is_trusted(content) else Guarded(verify_graph(more))
    parts = []
    for start in range(0, len(x), batch):
        rows = np.ascontiguousarray(x[start : start + batch])
        # Symbols are replaced where a draw lies below `flip`, which is at most 1.
        noise = np.full((len(rows), *width), 1.0 if shape.symbols else 0.0, dtype=np.float32)
        try:
            released, code = run.run(["z", CODE], {"x": rows, "noise": noise})
        except Exception as error:  # whatever the runtime says about a graph that it cannot run
            raise UnknownShape(f"its graph cannot be run ({first_line(error)})") from None
        _check_code(shape, released, code, noise)
        parts.append(code if shape.symbols else code.reshape(len(rows), -1))
    return np.concatenate(parts) if parts else np.empty((0, *width))


def _check_code(shape: NoisyGraph, released: Array, code: Array, noise: Array) -> None:
    """UnknownShape where the code is not what is released without noise, or where its numbers share
    noise."""
    if shape.symbols:
        if not np.array_equal(released.argmax(1), code) and shape.scale < 1:
            raise UnknownShape("its graph does not release the symbol that it computes")
        return
    if code.shape != noise.shape or released.shape != code.shape:
        raise UnknownShape("its coordinates do not each have noise of their own")
    if not np.allclose(released, code, rtol=1e-4, atol=shape.step + 1e-6):
        raise UnknownShape("its graph does not release the code that it computes")
