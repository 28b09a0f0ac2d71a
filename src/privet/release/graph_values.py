"""The whole numbers that sizes are made of: shapes, parts of them, and sums with constants.

Exporters write a size as a few operators on the shape of a tensor. Those are worked out here on
lists of at most a few dozen numbers; of everything else the values are not known (None).
web/static/graph_values.js is the same in JavaScript.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from privet.release.graph_wire import LARGEST, LIMITS

Values = Sequence[float]


class Known(Protocol):
    """What is known of a tensor: see `graph_sizes.Tensor`."""

    @property
    def kind(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def values(self) -> tuple[float, ...] | None: ...


def known_values(
    kind: str,
    inputs: Sequence[Known | None],
    attributes: dict[str, Any],
    shape: Sequence[int],
) -> list[float] | None:
    """The values of an operator's result, where they follow from values that are known.

    Parameters:
        kind: The operator.
        inputs: What it takes.
        attributes: Its settings.
        shape: Of its result.
    """
    present = [tensor for tensor in inputs if tensor is not None]
    if not present or kind not in _KINDS:
        return None
    first = present[0]
    if first.values is None:
        return None
    if kind in _UNCHANGED:
        return list(first.values)
    if kind == "Cast":
        return _cast(first.values, attributes.get("to"))
    lists = [tensor.values for tensor in present if tensor.values is not None]
    if len(lists) < len(present):
        return None
    if kind == "Concat":
        flat = all(len(tensor.shape) == 1 for tensor in present)
        return [value for values in lists for value in values] if flat else None
    if kind in ("Gather", "Slice"):
        return _picked(kind, present, lists)
    if kind == "Expand":
        few = len(first.values) == 1 and math.prod(shape) <= LIMITS["known_numbers"]
        return [first.values[0]] * math.prod(shape) if few else None
    if kind == "Range":
        few = shape[0] <= LIMITS["known_numbers"]
        return [lists[0][0] + k * lists[2][0] for k in range(shape[0])] if few else None
    return _calculated(kind, present, lists)


# Operators that change the shape of a tensor and not its numbers.
_UNCHANGED = ("Identity", "Squeeze", "Unsqueeze", "Reshape", "Flatten")


def _cast(values: Values, to: object) -> list[float] | None:
    if to == 9:
        return [float(value != 0) for value in values]
    if to in (6, 7):
        return [math.trunc(value) for value in values]
    return list(values) if to in (1, 11) else None


def _picked(kind: str, tensors: Sequence[Known], lists: Sequence[Values]) -> list[float] | None:
    """Some of the numbers of a list."""
    values = lists[0]
    if len(tensors[0].shape) != 1:
        return None
    if kind == "Gather":
        places = [int(place) for place in lists[1]]
        if any(not -len(values) <= place < len(values) for place in places):
            return None
        return [values[place] for place in places]
    if any(len(one) != 1 for one in lists[1:]):
        return None
    start, end = int(lists[1][0]), int(lists[2][0])
    step = int(lists[4][0]) if len(lists) > 4 else 1
    size = len(values)
    if step != 1:
        return None
    start, end = (place + size if place < 0 else place for place in (start, end))
    return list(values[max(0, min(start, size)) : max(0, min(end, size))])


def _calculated(kind: str, tensors: Sequence[Known], lists: Sequence[Values]) -> list[float] | None:
    """Number by number, where lists are of one length or of one number."""
    whole = all(tensor.kind in (6, 7, 9) for tensor in tensors)
    if any(len(tensor.shape) > 1 for tensor in tensors) or not whole:
        return None
    longest = max(map(len, lists))
    if any(len(values) not in (1, longest) for values in lists):
        return None
    # Beyond this a number is not known exactly, so that nothing may be computed from it.
    if any(abs(value) >= LARGEST for values in lists for value in values):
        return None
    calculate, rows = _CALCULATED[kind], []
    for k in range(longest):
        value = calculate(*(values[k if len(values) > 1 else 0] for values in lists))
        if value is None:
            return None
        rows.append(value)
    return rows


def _quotient(a: float, b: float) -> float | None:
    return None if b == 0 else float(math.trunc(a / b)) if abs(a) < 2**51 else None


_CALCULATED: dict[str, Callable[..., float | None]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": _quotient,
    "Min": lambda *all_values: min(all_values),
    "Max": lambda *all_values: max(all_values),
    "Neg": lambda a: -a,
    "Equal": lambda a, b: float(a == b),
    "Less": lambda a, b: float(a < b),
    "Greater": lambda a, b: float(a > b),
    "Not": lambda a: float(a == 0),
    "And": lambda a, b: float(a != 0 and b != 0),
    "Or": lambda a, b: float(a != 0 or b != 0),
    "Where": lambda a, b, c: b if a != 0 else c,
}
_KINDS = (*_UNCHANGED, "Cast", "Concat", "Gather", "Slice", "Expand", "Range", *_CALCULATED)
