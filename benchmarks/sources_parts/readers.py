"""Attackers who come afterwards: they learn from released records of *attack*, are chosen on
*select* and counted on *test*."""

from __future__ import annotations

import dataclasses
import fcntl
import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from veil_parts.attackers import Scores, figure, guesses, perceptrons, read

from privet.nets import convolutions
from privet.nets.resnet import Jitter, ResNet
from sources_parts.learned import Bench, Draws, Learned
from sources_parts.recorded import Lessons

# Sides of the maps that perceptrons see: their first layer would otherwise be most of the work.
POOLED = 8
TOP_RATE = 2e-3


def asked(bench: Bench, learned: Learned, epochs: int, width: float = 0.5) -> dict[str, Any]:
    """What is read of each private attribute, by attacker, and of each task."""
    draws = Draws(learned, bench.raw)
    sizes = {name: bench.data.attribute(name).classes for name in bench.truth}
    private = {name: sizes[name] for name in bench.private}
    tasks = {name: sizes[name] for name in bench.tasks}
    plain = _table_1(learned, width)
    residual = _resnet(learned, width, _raw_start(bench, epochs, width))
    # As the sources do: from the records that the release learned from.
    from_fit = network(draws, bench, private, epochs, plain, "fit")[0]
    seen: dict[str, dict[str, Scores]] = {
        "resnet": network(draws, bench, private, epochs, residual)[0],
        "table 1": network(draws, bench, private, epochs, plain)[0],
    }
    members = perceptrons(_pooled(draws), bench.truth, private, max(1, epochs // 2))
    for place in range(len(next(iter(members.values())))):
        seen[f"perceptron {place + 1}"] = {name: members[name][place] for name in private}
    on_tasks = network(draws, bench, tasks, epochs, _resnet(learned, width))[0] if tasks else {}
    return {
        "private": {
            name: {
                **_attacked(bench, name, {key: some[name] for key, some in seen.items()}),
                "from fit": _figure(bench, name, from_fit[name]),
            }
            for name in private
        },
        "tasks": {name: _figure(bench, name, scores) for name, scores in on_tasks.items()},
    }


def _attacked(bench: Bench, name: str, seen: dict[str, Scores]) -> dict[str, Any]:
    figures = {key: _figure(bench, name, scores) for key, scores in seen.items()}
    worst = max(figures, key=lambda key: figures[key]["select"])
    return {"attackers": figures, "worst": {"by": worst, **figures[worst]}}


def _figure(bench: Bench, name: str, scores: Scores) -> dict[str, float]:
    truth, classes, here = bench.known[name], bench.data.attribute(name).classes, _here(scores)
    said = guesses(here, truth["select"])[1]
    known = truth["test"] >= 0
    plain = 100 * float((said[known] == truth["test"][known]).float().mean())
    return {**dataclasses.asdict(figure(here, truth, classes)), "plain": plain}


def _here(scores: Scores) -> Scores:
    """In memory, beside `bench.known`."""
    return Scores(scores.select.cpu(), scores.test.cpu())


def network(
    draws: Draws,
    bench: Bench,
    classes: Mapping[str, int],
    epochs: int,
    build: Callable[[int], nn.Module],
    part: str = "attack",
    size: int = 512,
) -> tuple[dict[str, Scores], nn.Module]:
    """A new network with a head for each label, taught on a part; scores are those of its best
    state on *select*."""
    names, sizes, truth = list(classes), list(classes.values()), bench.truth
    net = build(sum(sizes)).to(bench.device, memory_format=torch.channels_last)  # type: ignore[call-overload]

    def loss(index: Tensor) -> Tensor:
        scores = net(draws.for_learning(part, index)).split(sizes, 1)
        losses = [
            F.cross_entropy(s.float(), truth[n][part][index], ignore_index=-1)
            for n, s in zip(names, scores, strict=True)
        ]
        return torch.stack(losses).sum()

    steady = not draws.learned.noisy
    learner = Lessons(net, loss, TOP_RATE, 2e-2, bench.device, steady)
    count = len(bench.raw[part])
    size = min(size, count)
    steps, best = epochs * max(1, count // size), dict[str, tuple[float, Scores]]()
    for step in range(steps):
        done = step / steps
        factor = min(done / 0.1, 1.0) * 0.5 * (1 + math.cos(math.pi * done)) + 1e-3
        learner.step(torch.randint(0, count, (size,), device=bench.device), factor)
        if (step + 1) % max(1, steps // 5) == 0 or step + 1 == steps:
            for name, some in read(net.eval(), draws, names, sizes).items():
                said = _here(some)
                select = figure(said, bench.known[name], classes[name]).select
                if name not in best or select > best[name][0]:
                    best[name] = (select, said)
    return {name: scores for name, (_, scores) in best.items()}, net


def _raw_start(bench: Bench, epochs: int, width: float) -> dict[str, Tensor]:
    """A residual network taught on raw records of *attack*, once for all rows of a question: whoever
    attacks a release owns those too."""
    shape = tuple(bench.raw["attack"].shape[1:])
    key = f"raw-{'-'.join(bench.private)}-{shape[1]}-{width}.pt"
    with (bench.folder / f"{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = bench.folder / key
        if not path.exists():
            raw = Learned(nn.Identity(), lambda x: x.float() / 127.5 - 1, shape, True, False)
            classes = {name: bench.data.attribute(name).classes for name in bench.private}
            build = _resnet(raw, width)
            net = network(Draws(raw, bench.raw), bench, classes, epochs, build)[1]
            torch.save(net.state_dict(), path)
        saved: dict[str, Tensor] = torch.load(path, bench.device, weights_only=True)
        return saved


def _resnet(
    learned: Learned, width: float, start: dict[str, Tensor] | None = None
) -> Callable[[int], nn.Module]:
    def build(outputs: int) -> nn.Module:
        parts = OrderedDict[str, nn.Module](
            front=Jitter(2) if learned.record else nn.Identity(),
            standard=nn.BatchNorm2d(learned.shape[0], affine=False),
            net=ResNet(learned.shape, outputs, width, 0.2),
        )
        net = nn.Sequential(parts)
        own = net.state_dict()
        fits = {
            key: value.to(own[key].device)
            for key, value in (start or {}).items()
            if key.startswith(("net.body", "net.head")) and own[key].shape == value.shape
        }
        net.load_state_dict(own | fits)
        return net

    return build


def _table_1(learned: Learned, width: float) -> Callable[[int], nn.Module]:
    """The network of TIPRDC's Table 1 that reads features; of whole pictures, with its extractor
    before it: a plain convolutional network, as the sources' attackers are."""

    def build(outputs: int) -> nn.Module:
        if not learned.record:
            return convolutions.Classifier(learned.shape, outputs, width)
        extractor = convolutions.Extractor(learned.shape, width)
        return nn.Sequential(
            Jitter(2), extractor, convolutions.Classifier(extractor.shape, outputs, width)
        )

    return build


def _pooled(draws: Draws) -> Callable[[str, Tensor | None], Tensor]:
    def draw(part: str, index: Tensor | None) -> Tensor:
        z = draws(part, index)
        if z.dim() == 4 and z.shape[1] > 8:
            z = F.adaptive_avg_pool2d(z, POOLED)
        elif z.dim() == 4:
            z = F.adaptive_avg_pool2d(z, min(z.shape[2], 4 * POOLED))
        return z.flatten(1)

    return draw


def rebuilt(bench: Bench, learned: Learned, epochs: int, width: float) -> dict[str, Any]:
    """The extractor reversed, taught on *attack* to give pictures back: mean PSNR on *test*, of the
    state that is best on *select*; and a few pictures."""
    draws, raw = Draws(learned, bench.raw), bench.raw
    shape = tuple(raw["attack"].shape[1:])
    net = convolutions.Decoder(shape, learned.shape, width).to(bench.device)

    def loss(index: Tensor) -> Tensor:
        made = net(draws("attack", index)).float() / 255
        return (made - raw["attack"][index].float() / 255).square().mean()

    learner = Lessons(net, loss, 3e-3, 0.0, bench.device, not learned.noisy)
    count = len(raw["attack"])
    size = min(256, count)
    steps, best = epochs * max(1, count // size), dict[str, float]()
    for step in range(steps):
        factor = 0.5 * (1 + math.cos(math.pi * step / steps))
        learner.step(torch.randint(0, count, (size,), device=bench.device), factor)
        if (step + 1) % max(1, steps // 4) == 0 or step + 1 == steps:
            select, test = (_psnr(net.eval(), draws(p, None), raw[p]) for p in ("select", "test"))
            if select > best.get("select", -math.inf):
                best = {"select": select, "rebuilt": test}
    return {"rebuilt": best["rebuilt"]} | {"net": net.eval()}


@torch.no_grad()
def _psnr(net: nn.Module, z: Tensor, x: Tensor) -> float:
    made = torch.cat([net(some).float().round().clamp(0, 255) for some in z.split(500)])
    square = (made - x.float()).flatten(1).square().mean(1).clamp(min=1e-3)
    return float((10 * torch.log10(255.0**2 / square)).mean())
