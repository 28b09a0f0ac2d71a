"""Multi-layer perceptrons of one shape, trained together: stacked parameters, one pass over the
data for all of them.

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
from typing import Any, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from privet.adversaries.adversary import Tick, has_label, ranking_score, silent
from privet.adversaries.network import dropout_mask
from privet.adversaries.network_training import Schedule, mean_and_deviation, one_cycle
from privet.data.dataset import Array
from privet.train.cuda_graph import ReplayedStep

# Weight of the newest batch in the statistics that are used after training.
MOMENTUM = 0.1
# Added to variances before dividing.
EPSILON = 1e-5


class Target(NamedTuple):
    """What members may have to guess.

    Parameters:
        labels: Of the records to learn from, codes (-1 where missing) or numbers (NaN).
        classes: How many codes there are; 0 for a number.
        select_labels: The same of the *select* people.
    """

    labels: Array
    classes: int
    select_labels: Array


@dataclass(frozen=True)
class Member:
    """One network of a stack.

    Parameters:
        target: Which of the targets it guesses.
        lr: Its learning rate at the top of the cycle.
        decay: Its weight decay.
        seed: Its first weights follow from this alone.
    """

    target: int
    lr: float
    decay: float
    seed: int


class _Layer(torch.autograd.Function):
    """Batch normalisation, shift, ReLU and dropout in as few passes over memory as they take; a
    gain would do nothing that the next layer's weights cannot.

    h is (members, width, records), so that every member and unit has a row of its own: what is
    called layer normalisation, of rows, is batch normalisation here (Ioffe and Szegedy, ICML 2015).
    """

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, shift: Tensor, mask: Tensor | None, scale: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        unit, mean, rstd = torch.native_layer_norm(h, h.shape[2:], None, None, EPSILON)
        out = unit.add_(shift).relu_()
        if mask is not None:
            out.mul_(mask)
        ctx.save_for_backward(h, mean, rstd, out)
        ctx.scale = scale
        variance = rstd.square().reciprocal_().sub_(EPSILON)
        ctx.mark_non_differentiable(mean, variance)
        return out, mean, variance

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        h, mean, rstd, out = ctx.saved_tensors
        # Where the output is 0, ReLU or the mask has cut.
        grad = torch.ops.aten.threshold_backward(grads[0], out, 0).mul_(ctx.scale)
        back = torch.ops.aten.native_layer_norm_backward(
            grad, h, h.shape[2:], mean, rstd, None, None, [True, False, False]
        )[0]
        return back, grad.sum(2, keepdim=True), None, None


@dataclass(frozen=True)
class Stack:
    """Networks (linear, batch normalisation, ReLU, dropout) x hidden layers, then linear. Without
    hidden layers, logistic regression.

    Parameters:
        sizes: Units of the input, of every hidden layer and of the output.
        flat: All parameters (members, parameters): first the weights of every layer, which decay,
            then shifts and biases.
        means: Running means of every hidden layer, (members, width, 1).
        variances: Running variances of every hidden layer.
    """

    sizes: tuple[int, ...]
    flat: Tensor
    means: list[Tensor]
    variances: list[Tensor]

    @staticmethod
    def start(
        inputs: int, hidden: Sequence[int], outputs: int, seeds: Sequence[int], like: Tensor
    ) -> Stack:
        """Untrained members, one a seed, with the device and type of `like`."""
        sizes, n = (inputs, *hidden, outputs), len(seeds)
        flat = torch.stack([_first_weights(sizes, seed) for seed in seeds]).to(like)
        means = [flat.new_zeros(n, width, 1) for width in hidden]
        return Stack(sizes, flat, means, [flat.new_ones(n, width, 1) for width in hidden])

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

    def members(self, which: Sequence[int]) -> Stack:
        """A copy of some of them, as a stack of their own."""
        flat, *rest = (part[list(which)].clone() for part in self.state)
        return Stack(self.sizes, flat, rest[: len(rest) // 2], rest[len(rest) // 2 :])

    def forward(
        self, x: Tensor, layers: Sequence[Tensor], dropout: float, generator: torch.Generator
    ) -> Tensor:
        """Outputs (members, outputs, records) of a batch x (records, inputs) in training, from
        parameters that gradients are asked for."""
        depth, kept = len(self.sizes) - 1, round(256 * (1 - dropout))
        scale, mask = 256 / kept, None
        h = x.T.expand(len(self.flat), *x.T.shape)
        for weight, shift, mean, variance in self._hidden(layers):
            if dropout:
                mask = dropout_mask((weight.shape[1], len(x)), kept, generator).to(x.dtype)
                mask.mul_(scale)
            apply = cast(Any, _Layer.apply)
            h, batch_mean, batch_variance = apply(torch.bmm(weight, h), shift, mask, scale)
            mean.lerp_(batch_mean, MOMENTUM)
            variance.lerp_(batch_variance, MOMENTUM)
        return torch.baddbmm(layers[-1], layers[depth - 1], h)

    @torch.no_grad()
    def outputs(self, x: Tensor) -> Tensor:
        """(members, outputs, records) after training."""
        depth, layers, parts = len(self.sizes) - 1, self.layers(), []
        with _tf32(x.device):
            for part in torch.split(x, 4096):
                h = part.T.expand(len(self.flat), *part.T.shape)
                for weight, shift, mean, variance in self._hidden(layers):
                    h = torch.bmm(weight, h).sub_(mean).mul_((variance + EPSILON).rsqrt())
                    h = h.add_(shift).relu_()
                parts.append(torch.baddbmm(layers[-1], layers[depth - 1], h))
        return torch.cat(parts, dim=2)

    def _hidden(self, layers: Sequence[Tensor]) -> Iterator[tuple[Tensor, ...]]:
        """Weight, shift, running mean and running variance of every hidden layer."""
        shifts = layers[len(self.sizes) - 1 : -1]
        return zip(layers, shifts, self.means, self.variances, strict=False)


def _first_weights(sizes: Sequence[int], seed: int) -> Tensor:
    """He et al., Delving deep into rectifiers, ICCV 2015: variance 2 / inputs; the last layer
    starts at zero, so that a member starts alike however many outputs the others need."""
    random = torch.Generator().manual_seed(seed)
    hidden = [
        math.sqrt(2 / a) * torch.randn(a * b, generator=random) for a, b in pairwise(sizes[:-1])
    ]
    return torch.cat([*hidden, torch.zeros(sizes[-2] * sizes[-1] + sum(sizes[1:]))])


class AdamW:
    """Adam with decoupled decay on the first `weights` columns, a learning rate and a decay for
    every row::

        m = b1 m + (1 - b1) g,   v = b2 v + (1 - b2) g^2
        p = p - lr decay p - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)

    Loshchilov and Hutter, Decoupled weight decay regularization, ICLR 2019.

    Parameters:
        flat: The parameters, (rows, columns).
        weights: How many columns decay.
        rates: Learning rate of every row, (rows, 1).
        decays: Decay of every row, (rows, 1).
        betas: The rates b1 and b2.
    """

    def __init__(
        self,
        flat: Tensor,
        weights: int,
        rates: Tensor,
        decays: Tensor,
        betas: tuple[float, float] = (0.9, 0.999),
    ) -> None:
        self.flat, self.weights, self.betas = flat, weights, betas
        self.rates, self.decays = rates, decays
        self.first, self.second, self.buffer = (torch.zeros_like(flat) for _ in range(3))

    def plan(self, shares: Sequence[float]) -> Tensor:
        """What changes from step to step, (steps, 3): the rate, as a share of the members' rates;
        sqrt(c2); sqrt(c2) / c1, where c = 1 - b^t."""
        first, second = (1 - np.power(beta, np.arange(1, len(shares) + 1)) for beta in self.betas)
        columns = [np.asarray(shares), np.sqrt(second), np.sqrt(second) / first]
        return self.flat.new_tensor(np.stack(columns, 1))

    @torch.no_grad()
    def step(self, grad: Tensor, now: Tensor) -> None:
        """One step along -grad; `now` is its line of the plan."""
        rates = self.rates * now[0]
        self.first.lerp_(grad, 1 - self.betas[0])
        self.second.mul_(self.betas[1]).addcmul_(grad, grad, value=1 - self.betas[1])
        # sqrt(v / c) + eps = (sqrt(v) + eps sqrt(c)) / sqrt(c): the corrections need no pass of
        # their own.
        torch.sqrt(self.second, out=self.buffer).add_(1e-8 * now[1])
        torch.div(self.first, self.buffer, out=self.buffer)
        self.flat[:, : self.weights].mul_(1 - rates * self.decays)
        self.flat.addcmul_(self.buffer, rates * now[2], value=-1.0)


@dataclass(frozen=True)
class TrainedStack:
    """Networks that have learned.

    Parameters:
        stack: The networks.
        classes: Of every member, how many classes it tells apart; 0 for a number.
        scales: Of every member, mean and deviation of its number; of no use for classes.
    """

    stack: Stack
    classes: tuple[int, ...]
    scales: tuple[tuple[float, float], ...]

    def answers(self, x: Tensor) -> list[Array]:
        """Of every member: probabilities (n, classes), or guesses of a number (n,), float64."""
        out = self.stack.outputs(x).double().cpu()
        return [
            np.asarray(one[:classes].softmax(0).T if classes else one[0] * deviation + mean)
            for one, classes, (mean, deviation) in zip(out, self.classes, self.scales, strict=True)
        ]

    def member(self, which: int) -> TrainedStack:
        """A stack of this member alone."""
        stack = self.stack.members([which])
        return TrainedStack(stack, (self.classes[which],), (self.scales[which],))


def train_stack(
    draw: Callable[[], Tensor],
    targets: Sequence[Target],
    select_x: Tensor,
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

    Parameters:
        draw: Gives all records as vectors (n, d), and is called once in every epoch: noise is fresh
            each time.
        targets: What members may have to guess.
        select_x: Vectors of the *select* people.
        members: The networks to train.
        hidden: Widths of the hidden layers.
        dropout: Share of units that are left out in training.
        epochs: Passes over the records.
        least: Fewest steps: with few records there are more epochs.
        batch: Records in a batch.
        seed: Of the order of records and of dropout, whoever the members are.
        tick: Is called with the share that is done.
    """
    x, own = draw(), [targets[member.target] for member in members]
    classes = tuple(target.classes for target in own)
    stack = Stack.start(x.shape[1], hidden, max(*classes, 1), [m.seed for m in members], x)
    scales = [(0.0, 1.0) if t.classes else mean_and_deviation(t.labels) for t in own]
    now = TrainedStack(stack, classes, tuple(scales))
    best, best_scores = stack.members(range(len(members))), [-math.inf] * len(members)
    size, steps, epochs, judged = Schedule.of(len(x), batch, epochs, least)
    step, plan = _training(stack, targets, members, x, dropout, seed, epochs * steps)
    order = torch.Generator().manual_seed(seed)
    for epoch in range(epochs):
        x = x if epoch == 0 else draw()
        shuffled = torch.randperm(len(x), generator=order).to(x.device)
        with _tf32(x.device):
            for done, rows in enumerate(torch.split(shuffled[: steps * size], size)):
                step(x[rows], rows, plan[epoch * steps + done])
        if epoch in judged:
            scores = list(map(_score, own, now.answers(select_x)))
            better = [k for k, score in enumerate(scores) if score > best_scores[k]]
            for kept, present in zip(best.state, stack.state, strict=True):
                kept[better] = present[better]
            best_scores = [max(pair) for pair in zip(best_scores, scores, strict=True)]
        tick((epoch + 1) / epochs)
    return TrainedStack(best, classes, now.scales), best_scores


def _training(
    stack: Stack,
    targets: Sequence[Target],
    members: Sequence[Member],
    like: Tensor,
    dropout: float,
    seed: int,
    total: int,
) -> tuple[ReplayedStep, Tensor]:
    """A step of training, which takes vectors, their rows and a line of the plan; and the plan of
    all steps."""
    rates = like.new_tensor([[member.lr] for member in members])
    decays = like.new_tensor([[member.decay] for member in members])
    optimiser = AdamW(stack.flat, stack.weights, rates, decays)
    losses = _losses(targets, [member.target for member in members], like)
    layers = [layer.detach().requires_grad_() for layer in stack.layers()]
    random = torch.Generator(like.device).manual_seed(seed)

    def learn(some: Tensor, rows: Tensor, line: Tensor) -> None:
        loss = losses(stack.forward(some, layers, dropout, random), rows)
        grads = torch.autograd.grad(loss.sum(), layers)
        grad = torch.cat([part.flatten(1) for part in grads], dim=1)
        # Rows do not mix, so a member that has diverged is held still without touching the others.
        grad.masked_fill_(~loss.detach().isfinite()[:, None], 0.0)
        optimiser.step(grad, line)

    plan = optimiser.plan([one_cycle((done + 1) / total) for done in range(total)])
    return ReplayedStep(learn, random), plan


def _losses(
    targets: Sequence[Target], which: Sequence[int], like: Tensor
) -> Callable[[Tensor, Tensor], Tensor]:
    """From outputs (members, outputs, records) and the records' rows to every member's mean loss
    over labels that are present.

    Cross-entropy over the member's own classes, squared error of a standardised number. Both are
    written for all members: to the one a number is a class that is missing everywhere, to the other
    a class is a missing number.
    """
    none = np.full(len(targets[0].labels), np.nan)
    codes = _rows([t.labels if t.classes else none for t in targets], -1).long().to(like.device)
    numbers = _rows([none if t.classes else _standardised(t.labels) for t in targets], np.nan)
    numbers, member = numbers.to(like), torch.tensor(which, device=like.device)
    own = torch.tensor([target.classes for target in targets], device=like.device)[member]
    absent = torch.arange(int(max(*own, 1)), device=like.device) >= own.clamp(min=1)[:, None]
    absent = torch.zeros_like(absent, dtype=like.dtype).masked_fill_(absent, -math.inf)[:, :, None]

    def of_classes(out: Tensor, rows: Tensor) -> Tensor:
        wanted = codes[:, rows][member]
        each = F.cross_entropy(out + absent, wanted, ignore_index=-1, reduction="none")
        return each.sum(1) / (wanted >= 0).sum(1).clamp(min=1)

    def of_numbers(out: Tensor, rows: Tensor) -> Tensor:
        wanted = numbers[:, rows][member]
        present = wanted.isfinite()
        each = torch.where(present, out[:, 0] - wanted.nan_to_num(), 0.0).square()
        return each.sum(1) / present.sum(1).clamp(min=1)

    if all(own):
        return of_classes
    if not any(own):
        return of_numbers
    return lambda out, rows: of_classes(out, rows) + of_numbers(out, rows)


def _rows(labels: Sequence[Array], missing: float) -> Tensor:
    """Labels as rows (targets, n), with one sign for what is missing."""
    return torch.stack([torch.as_tensor(np.where(has_label(y), y, missing)) for y in labels])


def _standardised(labels: Array) -> Array:
    mean, deviation = mean_and_deviation(labels)
    return (labels - mean) / deviation


def _score(target: Target, answers: Array) -> float:
    """A member that has diverged is never the best."""
    if not np.isfinite(answers).all():
        return -math.inf
    return ranking_score(target.select_labels, answers)


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
