"""Cache of classifiers trained on raw records. They do not depend on the release, so one serves
every audit of the same data.

The last few are in memory. Inside `cache_folder`, each is a file as well, for the other workers of
a comparison.
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

# Classifiers held in memory.
IN_MEMORY = 8
_memory: dict[str, RawClassifier] = {}
_folder: Path | None = None


@dataclass(frozen=True)
class RawClassifier:
    """A network trained on raw records.

    Parameters:
        score: How well it ranks the *select* people.
        weights: Its state.
    """

    score: float
    weights: dict[str, Tensor]


@contextmanager
def cache_folder(folder: Path) -> Iterator[None]:
    """Classifiers are read from `folder` and written there."""
    global _folder
    before, _folder = _folder, folder
    try:
        yield
    finally:
        _folder = before


def store(key: str, classifier: RawClassifier) -> None:
    """Keep a classifier under a key that names everything it depends on."""
    _remember(key, classifier)
    if _folder is not None:
        _folder.mkdir(parents=True, exist_ok=True)
        weights = {k: v.detach().cpu().contiguous() for k, v in classifier.weights.items()}
        with replacing(_folder / f"{key}.safetensors") as temporary:
            save_file(weights, temporary, {"score": repr(classifier.score)})


def lookup(key: str, device: torch.device) -> RawClassifier | None:
    """The classifier with this key, its weights on the device; None where there is none yet."""
    if key not in _memory and _folder is not None:
        try:
            with safe_open(_folder / f"{key}.safetensors", "pt", str(device)) as file:
                weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                _remember(key, RawClassifier(float(file.metadata()["score"]), weights))
        except (OSError, SafetensorError):
            return None
    return _memory.get(key)


def _remember(key: str, classifier: RawClassifier) -> None:
    while len(_memory) >= IN_MEMORY:
        del _memory[next(iter(_memory))]
    _memory[key] = classifier
