"""Readers that learned elsewhere: a model that a user brings, such as a network pretrained on
millions of faces, and that Privet does not have.

It is any function from records to features or scores. What these tell of an attribute is learned on
*attack*, by logistic regression and by boosting, and chosen on *select*.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from privet.adversaries.adversary import (
    Adversary,
    Tick,
    Trained,
    TrainedFunction,
    ranking_score,
    silent,
)
from privet.adversaries.linear import Logistic
from privet.adversaries.released import Released
from privet.adversaries.trees import Boosting
from privet.adversaries.vector_records import VectorRecords
from privet.core.errors import PrivetError
from privet.data.dataset import Array, Attribute
from privet.release.runtime import session

# Encoded records (n, ...) to features or scores, (n,) or (n, ...).
ReaderFunction = Callable[[Array], Array]

# Records that a reader is given at a time.
AT_ONCE = 256


@dataclass(frozen=True, kw_only=True)
class Reader(Adversary):
    """A model that learned elsewhere, and what its features tell of an attribute.

    Parameters:
        function: From encoded raw records (uint8 pictures, float rows or windows, word ids) to
            features or scores, one row a record; or an ONNX file that does so.
    """

    function: ReaderFunction | Path
    name: ClassVar[str] = "reader"
    title: ClassVar[str] = "reader that learned elsewhere"
    on_cpu: ClassVar[bool] = True

    def attack(
        self,
        seen: Released,
        select: Released,
        attribute: Attribute,
        seed: int = 0,
        tick: Tick = silent,
    ) -> Trained:
        run, name = self._run(), attribute.name
        learn = _features(run, seen, name)
        chosen = _features(run, select, name, learn)
        tries = []
        for done, head in enumerate((Logistic(strengths=(1e-3, 1e-1)), Boosting())):
            trained = head.attack(learn, chosen, attribute, seed)
            score = ranking_score(chosen.labels(name), trained.answers(chosen))
            tries.append((score, trained))
            tick((done + 1) / 2)
        best = max(tries, key=lambda pair: pair[0])[1]
        return TrainedFunction(lambda part: best.answers(_features(run, part, name, learn)))

    def _run(self) -> ReaderFunction:
        if callable(self.function):
            return self.function
        path = Path(self.function)
        try:
            graph = session(path.read_bytes())
        except (OSError, PrivetError) as error:
            raise PrivetError(f"The reader {path} cannot be run: {error}.") from None
        entry = graph.get_inputs()[0]
        kind = np.uint8 if "uint8" in entry.type else np.int64 if "int64" in entry.type else None
        return lambda x: np.asarray(graph.run(None, {entry.name: x.astype(kind or np.float32)})[0])


def _features(
    run: ReaderFunction, part: Released, name: str, like: VectorRecords | None = None
) -> VectorRecords:
    draw = partial(_draw, run, part)
    labels, device = {name: part.labels(name)}, part.feed.device
    return VectorRecords(draw, labels, part.people, device, like, part.fresh_noise)


def _draw(run: ReaderFunction, part: Released) -> Tensor:
    rows = []
    for z, _ in part.batches(AT_ONCE):
        made = np.asarray(run(_encoded(z, part)), dtype=np.float32)
        if len(made) != len(z) or not np.isfinite(made).all():
            raise PrivetError(
                f"A reader of {len(z)} records gave an array of shape {made.shape}: it must give "
                "finite numbers, one row a record."
            )
        rows.append(made.reshape(len(z), -1))
    return torch.as_tensor(np.concatenate(rows), device=part.feed.device)


def _encoded(z: Tensor, part: Released) -> Array:
    """Released records as raw ones are encoded: pictures of real numbers, which networks give
    between -1 and 1, become bytes."""
    is_picture = part.feed.inputs.array.dtype == np.uint8
    if is_picture and z.is_floating_point():
        z = (127.5 * (z + 1)).round().clamp(0, 255).byte()
    return z.cpu().numpy()
