"""Perceptrons of one shape, trained together: stacked parameters, one pass over the data for all of
them.

Members share the records of a step and the dropout masks, and nothing else: the loss is the sum of
theirs, so each one's gradient is its own, and a member learns the same whether it is alone or among
others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from privet.adversaries.adversary import Tick, known, rank, silent
from privet.adversaries.network import lots
from privet.adversaries.network_training import cycle, spread
from privet.data.dataset import Array
from privet.train.cuda_graph import Replayed

JUDGED = 20
"""How often along a training, at most, members are judged on *select*."""
MOMENTUM = 0.1
"""Weight of the newest batch in the statistics that are used after training."""
TINY = 1e-5
"""Added to variances before dividing."""


@dataclass(frozen=True)
class Member:
    """One network of a stack: what it is to guess, and how it learns."""

    target: int
    """Which of the targets."""
    lr: float
    """At the top of the cycle."""
    decay: float
    seed: int
    """Its first weights follow from this alone."""


class _Unit(torch.autograd.Function):
    """Batch normalisation, shift, ReLU and dropout in as few passes over memory as they take; a
    gain would do nothing that the next layer's weights cannot.

    h is (members, width, records), so that every member and unit has a row of its own: what is
    called layer normalisation, of rows, is batch normalisation here (Ioffe and Szegedy, ICML 2015).
    """

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, shift: Tensor, mask: Tensor | None, scale: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        unit, mean, one = torch.native_layer_norm(h, h.shape[2:], None, None, TINY)
        out = unit.add_(shift).relu_()
        if mask is not None:
            out.mul_(mask)
        ctx.save_for_backward(h, mean, one, out)
        ctx.scale = scale
        variance = one.square().reciprocal_().sub_(TINY)
        ctx.mark_non_differentiable(mean, variance)
        return out, mean, variance

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        h, mean, one, out = ctx.saved_tensors
        # Where the output is 0, ReLU or the mask has cut.
        grad = torch.ops.aten.threshold_backward(grads[0], out, 0).mul_(ctx.scale)
        back = torch.ops.aten.native_layer_norm_backward(
            grad, h, h.shape[2:], mean, one, None, None, [True, False, False]
        )[0]
        return back, grad.sum(2, keepdim=True), None, None


class Stack:
    """Networks (linear, batch normalisation, ReLU, dropout) x hidden layers, then linear. Without
    hidden layers, logistic regression.

    All parameters are one tensor (members, parameters): first the weights of every layer, which
    decay, then shifts and biases.
    """

    def __init__(
        self, inputs: int, hidden: Sequence[int], outputs: int, seeds: Sequence[int], like: Tensor
    ) -> None:
        self.sizes = (inputs, *hidden, outputs)
        self.flat = torch.stack([self._start(seed) for seed in seeds]).to(like)
        self.means = [self.flat.new_zeros(len(seeds), width, 1) for width in hidden]
        self.variances = [self.flat.new_ones(len(seeds), width, 1) for width in hidden]

    def _start(self, seed: int) -> Tensor:
        """He et al., Delving deep into rectifiers, ICCV 2015: variance 2 / inputs; the last layer
        starts at zero, so that a member starts alike however many outputs the others need."""
        dice = torch.Generator().manual_seed(seed)
        hidden = [
            math.sqrt(2 / a) * torch.randn(a * b, generator=dice)
            for a, b in pairwise(self.sizes[:-1])
        ]
        return torch.cat(
            [*hidden, torch.zeros(self.sizes[-2] * self.sizes[-1] + sum(self.sizes[1:]))]
        )

    @property
    def weights(self) -> int:
        """How many of the parameters are weights."""
        return sum(a * b for a, b in pairwise(self.sizes))

    @property
    def state(self) -> list[Tensor]:
        """Everything that differs between members, which are the first axis of all of it."""
        return [self.flat, *self.means, *self.variances]

    def layers(self) -> list[Tensor]:
        """Views of the parameters: (members, out, in) of every layer, then (members, out, 1)."""
        shapes = [(b, a) for a, b in pairwise(self.sizes)] + [(b, 1) for b in self.sizes[1:]]
        parts = torch.split(self.flat, [a * b for a, b in shapes], dim=1)
        return [part.view(-1, *shape) for part, shape in zip(parts, shapes, strict=True)]

    def only(self, members: Sequence[int]) -> Stack:
        """Some of them, as a stack of their own."""
        fewer = object.__new__(Stack)
        fewer.sizes = self.sizes
        fewer.flat, *rest = (part[list(members)].clone() for part in self.state)
        fewer.means, fewer.variances = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        return fewer

    def learn(
        self, x: Tensor, layers: Sequence[Tensor], dropout: float, dice: torch.Generator
    ) -> Tensor:
        """Outputs (members, outputs, records) of a batch x (records, inputs), from parameters that
        gradients are asked for."""
        depth, kept = len(self.sizes) - 1, round(256 * (1 - dropout))
        h = x.T.expand(len(self.flat), *x.T.shape)
        for weight, shift, mean, variance in zip(
            layers, layers[depth:-1], self.means, self.variances, strict=False
        ):
            mask = (
                lots((weight.shape[1], len(x)), kept, dice).to(x.dtype).mul_(256 / kept)
                if dropout
                else None
            )
            h, now_mean, now_variance = _Unit.apply(torch.bmm(weight, h), shift, mask, 256 / kept)  # type: ignore[no-untyped-call]
            mean.lerp_(now_mean, MOMENTUM)
            variance.lerp_(now_variance, MOMENTUM)
        return torch.baddbmm(layers[-1], layers[depth - 1], h)

    @torch.no_grad()
    def outputs(self, x: Tensor) -> Tensor:
        """(members, outputs, records) after training."""
        depth, layers, parts = len(self.sizes) - 1, self.layers(), []
        with _tf32(x.device):
            for part in torch.split(x, 4096):
                h = part.T.expand(len(self.flat), *part.T.shape)
                for weight, shift, mean, variance in zip(
                    layers, layers[depth:-1], self.means, self.variances, strict=False
                ):
                    h = (
                        torch.bmm(weight, h)
                        .sub_(mean)
                        .mul_((variance + TINY).rsqrt())
                        .add_(shift)
                        .relu_()
                    )
                parts.append(torch.baddbmm(layers[-1], layers[depth - 1], h))
        return torch.cat(parts, dim=2)


class AdamW:
    """Adam with decoupled decay on the first `weights` columns, a learning rate and a decay for
    every row::

        m = b1 m + (1 - b1) g,   v = b2 v + (1 - b2) g^2
        p = p - lr decay p - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)

    Loshchilov and Hutter, Decoupled weight decay regularization, ICLR 2019.
    """

    def __init__(
        self,
        flat: Tensor,
        weights: int,
        rates: Tensor,
        decays: Tensor,
        betas: tuple[float, float] = (0.9, 0.999),
    ) -> None:
        self.flat, self.weights, self.rates, self.decays, self.betas = (
            flat,
            weights,
            rates,
            decays,
            betas,
        )
        self.first, self.second, self.room = (torch.zeros_like(flat) for _ in range(3))

    def plan(self, shares: Sequence[float]) -> Tensor:
        """What changes from step to step, (steps, 3): the rate, as a share of the members' rates;
        sqrt(c2); sqrt(c2) / c1, where c = 1 - b^t."""
        first, second = (1 - np.power(beta, np.arange(1, len(shares) + 1)) for beta in self.betas)
        return self.flat.new_tensor(
            np.stack([np.asarray(shares), np.sqrt(second), np.sqrt(second) / first], 1)
        )

    @torch.no_grad()
    def step(self, grad: Tensor, now: Tensor) -> None:
        """One step along -grad; `now` is its line of the plan."""
        rates = self.rates * now[0]
        self.first.lerp_(grad, 1 - self.betas[0])
        self.second.mul_(self.betas[1]).addcmul_(grad, grad, value=1 - self.betas[1])
        # sqrt(v / c) + eps = (sqrt(v) + eps sqrt(c)) / sqrt(c): the corrections need no pass of
        # their own.
        torch.sqrt(self.second, out=self.room).add_(1e-8 * now[1])
        torch.div(self.first, self.room, out=self.room)
        self.flat[:, : self.weights].mul_(1 - rates * self.decays)
        self.flat.addcmul_(self.room, rates * now[2], value=-1.0)


@dataclass(frozen=True)
class TrainedStack:
    stack: Stack
    kinds: tuple[int, ...]
    """Of every member, how many classes it tells apart; 0 for a number."""
    scales: tuple[tuple[float, float], ...]
    """Of every member, mean and deviation of its number; of no use for classes."""

    def answers(self, member: int, x: Tensor) -> Array:
        """Probabilities (n, classes), or guesses of a number (n,), float64."""
        return self.only(member).all(x)[0]

    def all(self, x: Tensor) -> list[Array]:
        """The answers of every member."""
        out = self.stack.outputs(x).double().cpu()
        return [self._read(k, own) for k, own in enumerate(out)]

    def only(self, member: int) -> TrainedStack:
        return TrainedStack(
            self.stack.only([member]), (self.kinds[member],), (self.scales[member],)
        )

    def _read(self, member: int, out: Tensor) -> Array:
        mean, deviation = self.scales[member]
        if not self.kinds[member]:
            return np.asarray(out[0] * deviation + mean)
        return np.asarray(out[: self.kinds[member]].softmax(0).T)


def train_stack(
    draw: Callable[[], Tensor],
    targets: Sequence[Array],
    kinds: Sequence[int],
    select_x: Tensor,
    select_targets: Sequence[Array],
    members: Sequence[Member],
    *,
    hidden: Sequence[int] = (256,),
    dropout: float = 0.2,
    epochs: int = 20,
    least: int = 400,
    batch: int = 256,
    seed: int = 0,
    tick: Tick = silent,
) -> tuple[TrainedStack, list[float]]:
    """Every member's best state along one training, and how well it ranks the *select* people.

    `draw` gives all records as vectors (n, d), and is called once in every epoch: noise is fresh
    each time. Targets are codes (-1 where missing) with so many `kinds` of them, or numbers (NaN
    where missing) of kind 0. `least` is the fewest steps: with few records there are more epochs.
    Order and dropout follow from `seed`, whoever the members are.
    """
    x = draw()
    own = tuple(kinds[member.target] for member in members)
    stack = Stack(x.shape[1], hidden, max(*own, 1), [member.seed for member in members], x)
    scales = tuple((0.0, 1.0) if kinds[m.target] else spread(targets[m.target]) for m in members)
    losses = _losses(targets, kinds, [m.target for m in members], x)
    optimiser = AdamW(
        stack.flat,
        stack.weights,
        x.new_tensor([[m.lr] for m in members]),
        x.new_tensor([[m.decay] for m in members]),
    )
    layers = [layer.detach().requires_grad_() for layer in stack.layers()]
    size = max(2, min(batch, len(x) // 4))
    steps = max(1, len(x) // size)
    epochs = max(epochs, math.ceil(least / steps))
    judged = {*np.linspace(0, epochs - 1, min(epochs, JUDGED)).astype(int).tolist()}
    order, dice = torch.Generator().manual_seed(seed), torch.Generator(x.device).manual_seed(seed)
    kept, best = stack.only(range(len(members))), [-math.inf] * len(members)

    def learn(some: Tensor, chosen: Tensor, now: Tensor) -> None:
        loss = losses(stack.learn(some, layers, dropout, dice), chosen)
        grads = torch.autograd.grad(loss.sum(), layers)
        grad = torch.cat([part.flatten(1) for part in grads], dim=1)
        # Rows do not mix, so a member that has diverged is held still without a word to the others.
        grad.masked_fill_(~loss.detach().isfinite()[:, None], 0.0)
        optimiser.step(grad, now)

    step, total = Replayed(learn, dice), epochs * steps
    plan = optimiser.plan([cycle((done + 1) / total) for done in range(total)])
    for epoch in range(epochs):
        x = x if epoch == 0 else draw()
        rows = torch.randperm(len(x), generator=order).to(x.device)
        with _tf32(x.device):
            for done, chosen in enumerate(torch.split(rows[: steps * size], size)):
                step(x[chosen], chosen, plan[epoch * steps + done])
        if epoch in judged:
            now = TrainedStack(stack, own, scales).all(select_x)
            scores = [
                _score(select_targets[m.target], answers)
                for m, answers in zip(members, now, strict=True)
            ]
            better = [k for k, score in enumerate(scores) if score > best[k]]
            for mine, its in zip(kept.state, stack.state, strict=True):
                mine[better] = its[better]
            best = [max(pair) for pair in zip(best, scores, strict=True)]
        tick((epoch + 1) / epochs)
    return TrainedStack(kept, own, scales), best


def _losses(
    targets: Sequence[Array], kinds: Sequence[int], which: Sequence[int], like: Tensor
) -> Callable[[Tensor, Tensor], Tensor]:
    """From outputs (members, outputs, records) and the records' rows to every member's mean loss
    over labels that are there.

    Cross-entropy over the member's own classes, squared error of a standardised number. Both are
    written for all members: to the one a number is a class that is missing everywhere, to the other
    a class is a missing number.
    """
    none = np.full(len(targets[0]), np.nan)
    codes = (
        _columns(
            [none if kind == 0 else target for target, kind in zip(targets, kinds, strict=True)], -1
        )
        .long()
        .to(like.device)
    )
    numbers = _columns(
        [none if kind else _standard(target) for target, kind in zip(targets, kinds, strict=True)],
        np.nan,
    ).to(like)
    member = torch.tensor(which, device=like.device)
    own = torch.tensor(kinds, device=like.device)[member]
    absent = torch.arange(int(max(*own, 1)), device=like.device) >= own.clamp(min=1)[:, None]
    absent = torch.zeros_like(absent, dtype=like.dtype).masked_fill_(absent, -math.inf)[:, :, None]

    def of_classes(out: Tensor, rows: Tensor) -> Tensor:
        wanted = codes[:, rows][member]
        each = F.cross_entropy(out + absent, wanted, ignore_index=-1, reduction="none")
        return each.sum(1) / (wanted >= 0).sum(1).clamp(min=1)

    def of_numbers(out: Tensor, rows: Tensor) -> Tensor:
        wanted = numbers[:, rows][member]
        there = wanted.isfinite()
        each = torch.where(there, out[:, 0] - wanted.nan_to_num(), 0.0).square()
        return each.sum(1) / there.sum(1).clamp(min=1)

    if all(own):
        return of_classes
    return (
        of_numbers
        if not any(own)
        else lambda out, rows: of_classes(out, rows) + of_numbers(out, rows)
    )


def _columns(targets: Sequence[Array], missing: float) -> Tensor:
    """Targets as rows (targets, n), with one sign for what is missing."""
    return torch.stack(
        [torch.as_tensor(np.where(known(target), target, missing)) for target in targets]
    )


def _standard(target: Array) -> Array:
    mean, deviation = spread(target)
    return (target - mean) / deviation


def _score(truth: Array, answers: Array) -> float:
    """A member that has diverged is never the best."""
    return rank(truth, answers) if np.isfinite(answers).all() else -math.inf


@contextmanager
def _tf32(device: torch.device) -> Iterator[None]:
    """Products at the speed of the hardware on a GPU; exact float32 on a CPU, where results are to
    be the same every time."""
    before = torch.get_float32_matmul_precision()
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
