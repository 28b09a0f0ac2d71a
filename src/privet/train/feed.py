"""Feed: encoded records and their labels, as batches on the device.

What fits stays on the device; what does not is read from the memory-mapped cache one batch ahead,
in a thread.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from privet.data.dataset import Array
from privet.data.schema import PAD, Inputs
from privet.nets.device import SideStream

# Of the free memory of a GPU, how much records may take to stay there.
SHARE_OF_GPU = 0.3
# Batches of texts that are sorted by length together.
SORTED = 50
# The label that says whose record it is, where records of a person stay together.
PERSON = "(person)"


@dataclass(frozen=True)
class Batch:
    """Some encoded records and their labels, on the device.

    Parameters:
        labels: int64 codes with -1 for missing; uint8 (n, height, width) for masks.
    """

    x: Tensor
    labels: dict[str, Tensor]


# What a reader hands over: a batch and when it is there, an error, or the end.
_Item = tuple[Batch, torch.cuda.Event | None] | BaseException | None


@dataclass(frozen=True)
class Positions:
    """Positions of records, here and on the device: sent there once, and cut into batches without a
    word from here."""

    here: Array
    there: Tensor

    def __len__(self) -> int:
        return len(self.here)

    def __getitem__(self, part: slice) -> Positions:
        return Positions(self.here[part], self.there[part])


class Feed:
    """Encoded records and their labels, handed out as batches on the device.

    Parameters:
        inputs: The encoded records, in memory or mapped from disk.
        labels: One array per attribute, aligned with them.
        device: Where batches go. Records that fit stay there; others are read ahead in a thread.
        together: So many records of a person stand side by side in a batch whose size is a multiple
            of it, as far as people have so many; the labels then say under PERSON whose each is.
    """

    def __init__(
        self,
        inputs: Inputs,
        labels: Mapping[str, Array],
        device: torch.device,
        together: int = 1,
    ) -> None:
        self.inputs, self.device, self.together = inputs, device, together
        self.person = np.asarray(labels[PERSON]) if together > 1 else None
        self.labels = {
            name: torch.as_tensor(np.asarray(column), device=device)
            for name, column in labels.items()
        }
        self.lengths = (
            (inputs[:] != PAD).sum(1)
            if inputs.array.dtype == np.int64 and inputs.array.ndim == 2
            else None
        )
        self.resident = self._load() if self._fits() else None

    def __len__(self) -> int:
        return len(self.inputs)

    def places(self, positions: Array) -> Positions:
        return Positions(positions, torch.as_tensor(positions, device=self.device))

    def order(self, positions: Array, size: int, rng: np.random.Generator) -> Array:
        """These positions, in random order already, in the order that an epoch's batches of `size`
        are cut from.

        Texts of like length come together, so that little of a batch is padding: sorted within
        random groups of SORTED batches, and the batches shuffled. Each comes once, as before; what
        is left over for no whole batch was chosen before their lengths were seen. Where records of
        a person stay together, they do so in random order, and so do people.
        """
        if self.person is not None:
            return side_by_side(positions, self.person[positions], self.together)
        if self.lengths is None:
            return positions
        whole = positions[: len(positions) // size * size]
        group = np.arange(len(whole)) // (SORTED * size)
        batches = whole[np.lexsort((self.lengths[whole], group))].reshape(-1, size)
        return rng.permutation(batches).ravel()

    def batch(self, index: Array | Positions) -> Batch:
        """The records at these positions; texts are cut to the longest of the batch."""
        at = index if isinstance(index, Positions) else self.places(index)
        x = (
            self._sent(torch.from_numpy(self.inputs[at.here]))
            if self.resident is None
            else self.resident[at.there]
        )
        if self.lengths is not None:
            x = x[:, : int(self.lengths[at.here].max(initial=1))]
        if x.dim() == 4:
            x = x.contiguous(memory_format=torch.channels_last)
        return Batch(x, {name: column[at.there] for name, column in self.labels.items()})

    def _sent(self, x: Tensor) -> Tensor:
        """On the device; to a GPU from memory that it reads by itself, so that nobody waits for the
        copy."""
        return (
            x.pin_memory().to(self.device, non_blocking=True)
            if self.device.type == "cuda"
            else x.to(self.device)
        )

    def in_order(self, size: int = 512) -> Iterator[Batch]:
        """Batches of all records, in their order."""
        starts = range(0, len(self), size)
        return self.batches(np.arange(at, min(at + size, len(self))) for at in starts)

    def batches(self, indices: Iterable[Array | Positions]) -> Iterator[Batch]:
        """One batch per index; read ahead in a thread where records come from disk."""
        if self.resident is not None:
            yield from map(self.batch, indices)
            return
        ready: queue.Queue[_Item] = queue.Queue(maxsize=2)
        stop, lane = threading.Event(), SideStream(self.device)

        def read() -> None:
            try:
                with lane.aside():
                    for index in indices:
                        if not _put(ready, (self.batch(index), lane.mark()), stop):
                            return
                _put(ready, None, stop)
            except BaseException as error:
                _put(ready, error, stop)

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        try:
            while (item := ready.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                batch, mark = item
                lane.join(mark, [batch.x, *batch.labels.values()])
                yield batch
        finally:
            stop.set()
            thread.join()

    def _fits(self) -> bool:
        if self.device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self.device)
            return self.inputs.nbytes < SHARE_OF_GPU * free
        return self.inputs.rows is None and not isinstance(self.inputs.array, np.memmap)

    def _load(self) -> Tensor:
        """All records on the device, in steps that never hold more than one chunk twice."""
        if self.device.type == "cpu":
            return torch.from_numpy(np.asarray(self.inputs.array))
        first = torch.from_numpy(np.ascontiguousarray(self.inputs[:1]))
        held = torch.empty(
            (len(self.inputs), *first.shape[1:]), dtype=first.dtype, device=self.device
        )
        for start in range(0, len(held), 4096):
            chunk = self.inputs[np.arange(start, min(start + 4096, len(held)))]
            held[start : start + len(chunk)] = torch.from_numpy(chunk).to(self.device)
        return held


def side_by_side(positions: Array, person: Array, together: int) -> Array:
    """The positions with `together` of the same person next to each other, in the order in which
    people come first; those left over stand at the end.

    >>> side_by_side(np.arange(7), np.array([5, 8, 5, 8, 5, 9, 9]), 2)
    array([0, 2, 1, 3, 5, 6, 4])
    """
    _, first, who, count = np.unique(
        person, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first[who], kind="stable")
    who = who[order]
    starts = np.flatnonzero(np.diff(who, prepend=-1))
    rank = np.arange(len(who)) - np.repeat(starts, np.diff(starts, append=len(who)))
    whole = rank < count[who] // together * together
    return np.asarray(positions[np.concatenate([order[whole], order[~whole]])])


def _put(ready: queue.Queue[_Item], item: _Item, stop: threading.Event) -> bool:
    while not stop.is_set():
        try:
            ready.put(item, timeout=0.1)
            return True
        except queue.Full:
            continue
    return False
