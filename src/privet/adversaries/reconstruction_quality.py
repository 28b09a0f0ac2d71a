"""How close rebuilt records are to the true ones.

A ratio of sums over records, with an interval over people: the mean over pictures of each picture's
PSNR, SSIM and MS-SSIM; the share of words that are right; or the share of variance explained.
Chance is what the best single record reaches, one that is shown whatever was released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from privet.adversaries.released import Released
from privet.data.dataset import Array
from privet.data.schema import PAD, Schema, TextSchema
from privet.evidence.distortion import CAP, WEIGHTS, ms_ssim, psnr, scales, ssim
from privet.evidence.figures import Figure
from privet.evidence.person_intervals import bootstrap_people
from privet.nets.similarity import similarity

AT_ONCE = 256
"""Records rebuilt in one go."""
FEW = 10
"""Fewer people than this do not show how far apart people are."""
CLIMB = 50
"""Steps in which the best single picture is looked for."""

Rebuild = Callable[[Tensor], Tensor]
"""Released records to records as the schema encodes them."""


@dataclass(frozen=True)
class Measure:
    """How close rebuilt records are: `sums` gives two numbers per record, (n, 2); the measure is
    the ratio of their totals."""

    words: str
    sums: Callable[[Tensor, Tensor, Tensor], Array]
    """Of rebuilt records, true ones and the mean record."""
    unit: str = "share"
    bounds: tuple[float, float] = (0.0, 1.0)
    """What its values lie between; of a variance, where the best single record is the least anybody
    does."""
    per_record: bool = False
    """Whether it is a mean of one number per record."""


def _each(measure: Callable[[Array, Array], Array]) -> Callable[[Tensor, Tensor, Tensor], Array]:
    def of(made: Tensor, x: Tensor, mean: Tensor) -> Array:
        each = measure(made.cpu().numpy(), x.cpu().numpy())
        return np.stack([each, np.ones(len(x))], 1)

    return of


def _explained(made: Tensor, x: Tensor, mean: Tensor) -> Array:
    """Variance around the mean record of *attack*, less the squared error; and that variance."""
    variance = (x.double() - mean).square().flatten(1).sum(1)
    error = (made.double() - x).square().flatten(1).sum(1)
    return torch.stack([variance - error, variance], 1).cpu().numpy()


def _right(made: Tensor, x: Tensor, _mean: Tensor) -> Array:
    """Words that are right at their place, and words."""
    width = min(made.shape[1], x.shape[1])
    word = x != PAD
    right = (made[:, :width] == x[:, :width]) & word[:, :width]
    return torch.stack([right.sum(1), word.sum(1)], 1).double().cpu().numpy()


MEASURES: dict[str, Measure] = {
    "psnr": Measure("PSNR", _each(psnr), "dB", (0.0, CAP), per_record=True),
    "ssim": Measure("SSIM", _each(ssim), bounds=(-1.0, 1.0), per_record=True),
    "ms_ssim": Measure("MS-SSIM", _each(ms_ssim), per_record=True),
    "words": Measure("share of words rebuilt", _right),
    "variance_explained": Measure("share of variance explained", _explained),
}


def measures_of(schema: Schema) -> list[str]:
    """The names of the measures of such records, the first one to choose by."""
    return {"image": ["psnr", "ssim", "ms_ssim"], "text": ["words"]}.get(
        schema.modality, ["variance_explained"]
    )


def ratio(sums: Array) -> float:
    """The measure: the total of the first sum over that of the second."""
    part, whole = sums.sum(0)
    return float(part / whole) if whole > 0 else 0.0


def sums_of(
    made: Rebuild | Tensor, part: Released, mean: Tensor, names: Sequence[str]
) -> list[Array]:
    """The sums of each measure, per record of a part, for rebuilt records or for a single one that
    stands for all."""
    found: list[list[Array]] = [[] for _ in names]
    for x in _inputs(part):
        guess = (
            made.expand(len(x), *made.shape)
            if isinstance(made, Tensor)
            else made(part.release.forward(x))
        )
        x = part.release.schema.own(x)
        for name, parts in zip(names, found, strict=True):
            parts.append(MEASURES[name].sums(guess, x, mean))
    return [np.concatenate(parts) for parts in found]


def _originals(part: Released) -> Iterator[Tensor]:
    """The records that are to be rebuilt, without what the release was given beside them."""
    yield from (part.release.schema.own(x) for x in _inputs(part))


def _inputs(part: Released, size: int = AT_ONCE) -> Iterator[Tensor]:
    yield from (
        batch.x
        for batch in part.feed.batches(
            [np.arange(s, min(s + size, len(part))) for s in range(0, len(part), size)]
        )
    )


def figure(name: str, sums: Array, chance: float, people: Array, schema: Schema) -> Figure:
    """The measure with its interval over people, beside chance."""
    measure, value = MEASURES[name], ratio(sums)
    bounds = (min(measure.bounds[0], value), measure.bounds[1])
    if measure.per_record and len(np.unique(people)) >= FEW:
        # A person like none seen is taken to lie among those seen: beside 100 dB every interval
        # would reach down to chance.
        bounds = (float(sums[:, 0].min()), float(sums[:, 0].max()))
    low, high = bootstrap_people(
        people, sums, lambda totals: totals[:, 0] / totals[:, 1], bounds=bounds
    )
    note = ""
    if name == "psnr":
        note = f"The mean over pictures; a picture that is rebuilt exactly counts as {CAP:.0f} dB."
    if name == "ms_ssim" and (fit := scales(*cast(tuple[int, int], schema.shape[1:]))) < len(
        WEIGHTS
    ):
        note = f"Pictures of this size have {fit} of the {len(WEIGHTS)} scales; their weights were normalised to sum to one."
    return Figure(
        value,
        low,
        high,
        len(sums),
        chance,
        measure.unit,
        "lower",
        "bootstrap over people 95 %",
        measure.words,
        note,
    )


def constants_of(seen: Released, select: Released, schema: Schema, seed: int) -> dict[str, Tensor]:
    """The mean record of *attack*, and for every measure the best single record, found there and
    chosen on *select*.

    Of numbers that is the mean, of texts the most frequent word at every place. Of pictures it is
    the mean as well or, where *select* says so, a picture that climbed from it: the mean is best
    for the squared error, not for its logarithm or for SSIM.
    """
    if schema.modality == "text":
        return {
            "mean": torch.zeros(0),
            "words": _frequent(seen, cast(TextSchema, schema).vocabulary),
        }
    mean = sum(x.double().sum(0) for x in _originals(seen)) / len(seen)
    assert isinstance(mean, Tensor)
    mean = mean.float()
    if schema.modality != "image":
        return {"mean": mean, "variance_explained": mean}
    closer = {
        "psnr": _climb(seen, mean, _less_error, seed),
        "ssim": _climb(seen, mean, lambda a, b: similarity(a, b)[0].mean(), seed),
    }
    found = {"mean": mean}
    for name in measures_of(schema):
        tried = [mean.round(), closer["psnr" if name == "psnr" else "ssim"]]
        found[name] = max(
            tried, key=lambda picture: ratio(sums_of(picture, select, mean, [name])[0])
        )
    return found


def _frequent(seen: Released, vocabulary: int) -> Tensor:
    ids = np.asarray(seen.feed.inputs[:])
    places = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
    there = ids != PAD
    counts = np.bincount(
        places[there] * vocabulary + ids[there], minlength=ids.shape[1] * vocabulary
    )
    return torch.as_tensor(counts.reshape(-1, vocabulary).argmax(1), device=seen.feed.device)


def _less_error(made: Tensor, x: Tensor) -> Tensor:
    return -(made - x).square().flatten(1).mean(1).clamp(min=1e-6).log().mean()


def _climb(
    seen: Released, start: Tensor, closeness: Callable[[Tensor, Tensor], Tensor], seed: int
) -> Tensor:
    """The single picture to which those of *attack* are closest, from `start` with Adam and a
    falling rate."""
    picture = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([picture], lr=4.0)
    rate = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, CLIMB)
    random = np.random.default_rng(seed)
    for batch in seen.feed.batches(
        [random.choice(len(seen), min(32, len(seen)), replace=False) for _ in range(CLIMB)]
    ):
        x = seen.release.schema.own(batch.x).float()
        optimiser.zero_grad()
        (-closeness(picture.unsqueeze(0), x)).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        rate.step()
    return picture.detach().round().clamp(0, 255)
