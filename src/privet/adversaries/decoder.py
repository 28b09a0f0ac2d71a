"""Reconstruction: what a decoder, learned from the *attack* people, rebuilds of the records of
people it has not seen.

Its state along the way is chosen on *select*. closeness.py says how close the rebuilt records are.
"""

from __future__ import annotations

import base64
import copy
import io
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn

from privet.adversaries.reconstruction_quality import (
    AT_ONCE,
    MEASURES,
    constants_of,
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
from privet.train.cuda_graph import Replayed, adamw, descend, set_rate


@dataclass(frozen=True)
class TrainedDecoder:
    net: nn.Module
    schema: Schema
    view: View
    select: float
    """How close it comes on *select*, by the measure of `Rebuilt.value`: the decoder to believe is
    the one with the most."""

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
        there = z != PAD if self.view.vocabulary else present(z)
        return (1 + made[..., 1:].argmax(2)) * there

    def rebuild(self, released: Released) -> Array:
        """All records of a part, rebuilt from one release of each, in the order of the data."""
        parts = [self.records(z).cpu().numpy() for z, _ in released.batches(AT_ONCE)]
        if self.schema.modality == "text":
            width = released.feed.inputs.array.shape[1]
            parts = [
                np.pad(
                    ids[:, :width], ((0, 0), (0, max(0, width - ids.shape[1]))), constant_values=PAD
                )
                for ids in parts
            ]
        return np.concatenate(parts)


@dataclass(frozen=True, kw_only=True)
class Reconstruction(ABC):
    """What all decoders share: how they learn, and how they are judged. Noise is fresh in every
    epoch."""

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
        """The network from released records to pictures in 0..255, to numbers, or to scores of
        words. `mean` is the mean record."""

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
        return (
            (made - x.float()).abs().mean() / 255.0
            if x.dtype == torch.uint8
            else F.mse_loss(made, x)
        )

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
                f"The {self.title} cannot make a {schema.modality} of released records of the shape {seen.view.shape}."
            )
        constants = constants_of(seen, select, schema, seed)
        trained = self._learn(seen, select, schema, constants, seed, progress)
        torch.manual_seed(seed)
        return self._judge(trained, test, constants), trained

    def _learn(
        self,
        seen: Released,
        select: Released,
        schema: Schema,
        constants: dict[str, Tensor],
        seed: int,
        progress: bool,
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

        step = (
            learn
            if view.is_text or None in view.shape or schema.modality == "text"
            else Replayed(learn)
        )
        judged = {*np.linspace(0, epochs - 1, min(epochs, 10)).astype(int).tolist()}
        best, kept, first = -math.inf, copy.deepcopy(net.state_dict()), measures_of(schema)[0]
        with bar(f"rebuilding: {self.title}", epochs, progress) as tick:
            for epoch in range(epochs):
                net.train()
                order = (
                    np.random.default_rng([seed, epoch])
                    .permutation(len(seen))[: steps * size]
                    .reshape(steps, -1)
                )
                for done, batch in enumerate(seen.feed.batches(list(order))):
                    x = self.vary(batch.x)
                    with torch.no_grad():
                        z = seen.release.forward(x)
                    set_rate(
                        optimiser, self.lr * self.rate((epoch * steps + done) / (epochs * steps))
                    )
                    step(z, seen.release.schema.own(x))
                if epoch in judged:
                    score = ratio(
                        sums_of(
                            TrainedDecoder(net, schema, view, best).records,
                            select,
                            constants["mean"],
                            [first],
                        )[0]
                    )
                    if score > best:
                        best, kept = score, copy.deepcopy(net.state_dict())
                tick(epoch + 1, f"{MEASURES[first].words} {best:.3f}")
        net.load_state_dict(kept)
        return TrainedDecoder(net.eval(), schema, view, best)

    def _judge(
        self, trained: TrainedDecoder, test: Released, constants: dict[str, Tensor]
    ) -> Rebuilt:
        names = measures_of(trained.schema)
        close = sums_of(trained.records, test, constants["mean"], names)
        figures = {}
        for name, sums in zip(names, close, strict=True):
            chance = sums_of(constants[name], test, constants["mean"], [name])[0]
            figures[name] = figure(name, sums, ratio(chance), test.people, trained.schema)
        originals, rebuilt = _show(trained, test, min(self.shown, len(test)))
        first = MEASURES[names[0]]
        words = f"{first.words} in {first.unit}" if first.unit != "share" else first.words
        return Rebuilt(
            words, figures[names[0]].value, len(test), originals, rebuilt, self.title, figures
        )


@dataclass(frozen=True, kw_only=True)
class Decoder(Reconstruction):
    """The extractor reversed, as in TIPRDC's Figure 5: Adam, the absolute error of pictures, the
    cross-entropy of every word, the squared error of tables and signals. It takes released records
    that have the extractor's number of axes."""

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
        return (
            made
            if x.dtype != torch.int64
            else F.pad(made[:, : x.shape[1]], (0, max(0, x.shape[1] - made.shape[1])))
        )


def rebuilt_release(trained: TrainedDecoder, release: Release) -> Release:
    """A release of rebuilt records, which look like raw ones, so that any adversary can learn from
    them."""
    return Release(
        release.schema, ("rebuilt", {}), Reread(release, trained), release.noise, dict(release.card)
    )


def _unlike(made: Tensor, x: Tensor, view: View) -> Tensor:
    """Cross-entropy per word. Where a released text does not show its length, its end is to be
    rebuilt as well."""
    x = F.pad(x, (0, made.shape[1] - x.shape[1]))
    ignored = PAD if view.is_text else -100
    total = F.cross_entropy(made.flatten(0, 1), x.flatten(), ignore_index=ignored, reduction="sum")
    return total / (x != PAD).sum()


def _show(
    trained: TrainedDecoder, test: Released, n: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
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
