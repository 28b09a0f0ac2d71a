"""Exports of graphs in tests: a network that was exported already is not exported again.

torch.onnx.export takes seconds of processor time, and most tests save a release that another test
has saved too. A graph is a function of the network, its weights, the example and the options, so
those are the key. What cannot be told apart for sure is exported anew.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import types
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import Tensor, nn

rename = os.replace  # tests put others in its place

PLAIN = (bool, int, float, complex, str, bytes, torch.dtype, torch.device)


class CannotTell(Exception):
    """A value whose content is not plain: the network that has it is exported anew."""


def key_of(*values: object) -> str:
    """Hash of what the values are and contain; CannotTell where that is not sure."""
    digest = hashlib.sha256()
    for value in values:
        _add(digest.update, value, [])
    return digest.hexdigest()


def _add(update: Callable[[bytes], None], value: object, above: list[int]) -> None:
    if id(value) in above:
        raise CannotTell("a network that contains itself")
    inside = [*above, id(value)]
    kind = type(value)
    update(f"<{kind.__module__}.{kind.__qualname__} ".encode())
    if isinstance(value, nn.Module):
        _add_module(update, value, inside)
    elif isinstance(value, types.FunctionType):
        _add_function(update, value)
    elif (parts := _parts(value)) is not None:
        for part in parts:
            _add(update, part, inside)
    else:
        update(_content(value))
    update(b">")


def _parts(value: object) -> list[object] | None:
    """What a container holds; None for what is none."""
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple):
        return [len(value), *value]
    if isinstance(value, set | frozenset) and all(isinstance(one, str) for one in value):
        return sorted(value)
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, one.name) for one in fields(value)]
    return None


def _content(value: object) -> bytes:
    if value is None or type(value) in PLAIN or isinstance(value, np.generic):
        return repr(value).encode()
    if isinstance(value, Enum | Path):
        return str(value).encode()
    if type(value) in (Tensor, nn.Parameter, nn.Buffer) and value.layout == torch.strided:
        data = value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()
        return f"{value.dtype} {tuple(value.shape)} {value.device} ".encode() + data.tobytes()
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return f"{value.dtype} {value.shape} ".encode() + value.tobytes()
    if isinstance(value, types.BuiltinFunctionType | type):
        return f"{value.__module__}.{value.__qualname__}".encode()
    raise CannotTell(type(value))


def _add_function(update: Callable[[bytes], None], function: types.FunctionType) -> None:
    """A function by its code and the constants and functions of its module that it names; one that
    sees the variables of another function could be anything."""
    closed = {*function.__code__.co_freevars} - {"__class__"}
    if closed or function.__name__ == "<lambda>":
        raise CannotTell(function)
    update(f"{function.__module__}.{function.__qualname__} ".encode())
    for code in _codes(function.__code__):
        constants = [one for one in code.co_consts if not isinstance(one, types.CodeType)]
        update(code.co_code + repr((constants, code.co_names)).encode())
        for name in code.co_names:
            named = function.__globals__.get(name)
            if isinstance(named, types.FunctionType | type):
                update(f"{name} is {named.__module__}.{named.__qualname__} ".encode())
            elif type(named) in PLAIN:
                update(f"{name} is {named!r} ".encode())


def _codes(code: types.CodeType) -> list[types.CodeType]:
    """Of a function and of what is defined in it."""
    inner = [one for one in code.co_consts if isinstance(one, types.CodeType)]
    return [code, *(found for one in inner for found in _codes(one))]


def _add_module(update: Callable[[bytes], None], module: nn.Module, inside: list[int]) -> None:
    """A module by the code of its classes and by all its attributes: settings, weights, parts."""
    for kind in type(module).__mro__:
        if kind is nn.Module:
            break
        for name, member in vars(kind).items():
            if isinstance(member, types.FunctionType):
                update(name.encode())
                _add_function(update, member)
    for name, content in vars(module).items():
        # Hooks run code that is not the module's; without any, the tables of them are empty.
        if "hooks" in name and not content:
            continue
        update(name.encode())
        _add(update, content, inside)


def remembering(export: Callable[..., Any], folder: Path) -> Callable[..., Any]:
    """`export`, which gives the graph it gave before for the same network, example and options; one
    that writes a file is left alone. Processes that name the same folder share what is in it."""

    @functools.wraps(export)
    def exported(model: Any, args: Any = (), f: Any = None, **options: Any) -> Any:
        try:
            if f is not None or not isinstance(model, nn.Module):
                raise CannotTell(f)
            plain = {name: repr(value) for name, value in options.items()}
            path = folder / f"{key_of(model, args, plain)}.onnx"
        except CannotTell:
            return export(model, args, f, **options)
        if not path.exists():
            program = export(model, args, f, **options)
            with suppress(OSError):  # a test about a full disk may be under way
                folder.mkdir(parents=True, exist_ok=True)
                temporary = folder / f"{path.name}.{os.getpid()}"
                temporary.write_bytes(program.model_proto.SerializeToString())
                rename(temporary, path)
            return program
        return types.SimpleNamespace(model_proto=onnx.load_model_from_string(path.read_bytes()))

    return exported


def one_table_of_operators(patch: Any) -> None:
    """Of torch's exporter, which makes its table of operators anew for every export: a quarter of
    the time of a small one."""
    try:
        module = importlib.import_module("torch.onnx._internal.exporter._registration")
        make = module.ONNXRegistry.from_torchlib
    except (ImportError, AttributeError):
        return
    patch.setattr(module.ONNXRegistry, "from_torchlib", staticmethod(functools.cache(make)))
