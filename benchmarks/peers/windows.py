"""Released windows as networks take them: channels and steps, where other readers see a vector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor

from privet.adversaries.vector_records import VectorRecords
from privet.adversaries.view import View


class WindowRecords(VectorRecords):
    """Vectors that batches show as windows.

    Parameters:
        shape: Channels and steps; of any other length, they stay vectors.
        others: What `VectorRecords` takes.
    """

    def __init__(self, shape: Sequence[int], *others: Any) -> None:
        super().__init__(*others)
        if len(shape) == 2:
            self.view = View(tuple(shape))

    def batches(
        self, size: int, seed: int | None = None, drop_last: bool = False
    ) -> Iterator[tuple[Tensor, dict[str, Tensor]]]:
        for z, labels in super().batches(size, seed, drop_last):
            yield z.unflatten(1, self.view.shape), labels  # type: ignore[arg-type]
