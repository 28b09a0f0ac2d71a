"""Readers of codes and of decoded records, all of them new to the release, for benchmarks/veil.py.

Every reader learns from *attack* with fresh noise at every step, is chosen on *select* and counted
on *test*. A reader gives scores (n, classes); several labels are read side by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.evidence.intervals import balanced_interval
from privet.nets.code import body
from privet.nets.convolutions import prepare
from privet.nets.device import precision
from privet.nets.resnet import Jitter
from privet.nets.veil import Veil

PARTS = ("attack", "select", "test")
# Hidden layers, dropout and weight decay of the perceptrons.
MEMBERS = (((512, 512), 0.2, 1e-2), ((256,), 0.5, 1e-1), ((512, 512), 0.5, 1e-1))
# Draws of a record that attackers choose from, where a new one takes a network; of means, half.
BANK = 4
# Codes decoded at once: of thousands, a decoder's maps fill a GPU.
AT_ONCE = 512
SHRINKAGE = (0.01, 0.05, 0.2, 0.5, 0.9)
# Rates of the kernel machine, in inverse squared deviations, and its ridges.
KERNEL_RATES, RIDGES = (0.12, 0.25, 0.6), (0.5, 2.0, 8.0)


@dataclass(frozen=True)
class Scores:
    """What a reader says of *select* and *test*: (n, classes) each."""

    select: Tensor
    test: Tensor


@dataclass(frozen=True)
class Figure:
    """Balanced accuracy on *test* in per cent, its 95 % interval, and that on *select*."""

    value: float
    low: float
    high: float
    select: float


class Codes:
    """What a release makes of the records of a part, before noise: draws codes as often as asked.

    Parameters:
        veil: The release's network.
        x: Encoded records, on the device.
    """

    def __init__(self, veil: Veil, x: Tensor, size: int = 512) -> None:
        self.veil = veil
        rows = []
        with torch.inference_mode():
            for start in range(0, len(x), size):
                part = x[start : start + size]
                own = prepare(veil.schema.own(part))
                u = veil.value(part, own)
                rows.append((*veil.encode(own, u), u))
        mean, log_variance, u = (torch.cat(column).clone() for column in zip(*rows, strict=True))
        self.mean, self.deviation, self.u = mean, torch.exp(0.5 * log_variance), u
        self.nats = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1)

    def draw(self, index: Tensor | None = None, releases: int = 1) -> Tensor:
        """Codes with fresh noise; with several releases, their mean."""
        mean, deviation, u = (
            (self.mean, self.deviation, self.u)
            if index is None
            else (self.mean[index], self.deviation[index], self.u[index])
        )
        # The mean of Gaussian draws is a draw with a smaller deviation; maps of codes are affine.
        z = mean + deviation / math.sqrt(releases) * torch.randn_like(mean)
        return self.veil.moved(z, u) if self.veil.transport else z

    def pictures(self, index: Tensor | None = None, releases: int = 1) -> Tensor:
        with torch.no_grad():
            parts = self.draw(index, releases).split(AT_ONCE)
            return torch.cat([self.veil.draw(z).float() for z in parts])


class Pictures(Codes):
    """The same where records are released, in their own form, and no codes: an attacker has to
    find the code of a record first, by a network that learned it from pairs of her own. Every
    record is drawn a few times (`BANK`), and she gets one of these.

    Parameters:
        veil: The release's network.
        x: Encoded records, on the device.
    """

    # Records to standardised codes; `find_codes` teaches it.
    finder: nn.Module

    def __init__(self, veil: Veil, x: Tensor) -> None:
        super().__init__(veil, x)
        self.banks: dict[tuple[str, int], Tensor] = {}

    def code(self, index: Tensor | None) -> Tensor:
        """The codes behind records, which are not released."""
        return super().draw(index)

    def pictures(self, index: Tensor | None = None, releases: int = 1) -> Tensor:
        """Released records; of several releases, their mean."""
        return self._some("records", releases, index)

    def draw(self, index: Tensor | None = None, releases: int = 1) -> Tensor:
        """Codes as they are found in released records."""
        return self._some("codes", releases, index)

    def _some(self, kind: str, releases: int, index: Tensor | None) -> Tensor:
        everybody = torch.arange(len(self.mean), device=self.mean.device)
        if (kind, releases) not in self.banks:
            made = self._released if kind == "records" else self._found
            rows = [made(part, releases) for part in everybody.split(512)]
            self.banks[kind, releases] = torch.cat(rows, 1)
        bank, index = self.banks[kind, releases], everybody if index is None else index
        return bank[torch.randint(0, len(bank), index.shape, device=index.device), index].float()

    @torch.no_grad()
    def _released(self, index: Tensor, releases: int) -> Tensor:
        with precision(index.device):
            drawn = [
                [self.veil.draw(self.code(index)).float() for _ in range(releases)]
                for _ in range(BANK if releases == 1 else BANK // 2)
            ]
        made = torch.stack([torch.stack(each).mean(0) for each in drawn])
        return made.bfloat16() if index.is_cuda else made

    @torch.no_grad()
    def _found(self, index: Tensor, releases: int) -> Tensor:
        self.pictures(index[:1], releases)
        with precision(index.device):
            records = self.banks["records", releases][:, index].float()
            return torch.stack([self.finder(one).float() for one in records])


def find_codes(own: Pictures, schema, epochs: int, width: float = 0.5) -> nn.Module:  # type: ignore[no-untyped-def]
    """A network that finds the codes behind released records, learned from pairs of *attack*."""
    device, dims = own.mean.device, own.mean.shape[1]
    net = body(schema, dims, width, 0.0).to(device, memory_format=torch.channels_last)
    some = own.code(None)
    mean, deviation = some.mean(0), some.std(0).clamp(min=1e-6)
    optimiser = torch.optim.AdamW(net.parameters(), lr=1.5e-3, weight_decay=1e-2)
    size = min(256, len(some))
    steps = epochs * max(1, len(some) // size)
    for step in range(steps):
        rate = min(step / steps / 0.1, 1.0) * 0.5 * (1 + math.cos(math.pi * step / steps)) + 1e-3
        optimiser.param_groups[0]["lr"] = 1.5e-3 * rate
        index = torch.randint(0, len(some), (size,), device=device)
        z = own.code(index)
        with torch.no_grad():
            drawn = own.veil.draw(z).float()
        with precision(device):
            found = net.train()(drawn)
            loss = F.mse_loss(found.float(), (z - mean) / deviation)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
    return net.eval()


Draw = Callable[[str, Tensor | None], Tensor]


def balanced(truth: Tensor, guess: Tensor, classes: int) -> float:
    """Balanced accuracy in per cent over the known labels."""
    right = [(guess[truth == c] == c).float().mean() for c in range(classes) if (truth == c).any()]
    return 100 * float(torch.stack(right).mean())


def threshold(scores: Tensor, truth: Tensor) -> float:
    """Of two classes: the margin that is best on these records."""
    margin = (scores[:, 1] - scores[:, 0])[truth >= 0]
    known = truth[truth >= 0]
    order = torch.argsort(margin)
    ones = (known[order] == 1).float()
    above = ones.flip(0).cumsum(0).flip(0) / ones.sum().clamp(min=1)
    below = (1 - ones).cumsum(0) / (1 - ones).sum().clamp(min=1)
    best = int((above[1:] + below[:-1]).argmax())
    return float((margin[order[best]] + margin[order[best + 1]]) / 2)


def guesses(scores: Scores, truth: Tensor) -> tuple[Tensor, Tensor]:
    """Guesses for *select* and *test*; of two classes at the threshold that is best on *select*."""
    if scores.select.shape[1] != 2:
        return scores.select.argmax(1), scores.test.argmax(1)
    at = threshold(scores.select, truth)
    return tuple(  # type: ignore[return-value]
        ((some[:, 1] - some[:, 0]) > at).long() for some in (scores.select, scores.test)
    )


def figure(scores: Scores, truth: Mapping[str, Tensor], classes: int) -> Figure:
    select, test = guesses(scores, truth["select"])
    known = truth["test"]
    n = [int((known == c).sum()) for c in range(classes)]
    right = [int(((known == c) & (test == c)).sum()) for c in range(classes)]
    interval = balanced_interval(right, n)
    return Figure(
        balanced(known, test, classes),
        100 * interval.low,
        100 * interval.high,
        balanced(truth["select"], select, classes),
    )


def pooled(
    scores: Scores, truth: Mapping[str, Tensor], people: np.ndarray, records: int = 5
) -> dict[str, float] | None:
    """Balanced accuracy per person with `records` records each, whose log-odds are summed."""
    if scores.test.shape[1] != 2:
        return None
    at = threshold(scores.select, truth["select"])
    margin = (scores.test.log_softmax(1)[:, 1] - scores.test.log_softmax(1)[:, 0] - at).cpu()
    known, sums, values = truth["test"].cpu().numpy(), [], []
    for person in np.unique(people):
        rows = np.flatnonzero(people == person)[:records]
        if len(rows) == records and (known[rows] >= 0).all():
            sums.append(float(margin[rows].sum()))
            values.append(int(np.round(known[rows].mean())))
    if len(set(values)) < 2:
        return None
    guess, value = np.array(sums) > 0, np.array(values)
    n = [int((value == c).sum()) for c in (0, 1)]
    right = [int(((value == c) & (guess == c)).sum()) for c in (0, 1)]
    interval = balanced_interval(right, n)
    each = [r / max(1, k) for r, k in zip(right, n, strict=True)]
    return {
        "value": 50 * sum(each),
        "low": 100 * interval.low,
        "high": 100 * interval.high,
        "people": len(value),
    }


class Stack(nn.Module):
    """Perceptrons side by side, one for each label and member: (members, n, d) to scores."""

    def __init__(self, count: int, sizes: Sequence[int], dropout: float, device: torch.device):
        super().__init__()
        self.dropout = dropout
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for inside, outside in pairwise(sizes):
            scale = math.sqrt(2 / inside)
            self.weights.append(torch.randn(count, inside, outside, device=device) * scale)
            self.biases.append(torch.zeros(count, 1, outside, device=device))

    def forward(self, z: Tensor) -> Tensor:
        h = z.unsqueeze(0).expand(len(self.weights[0]), -1, -1)
        last = len(self.weights) - 1
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = torch.baddbmm(bias, h, weight)
            if number < last:
                h = F.dropout(torch.relu(h), self.dropout, self.training)
        return h


def perceptrons(
    draw: Draw, truth: Mapping[str, Mapping[str, Tensor]], classes: Mapping[str, int], epochs: int
) -> dict[str, list[Scores]]:
    """For every label the scores of each member at its best on *select*."""
    names = list(classes)
    most = max(classes.values())
    first = draw("attack", None)
    mean, deviation = first.mean(0), first.std(0).clamp(min=1e-6)
    device = first.device
    labels = torch.stack([truth[name]["attack"] for name in names])
    mask = torch.full((len(names), 1, most), 0.0, device=device)
    weights = torch.zeros(len(names), most, device=device)
    for row, name in enumerate(names):
        mask[row, :, classes[name] :] = -1e4
        count = torch.bincount(labels[row][labels[row] >= 0], minlength=most).float()
        weights[row] = torch.where(count > 0, count.sum() / count.clamp(min=1), 0.0)
    results: dict[str, list[Scores]] = {name: [] for name in names}
    for hidden, dropout, decay in MEMBERS:
        stack = Stack(len(names), (first.shape[1], *hidden, most), dropout, device)
        best: dict[str, tuple[float, Scores]] = {}
        optimiser = torch.optim.AdamW(stack.parameters(), lr=2e-3, weight_decay=decay)
        size = 512
        steps = epochs * max(1, len(first) // size)
        for step in range(steps):
            optimiser.param_groups[0]["lr"] = 2e-3 * 0.5 * (1 + math.cos(math.pi * step / steps))
            index = torch.randint(0, len(first), (size,), device=device)
            scores = stack.train()((draw("attack", index) - mean) / deviation) + mask
            wanted = labels[:, index]
            weight = weights.gather(1, wanted.clamp(min=0)) * (wanted >= 0)
            loss = F.cross_entropy(
                scores.flatten(0, 1), wanted.clamp(min=0).flatten(), reduction="none"
            )
            loss = (loss.view_as(weight) * weight).sum(1) / weight.sum(1).clamp(min=1)
            optimiser.zero_grad(set_to_none=True)
            loss.sum().backward()
            optimiser.step()
            if (step + 1) % max(1, steps // 8) == 0 or step + 1 == steps:
                _keep_best(stack.eval(), draw, mean, deviation, mask, truth, classes, best)
        for name in names:
            results[name].append(best[name][1])
    return results


@torch.no_grad()
def _keep_best(stack, draw, mean, deviation, mask, truth, classes, best) -> None:  # type: ignore[no-untyped-def]
    parts = {
        part: (stack((draw(part, None) - mean) / deviation) + mask).float()
        for part in ("select", "test")
    }
    for row, (name, count) in enumerate(classes.items()):
        scores = Scores(parts["select"][row, :, :count], parts["test"][row, :, :count])
        select, _ = guesses(scores, truth[name]["select"])
        value = balanced(truth[name]["select"], select, count)
        if name not in best or value > best[name][0]:
            best[name] = (value, scores)


def quadratic(draw: Draw, truth: Mapping[str, Tensor], classes: int) -> list[Scores]:
    """Quadratic discriminants with different shrinkage towards one covariance for all."""
    z, labels = torch.cat([draw("attack", None) for _ in range(3)]), truth["attack"].repeat(3)
    parts = {part: draw(part, None).double() for part in ("select", "test")}
    centred = torch.cat([z[labels == c] - z[labels == c].mean(0) for c in range(classes)]).double()
    common = centred.T @ centred / len(centred)
    ridge = 1e-4 * common.diagonal().mean() * torch.eye(len(common), device=z.device).double()
    scores = []
    for share in SHRINKAGE:
        columns: dict[str, list[Tensor]] = {"select": [], "test": []}
        for c in range(classes):
            some = z[labels == c].double()
            spread = (1 - share) * torch.cov(some.T) + share * common + ridge
            inverse, sign = torch.linalg.inv(spread), torch.linalg.slogdet(spread)
            for part, codes in parts.items():
                apart = codes - some.mean(0)
                columns[part].append(-0.5 * (((apart @ inverse) * apart).sum(1) + sign[1]))
        scores.append(
            Scores(*(torch.stack(columns[part], 1).float() for part in ("select", "test")))
        )
    return scores


def kernel_machine(draw: Draw, truth: Mapping[str, Tensor], classes: int) -> Scores:
    """The kernel ridge machine that is best on *select*: every value against the others, all values
    weighing the same."""
    first = draw("attack", None).float()
    mean, deviation = first.mean(0), first.std(0).clamp(min=1e-6)
    own = {part: (draw(part, None).float() - mean) / deviation for part in PARTS}
    labels = truth["attack"]
    own["attack"], labels = own["attack"][labels >= 0], labels[labels >= 0]
    apart = {part: torch.cdist(z, own["attack"]).square() / z.shape[1] for part, z in own.items()}
    wanted = 2 * F.one_hot(labels, classes).float() - 1
    weight = (len(labels) / (classes * torch.bincount(labels, minlength=classes)))[labels]
    found = []
    for rate in KERNEL_RATES:
        kernel = torch.exp(-rate * apart["attack"])
        for ridge in RIDGES:
            factor = torch.linalg.cholesky(kernel + torch.diag(ridge / weight))
            ways = torch.cholesky_solve(wanted, factor)
            found.append(
                Scores(*(torch.exp(-rate * apart[part]) @ ways for part in ("select", "test")))
            )
    return max(found, key=lambda one: figure(one, truth, classes).select)


def network(
    schema,  # type: ignore[no-untyped-def]
    draw: Draw,
    truth: Mapping[str, Mapping[str, Tensor]],
    classes: Mapping[str, int],
    epochs: int,
    width: float = 0.5,
    size: int = 256,
) -> tuple[dict[str, Scores], nn.Module]:
    """A network on records (raw or decoded), with a head for each label; the best on *select*."""
    names, sizes = list(classes), list(classes.values())
    device = truth[names[0]]["attack"].device
    net = body(schema, sum(sizes), width, 0.2).to(device, memory_format=torch.channels_last)
    jitter = Jitter(2).to(device) if schema.modality == "image" else nn.Identity()
    optimiser = torch.optim.AdamW(net.parameters(), lr=1.5e-3, weight_decay=2e-2)
    count = len(truth[names[0]]["attack"])
    size = min(size, count)
    weights = {name: _class_weights(truth[name]["attack"], classes[name]) for name in names}
    steps, best = epochs * max(1, count // size), {}
    for step in range(steps):
        done = step / steps
        rate = min(done / 0.1, 1.0) * 0.5 * (1 + math.cos(math.pi * done)) + 1e-3
        optimiser.param_groups[0]["lr"] = 1.5e-3 * rate
        index = torch.randint(0, count, (size,), device=device)
        with precision(device):
            scores = net.train()(jitter(draw("attack", index)))
            loss = sum(
                F.cross_entropy(s.float(), truth[n]["attack"][index], weights[n], ignore_index=-1)
                for n, s in zip(names, scores.split(sizes, 1), strict=True)
            )
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        if (step + 1) % max(1, steps // 4) == 0 or step + 1 == steps:
            for name, scores in read(net.eval(), draw, names, sizes).items():
                select, _ = guesses(scores, truth[name]["select"])
                value = balanced(truth[name]["select"], select, classes[name])
                if name not in best or value > best[name][0]:
                    best[name] = (value, scores)
    return {name: scores for name, (_, scores) in best.items()}, net.eval()


@torch.no_grad()
def read(
    net: nn.Module, draw: Draw, names: Sequence[str], sizes: Sequence[int], size: int = 1000
) -> dict[str, Scores]:
    """What a network says of *select* and *test*."""
    said: dict[str, list[Tensor]] = {"select": [], "test": []}
    for part, rows in said.items():
        records = draw(part, None)
        with precision(records.device):
            rows.extend(net(some).float() for some in records.split(size))
    split = {part: torch.cat(rows).split(list(sizes), 1) for part, rows in said.items()}
    return {
        name: Scores(split["select"][place], split["test"][place])
        for place, name in enumerate(names)
    }


def _class_weights(labels: Tensor, classes: int) -> Tensor:
    count = torch.bincount(labels[labels >= 0], minlength=classes).float()
    return torch.where(count > 0, count.sum() / (classes * count.clamp(min=1)), 0.0)
