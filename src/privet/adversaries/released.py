"""Released: what an adversary sees of a part of the data, released records and their labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from itertools import pairwise
from typing import Literal

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
from privet.train.feed import Feed

# Released records of a part are computed once and stored up to this many bytes; beyond it they are
# computed again for every pass.
STORED_BYTES = {"cpu": 5e8, "cuda": 20e9}
# On a CPU they are also stored up to this share of the free memory: it holds the features of a few
# thousand pictures.
STORED_SHARE = 1 / 8
# How many times the mean of k releases is drawn for all records: each draw is k releases, and later
# passes see the same ones in turn.
PASSES = 4
# The same for pictures whose noise a network comes after, on a CPU: each draw is a pass of it.
PICTURE_PASSES = 8
# Steps between the values of pictures, as they are usually scaled.
STEPS = (1.0, 1 / 255, 1 / 256)

__all__ = ["Released", "View", "released_parts"]


class Released:
    """Released records of one part. Noise is fresh in every pass, as it is for every release of a
    record, or that of a few stored draws in turn, where drawing takes long.

    Parameters:
        release: What releases them.
        data: The part of the data.
        names: Attributes whose labels the adversary knows.
        device: Where to compute.
        like: Another part of the same release; vectors are made the way they were learned there.
        batch: Records released at a time, where they are stored.
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
        labels = {name: data.labels[name] for name in names}
        self.feed = Feed(release.schema.inputs(data), labels, device)
        is_ids = release.shape == (None,)
        vocabulary = getattr(release.schema, "vocabulary", None) if is_ids else None
        self.view = View(release.shape, vocabulary)
        self._like = like
        self._flattening: Flattening | None = None
        # By the stored draw that they are made of; 0 where records never change.
        self._vectors: dict[int, Tensor] = {}
        self._storing = self._what_to_store()
        self._stored = [self._compute(batch)] if self._storing in ("records", "codes") else []
        self._passes = 0
        self.view = View(release.shape, vocabulary, like.view.step if like else self._step())

    def __len__(self) -> int:
        return len(self.feed)

    @property
    def people(self) -> Array:
        """The person of every record, as a code."""
        return self.data.people

    @property
    def fresh_noise(self) -> bool:
        """Whether every pass shows other noise."""
        return self.release.is_random

    def batches(
        self, size: int, seed: int | None = None, drop_last: bool = False
    ) -> Iterator[tuple[Tensor, dict[str, Tensor]]]:
        """Released records and labels; in a new order for every seed, in the data's own order
        without one."""
        n = len(self)
        order = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
        parts = [part for part in _cut(order, size) if not drop_last or len(part) in (size, n)]
        stored = self._of_this_pass()
        # All positions go to the device at once: a copy for every batch would wait for the one
        # before.
        places = self.feed.places(np.concatenate([*parts, np.empty(0, dtype=np.int64)]))
        if stored is None:
            ends = np.cumsum([0, *map(len, parts)])
            for batch in self.feed.batches([places[start:end] for start, end in pairwise(ends)]):
                with torch.no_grad():
                    z = self.release.forward(batch.x)
                yield z, batch.labels
            return
        for rows in torch.split(places.there, [len(part) for part in parts]):
            z = self._with_noise(stored[rows]) if self._storing == "codes" else stored[rows]
            yield z, {name: column[rows] for name, column in self.feed.labels.items()}

    def labels(self, name: str) -> Array:
        """Of every record: codes with -1, or numbers with NaN, where the label is missing."""
        return np.asarray(self.feed.labels[name].cpu())

    def vectors(self) -> Tensor:
        """Every record as one standardised vector, float32 (n, d) on the device, in the order of
        the data.

        Computed once where the release adds no noise, and of every stored draw; fresh in every call
        where noise is.
        """
        if self.fresh_noise and self._storing != "draws":
            return torch.cat([self.flattening(z) for z, _ in self.batches(512)])
        flattening = self.flattening  # learned, where it is not yet, before this pass begins
        now = self._passes % self._most_draws() if self._storing == "draws" else 0
        if now in self._vectors:
            self._passes += 1
        else:
            self._vectors[now] = torch.cat([flattening(z) for z, _ in self.batches(512)])
        return self._vectors[now]

    @property
    def flattening(self) -> Flattening:
        """How records become vectors: learned on the *attack* part, used by all."""
        if self._like is not None:
            return self._like.flattening
        if self._flattening is None:
            batches = (z for z, _ in self.batches(512, seed=0))
            self._flattening = Flattening.learn(self.view, batches, len(self), self.feed.device)
        return self._flattening

    def with_vectors_like(self, other: Released) -> Released:
        """The same records, made vectors the way those of another kind were: for an adversary that
        has learned on those."""
        same = copy(self)
        same._like, same._vectors = other, {}
        return same

    def taking(self, rows: Array) -> Released:
        """Some of the records, made vectors the way all of them are."""
        names, device = list(self.feed.labels), self.feed.device
        return Released(self.release, self.data.take(rows), names, device, like=self)

    def _what_to_store(self) -> Literal["records", "codes", "draws"] | None:
        """Records where they never change; codes where noise comes last, so that only noise is
        drawn anew; else a few draws of means of releases; or nothing that has no room."""
        size, most = self._bytes(), storage(self.feed.device)
        if not self.fresh_noise:
            return "records" if size < most else None
        kinds = (Additive, Symbols, Averaged)
        if type(self.release.module) in kinds and None not in self.release.shape:
            return "codes" if size < most else None
        return "draws" if 0 < self._most_draws() * size < most else None

    def _most_draws(self) -> int:
        """How many draws of all records are stored, where one takes long; else none are."""
        if self.release.network[0] == "averaged":
            return PASSES
        is_picture = len(self.view.shape) == 3 and self.feed.device.type == "cpu"
        return PICTURE_PASSES if is_picture else 0

    def _of_this_pass(self) -> Tensor | None:
        """What is stored of all records, for the pass that begins."""
        if self._storing != "draws":
            return self._stored[0] if self._storing else None
        now = self._passes % self._most_draws()
        self._passes += 1
        if now == len(self._stored):
            self._stored.append(self._compute(512))
        return self._stored[now]

    @torch.no_grad()
    def _with_noise(self, code: Tensor) -> Tensor:
        module, law = self.release.module, self.release.noise
        assert isinstance(module, Additive | Symbols | Averaged) and law is not None
        return module.drown(code, law.sample(len(code), 0, code.device), code)

    @torch.no_grad()
    def _compute(self, size: int) -> Tensor:
        """Released records, or codes, of the whole part; texts as long as the longest."""
        codes = self._storing == "codes"
        of = self.release.module.get_submodule("body") if codes else self.release.forward
        stored: Tensor | None = None
        done = 0
        for batch in self.feed.batches(_cut(np.arange(len(self)), size)):
            z = of(batch.x)
            if stored is None:
                stored = torch.zeros((len(self), *self._shape()), dtype=z.dtype, device=z.device)
            place = stored[done : done + len(z)]
            (place[:, : z.shape[1]] if self.view.is_text else place).copy_(z)
            done += len(z)
        assert stored is not None, "a part without records was refused before"
        return stored

    def _step(self) -> float | None:
        """The largest usual step that the first records are multiples of: whole numbers, or bytes
        scaled to 0..1 or -1..1."""
        z, _ = next(iter(self.batches(256)))
        if not z.is_floating_point():
            return 1.0
        if float(z.amax()) == float(z.amin()):
            return None
        for step in STEPS:
            whole = z.double() / step
            is_whole = bool(((whole - whole.round()).abs() < 1e-3).all())
            if is_whole and float(whole.abs().amax()) < 2**20:
                return step
        return None

    def _shape(self) -> tuple[int, ...]:
        """Of one record, with texts as long as the longest."""
        longest = self.feed.inputs.array.shape[-1]
        return tuple(longest if size is None else size for size in self.view.shape)

    def _bytes(self) -> float:
        if self.release.network[0] == "identity":
            return self.feed.inputs.nbytes if self.feed.resident is None else float("inf")
        return 4.0 * len(self) * float(np.prod(self._shape()))


def released_parts(
    release: Release, data: Dataset, names: Sequence[str], device: torch.device
) -> dict[str, Released]:
    """What is seen of *attack*, *select* and *test*; vectors are made as learned on *attack*."""
    attack = Released(release, data.part("attack"), names, device)
    return {"attack": attack} | {
        part: Released(release, data.part(part), names, device, like=attack)
        for part in ("select", "test")
    }


def storage(device: torch.device) -> float:
    """How many bytes the released records of a part may take."""
    free = STORED_SHARE * free_memory() if device.type == "cpu" else 0.0
    return max(STORED_BYTES[device.type], free)


def _cut(order: Array, size: int) -> list[Array]:
    return [order[start : start + size] for start in range(0, len(order), size)]
