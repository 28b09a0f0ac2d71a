"""Reconstruction: what a decoder, learned from the *attack* people, rebuilds of the records of people it has not seen.

Its state along the way is chosen on *select*. How close the rebuilt records are is a ratio of sums over records, with an interval
over people: the mean over pictures of each picture's PSNR, SSIM and MS-SSIM; the share of words that are right; or the share of
variance explained. Chance is what the best single record reaches, one that is shown whatever was released.
"""

from __future__ import annotations

import base64
import copy
import io
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn

from privet import nets
from privet.adversaries.released import Released, View
from privet.data.dataset import Array
from privet.data.schema import PAD, Schema, TextSchema
from privet.device import place, precision
from privet.errors import PrivetError
from privet.evidence.distortion import CAP, WEIGHTS, ms_ssim, psnr, scales, similarity, ssim
from privet.evidence.figures import Figure, Rebuilt
from privet.evidence.people import bootstrap_people
from privet.nets.convolutions import prepare
from privet.nets.sequences import present
from privet.progress import bar
from privet.release import Release
from privet.replay import Replayed, adamw, descend, set_rate

AT_ONCE = 256
"""Records rebuilt in one go."""
FEW = 10
"""Fewer people than this do not show how far apart people are."""
CLIMB = 50
"""Steps in which the best single picture is looked for."""


@dataclass(frozen=True)
class TrainedDecoder:
    net: nn.Module
    schema: Schema
    view: View
    select: float
    """How close it comes on *select*, by the measure of `Rebuilt.value`: the decoder to believe is the one with the most."""

    @torch.no_grad()
    def records(self, z: Tensor) -> Tensor:
        """Released records -> records as the schema encodes them: bytes of pictures, numbers, or word ids."""
        made: Tensor = self.net.eval()(prepare(z)).float()
        if self.schema.modality == "image":
            return made.round().clamp(0, 255).byte()
        if self.schema.modality != "text":
            return made
        if not self.view.is_text:
            return made.argmax(2)
        there = z != PAD if self.view.vocabulary else present(z)
        return (1 + made[..., 1:].argmax(2)) * there

    def rebuild(self, released: Released) -> Array:
        """All records of a part, rebuilt from one release of each, in the order of the data."""
        parts = [self.records(z).cpu().numpy() for z, _ in released.batches(AT_ONCE)]
        if self.schema.modality == "text":
            width = released.feed.inputs.array.shape[1]
            parts = [np.pad(ids[:, :width], ((0, 0), (0, max(0, width - ids.shape[1]))), constant_values=PAD) for ids in parts]
        return np.concatenate(parts)


@dataclass(frozen=True, kw_only=True)
class Reconstruction(ABC):
    """What all decoders share: how they learn, and how they are judged. Noise is fresh in every epoch."""

    epochs: int = 10
    least: int = 0
    """Fewest steps: with few records there are more epochs."""
    batch: int = 64
    lr: float = 1e-3
    decay: float = 0.0
    """Of the weights; Adam is AdamW without any."""
    width: float = 1.0
    """Factor on layer sizes."""
    shown: int = 8
    """How many records to show beside what was made of them."""
    name: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def suits(self, view: View, schema: Schema) -> bool:
        """Whether it can make such records of released ones that look like this."""

    @abstractmethod
    def build(self, seen: Released, schema: Schema, mean: Tensor) -> nn.Module:
        """The network from released records to pictures in 0..255, to numbers, or to scores of words. `mean` is the mean record."""

    def rate(self, done: float) -> float:
        """The rate along the way, as a share of `lr`."""
        return 1.0

    def vary(self, x: Tensor) -> Tensor:
        """Other records an attacker can make of those it has, and release."""
        return x

    def distance(self, made: Tensor, x: Tensor, view: View) -> Tensor:
        """What learning makes small."""
        if x.dtype == torch.int64:
            return _unlike(made, x, view)
        return (made - x.float()).abs().mean() / 255.0 if x.dtype == torch.uint8 else F.mse_loss(made, x)

    def attack(
        self, seen: Released, select: Released, test: Released, schema: Schema, seed: int = 0, progress: bool = True
    ) -> tuple[Rebuilt, TrainedDecoder]:
        """Learn to rebuild the records of *attack*, and say how close it comes to those of *test*."""
        if not self.suits(seen.view, schema):
            raise PrivetError(f"The {self.title} cannot make a {schema.modality} of released records of the shape {seen.view.shape}.")
        constants = _constants(seen, select, schema, seed)
        trained = self._learn(seen, select, schema, constants, seed, progress)
        torch.manual_seed(seed)
        return self._judge(trained, test, constants), trained

    def _learn(
        self, seen: Released, select: Released, schema: Schema, constants: dict[str, Tensor], seed: int, progress: bool
    ) -> TrainedDecoder:
        torch.manual_seed(seed)
        device, view = seen.feed.device, seen.view
        net = place(self.build(seen, schema, constants["mean"]), device)
        size = max(2, min(self.batch, len(seen) // 4))
        steps = max(1, len(seen) // size)
        epochs = max(self.epochs, math.ceil(self.least / steps))
        optimiser = adamw(net, self.lr, self.decay, device)

        def learn(z: Tensor, x: Tensor) -> None:
            with precision(device):
                made = net(prepare(z))
            descend(self.distance(made.float(), x, view), optimiser)

        step = learn if view.is_text or None in view.shape or schema.modality == "text" else Replayed(learn)
        judged = {*np.linspace(0, epochs - 1, min(epochs, 10)).astype(int).tolist()}
        best, kept = -math.inf, copy.deepcopy(net.state_dict())
        with bar(f"rebuilding: {self.title}", epochs, progress) as tick:
            for epoch in range(epochs):
                net.train()
                order = np.random.default_rng([seed, epoch]).permutation(len(seen))[: steps * size].reshape(steps, -1)
                for done, batch in enumerate(seen.feed.batches(list(order))):
                    x = self.vary(batch.x)
                    with torch.no_grad():
                        z = seen.release.forward(x)
                    set_rate(optimiser, self.lr * self.rate((epoch * steps + done) / (epochs * steps)))
                    step(z, seen.release.schema.own(x))
                if epoch in judged:
                    score = _value(_close(TrainedDecoder(net, schema, view, best), select, constants["mean"], [_first(schema)])[0])
                    if score > best:
                        best, kept = score, copy.deepcopy(net.state_dict())
                tick(epoch + 1, f"{MEASURES[_first(schema)].words} {best:.3f}")
        net.load_state_dict(kept)
        return TrainedDecoder(net.eval(), schema, view, best)

    def _judge(self, trained: TrainedDecoder, test: Released, constants: dict[str, Tensor]) -> Rebuilt:
        names = _names(trained.schema)
        close = _close(trained, test, constants["mean"], names)
        figures = {}
        for name, sums in zip(names, close, strict=True):
            chance = _close(constants[name], test, constants["mean"], [name])[0]
            figures[name] = _figure(name, sums, _value(chance), test.people, trained.schema)
        originals, rebuilt = _show(trained, test, min(self.shown, len(test)))
        first = MEASURES[names[0]]
        words = f"{first.words} in {first.unit}" if first.unit != "share" else first.words
        return Rebuilt(words, figures[names[0]].value, len(test), originals, rebuilt, self.title, figures)


@dataclass(frozen=True, kw_only=True)
class Decoder(Reconstruction):
    """The extractor reversed, as in TIPRDC's Figure 5: Adam, the absolute error of pictures, the cross-entropy of every word, the
    squared error of tables and signals. It takes released records that have the extractor's number of axes."""

    name: ClassVar[str] = "decoder"
    title: ClassVar[str] = "extractor reversed"

    def suits(self, view: View, schema: Schema) -> bool:
        wanted = 2 if schema.modality == "text" else len(schema.shape)
        return len(view.shape) == wanted and view.is_text == (schema.modality == "text")

    def build(self, seen: Released, schema: Schema, mean: Tensor) -> nn.Module:
        return nets.plan(schema).decoder(seen.view.shape, self.width)


class Reread(nn.Module):
    """Release, then rebuild: what a raw record becomes for whoever looks at rebuilt ones."""

    def __init__(self, release: Release, trained: TrainedDecoder) -> None:
        super().__init__()
        self.release, self.net = release.module, trained.net
        self.records, self.shape = trained.records, trained.schema.shape

    def forward(self, x: Tensor, noise: Tensor | None = None) -> Tensor:
        z = self.release(x) if noise is None else self.release(x, noise)
        made = self.records(z)
        return made if x.dtype != torch.int64 else F.pad(made[:, : x.shape[1]], (0, max(0, x.shape[1] - made.shape[1])))


def rebuilt_release(trained: TrainedDecoder, release: Release) -> Release:
    """A release of rebuilt records, which look like raw ones, so that any adversary can learn from them."""
    return Release(release.schema, ("rebuilt", {}), Reread(release, trained), release.noise, dict(release.card))


@dataclass(frozen=True)
class Measure:
    """How close rebuilt records are: `sums` gives two numbers per record, (n, 2); the measure is the ratio of their totals."""

    words: str
    sums: Callable[[Tensor, Tensor, Tensor], Array]
    """Of rebuilt records, true ones and the mean record."""
    unit: str = "share"
    bounds: tuple[float, float] = (0.0, 1.0)
    """What its values lie between; of a variance, where the best single record is the least anybody does."""
    per_record: bool = False
    """Whether it is a mean of one number per record."""


def _each(measure: Callable[[Tensor, Tensor], Array]) -> Callable[[Tensor, Tensor, Tensor], Array]:
    return lambda made, x, _mean: np.c_[measure(made, x), np.ones(len(x))]


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


def _names(schema: Schema) -> list[str]:
    return {"image": ["psnr", "ssim", "ms_ssim"], "text": ["words"]}.get(schema.modality, ["variance_explained"])


def _first(schema: Schema) -> str:
    return _names(schema)[0]


def _value(sums: Array) -> float:
    part, whole = sums.sum(0)
    return float(part / whole) if whole > 0 else 0.0


def _close(made: TrainedDecoder | Tensor, part: Released, mean: Tensor, names: Sequence[str]) -> list[Array]:
    """The sums of each measure, per record of a part, for rebuilt records or for a single one that stands for all."""
    found: list[list[Array]] = [[] for _ in names]
    for x in _inputs(part):
        guess = made.expand(len(x), *made.shape) if isinstance(made, Tensor) else made.records(part.release.forward(x))
        x = part.release.schema.own(x)
        for name, parts in zip(names, found, strict=True):
            parts.append(MEASURES[name].sums(guess, x, mean))
    return [np.concatenate(parts) for parts in found]


def _originals(part: Released) -> Iterator[Tensor]:
    """The records that are to be rebuilt, without what the release was given beside them."""
    yield from (part.release.schema.own(x) for x in _inputs(part))


def _inputs(part: Released, size: int = AT_ONCE) -> Iterator[Tensor]:
    yield from (batch.x for batch in part.feed.batches([np.arange(s, min(s + size, len(part))) for s in range(0, len(part), size)]))


def _figure(name: str, sums: Array, chance: float, people: Array, schema: Schema) -> Figure:
    measure, value = MEASURES[name], _value(sums)
    bounds = (min(measure.bounds[0], value), measure.bounds[1])
    if measure.per_record and len(np.unique(people)) >= FEW:
        # A person like none seen is taken to lie among those seen: beside 100 dB every interval would reach down to chance.
        bounds = (float(sums[:, 0].min()), float(sums[:, 0].max()))
    low, high = bootstrap_people(people, sums, lambda totals: totals[:, 0] / totals[:, 1], bounds=bounds)
    note = ""
    if name == "psnr":
        note = f"The mean over pictures; a picture that is rebuilt exactly counts as {CAP:.0f} dB."
    if name == "ms_ssim" and (fit := scales(*cast(tuple[int, int], schema.shape[1:]))) < len(WEIGHTS):
        note = f"Pictures of this size have {fit} of the {len(WEIGHTS)} scales; their weights were normalised to sum to one."
    return Figure(value, low, high, len(sums), chance, measure.unit, "lower", "bootstrap over people 95 %", measure.words, note)


def _constants(seen: Released, select: Released, schema: Schema, seed: int) -> dict[str, Tensor]:
    """The mean record of *attack*, and for every measure the best single record, found there and chosen on *select*.

    Of numbers that is the mean, of texts the most frequent word at every place. Of pictures it is the mean as well or, where
    *select* says so, a picture that climbed from it: the mean is best for the squared error, not for its logarithm or for SSIM.
    """
    if schema.modality == "text":
        return {"mean": torch.zeros(0), "words": _frequent(seen, cast(TextSchema, schema).vocabulary)}
    mean = sum(x.double().sum(0) for x in _originals(seen)) / len(seen)
    assert isinstance(mean, Tensor)
    mean = mean.float()
    if schema.modality != "image":
        return {"mean": mean, "variance_explained": mean}
    closer = {"psnr": _climb(seen, mean, _less_error, seed), "ssim": _climb(seen, mean, lambda a, b: similarity(a, b)[0].mean(), seed)}
    found = {"mean": mean}
    for name in _names(schema):
        tried = [mean.round(), closer["psnr" if name == "psnr" else "ssim"]]
        found[name] = max(tried, key=lambda picture: _value(_close(picture, select, mean, [name])[0]))
    return found


def _frequent(seen: Released, vocabulary: int) -> Tensor:
    ids = np.asarray(seen.feed.inputs[:])
    places = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
    there = ids != PAD
    counts = np.bincount(places[there] * vocabulary + ids[there], minlength=ids.shape[1] * vocabulary)
    return torch.as_tensor(counts.reshape(-1, vocabulary).argmax(1), device=seen.feed.device)


def _less_error(made: Tensor, x: Tensor) -> Tensor:
    return -(made - x).square().flatten(1).mean(1).clamp(min=1e-6).log().mean()


def _climb(seen: Released, start: Tensor, closeness: Callable[[Tensor, Tensor], Tensor], seed: int) -> Tensor:
    """The single picture to which those of *attack* are closest, from `start` with Adam and a falling rate."""
    picture = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([picture], lr=4.0)
    rate = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, CLIMB)
    random = np.random.default_rng(seed)
    for batch in seen.feed.batches([random.choice(len(seen), min(32, len(seen)), replace=False) for _ in range(CLIMB)]):
        x = seen.release.schema.own(batch.x).float()
        optimiser.zero_grad()
        (-closeness(picture.unsqueeze(0), x)).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        rate.step()
    return picture.detach().round().clamp(0, 255)


def _unlike(made: Tensor, x: Tensor, view: View) -> Tensor:
    """Cross-entropy per word. Where a released text does not show its length, its end is to be rebuilt as well."""
    x = F.pad(x, (0, made.shape[1] - x.shape[1]))
    ignored = PAD if view.is_text else -100
    total = F.cross_entropy(made.flatten(0, 1), x.flatten(), ignore_index=ignored, reduction="sum")
    return total / (x != PAD).sum()


def _show(trained: TrainedDecoder, test: Released, n: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if trained.schema.modality not in ("image", "text"):
        return (), ()
    x = test.feed.batch(np.arange(n)).x
    made = trained.records(test.release.forward(x))
    x = test.release.schema.own(x)
    if trained.schema.modality == "image":
        return tuple(_png(p) for p in x.cpu().numpy()), tuple(_png(p) for p in made.cpu().numpy())
    text = cast(TextSchema, trained.schema)
    return tuple(text.decode(x.cpu().numpy())), tuple(text.decode(made.cpu().numpy()))


def _png(picture: Array) -> str:
    buffer = io.BytesIO()
    Image.fromarray(picture.transpose(1, 2, 0).squeeze()).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()
