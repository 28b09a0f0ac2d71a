"""Released: what an adversary sees of a part of the data - released records and the labels of its
own people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from privet.adversaries.flattening import Flattening
from privet.adversaries.view import View
from privet.data.dataset import Array, Dataset
from privet.nets.additive import Additive
from privet.nets.averaged import Averaged
from privet.nets.device import free_memory
from privet.nets.symbols import Symbols
from privet.release.release import Release
from privet.train.feed import Feed, Places

HELD = {"cpu": 5e8, "cuda": 20e9}
"""Released records of a part are computed once and kept up to this many bytes; beyond it, again for
every pass."""
SHARE = 1 / 8
"""On a CPU they are also kept up to this share of the memory that is free: it holds the features of
a few thousand pictures."""

PASSES = 4
"""How many times the mean of k releases is drawn for all records: each is k releases, and later
passes see the same ones in turn."""

STEPS = (1.0, 1 / 255, 1 / 256)
"""Steps between the values of pictures, as they are usually scaled."""

__all__ = ["Released", "View"]


class Released:
    """Released records of one part. Noise is fresh in every pass, as it is for every release of a
    record.

    With `like`, another part of the same release, vectors are made the way they were learned there.
    """

    def __init__(
        self,
        release: Release,
        data: Dataset,
        names: Sequence[str],
        device: torch.device,
        like: Released | None = None,
        batch: int = 256,
    ) -> None:
        self.release, self.data = release.to(device), data
        self.feed = Feed(
            release.schema.inputs(data), {name: data.labels[name] for name in names}, device
        )
        vocabulary = (
            getattr(release.schema, "vocabulary", None) if release.shape == (None,) else None
        )
        self.view = View(release.shape, vocabulary)
        self._like = like
        self._flattening: Flattening | None = None
        self._flat: Tensor | None = None
        self._held: Tensor | None = None
        self._code: Tensor | None = None
        self._drawn: list[Tensor] = []
        self._turn = 0
        most = room(device)
        fits = self._bytes() < most
        self._means = (
            release.network[0] == "averaged" and not self._adds() and PASSES * self._bytes() < most
        )
        if fits:
            self._held = None if self.fresh else self._hold(batch)
            self._code = self._hold(batch, code=True) if self.fresh and self._adds() else None
        self.view = View(release.shape, vocabulary, like.view.step if like else self._step())

    def __len__(self) -> int:
        return len(self.feed)

    @property
    def people(self) -> Array:
        return self.data.people

    @property
    def fresh(self) -> bool:
        """Whether every pass shows other noise."""
        return self.release.is_random

    def batches(
        self, size: int, seed: int | None = None, drop_last: bool = False
    ) -> Iterator[tuple[Tensor, dict[str, Tensor]]]:
        """Released records and labels; in a new order for every seed, in the data's own order
        without one."""
        order = (
            np.arange(len(self))
            if seed is None
            else np.random.default_rng(seed).permutation(len(self))
        )
        yield from self._at(
            [
                part
                for part in _cut(order, size)
                if not drop_last or len(part) == size or len(part) == len(order)
            ]
        )

    def labels(self, name: str) -> Array:
        return np.asarray(self.feed.labels[name].cpu())

    def vectors(self) -> Tensor:
        """Every record as one standardised vector, float32 (n, d) on the device, in the order of
        the data.

        Computed once where the release adds no noise; fresh in every call where it does.
        """
        if self._flat is not None:
            return self._flat
        flat = torch.cat([self.flattening(z) for z, _ in self.batches(512)])
        if not self.fresh:
            self._flat = flat
        return flat

    @property
    def flattening(self) -> Flattening:
        """Learned on the *attack* part, used by all."""
        if self._like is not None:
            return self._like.flattening
        if self._flattening is None:
            self._flattening = Flattening.learn(
                self.view, (z for z, _ in self.batches(512, seed=0)), len(self), self.feed.device
            )
        return self._flattening

    def _at(self, indices: list[Array]) -> Iterator[tuple[Tensor, dict[str, Tensor]]]:
        held = self._mean() if self._means else self._code if self._held is None else self._held
        # All positions go to the device at once: a copy for every batch would wait for the one
        # before.
        order = self.feed.places(np.concatenate([*indices, np.empty(0, dtype=np.int64)]))
        if held is not None:
            for where in torch.split(order.there, [len(index) for index in indices]):
                z = held[where] if self._code is None else self._drowned(held[where])
                yield z, {name: column[where] for name, column in self.feed.labels.items()}
            return
        ends = np.cumsum([0, *map(len, indices)])
        yield from self._released([order[start:end] for start, end in pairwise(ends)])

    def _released(
        self, places: Iterable[Array | Places]
    ) -> Iterator[tuple[Tensor, dict[str, Tensor]]]:
        for batch in self.feed.batches(places):
            with torch.no_grad():
                z = self.release.forward(batch.x)
            yield z, batch.labels

    def _mean(self) -> Tensor:
        """The means of k releases for all records, drawn anew PASSES times."""
        self._turn += 1
        if len(self._drawn) < PASSES:
            self._drawn.append(self._hold(512))
            return self._drawn[-1]
        return self._drawn[self._turn % PASSES]

    def _adds(self) -> bool:
        """Whether noise comes last, so that a record's code can be kept and only its noise drawn
        anew."""
        return (
            type(self.release.module) in (Additive, Symbols, Averaged)
            and None not in self.release.shape
        )

    @torch.no_grad()
    def _drowned(self, code: Tensor) -> Tensor:
        module, law = self.release.module, self.release.noise
        assert isinstance(module, Additive | Symbols | Averaged) and law is not None
        return module.drown(code, law.sample(len(code), 0, code.device), code)

    def _codes(self, indices: list[Array]) -> Iterator[Tensor]:
        body = self.release.module.get_submodule("body")
        for batch in self.feed.batches(indices):
            with torch.no_grad():
                yield body(batch.x)

    def _hold(self, size: int, code: bool = False) -> Tensor:
        held: Tensor | None = None
        done = 0
        cut = _cut(np.arange(len(self)), size)
        for z in self._codes(cut) if code else (z for z, _ in self._released(cut)):
            if held is None:
                held = torch.zeros((len(self), *self._shape()), dtype=z.dtype, device=z.device)
            place = held[done : done + len(z)]
            (place[:, : z.shape[1]] if self.view.shape[0] is None else place).copy_(z)
            done += len(z)
        assert held is not None, "a part without records was refused before"
        return held

    def _step(self) -> float | None:
        """The largest usual step that the first records are multiples of: whole numbers, or bytes
        scaled to 0..1 or -1..1."""
        z, _ = next(iter(self.batches(256)))
        if z.dtype == torch.uint8 or not z.is_floating_point():
            return 1.0
        if float(z.amax()) == float(z.amin()):
            return None
        for step in STEPS:
            whole = z.double() / step
            if (
                bool(((whole - whole.round()).abs() < 1e-3).all())
                and float(whole.abs().amax()) < 2**20
            ):
                return step
        return None

    def _shape(self) -> tuple[int, ...]:
        """Of one record, with texts as long as the longest."""
        return tuple(
            self.feed.inputs.array.shape[-1] if size is None else size for size in self.view.shape
        )

    def _bytes(self) -> float:
        if self.release.network[0] == "identity":
            return self.feed.inputs.nbytes if self.feed.resident is None else float("inf")
        return 4.0 * len(self) * float(np.prod(self._shape()))


def room(device: torch.device) -> float:
    """How many bytes the released records of a part may take."""
    return max(HELD[device.type], SHARE * free_memory() if device.type == "cpu" else 0.0)


def _cut(order: Array, size: int) -> list[Array]:
    return [order[start : start + size] for start in range(0, len(order), size)]
