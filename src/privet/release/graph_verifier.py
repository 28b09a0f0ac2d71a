"""Whether the graph of a release may run here: a release is a stranger's program.

The file is parsed and never run. It may use operators of a list, hold all of its data itself, and
has no loops, functions, graphs within it or random numbers of its own (`graph_rules.json`). Before
a run, the size of every tensor is worked out from the sizes of the inputs (graph_sizes.py), and a
run that would need too much memory or time is refused before anything is allocated.
web/static/verifier.js is the same in JavaScript, with the same reasons.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from privet.release.graph_sizes import Node, Tensor, constant_tensor, result
from privet.release.graph_wire import (
    LIMITS,
    RULES,
    Message,
    Refused,
    check_sizes,
    read_message,
    read_tensor,
)

# Sizes that are tried for the free axes of a graph when it is looked at first: records, and places
# of a text.
TRIED = ((1, 7), (3, 12))
# The number of an attribute's kind in ONNX, and the field that holds its value.
ATTRIBUTES = {"f": 1, "i": 2, "s": 3, "t": 4, "floats": 6, "ints": 7}


class Port(NamedTuple):
    """An input or output of a graph, as onnxruntime names them too.

    Parameters:
        name: Its name.
        type: Its type in onnxruntime's words, such as tensor(float).
        shape: Its declared sizes; a free one has a name or None.
    """

    name: str
    type: str
    shape: list[int | str | None]


class _Step(NamedTuple):
    kind: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]


class Cost(NamedTuple):
    """What one run of a graph takes.

    Parameters:
        numbers: In all tensors that it computes.
        work: About how many products and sums.
        outputs: The sizes of what it gives, by name.
    """

    numbers: int
    work: float
    outputs: dict[str, tuple[int, ...]]


class Verified:
    """A graph that was looked through, and that may run on inputs for which `cost` gives an answer.

    Parameters:
        content: The graph's bytes.
    """

    def __init__(self, content: bytes) -> None:
        if len(content) > LIMITS["file_bytes"]:
            raise Refused("file_size")
        model = read_message(memoryview(content), "Model")
        graph = model["graph"]
        if graph is None:
            raise Refused("no_graph")
        self._opset = _check_versions(model)
        self.content = content
        for name, most in (
            ("node", "nodes"),
            ("initializer", "tensors"),
            ("value_info", "values"),
            ("input", "inputs"),
            ("output", "outputs"),
        ):
            if len(graph[name]) > LIMITS[most]:
                raise Refused("too_many", name)
        self._steps = [self._step(node) for node in graph["node"]]
        self._constants: dict[str, Tensor] = {}
        for message in graph["initializer"]:
            name = message["name"] or ""
            if name in self._constants:
                raise Refused("duplicate_name", name)
            self._constants[name] = constant_tensor(read_tensor(message))
        self.inputs, self.outputs = ([_port(value, k) for value in graph[k]] for k in _PORTS)
        self._kinds = {
            value["name"]: value["type"]["tensor_type"]["elem_type"]
            for k in _PORTS
            for value in graph[k]
        }
        self._check_names()
        self._costs: dict[tuple[Any, ...], Cost] = {}
        self._run({})  # what depends on no input, which the runtime computes when it loads a graph
        for sizes in TRIED:
            self._try(*sizes)

    def _try(self, rows: int, places: int) -> None:
        """Look at a run with some sizes for the free axes. Which sizes fit each other is known only
        when the graph is run, where it has more free axes than the records' number."""
        free = any(not isinstance(size, int) for port in self.inputs for size in port.shape[1:])
        try:
            self.cost({port.name: _tried(port, rows, places) for port in self.inputs})
        except Refused as refused:
            if refused.code != "shape" or not free:
                raise

    def _step(self, node: Message) -> _Step:
        kind = node["op_type"] or ""
        if (node["domain"] or "") not in RULES["domains"]:
            raise Refused("domain", kind)
        if kind in RULES["refused_operators"]:
            raise Refused(RULES["refused_operators"][kind], kind)
        about = RULES["operators"].get(kind)
        if about is None:
            raise Refused("operator", kind)
        if self._opset < about.get("since", 0):
            raise Refused("version", kind)
        fewest, most = about["inputs"]
        outputs = node["output"]
        if not (fewest <= len(node["input"]) <= most):
            raise Refused("arity", kind)
        if not 1 <= len(outputs) <= about.get("outputs", 1):
            raise Refused("arity", kind)
        return _Step(kind, node["input"], outputs, _attributes(kind, about, node["attribute"]))

    def _check_names(self) -> None:
        """Every value is made once, before it is taken; this also excludes cycles."""
        if not self.outputs or not self._steps:
            raise Refused("no_graph")
        known: set[str] = set()
        for name in [*self._constants, *(port.name for port in self.inputs)]:
            if name in known or not name:
                raise Refused("duplicate_name", name)
            known.add(name)
        for step in self._steps:
            for name in step.inputs:
                if name and name not in known:
                    raise Refused("order", name)
            for name in step.outputs:
                if name in known:
                    raise Refused("duplicate_name", name)
                if name:
                    known.add(name)
        names = [port.name for port in self.outputs]
        if len(set(names)) < len(names):
            raise Refused("duplicate_name")
        for name in names:
            if name not in known:
                raise Refused("order", name)

    def cost(self, shapes: Mapping[str, tuple[int, ...]]) -> Cost:
        """What a run on inputs of these sizes takes; Refused where it is too much, or where the
        graph cannot take them."""
        key = tuple(sorted(shapes.items()))
        if key in self._costs:
            return self._costs[key]
        given = {}
        for port in self.inputs:
            if port.name not in shapes:
                raise Refused("inputs", port.name)
            check_sizes(shapes[port.name], port.name)
            given[port.name] = Tensor(self._kinds[port.name], shapes[port.name])
        cost = self._run(given)
        if len(self._costs) < 256:
            self._costs[key] = cost
        return cost

    def _run(self, given: Mapping[str, Tensor]) -> Cost:
        """Go through the graph with the sizes of all tensors; what depends on an input that is not
        given is left out."""
        tensors = {**self._constants, **given}
        numbers, work = sum(math.prod(t.shape) for t in tensors.values()), 0.0
        for step in self._steps:
            if any(name and name not in tensors for name in step.inputs):
                continue
            inputs = tuple(tensors[name] if name else None for name in step.inputs)
            made = result(Node(step.kind, inputs, len(step.outputs), step.attributes))
            work += made.work
            for name, tensor in zip(step.outputs, made.tensors, strict=True):
                numbers += math.prod(tensor.shape)
                if name:
                    tensors[name] = tensor
            if numbers > LIMITS["total_numbers"]:
                raise Refused("memory", step.kind)
            if work > LIMITS["work"]:
                raise Refused("work", step.kind)
        outputs = {port.name: tensors[port.name] for port in self.outputs if port.name in tensors}
        for name, tensor in outputs.items():
            if tensor.kind != self._kinds[name]:
                raise Refused("wrong_type", name)
        return Cost(numbers, work, {name: tensor.shape for name, tensor in outputs.items()})


_PORTS = ("input", "output")


def verify_graph(content: bytes) -> Verified:
    """The graph, if it may run: `Verified.cost` says what a run takes. Refused, which is a
    PrivetError with one sentence and the code of the reason, where it may not.

    >>> verify_graph(b"no graph")
    Traceback (most recent call last):
    privet.release.graph_wire.Refused: The graph is not run: it cannot be run as ONNX...
    """
    return Verified(content)


def _check_versions(model: Message) -> int:
    """The version of ONNX's own operators; Refused where it or the file's is not known."""
    low, high = LIMITS["ir_version"]
    if not low <= (model["ir_version"] or 0) <= high:
        raise Refused("version", "ir_version")
    sets = [
        (opset["domain"] or "", opset["version"] or 0)
        for opset in model["opset_import"]
        if (opset["domain"] or "") in RULES["domains"]
    ]
    if len(sets) != 1:
        raise Refused("version", "opset_import")
    domain, version = sets[0]
    low, high = RULES["domains"][domain]
    if not low <= version <= high:
        raise Refused("version", f"opset {version}")
    return int(version)


def _attributes(kind: str, about: dict[str, Any], messages: list[Message]) -> dict[str, Any]:
    """The settings of an operator, which must be ones that it has."""
    if len(messages) > LIMITS["attributes"]:
        raise Refused("too_many", kind)
    settings: dict[str, Any] = {}
    for message in messages:
        name = message["name"] or ""
        form = about.get("attributes", {}).get(name)
        if form is None or name in settings or message["type"] != ATTRIBUTES[form]:
            raise Refused("attribute", f"{kind} {name}")
        if any(message[other] not in (None, []) for other in ATTRIBUTES if other != form):
            raise Refused("attribute", f"{kind} {name}")
        value = message[form]
        if form == "t":
            value = None if value is None else read_tensor(value)
        if value is None:
            # A number or a text that is left out is 0 or empty.
            value = {"i": 0, "f": 0.0, "s": ""}.get(form)
        if value is None:
            raise Refused("attribute", f"{kind} {name}")
        settings[name] = value
    return settings


def _port(value: Message, field: str) -> Port:
    name = value["name"] or ""
    tensor = (value["type"] or {}).get("tensor_type")
    if tensor is None or not name:
        raise Refused("inputs", name)
    kind = tensor["elem_type"] or 0
    if kind == 8:
        raise Refused("string_tensor", name)
    if str(kind) not in RULES["types"]:
        raise Refused("element_type", name)
    if tensor["shape"] is None and field == "input":
        raise Refused("inputs", name)
    sizes: list[int | str | None] = []
    for size in [] if tensor["shape"] is None else tensor["shape"]["dim"]:
        fixed, free = size["dim_value"], size["dim_param"]
        if fixed is not None and free is not None:
            raise Refused("repeated_field", name)
        if fixed is not None and fixed < 0:
            raise Refused("negative_size", name)
        if fixed == 0:
            raise Refused("zero_size", name)
        sizes.append(fixed if fixed is not None else free)
    if len(sizes) > LIMITS["rank"]:
        raise Refused("rank", name)
    return Port(name, f"tensor({RULES['types'][str(kind)][0]})", sizes)


def _tried(port: Port, rows: int, places: int) -> tuple[int, ...]:
    """Sizes to try a graph with: its own, and some for its free axes."""
    return tuple(
        size if isinstance(size, int) else (rows if axis == 0 else places)
        for axis, size in enumerate(port.shape)
    )
