"""A small reader of ONNX files that takes nothing for granted.

An ONNX file is a protobuf message. The general parser joins messages that are written twice, cuts
numbers that are too long and skips fields that it does not know, so that a verifier and the runtime
may see two graphs in one file. This reader knows only the fields in `graph_rules.json` and refuses
everything else; web/static/graph_wire.js is the same in JavaScript.
"""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from privet.core.errors import PrivetError
from privet.data.dataset import Array

RULES: dict[str, Any] = json.loads(
    Path(__file__).with_name("graph_rules.json").read_text(encoding="utf-8")
)
LIMITS: dict[str, Any] = RULES["limits"]

# Whole numbers beyond this are taken as this: JavaScript does not count further.
LARGEST = 2**53

# How numbers lie in a file, by ONNX's number of their type.
LAYOUTS = {
    1: "<f4",
    2: "<u1",
    3: "<i1",
    4: "<u2",
    5: "<i2",
    6: "<i4",
    7: "<i8",
    9: "<u1",
    10: "<f2",
    11: "<f8",
    12: "<u4",
    13: "<u8",
}
# Where a tensor's numbers are when they are not raw bytes.
LISTS = {1: "float_data", 7: "int64_data", 11: "double_data", 12: "uint64_data", 13: "uint64_data"}

VARINT, EIGHT, LENGTH, FOUR = 0, 1, 2, 5


class Refused(PrivetError):
    """A graph that is not run.

    Parameters:
        code: The reason, as in `graph_rules.json`.
        detail: Which part of the graph it is about.
    """

    def __init__(self, code: str, detail: str = "") -> None:
        shown = "".join(c if 32 <= ord(c) < 127 else "?" for c in detail[:60])
        reason = RULES["reasons"][code]
        super().__init__(f"The graph is not run: {reason}{f' ({shown})' if shown else ''}.")
        self.code = code


class Constant(NamedTuple):
    """A tensor that is part of the graph.

    Parameters:
        kind: ONNX's number of its type.
        shape: Its sizes.
        numbers: What is in it, flat.
    """

    kind: int
    shape: tuple[int, ...]
    numbers: Array


Message = dict[str, Any]


def read_message(content: memoryview, kind: str) -> Message:
    """One message with all fields of the table; fields that are absent are None or empty."""
    table = RULES["messages"][kind]
    message: Message = {name: [] if how[0] == "*" else None for name, how in table.values()}
    at, end = 0, len(content)
    while at < end:
        key, at = _varint(content, at)
        field, wire = key >> 3, key & 7
        value: Any
        if wire == VARINT:
            value, at = _varint(content, at)
        elif wire in (EIGHT, FOUR):
            size = 8 if wire == EIGHT else 4
            value, at = content[at : at + size], at + size
        elif wire == LENGTH:
            size, at = _varint(content, at)
            value, at = content[at : at + size], at + size
        else:
            raise Refused("malformed")
        if at > end:
            raise Refused("malformed")
        if str(field) not in table:
            raise Refused("unknown_field", f"field {field} of {kind}")
        name, how = table[str(field)]
        _store(message, name, how, wire, value)
    return message


def _store(message: Message, name: str, how: str, wire: int, value: Any) -> None:
    word, _, code = how.partition(":")
    if word == "refuse":
        raise Refused(code)
    if how[0] == "*":
        items = message[name]
        if how in ("*int", "*float", "*double") and wire == LENGTH:
            items.extend(_packed(value, how))
        else:
            items.append(_value(how[1:], wire, value))
        return
    if message[name] is not None:
        raise Refused("repeated_field", name)
    message[name] = _value(word, wire, value)
    if word == "zero" and message[name] != 0:
        raise Refused(code)


def _value(how: str, wire: int, value: Any) -> Any:
    expected = {"int": VARINT, "zero": VARINT, "float": FOUR, "double": EIGHT}.get(how, LENGTH)
    if wire != expected:
        raise Refused("malformed")
    if how in ("int", "zero"):
        return _signed(value)
    if how in ("float", "double"):
        return struct.unpack("<f" if how == "float" else "<d", value)[0]
    if how == "text":
        if len(value) > LIMITS["name_bytes"]:
            raise Refused("name_length")
        # One character a byte: two names are the same exactly where their bytes are.
        return bytes(value).decode("latin-1")
    return value if how in ("bytes", "skip") else read_message(value, how)


def _packed(content: memoryview, how: str) -> list[Any]:
    if how != "*int":
        layout = "<f4" if how == "*float" else "<f8"
        if len(content) % int(layout[2]):
            raise Refused("malformed")
        numbers: list[Any] = np.frombuffer(content, layout).tolist()
        return numbers
    values, at = [], 0
    while at < len(content):
        value, at = _varint(content, at)
        values.append(_signed(value))
    return values


def _varint(content: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(content) or shift > 63:
            raise Refused("malformed")
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            # The runtime would cut off what does not fit into 64 bits.
            if value >= 1 << 64:
                raise Refused("malformed")
            return value, at


def _signed(value: int) -> int:
    value -= (1 << 64) if value >= 1 << 63 else 0
    return max(-LARGEST, min(LARGEST, value))


def read_tensor(message: Message) -> Constant:
    """The numbers of a tensor, after checking that it holds as many as it says."""
    kind, name = message["data_type"] or 0, message["name"] or ""
    if kind == 8:
        raise Refused("string_tensor", name)
    if str(kind) not in RULES["types"]:
        raise Refused("element_type", name)
    shape = tuple(message["dims"])
    check_sizes(shape, name)
    data = _data(message, kind, name)
    if len(data) != math.prod(shape):
        raise Refused("tensor_size", name)
    if data.dtype.kind == "f" and bool(np.isnan(data).any()):
        raise Refused("not_a_number", name)
    return Constant(kind, shape, data)


def _data(message: Message, kind: int, name: str) -> Array:
    """The numbers of a tensor, wherever they are; they must be in one place."""
    filled = [
        field
        for field in ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")
        if message[field]
    ]
    place = LISTS.get(kind, "int32_data")
    raw = message["raw_data"]
    if raw is not None:
        if filled or len(raw) % RULES["types"][str(kind)][1]:
            raise Refused("tensor_size", name)
        return np.frombuffer(raw, LAYOUTS[kind])
    if filled not in ([], [place]):
        raise Refused("tensor_size", name)
    if kind == 10:  # halves are kept as the whole numbers that their bits spell
        bits = np.array([value & 0xFFFF for value in message[place]], "<u2")
        return bits.view("<f2")
    if kind in (1, 11):
        return np.array(message[place], LAYOUTS[kind])
    return np.array(message[place], np.float64)


def check_sizes(shape: tuple[int, ...], name: str) -> None:
    """Refused where a tensor of these sizes cannot be; empty ones of one axis may be constants."""
    if len(shape) > LIMITS["rank"]:
        raise Refused("rank", name)
    if any(size < 0 for size in shape):
        raise Refused("negative_size", name)
    if 0 in shape and len(shape) != 1:
        raise Refused("zero_size", name)
    if math.prod(shape) > LIMITS["tensor_numbers"]:
        raise Refused("too_large", name)
