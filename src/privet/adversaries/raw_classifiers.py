"""What networks learned from raw records: it does not depend on the release, and one attribute is
asked of many.

The last few lessons are in memory. Where a shelf is named, each is a file there as well, for the
other workers of a comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from privet.core.files import replacing

KEPT = 8
"""Lessons in memory."""
_held: dict[str, Lesson] = {}
_folder: Path | None = None


@dataclass(frozen=True)
class Lesson:
    score: float
    """How well the network ranks the *select* people."""
    weights: dict[str, Tensor]


@contextmanager
def shelf(folder: Path) -> Iterator[None]:
    """Lessons are read from `folder` and written there."""
    global _folder
    before, _folder = _folder, folder
    try:
        yield
    finally:
        _folder = before


def keep(key: str, lesson: Lesson) -> None:
    _hold(key, lesson)
    if _folder is not None:
        _folder.mkdir(parents=True, exist_ok=True)
        tensors = {
            name: value.detach().cpu().contiguous() for name, value in lesson.weights.items()
        }
        with replacing(_folder / f"{key}.safetensors") as temporary:
            save_file(tensors, temporary, {"score": repr(lesson.score)})


def recall(key: str, device: torch.device) -> Lesson | None:
    """The lesson of this name, its weights on the device; None where nobody has had it yet."""
    if key not in _held and _folder is not None:
        try:
            with safe_open(_folder / f"{key}.safetensors", "pt", str(device)) as file:
                _hold(
                    key,
                    Lesson(
                        float(file.metadata()["score"]),
                        {name: file.get_tensor(name) for name in file.keys()},  # noqa: SIM118
                    ),
                )
        except (OSError, SafetensorError):
            return None
    return _held.get(key)


def _hold(key: str, lesson: Lesson) -> None:
    while len(_held) >= KEPT:
        del _held[next(iter(_held))]
    _held[key] = lesson
