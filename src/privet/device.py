"""Where to compute, and in which precision."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn

from privet.errors import PrivetError


def pick(name: str = "auto") -> torch.device:
    """The device called `name`; "auto" takes a GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        raise PrivetError(f"The device '{name}' is not available here; use cpu, cuda or auto.") from None
    return device


def place(module: nn.Module, device: torch.device) -> nn.Module:
    """The module on the device, in the memory layout that convolutions are fastest in."""
    return module.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def precision(device: torch.device) -> AbstractContextManager[Any]:
    """bfloat16 where the hardware is made for it; float32 on a CPU, where results are to be the same every time."""
    return torch.autocast("cuda", dtype=torch.bfloat16) if device.type == "cuda" else nullcontext()
