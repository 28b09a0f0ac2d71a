"""A training step that a GPU is told once: recorded as a CUDA graph after a few turns, then
replayed with other records.

Small networks spend most of a step on telling the GPU what to do next, kernel by kernel; a recorded
step is told in one word. What is recorded must be the same for every batch: shapes, and every
number that is not a tensor on the device (so the rate is a tensor, and whether a step counts is
decided on the device).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from privet.core.progress import console

# Steps before the recording: libraries choose their kernels in them, and optimisers make their
# state.
WARM = 3


class ReplayedStep:
    """`step` takes tensors of a batch and gives nothing back. On a CPU, and for batches of another
    shape, it is simply called.

    `dice` are what it draws from, where that is not torch's own generator: replayed, it is to draw
    other numbers each time.
    """

    def __init__(self, step: Callable[..., None], dice: torch.Generator | None = None) -> None:
        self.step, self.dice = step, dice
        self._steps = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._held: tuple[Tensor, ...] = ()
        self._stream: torch.cuda.Stream | None = None
        self._refused = False

    def __call__(self, *batch: Tensor) -> None:
        if batch[0].device.type != "cuda" or self._refused:
            self.step(*batch)
        elif self._graph is not None:
            if not self._fits(batch):
                self.step(*batch)
                return
            for held, new in zip(self._held, batch, strict=True):
                held.copy_(new)
            self._graph.replay()
        elif self._steps >= WARM and self._fits(batch):
            self._record(batch)
        else:
            self._steps = self._steps + 1 if self._fits(batch) else 1
            self._held = (
                self._held if self._fits(batch) else tuple(tensor.clone() for tensor in batch)
            )
            self._aside(batch)

    def _fits(self, batch: tuple[Tensor, ...]) -> bool:
        return len(self._held) == len(batch) and all(
            a.shape == b.shape and a.dtype == b.dtype and a.stride() == b.stride()
            for a, b in zip(self._held, batch, strict=True)
        )

    def _aside(self, batch: tuple[Tensor, ...]) -> None:
        """The step on a stream of its own, as what is to be recorded must have run before."""
        self._stream = self._stream or torch.cuda.Stream()  # type: ignore[no-untyped-call]
        here, aside = torch.cuda.current_stream(), self._stream
        aside.wait_stream(here)
        with torch.cuda.stream(aside):
            self.step(*batch)
        here.wait_stream(aside)

    def _record(self, batch: tuple[Tensor, ...]) -> None:
        for held, new in zip(self._held, batch, strict=True):
            held.copy_(new)
        graph = torch.cuda.CUDAGraph()
        if self.dice is not None:
            graph.register_generator_state(self.dice)
        try:
            # What other threads do meanwhile, such as sending the next records, is not part of it.
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self.step(*self._held)
        except RuntimeError as error:
            console.print(
                f"Not recorded ({str(error).splitlines()[0]}): learning goes on, more slowly.",
                highlight=False,
                soft_wrap=True,
            )
            self._refused = True
            self.step(*batch)
            return
        self._graph = graph
        graph.replay()


def adamw(net: nn.Module, lr: float, decay: float, device: torch.device) -> torch.optim.AdamW:
    """AdamW whose rate may change between recorded steps."""
    gpu = device.type == "cuda"
    rate = torch.tensor(lr, device=device) if gpu else lr
    return torch.optim.AdamW(
        net.parameters(), lr=rate, weight_decay=decay, fused=True, capturable=gpu
    )


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def descend(loss: Tensor, optimiser: torch.optim.Optimizer) -> None:
    """One step against the loss; none where it is not finite. On a GPU that is decided there,
    without waiting for it."""
    optimiser.zero_grad(set_to_none=True)
    if loss.is_cuda:
        optimiser.found_inf = (~torch.isfinite(loss.detach())).float()  # type: ignore[attr-defined]
    elif not torch.isfinite(loss):
        return
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()
