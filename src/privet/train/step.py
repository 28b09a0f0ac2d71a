"""A player's move as one function of a batch: objective, gradients, step. What a game repeats, at
the pace the machine allows.

On a CPU it is called as it stands. A GPU is told once: the move is recorded as a CUDA graph after a
few steps and replayed with other records (cuda_graph.py), and where the whole phase is much work,
the objective is first compiled, which joins the many small passes over memory between the products.
Either needs a move that computes the same for every batch, and the method says whether it does
(`Phase.steady`): everything that changes from round to round is then a tensor on the device.

Recorded moves compute what plain ones do. Compiled ones round differently, as two GPUs do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from privet.core.errors import PrivetError, unknown
from privet.core.progress import console
from privet.nets.device import precision
from privet.train.checkpoint import like
from privet.train.cuda_graph import ReplayedStep
from privet.train.feed import Batch

PACES = ("auto", "plain", "recorded", "compiled")
# Rounds under which a move is not worth recording.
FEWEST = 30
# Floating-point operations of a phase from which on compiling, most of a minute, is won back.
WORTH_COMPILING = 4e16


@dataclass(frozen=True)
class Move:
    """What a player's objective gives: a loss to step against, and figures to show."""

    loss: Tensor
    figures: Mapping[str, Tensor] = field(default_factory=dict)


class PlainStep:
    """Makes the move and gives its figures."""

    def __init__(
        self,
        objective: Callable[[Batch], Move],
        modules: Sequence[nn.Module],
        optimisers: Sequence[torch.optim.Optimizer],
    ) -> None:
        self.objective, self.modules, self.optimisers = objective, modules, optimisers

    def __call__(self, batch: Batch) -> Mapping[str, Tensor]:
        with precision(batch.x.device):
            move = self.objective(batch)
            take_step(move.loss, self.modules, self.optimisers)
        return {name: value.detach() for name, value in move.figures.items()}

    def end(self) -> None:
        """Called when the phase is over."""


class RecordedStep:
    """A step that is recorded; compiled as well with a `mode` of torch.compile, or, of itself,
    where its steps come to enough work."""

    def __init__(
        self, step: PlainStep, steps: int, mode: str | None = None, weighs: bool = True
    ) -> None:
        """`steps` are all those of the phase: with `weighs`, they say together with the first one's
        work whether compiling pays."""
        self.step, self.steps, self.mode, self.weighs = step, steps, mode, weighs
        self._names: tuple[str, ...] = ()
        self._figures: dict[str, Tensor] = {}
        self._compiled: Callable[..., tuple[Tensor, dict[str, Tensor]]] | None = (
            None if mode is None else self._compile(mode)
        )
        self._replayed = ReplayedStep(self._take)

    def __call__(self, batch: Batch) -> Mapping[str, Tensor]:
        self._names = tuple(batch.labels)
        if self.weighs:
            self.weighs = False
            with FlopCounterMode(display=False) as counter:
                self._take(batch.x, *batch.labels.values())
            if counter.get_total_flops() * self.steps >= WORTH_COMPILING:
                console.print(
                    "Compiling the step, once for this phase; the first rounds take a while.",
                    highlight=False,
                )
                self._compiled = self._compile("default")
        else:
            self._replayed(batch.x, *batch.labels.values())
        return self._figures

    def end(self) -> None:
        """Gives the memory of the recording back."""
        self._replayed, self._compiled, self._figures = ReplayedStep(self._take), None, {}

    def _take(self, *batch: Tensor) -> None:
        if self._compiled is not None:
            try:
                self._move(self._compiled, batch)
            except Exception as error:
                # Whatever the compiler lacks here (no C compiler, no Triton, an operation it does
                # not know), learning goes on without.
                console.print(
                    f"Not compiled ({type(error).__name__}): learning goes on at the recorded"
                    " pace.",
                    highlight=False,
                )
                self._compiled = None
            else:
                return
        self._move(self._objective, batch)

    def _move(
        self, objective: Callable[..., tuple[Tensor, dict[str, Tensor]]], batch: Sequence[Tensor]
    ) -> None:
        with precision(batch[0].device):
            loss, figures = objective(*batch)
            take_step(loss, self.step.modules, self.step.optimisers)
        self._figures = {name: value.detach() for name, value in figures.items()}

    def _objective(self, x: Tensor, *labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        move = self.step.objective(Batch(x, dict(zip(self._names, labels, strict=True))))
        return move.loss, dict(move.figures)

    def _compile(self, mode: str) -> Any:
        # Of earlier games: the compiler gives up on a function that it compiled for too many.
        torch.compiler.reset()
        return torch.compile(self._objective, mode=mode, dynamic=False)


def pace(
    word: str, step: PlainStep, *, steady: bool, steps: int, device: torch.device
) -> PlainStep | RecordedStep:
    """The step at a pace of PACES; "compiled:MODE" names a mode of torch.compile."""
    chosen, _, mode = word.partition(":")
    if chosen not in PACES or (mode and chosen != "compiled"):
        raise unknown("pace", word, PACES)
    if mode and mode not in torch._inductor.list_mode_options():
        raise PrivetError(
            f"torch.compile has no mode '{mode}'; leave it out, or use default or"
            " max-autotune-no-cudagraphs."
        )
    if (
        chosen == "plain"
        or not steady
        or device.type != "cuda"
        or (chosen == "auto" and steps < FEWEST)
    ):
        return step
    return RecordedStep(
        step, steps, (mode or "default") if chosen == "compiled" else None, weighs=chosen == "auto"
    )


def take_step(
    loss: Tensor, modules: Sequence[nn.Module], optimisers: Sequence[torch.optim.Optimizer]
) -> None:
    """One step of each optimiser against the loss; parameters of other players get no gradient."""
    parameters = [p for module in modules for p in module.parameters() if p.requires_grad]
    for parameter, gradient in zip(
        parameters, torch.autograd.grad(loss, parameters, allow_unused=True), strict=True
    ):
        parameter.grad = None if gradient is None else like(parameter, gradient)
    for optimiser in optimisers:
        optimiser.step()
