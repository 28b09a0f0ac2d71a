"""Reconstruction: what a decoder, learned from the *attack* people, rebuilds of the records of
people it has not seen.

Its state along the way is chosen on *select*. reconstruction_quality.py says how close the rebuilt
records are.
"""

from __future__ import annotations

import base64
import io
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn

from privet.adversaries.cycles import Cycles
from privet.adversaries.network_training import BestState, Schedule
from privet.adversaries.reconstruction_quality import (
    AT_ONCE,
    MEASURES,
    best_constants,
    figure,
    measures_of,
    ratio,
    sums_of,
)
from privet.adversaries.released import Released, View
from privet.core.errors import PrivetError
from privet.core.progress import bar
from privet.data.dataset import Array
from privet.data.schema import PAD, Schema, TextSchema
from privet.evidence.figures import Rebuilt
from privet.nets import plan as nets
from privet.nets.convolutions import prepare
from privet.nets.device import place, precision
from privet.nets.sequences import present
from privet.release.release import Release
from privet.train.cuda_graph import ReplayedStep, adamw, descend, set_rate

# What a cycle has to gain on *select*, in the measure's unit, for another one to follow.
LEAST_GAIN = {"share": 0.002, "dB": 0.05}
# Kinds of record that are learned steadily; pictures and texts are learned in leaps, and their
# decoders go on to half of the epochs at least.
PLAIN = ("table", "signal")


@dataclass(frozen=True)
class TrainedDecoder:
    """A decoder that has learned.

    Parameters:
        net: From released records to pictures in 0..255, to numbers, or to scores of words.
        schema: Of the records that it rebuilds.
        view: The form of the released records.
        select: How close it comes on *select*, by the measure of `Rebuilt.value`; the decoder to
            believe is the one with the most.
    """

    net: nn.Module
    schema: Schema
    view: View
    select: float

    @torch.no_grad()
    def records(self, z: Tensor) -> Tensor:
        """Released records -> records as the schema encodes them: bytes of pictures, numbers, or
        word ids."""
        made: Tensor = self.net.eval()(prepare(z)).float()
        if self.schema.modality == "image":
            return made.round().clamp(0, 255).byte()
        if self.schema.modality != "text":
            return made
        if not self.view.is_text:
            return made.argmax(2)
        is_word = z != PAD if self.view.vocabulary else present(z)
        return (1 + made[..., 1:].argmax(2)) * is_word

    def rebuild(self, released: Released) -> Array:
        """All records of a part, rebuilt from one release of each, in the order of the data."""
        parts = [self.records(z) for z, _ in released.batches(AT_ONCE)]
        if self.schema.modality == "text":
            parts = [_with_length(ids, released.feed.inputs.array.shape[1]) for ids in parts]
        return np.concatenate([part.cpu().numpy() for part in parts])


@dataclass(frozen=True, kw_only=True)
class Reconstruction(ABC):
    """What all decoders share: how they learn, and how they are judged. Noise is fresh in every
    epoch. They learn in cycles of the rate, each as long as all before it, and stop after one in
    which nothing was gained on *select*.

    Parameters:
        epochs: Passes over the records.
        least: Fewest steps: with few records there are more epochs.
        batch: Records in a batch.
        lr: Learning rate.
        decay: Weight decay of AdamW; without any it is Adam.
        width: Factor on layer sizes.
        shown: How many records to show beside what was made of them.

    Attributes:
        name: A word, for tables and files.
        title: What people call it.
    """

    epochs: int = 10
    least: int = 0
    batch: int = 64
    lr: float = 1e-3
    decay: float = 0.0
    width: float = 1.0
    shown: int = 8
    name: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def suits(self, view: View, schema: Schema) -> bool:
        """Whether it can make such records of released ones that look like this."""

    @abstractmethod
    def build(self, seen: Released, schema: Schema, mean: Tensor) -> nn.Module:
        """The network from released records to pictures in 0..255, to numbers, or to scores of
        words. `mean` is the mean record."""

    def rate(self, done: float) -> float:
        """The learning rate after this share of a cycle, as a share of `lr`."""
        return 1.0

    def augment(self, x: Tensor) -> Tensor:
        """Other records an attacker can make of those it has, and release."""
        return x

    def loss(self, made: Tensor, x: Tensor, view: View) -> Tensor:
        """What learning makes small."""
        if x.dtype == torch.int64:
            return _word_loss(made, x, view)
        if x.dtype == torch.uint8:
            return (made - x.float()).abs().mean() / 255.0
        return F.mse_loss(made, x)

    def attack(
        self,
        seen: Released,
        select: Released,
        test: Released,
        schema: Schema,
        seed: int = 0,
        progress: bool = True,
    ) -> tuple[Rebuilt, TrainedDecoder]:
        """Learn to rebuild the records of *attack*, and say how close it comes to those of
        *test*."""
        if not self.suits(seen.view, schema):
            raise PrivetError(
                f"The {self.title} cannot make a {schema.modality} of released records of the "
                f"shape {seen.view.shape}."
            )
        constants = best_constants(seen, select, schema, seed)
        trained = self._learn(seen, select, schema, constants["mean"], seed, progress)
        torch.manual_seed(seed)
        return self._judge(trained, test, constants), trained

    def _learn(
        self,
        seen: Released,
        select: Released,
        schema: Schema,
        mean: Tensor,
        seed: int,
        progress: bool,
    ) -> TrainedDecoder:
        torch.manual_seed(seed)
        device, view = seen.feed.device, seen.view
        net = place(self.build(seen, schema, mean), device)
        optimiser = adamw(net, self.lr, self.decay, device)
        size, steps, epochs, judged = Schedule.of(
            len(seen), self.batch, self.epochs, self.least, judgements=10
        )

        def learn(z: Tensor, x: Tensor) -> None:
            with precision(device):
                made = net(prepare(z))
            descend(self.loss(made.float(), x, view), optimiser)

        varies = None in view.shape or schema.modality == "text"
        step = learn if varies else ReplayedStep(learn)
        best, first = BestState(net), measures_of(schema)[0]
        cycles = Cycles.of(epochs, steps, 0.25 if schema.modality in PLAIN else 0.5)
        judged |= frozenset(end - 1 for end in cycles.ends)
        least_gain = LEAST_GAIN[MEASURES[first].unit]
        with bar(f"rebuilding: {self.title}", epochs, progress) as tick:
            for epoch in range(epochs):
                net.train()
                order = np.random.default_rng([seed, epoch]).permutation(len(seen))
                rows = list(order[: steps * size].reshape(steps, -1))
                for done, batch in enumerate(seen.feed.batches(rows)):
                    x = self.augment(batch.x)
                    with torch.no_grad():
                        z = seen.release.forward(x)
                    share = cycles.share(epoch, done / steps)
                    set_rate(optimiser, self.lr * self.rate(share))
                    step(z, seen.release.schema.own(x))
                if epoch in judged:
                    decoder = TrainedDecoder(net, schema, view, best.score)
                    best.offer(ratio(sums_of(decoder.records, select, mean, [first])[0]))
                tick(epoch + 1, f"{MEASURES[first].title} {best.score:.3f}")
                if cycles.is_over(epoch, best.score, least_gain):
                    tick(epochs, f"{MEASURES[first].title} {best.score:.3f}")
                    break
        best.restore()
        return TrainedDecoder(net.eval(), schema, view, best.score)

    def _judge(
        self, trained: TrainedDecoder, test: Released, constants: dict[str, Tensor]
    ) -> Rebuilt:
        names, mean = measures_of(trained.schema), constants["mean"]
        figures = {}
        for name, sums in zip(names, sums_of(trained.records, test, mean, names), strict=True):
            chance = ratio(sums_of(constants[name], test, mean, [name])[0])
            figures[name] = figure(name, sums, chance, test.people, trained.schema)
        originals, rebuilt = _examples(trained, test, min(self.shown, len(test)))
        first, value = MEASURES[names[0]], figures[names[0]].value
        measure = f"{first.title} in {first.unit}" if first.unit != "share" else first.title
        return Rebuilt(measure, value, len(test), originals, rebuilt, self.title, figures)


@dataclass(frozen=True, kw_only=True)
class ReversedExtractor(Reconstruction):
    """The extractor reversed, as in TIPRDC's Figure 5: Adam, the absolute error of pictures, the
    cross-entropy of every word, the squared error of tables and signals. It takes released records
    that have the extractor's number of axes. Settings are those of `Reconstruction`."""

    name: ClassVar[str] = "decoder"
    title: ClassVar[str] = "extractor reversed"

    def suits(self, view: View, schema: Schema) -> bool:
        axes = 2 if schema.modality == "text" else len(schema.shape)
        return len(view.shape) == axes and view.is_text == (schema.modality == "text")

    def build(self, seen: Released, schema: Schema, mean: Tensor) -> nn.Module:
        return nets.plan(schema).decoder(seen.view.shape, self.width)


@dataclass(frozen=True, kw_only=True)
class OwnDecoder(Reconstruction):
    """The decoder that a release brings: its network has a method `draw(z)`, from released records
    to records in the scale of its own input. Nothing is learned. Settings are those of
    `Reconstruction`; all but `shown` are of no use here."""

    name: ClassVar[str] = "own decoder"
    title: ClassVar[str] = "the release's own decoder"

    @staticmethod
    def is_in(release: Release) -> bool:
        """Whether a release brings one, and does not draw records itself (`output`)."""
        draws = getattr(release.module, "output", "code") == "record"
        return callable(getattr(release.module, "draw", None)) and not draws

    def suits(self, view: View, schema: Schema) -> bool:
        return schema.modality != "text"

    def build(self, seen: Released, schema: Schema, mean: Tensor) -> nn.Module:
        return _Draw(seen.release, schema.modality == "image")

    def _learn(
        self,
        seen: Released,
        select: Released,
        schema: Schema,
        mean: Tensor,
        seed: int,
        progress: bool,
    ) -> TrainedDecoder:
        torch.manual_seed(seed)
        decoder = TrainedDecoder(self.build(seen, schema, mean), schema, seen.view, 0.0)
        first = measures_of(schema)[0]
        score = ratio(sums_of(decoder.records, select, mean, [first])[0])
        return replace(decoder, select=score)


class _Draw(nn.Module):
    def __init__(self, release: Release, picture: bool) -> None:
        super().__init__()
        self.release, self.picture = release.module, picture

    def forward(self, z: Tensor) -> Tensor:
        made: Tensor = self.release.draw(z)  # type: ignore[operator]
        return 127.5 * (made + 1) if self.picture else made


class ReleaseThenRebuild(nn.Module):
    """Release, then rebuild: what a raw record becomes for whoever looks at rebuilt ones."""

    def __init__(self, release: Release, trained: TrainedDecoder) -> None:
        super().__init__()
        self.release, self.net = release.module, trained.net
        self.records, self.shape = trained.records, trained.schema.shape

    def forward(self, x: Tensor, noise: Tensor | None = None) -> Tensor:
        made = self.records(self.release(x) if noise is None else self.release(x, noise))
        return made if x.dtype != torch.int64 else _with_length(made, x.shape[1])


def rebuilt_release(trained: TrainedDecoder, release: Release) -> Release:
    """A release of rebuilt records, which look like raw ones, so that any adversary can learn from
    them."""
    module = ReleaseThenRebuild(release, trained)
    return Release(release.schema, ("rebuilt", {}), module, release.noise, dict(release.card))


def _with_length(ids: Tensor, length: int) -> Tensor:
    """Texts of word ids, cut or padded to `length`."""
    return F.pad(ids[:, :length], (0, max(0, length - ids.shape[1])), value=PAD)


def _word_loss(made: Tensor, x: Tensor, view: View) -> Tensor:
    """Cross-entropy per word. Where a released text does not show its length, its end is to be
    rebuilt as well."""
    x = F.pad(x, (0, made.shape[1] - x.shape[1]))
    ignored = PAD if view.is_text else -100
    total = F.cross_entropy(made.flatten(0, 1), x.flatten(), ignore_index=ignored, reduction="sum")
    return total / (x != PAD).sum()


def _examples(
    trained: TrainedDecoder, test: Released, n: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The first n records and what was made of them, as text or as PNG in base64."""
    schema = trained.schema
    if schema.modality not in ("image", "text"):
        return (), ()
    x = test.feed.batch(np.arange(n)).x
    made = trained.records(test.release.forward(x)).cpu().numpy()
    originals = test.release.schema.own(x).cpu().numpy()
    if schema.modality == "image":
        return tuple(map(_png, originals)), tuple(map(_png, made))
    text = cast(TextSchema, schema)
    return tuple(text.decode(originals)), tuple(text.decode(made))


def _png(picture: Array) -> str:
    buffer = io.BytesIO()
    Image.fromarray(picture.transpose(1, 2, 0).squeeze()).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()
