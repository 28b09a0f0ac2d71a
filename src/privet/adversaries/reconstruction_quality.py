"""How close rebuilt records are to the true ones.

A ratio of sums over records, with an interval over people: the mean over pictures of each picture's
PSNR, SSIM and MS-SSIM; the share of words that are right; or the share of variance explained.
Chance is what the best single record reaches, one that is shown whatever was released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
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

# Records rebuilt in one go.
AT_ONCE = 256
# Fewer people than this do not show how far apart people are.
FEWEST_PEOPLE = 10
# Steps in which the best single picture is looked for.
PICTURE_STEPS = 50

# Released records to records as the schema encodes them.
Rebuild = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Measure:
    """How close rebuilt records are: the ratio of the totals of two numbers per record.

    Parameters:
        title: What people call it.
        sums: Of rebuilt records, true ones and the mean record, the two numbers (n, 2).
        unit: Of the measure.
        bounds: What its values lie between; of a variance, where the best single record is the
            least anybody does.
        per_record: Whether it is a mean of one number per record.
    """

    title: str
    sums: Callable[[Tensor, Tensor, Tensor], Array]
    unit: str = "share"
    bounds: tuple[float, float] = (0.0, 1.0)
    per_record: bool = False


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
    batches = []
    for x in _inputs(part):
        if isinstance(made, Tensor):
            rebuilt = made.expand(len(x), *made.shape)
        else:
            rebuilt = made(part.release.forward(x))
        x = part.release.schema.own(x)
        batches.append([MEASURES[name].sums(rebuilt, x, mean) for name in names])
    return [np.concatenate(sums) for sums in zip(*batches, strict=True)]


def _inputs(part: Released) -> Iterator[Tensor]:
    rows = np.split(np.arange(len(part)), range(AT_ONCE, len(part), AT_ONCE))
    return (batch.x for batch in part.feed.batches(rows))


def figure(name: str, sums: Array, chance: float, people: Array, schema: Schema) -> Figure:
    """The measure with its interval over people, beside chance."""
    measure, value = MEASURES[name], ratio(sums)
    bounds = (min(measure.bounds[0], value), measure.bounds[1])
    if measure.per_record and len(np.unique(people)) >= FEWEST_PEOPLE:
        # A person like none seen is taken to lie among those seen: beside 100 dB every interval
        # would reach down to chance.
        bounds = (float(sums[:, 0].min()), float(sums[:, 0].max()))
    low, high = bootstrap_people(
        people, sums, lambda totals: totals[:, 0] / totals[:, 1], bounds=bounds
    )
    return Figure(
        value,
        low,
        high,
        len(sums),
        chance,
        measure.unit,
        "lower",
        "bootstrap over people 95 %",
        measure.title,
        _note(name, schema),
    )


def _note(name: str, schema: Schema) -> str:
    if name == "psnr":
        return f"The mean over pictures; a picture that is rebuilt exactly counts as {CAP:.0f} dB."
    if name == "ms_ssim":
        fit = scales(*cast(tuple[int, int], schema.shape[1:]))
        if fit < len(WEIGHTS):
            return (
                f"Pictures of this size have {fit} of the {len(WEIGHTS)} scales; their weights "
                "were normalised to sum to one."
            )
    return ""


def best_constants(
    seen: Released, select: Released, schema: Schema, seed: int
) -> dict[str, Tensor]:
    """The mean record of *attack*, and for every measure the best single record, found there and
    chosen on *select*.

    Of numbers that is the mean, of texts the most frequent word at every place. Of pictures it is
    the mean as well or, where *select* says so, a picture found from it by gradient descent: the
    mean is best for the squared error, not for its logarithm or for SSIM.
    """
    if schema.modality == "text":
        words = _frequent_words(seen, cast(TextSchema, schema).vocabulary)
        return {"mean": torch.zeros(0), "words": words}
    own = seen.release.schema.own
    mean = reduce(torch.add, (own(x).double().sum(0) for x in _inputs(seen))) / len(seen)
    mean = mean.float()
    if schema.modality != "image":
        return {"mean": mean, "variance_explained": mean}
    by_error = _closest_picture(seen, mean, _negative_log_error, seed)
    by_ssim = _closest_picture(seen, mean, lambda a, b: similarity(a, b)[0].mean(), seed)
    constants = {"mean": mean}
    for name in measures_of(schema):
        tried = [mean.round(), by_error if name == "psnr" else by_ssim]
        scores = [ratio(sums_of(picture, select, mean, [name])[0]) for picture in tried]
        constants[name] = tried[int(np.argmax(scores))]
    return constants


def _frequent_words(seen: Released, vocabulary: int) -> Tensor:
    """The most frequent word at every place."""
    ids = np.asarray(seen.feed.inputs[:])
    places, is_word = np.broadcast_to(np.arange(ids.shape[1]), ids.shape), ids != PAD
    pairs = places[is_word] * vocabulary + ids[is_word]
    counts = np.bincount(pairs, minlength=ids.shape[1] * vocabulary)
    return torch.as_tensor(counts.reshape(-1, vocabulary).argmax(1), device=seen.feed.device)


def _negative_log_error(made: Tensor, x: Tensor) -> Tensor:
    return -(made - x).square().flatten(1).mean(1).clamp(min=1e-6).log().mean()


def _closest_picture(
    seen: Released, start: Tensor, closeness: Callable[[Tensor, Tensor], Tensor], seed: int
) -> Tensor:
    """The single picture to which those of *attack* are closest, from `start` with Adam and a
    falling rate."""
    picture = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([picture], lr=4.0)
    rate = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, PICTURE_STEPS)
    random, n = np.random.default_rng(seed), len(seen)
    rows = [random.choice(n, min(32, n), replace=False) for _ in range(PICTURE_STEPS)]
    for batch in seen.feed.batches(rows):
        x = seen.release.schema.own(batch.x).float()
        optimiser.zero_grad()
        (-closeness(picture.unsqueeze(0), x)).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        rate.step()
    return picture.detach().round().clamp(0, 255)
