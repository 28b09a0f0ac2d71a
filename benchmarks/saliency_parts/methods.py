"""What a service looks at: per picture, how much each pixel matters, and how well the service does
on the pixels that matter most.

Ways to tell: U-Noise's map (1 - m(x): quiet means needed), those of explainers.py, and chance as a
control. They are compared by one rule. Keep some pixels, obscure the rest, ask the frozen service,
and count Dice (of masks) or right answers (of classes):

    insertion(p) = mean over pictures of score(service(x with the top p kept)),
    deletion(p)  = the same with the last p kept, so that the top 1 - p is gone,
    area = mean of the curve over p

A good way has a large area of insertion and a small one of deletion (Petsiuk, Das and Saenko, RISE,
BMVC 2018).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from privet.data.dataset import Array
from privet.evidence.figures import Direction, Figure
from privet.evidence.person_intervals import bootstrap_people
from privet.methods.services.service import Service
from privet.methods.unoise import score_of
from privet.nets.unet import NoiseMap

Importance = Callable[[Tensor], Tensor]
"""Pictures (n, channels, height, width) in [-1, 1] to how much each pixel matters, (n, height,
width); more is more."""
Fill = Literal["noise", "grey"]
FILLS: tuple[Fill, ...] = ("noise", "grey")
"""How the other pixels are obscured: by loud noise, as U-Noise does, or by one colour, as occlusion
does."""
Order = Literal["insertion", "deletion"]
ORDERS: tuple[Order, ...] = ("insertion", "deletion")
"""Which pixels are kept: those that matter most, or those that matter least."""
SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def of_map(veil: NoiseMap) -> Importance:
    """U-Noise: one less how much noise the pixel gets."""

    def ask(x: Tensor) -> Tensor:
        with torch.inference_mode():
            return 1 - veil.eval().map(x).squeeze(1)

    return ask


def at_random(seed: int = 0) -> Importance:
    """The control: every pixel matters as chance has it."""
    dice = torch.Generator().manual_seed(seed)

    def ask(x: Tensor) -> Tensor:
        return torch.rand(len(x), *x.shape[2:], generator=dice).to(x.device)

    return ask


def ranks(importance: Tensor, seed: int = 0) -> Tensor:
    """Place of each pixel in the order of importance, 0 first; equals stand in random order, or the
    top row would win.

    >>> ranks(torch.tensor([[[0.1, 0.7], [0.3, 0.2]]]))
    tensor([[[3, 0],
             [1, 2]]])
    """
    flat = importance.flatten(1).cpu()
    shuffled = torch.rand(flat.shape, generator=torch.Generator().manual_seed(seed)).argsort(1)
    order = shuffled.gather(
        1, flat.gather(1, shuffled).argsort(dim=1, descending=True, stable=True)
    )
    return order.argsort(1).view(importance.shape).to(importance.device)


def obscure(
    x: Tensor,
    rank: Tensor,
    share: float,
    fill: Fill,
    grey: Tensor,
    loud: float = 1.0,
    seed: int = 0,
) -> Tensor:
    """The pictures with the first `share` of their pixels as they are, and the others drowned in
    noise or painted grey."""
    kept = (rank < round(share * rank[0].numel())).unsqueeze(1)
    if fill == "grey":
        return torch.where(kept, x, grey.view(1, -1, 1, 1).to(x))
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed)).to(x)
    return torch.where(kept, x, x + loud * noise)


@dataclass(frozen=True)
class Curve:
    """How well the service does on the share of pixels that one way keeps."""

    name: str
    fill: Fill
    order: Order
    shares: tuple[float, ...]
    """Of pixels that are kept."""
    scores: tuple[Figure, ...]
    """One per share: Dice or accuracy, with an interval over pictures."""
    area: Figure
    """The curve's mean height between the first share and the last."""
    each: tuple[float, ...]
    """The same per picture."""


def curve(
    name: str,
    service: Service,
    x: Tensor,
    truth: Tensor,
    rank: Tensor,
    fill: Fill,
    grey: Tensor,
    *,
    order: Order = "insertion",
    shares: Sequence[float] = SHARES,
    loud: float = 1.0,
    people: Array | None = None,
    batch: int = 64,
    seed: int = 0,
) -> Curve:
    """The service on pictures kept by these ranks; `truth` is the masks or classes."""
    if order == "deletion":
        rank = rank[0].numel() - 1 - rank
    rows = []
    with torch.inference_mode():
        for start in range(0, len(x), batch):
            some = slice(start, start + batch)
            shown = [
                obscure(x[some], rank[some], share, fill, grey, loud, seed + start)
                for share in shares
            ]
            rows.append(
                torch.stack(
                    [score_of(service, service(z), truth[some]) for z in shown], dim=1
                ).cpu()
            )
    table = torch.cat(rows).double().numpy()
    table = table[np.isfinite(table).all(1)]
    who = np.arange(len(table)) if people is None else people
    each = np.trapezoid(table, shares, axis=1) / (shares[-1] - shares[0])
    measure = "Dice" if service.attribute.kind == "mask" else "accuracy"
    better: Direction = "higher" if order == "insertion" else "lower"
    scores = tuple(_figure(column, who, measure, better=better) for column in table.T)
    return Curve(
        name,
        fill,
        order,
        tuple(shares),
        scores,
        _figure(each, who, f"{measure}, mean over shares", better=better),
        tuple(each.tolist()),
    )


def margin(one: Curve, other: Curve, people: Array | None = None) -> Figure:
    """How much larger the area of `one` is than that of `other`, on the same pictures."""
    apart = np.asarray(one.each) - np.asarray(other.each)
    return _figure(
        apart,
        np.arange(len(apart)) if people is None else people,
        "difference of areas",
        (-1.0, 1.0),
    )


def _figure(
    values: Array,
    people: Array,
    measure: str,
    bounds: tuple[float, float] = (0.0, 1.0),
    better: Direction = "higher",
) -> Figure:
    inputs = np.c_[values, np.ones(len(values))]
    low, high = bootstrap_people(
        people, inputs, lambda sums: sums[:, 0] / sums[:, 1], bounds=bounds
    )
    return Figure(
        float(values.mean()),
        low,
        high,
        len(values),
        0.0,
        "share",
        better,
        "bootstrap over pictures 95 %",
        measure,
    )


def maps_of(
    ways: Mapping[str, Importance], x: Tensor, batch: int = 16
) -> tuple[dict[str, Tensor], dict[str, float]]:
    """Every way's importance of the pictures, and the seconds it takes for one picture."""
    maps, seconds = {}, {}
    for name, ask in ways.items():
        ask(x[:1])  # what is made once is not a picture's time
        start = time.monotonic()
        maps[name] = torch.cat([ask(x[at : at + batch]) for at in range(0, len(x), batch)])
        if x.is_cuda:
            torch.cuda.synchronize()
        seconds[name] = (time.monotonic() - start) / len(x)
    return maps, seconds


@dataclass(frozen=True)
class Comparison:
    """Several ways on the same pictures: what the page and saliency.json hold."""

    data: str
    task: str
    measure: str
    """Dice or accuracy."""
    raw: Figure
    """Of the service on the pictures as they are."""
    curves: tuple[Curve, ...]
    """One per way, fill and order."""
    seconds: Mapping[str, float]
    """Per way, for one picture."""
    notes: tuple[str, ...] = ()


def compare(
    ways: Mapping[str, Importance],
    service: Service,
    x: Tensor,
    truth: Tensor,
    grey: Tensor,
    *,
    data: str = "",
    loud: float = 1.0,
    people: Array | None = None,
    fills: Sequence[Fill] = FILLS,
    orders: Sequence[Order] = ORDERS,
    shares: Sequence[float] = SHARES,
    notes: Sequence[str] = (),
    seed: int = 0,
) -> tuple[Comparison, dict[str, Tensor]]:
    """The curves of all ways on pictures `x` in [-1, 1], and every way's importance of their
    pixels."""
    maps, seconds = maps_of(ways, x)
    found = [
        curve(
            name,
            service,
            x,
            truth,
            ranks(one, seed),
            fill,
            grey,
            order=order,
            shares=shares,
            loud=loud,
            people=people,
            seed=seed,
        )
        for order in orders
        for fill in fills
        for name, one in maps.items()
    ]
    whole = curve(
        "raw",
        service,
        x,
        truth,
        ranks(x[:, 0], seed),
        "grey",
        grey,
        shares=(0.0, 1.0),
        people=people,
    )
    measure = "Dice" if service.attribute.kind == "mask" else "accuracy"
    return (
        Comparison(
            data,
            service.attribute.name,
            measure,
            whole.scores[-1],
            tuple(found),
            seconds,
            tuple(notes),
        ),
        maps,
    )
