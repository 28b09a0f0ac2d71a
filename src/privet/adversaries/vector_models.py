"""What adversaries share that take a record as one vector and are fitted in one go: candidates are
fitted on *attack*, and the one that ranks the *select* people best is kept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from privet.adversaries.adversary import Adversary, Tick, known, rank, silent
from privet.adversaries.released import Released
from privet.data.dataset import Array, Attribute

Answer = Callable[[Tensor], Array]
"""Vectors (n, d) to probabilities (n, classes), or to numbers (n,)."""
Look = Callable[[Tensor], Array]
"""Vectors (n, d) to rows (n, columns), as scikit-learn takes them."""


@dataclass(frozen=True)
class Answered:
    answer: Answer

    def answers(self, released: Released) -> Array:
        return self.answer(released.vectors())


@dataclass(frozen=True, kw_only=True)
class OnVectors(Adversary):
    draws: int = 4
    """Releases of each record to learn from, where every release has fresh noise."""
    most: int = 40_000
    """Most vectors to learn from, drawn at random."""

    @abstractmethod
    def candidates(self, x: Tensor, y: Array, attribute: Attribute, seed: int) -> Iterator[Answer]:
        """Fitted ways to answer, one after the other; written by every adversary of this kind."""

    def attack(
        self,
        seen: Released,
        select: Released,
        attribute: Attribute,
        seed: int = 0,
        tick: Tick = silent,
    ) -> Answered:
        y = seen.labels(attribute.name)
        there = torch.as_tensor(np.flatnonzero(known(y)), device=seen.feed.device)
        x = torch.cat([seen.vectors()[there] for _ in range(self.draws if seen.fresh else 1)])
        y = np.tile(y[there.cpu().numpy()], len(x) // max(len(there), 1))
        if len(x) > self.most:
            drawn = np.random.default_rng(seed).choice(len(x), self.most, replace=False)
            x, y = x[torch.as_tensor(drawn, device=x.device)], y[drawn]
        truth, apart = select.labels(attribute.name), select.vectors()
        best: tuple[float, Answer] | None = None
        for done, answer in enumerate(self.candidates(x, y, attribute, seed)):
            score = rank(truth, answer(apart))
            best = (score, answer) if best is None or score > best[0] else best
            tick(1 - 0.5 ** (done + 1))
        tick(1.0)
        assert best is not None, "every adversary has a candidate"
        return Answered(best[1])


def numpy(x: Tensor) -> Array:
    return x.detach().cpu().numpy()


def shares(table: Array, present: Array, classes: int) -> Array:
    """Probabilities over all classes, from those over the classes that a model has seen."""
    full: Array = np.zeros((len(table), classes))
    full[:, np.asarray(present, dtype=int)] = table
    return np.asarray(full / full.sum(1, keepdims=True))


def softmax(scores: Array) -> Array:
    """Scores to something that sums to one and keeps their order."""
    shifted = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(shifted / shifted.sum(1, keepdims=True))


def told(model: Any, look: Look, attribute: Attribute) -> Answer:
    """The answers of a fitted scikit-learn model to whom `look` shows the vectors."""

    def classes(z: Tensor) -> Array:
        return shares(model.predict_proba(look(z)), model.classes_, attribute.classes)

    def number(z: Tensor) -> Array:
        return np.asarray(model.predict(look(z)), dtype=float)

    return classes if attribute.is_class else number


def turned(change: Callable[[Tensor], Tensor]) -> Look:
    """Vectors as scikit-learn takes them, after a change."""
    return lambda z: numpy(change(z))


def margins(decision: Array) -> Array:
    """A signed distance from one border, or one per class, as probabilities."""
    return (
        softmax(np.stack([-decision, decision], 1) / 2) if decision.ndim == 1 else softmax(decision)
    )


def only(y: Array, attribute: Attribute) -> Answer | None:
    """What to say where all labels are the same: that."""
    if not attribute.is_class or len(np.unique(y)) > 1:
        return None
    table = (
        np.eye(attribute.classes)[int(y[0])]
        if len(y)
        else np.full(attribute.classes, 1 / attribute.classes)
    )
    return lambda x: np.tile(table, (len(x), 1))
