"""Where to compute, and in which precision."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, cast

import torch
from torch import Tensor, nn

from privet.core.errors import PrivetError


def pick(name: str | torch.device = "auto") -> torch.device:
    """The device called `name`; "auto" takes a GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        raise PrivetError(
            f"The device '{name}' is not available here; use cpu, cuda or auto."
        ) from None
    return device


def place(module: nn.Module, device: torch.device) -> nn.Module:
    """The module on the device, in the memory layout that convolutions are fastest in."""
    placed: nn.Module = cast(Any, module).to(device, memory_format=torch.channels_last)
    return placed


def precision(device: torch.device) -> AbstractContextManager[Any]:
    """bfloat16 where the hardware is made for it; float32 on a CPU, where results are to be the
    same every time."""
    return torch.autocast("cuda", dtype=torch.bfloat16) if device.type == "cuda" else nullcontext()


def free_memory() -> float:
    """Bytes of memory that are free, as far as the system tells; 0 where it does not."""
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return 0.0


def ready(device: torch.device) -> None:
    """Has torch load its linear algebra for GPUs now: it does so when first asked, and two threads
    must not ask at once."""
    if device.type == "cuda":
        torch.linalg.eigh(torch.eye(2, device=device))


# How many kernels are tried for a convolution. Ten, torch's own number, took 9 s at the start of
# TIPRDC on pictures of 64 x 64, three take 2 s, and the step is the same (benchmarks/learning.py,
# parts e and s).
KERNELS = 3


@contextmanager
def tried_kernels(device: torch.device) -> Iterator[None]:
    """On a GPU, convolutions take the kernel that was fastest when their shape first came; for work
    whose shapes repeat."""
    if device.type != "cuda":
        yield
        return
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark, cudnn.benchmark_limit
    cudnn.benchmark, cudnn.benchmark_limit = True, KERNELS
    try:
        yield
    finally:
        cudnn.benchmark, cudnn.benchmark_limit = before


class RunAheadLimit:
    """Keeps the host at most a few rounds ahead of a GPU: enough to keep it busy, few enough to
    tell how far it is."""

    def __init__(self, device: torch.device, length: int = 4) -> None:
        self.device, self.length = device, length
        self._marks: deque[torch.cuda.Event] = deque()

    def round(self) -> None:
        """To be called at the end of every round; waits for the one that is `length` back."""
        if self.device.type != "cuda":
            return
        self._marks.append(torch.cuda.current_stream(self.device).record_event())
        if len(self._marks) > self.length:
            self._marks.popleft().synchronize()


class SideStream:
    """A stream of a GPU beside the main one, for what must not wait for the work queued there.
    Nothing on a CPU."""

    def __init__(self, device: torch.device) -> None:
        stream = cast(Any, torch.cuda.Stream)
        self._stream = stream(device) if device.type == "cuda" else None
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(device))

    def aside(self) -> AbstractContextManager[Any]:
        return nullcontext() if self._stream is None else torch.cuda.stream(self._stream)

    def after(self, read: Sequence[Tensor]) -> AbstractContextManager[Any]:
        """Aside, once the main stream has done what it was told so far; `read` are those of its
        tensors that are needed there."""
        if self._stream is None:
            return nullcontext()
        self._stream.wait_stream(torch.cuda.current_stream())
        for tensor in read:
            tensor.record_stream(self._stream)
        return torch.cuda.stream(self._stream)

    def mark(self) -> torch.cuda.Event | None:
        """What was put on the lane so far."""
        return None if self._stream is None else self._stream.record_event()

    def join(self, mark: torch.cuda.Event | None, tensors: Sequence[Tensor]) -> None:
        """The main stream goes on only after the mark, and `tensors` are its own from here."""
        if mark is None:
            return
        here = torch.cuda.current_stream()
        here.wait_event(mark)
        for tensor in tensors:
            tensor.record_stream(here)
