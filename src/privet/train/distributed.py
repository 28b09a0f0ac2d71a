"""Learning one release by several processes, as one would on the same batch: `torchrun
--nproc-per-node 2 -m privet learn ...`.

Every process has all players and its own rows of every batch. What is learned is the same as by one
process, up to the order in which floats are summed, because nothing that looks across records stops
at the end of a process's rows:

    gradients          the mean over processes, once per optimiser and step (as DDP does)
    batch statistics   mean and variance of the whole batch, with their gradient (SyncBatchNorm
                       does this on GPUs only)
    negatives          x' of the estimator is the next record of the whole batch: outputs are
                       gathered with their gradient, then shifted
    losses             means over rows, of which all processes have equally many; or of gathered
                       scores and labels (`everyone`), where missing labels are counted, or codes
                       are compared with each other
    draws              noise and dropout are drawn for the whole batch, the same everywhere; each
                       process takes its rows
    files              written by the first process alone

The objective is the mean over processes of what each computes, and both ways of exchange below send
gradients back accordingly.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from privet.core.errors import PrivetError
from privet.core.progress import console
from privet.nets.device import pick
from privet.train.checkpoint import CHECKPOINT
from privet.train.feed import Batch, Feed, Positions
from privet.train.step import Move

# Methods that look across records in the ways above only.
METHODS = ("hedge", "tiprdc")
# How long to wait for a process that is late; judging and reading data are not in step.
PATIENCE = timedelta(minutes=30)


@contextmanager
def joined(method: str, device: str, out: Path) -> Iterator[tuple[str, Path]]:
    """Take part in what torchrun started, if it did; gives the device that is this process's own,
    and where it may write.

    Only the first process writes to `out`; others go on from the same checkpoint, say nothing, and
    leave nothing.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "MASTER_ADDR" not in os.environ:
        yield device, out
        return
    with taken_part(method, device) as own:
        if first():
            yield own, out
            return
        with tempfile.TemporaryDirectory(prefix="privet-beside-") as scratch:
            if (out / CHECKPOINT).is_file():
                shutil.copy(out / CHECKPOINT, scratch)
            quiet, console.quiet = console.quiet, True
            try:
                yield own, Path(scratch)
            finally:
                console.quiet = quiet


@contextmanager
def taken_part(method: str, device: str) -> Iterator[str]:
    """One of those that torchrun started; within another such block, still the same one."""
    if _Here.size > 1:
        yield device
        return
    if method not in METHODS:
        raise PrivetError(
            f"{method} is not learned by several processes yet, only {' and '.join(METHODS)}: leave"
            " out torchrun."
        )
    chosen = pick(device)
    if chosen.type == "cuda" and chosen.index is None:
        chosen = pick(f"cuda:{os.environ.get('LOCAL_RANK', '0')}")
        torch.cuda.set_device(chosen)
    dist.init_process_group("nccl" if chosen.type == "cuda" else "gloo", timeout=PATIENCE)
    _Here.size, _Here.rank = dist.get_world_size(), dist.get_rank()
    try:
        yield str(chosen)
    finally:
        _Here.size, _Here.rank = 1, 0
        dist.destroy_process_group()


class _Here:
    """How many learn together, and which of them this is. Plain numbers, which a compiler sees as
    constants."""

    size: int = 1
    rank: int = 0


def size() -> int:
    return _Here.size


def first() -> bool:
    """Whether this process writes and speaks for all."""
    return _Here.rank == 0


def everyone(mine: Tensor) -> Tensor:
    """The rows of all processes, in their order."""
    gather = cast(Any, _Gathered.apply)
    return mine if size() == 1 else cast(Tensor, gather(mine))


def everyones(labels: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same for labels by name."""
    return {name: everyone(column) for name, column in labels.items()}


def batches(feed: Feed, indices: Iterable[Positions]) -> Iterator[Batch]:
    """This process's rows of every batch."""
    if size() == 1:
        return feed.batches(indices)
    if feed.lengths is None:
        return feed.batches(places[_share(len(places))] for places in indices)
    # A text is cut to the longest of the whole batch, on which the shape of the noise depends.
    return (_cut(batch) for batch in feed.batches(indices))


def whole(mine: int) -> AbstractContextManager[Any]:
    """While an objective is computed on `mine` rows: batch statistics and draws are those of the
    whole batch."""
    return nullcontext() if size() == 1 else _Whole(mine)


def of_all(objective: Callable[[Batch], Move]) -> Callable[[Batch], Move]:
    """The objective as it is on the whole batch, computed from this process's rows; figures are
    those of the whole batch too."""
    if size() == 1:
        return objective

    def shared(batch: Batch) -> Move:
        with whole(len(batch.x)):
            move = objective(batch)
        figures = {name: value.detach().clone() for name, value in move.figures.items()}
        _average(list(figures.values()))
        return replace(move, figures=figures)

    return shared


def averaging(optimiser: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """The optimiser, which from now on steps against the mean of all processes' gradients."""
    if size() > 1:
        optimiser.register_step_pre_hook(
            lambda own, *_: _average(
                [
                    p.grad
                    for group in own.param_groups
                    for p in group["params"]
                    if p.grad is not None
                ]
            )
        )
    return optimiser


@torch.no_grad()
def _average(values: Sequence[Tensor]) -> None:
    """Each becomes its mean over processes, in one exchange."""
    if not values:
        return
    flat = torch.cat([value.reshape(-1) for value in values])
    dist.all_reduce(flat)
    for value, mean in zip(
        values, torch.split(flat / size(), [value.numel() for value in values]), strict=True
    ):
        value.copy_(mean.view(value.shape))


def agree(modules: Mapping[str, nn.Module]) -> None:
    """Refuse to go on where processes do not hold the same numbers, bit for bit."""
    if size() == 1:
        return
    apart = torch.zeros(
        (),
        device=next(
            (p.device for m in modules.values() for p in m.parameters()), torch.device("cpu")
        ),
    )
    for module in modules.values():
        for value in module.state_dict().values():
            theirs = value.detach().clone(memory_format=torch.contiguous_format)
            dist.broadcast(theirs, 0)
            apart += float(not torch.equal(theirs.nan_to_num(), value.detach().nan_to_num()))
    dist.all_reduce(apart)
    if apart:
        raise PrivetError(
            "The processes do not hold the same weights: give all of them the same data, settings"
            " and version of privet."
        )


def _share(count: int) -> slice:
    if count % size():
        raise PrivetError(
            f"A batch of {count} records cannot be shared equally by {size()} processes: choose"
            " another with --set batch=..."
        )
    return _rows(count // size())


def _rows(mine: int) -> slice:
    return slice(_Here.rank * mine, (_Here.rank + 1) * mine)


def _cut(batch: Batch) -> Batch:
    share = _share(len(batch.x))
    return type(batch)(
        batch.x[share], {name: column[share] for name, column in batch.labels.items()}
    )


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, mine: Tensor) -> Tensor:
        mine = mine.contiguous()
        ctx.rows = _rows(len(mine))
        parts = [torch.empty_like(mine) for _ in range(size())]
        dist.all_gather(parts, mine)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous().clone()
        dist.all_reduce(total)
        return total[ctx.rows]


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, mine: Tensor) -> Tensor:
        total = mine.contiguous().clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous().clone()
        dist.all_reduce(total)
        return total


def _summed(mine: Tensor) -> Tensor:
    return cast(Tensor, _Summed.apply(mine))  # type: ignore[no-untyped-call]


class _Whole(TorchFunctionMode):
    """Calls of torch that depend on the other records of a batch, or that draw for it, are answered
    for the whole batch."""

    def __init__(self, mine: int) -> None:
        super().__init__()
        self.mine = mine

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.batch_norm:
            return _batch_norm(*args, **kwargs)
        if func is F.dropout:
            return self._dropout(*args, **kwargs)
        if func in (torch.randn_like, torch.rand_like):
            return func(self._template(args[0]), *args[1:], **kwargs)[_rows(self.mine)]
        if func in (torch.randn, torch.rand):
            shape = args[0] if isinstance(args[0], Sequence) else args
            return func(self._enlarged(shape), **kwargs)[_rows(self.mine)]
        if func in (torch.roll, Tensor.roll):
            return self._roll(*args, **kwargs)
        if func is torch.randint:
            *limits, shape = args
            return cast(Any, func)(*limits, self._enlarged(shape), **kwargs)[_rows(self.mine)]
        if func in REFUSED:
            raise RuntimeError(
                f"{func.__name__} draws for one process's rows: this network is not made to be"
                " learned by several"
            )
        return func(*args, **kwargs)

    def _roll(self, given: Tensor, shifts: Any, dims: Any = None) -> Tensor:
        """For every row one that stands before it in the whole batch."""
        if dims not in (0, (0,)):
            return given.roll(shifts, dims)
        if len(given) != self.mine:
            raise RuntimeError(
                f"a shift of {len(given)} rows is not one of the {self.mine} records"
            )
        return everyone(given).roll(shifts, 0)[_rows(self.mine)]

    def _enlarged(self, shape: Sequence[int]) -> tuple[int, ...]:
        if not shape or shape[0] != self.mine:
            raise RuntimeError(
                f"a draw of shape {tuple(shape)} is not one per record of {self.mine}"
            )
        return (shape[0] * size(), *shape[1:])

    def _template(self, like: Tensor) -> Tensor:
        """Room for the whole batch, laid out in memory as one process's rows are: numbers are drawn
        in the order of memory."""
        outermost_first = sorted(range(like.dim()), key=like.stride, reverse=True)
        return torch.empty_permuted(
            self._enlarged(like.shape), outermost_first, dtype=like.dtype, device=like.device
        )

    def _dropout(
        self, given: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        if not training or not p:
            return given
        kept = self._template(given).bernoulli_(1 - p).div_(1 - p)
        return given * kept[_rows(self.mine)]


REFUSED = frozenset(
    [
        torch.bernoulli,
        torch.normal,
        torch.multinomial,
        torch.poisson,
        torch.randperm,
        F.dropout1d,
        F.dropout2d,
        F.dropout3d,
        F.alpha_dropout,
        Tensor.bernoulli_,
        Tensor.normal_,
        Tensor.uniform_,
        Tensor.exponential_,
        Tensor.random_,
    ]
)


def _batch_norm(
    given: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """torch's batch_norm, with mean and variance over the rows of all processes. The variance is
    taken around the common mean."""
    if not training:
        return F.batch_norm(given, running_mean, running_var, weight, bias, training, momentum, eps)
    axes = [0, *range(2, given.dim())]
    shape = (1, -1, *(1,) * (given.dim() - 2))
    with torch.autocast(given.device.type, enabled=False):
        x = given.float() if given.dtype in (torch.bfloat16, torch.float16) else given
        count = size() * x.numel() // x.shape[1]
        centred = x - (mean := _summed(x.sum(axes)) / count).view(shape)
        variance = _summed(centred.square().sum(axes)) / count
        if running_mean is not None and running_var is not None:
            with torch.no_grad():
                running_mean.lerp_(mean.detach().to(running_mean.dtype), momentum)
                running_var.lerp_(
                    (variance.detach() * (count / (count - 1))).to(running_var.dtype), momentum
                )
        scale = (
            torch.rsqrt(variance + eps) if weight is None else torch.rsqrt(variance + eps) * weight
        )
        found = centred * scale.view(shape)
        found = found if bias is None else found + bias.view(shape)
    return found.to(given.dtype)
