"""Feed: encoded records and their labels, as batches on the device.

What fits stays on the device; what does not is read from the memory-mapped cache one batch ahead, in a thread.
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

SHARE_OF_GPU = 0.3
"""Of the free memory of a GPU, how much records may take to stay there."""


@dataclass(frozen=True)
class Batch:
    x: Tensor
    labels: dict[str, Tensor]
    """int64 codes with -1 for missing; uint8 (n, height, width) for masks."""


class Feed:
    def __init__(self, inputs: Inputs, labels: Mapping[str, Array], device: torch.device) -> None:
        self.inputs, self.device = inputs, device
        self.labels = {name: torch.as_tensor(np.asarray(column), device=device) for name, column in labels.items()}
        self.lengths = (inputs[:] != PAD).sum(1) if inputs.array.dtype == np.int64 and inputs.array.ndim == 2 else None
        self.resident = self._load() if self._fits() else None

    def __len__(self) -> int:
        return len(self.inputs)

    def batch(self, index: Array) -> Batch:
        """The records at these positions; texts are cut to the longest of the batch."""
        where = torch.as_tensor(index, device=self.device)
        if self.resident is not None:
            x = self.resident[where]
        else:
            x = torch.from_numpy(np.ascontiguousarray(self.inputs[index])).to(self.device, non_blocking=True)
        if self.lengths is not None:
            x = x[:, : int(self.lengths[index].max(initial=1))]
        if x.dim() == 4:
            x = x.contiguous(memory_format=torch.channels_last)
        return Batch(x, {name: column[where] for name, column in self.labels.items()})

    def batches(self, indices: Iterable[Array]) -> Iterator[Batch]:
        """One batch per index array; read ahead in a thread where records come from disk."""
        if self.resident is not None:
            yield from map(self.batch, indices)
            return
        ready: queue.Queue[Batch | BaseException | None] = queue.Queue(maxsize=2)
        stop = threading.Event()

        def read() -> None:
            try:
                for index in indices:
                    if not _put(ready, self.batch(index), stop):
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
                yield item
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
        held = torch.empty((len(self.inputs), *first.shape[1:]), dtype=first.dtype, device=self.device)
        for start in range(0, len(held), 4096):
            chunk = self.inputs[np.arange(start, min(start + 4096, len(held)))]
            held[start : start + len(chunk)] = torch.from_numpy(np.ascontiguousarray(chunk)).to(self.device)
        return held


def _put(ready: queue.Queue[Batch | BaseException | None], item: Batch | BaseException | None, stop: threading.Event) -> bool:
    while not stop.is_set():
        try:
            ready.put(item, timeout=0.1)
            return True
        except queue.Full:
            continue
    return False
