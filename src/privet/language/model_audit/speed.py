"""Training time against the plain model's: tokens per second, of both in turn in one process, so
that a busy machine slows both."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch

from privet.data.dataset import Array
from privet.data.schema import PAD, Inputs
from privet.language.models.dp_sgd import Spending, cell, learn_private
from privet.language.models.networks import build
from privet.language.models.regularizers import AUTHOR, lesson
from privet.language.models.train import Settings
from privet.train.feed import Feed
from privet.train.game import Game, Run

ROUNDS = {"cpu": 8, "cuda": 25}
"""Steps in a turn."""


class Speed(NamedTuple):
    tokens_per_second: float
    plain: float
    """Of the unregularised model, measured in turn with it."""

    @property
    def ratio(self) -> float:
        return self.tokens_per_second / self.plain


def measure(
    settings: Settings,
    ids: Array,
    author: Array,
    vocabulary: int,
    device: torch.device,
    rounds: int | None = None,
    turns: int = 4,
) -> Speed:
    """The best of so many turns of so many steps each, after one that is not counted."""
    rounds = rounds or ROUNDS.get(device.type, ROUNDS["cpu"])
    if settings.regularizer == "none":
        found = _rates([settings], ids, author, vocabulary, device, rounds, turns)
        return Speed(found[0], found[0])
    return Speed(
        *_rates(
            [settings, replace(settings, regularizer="none")],
            ids,
            author,
            vocabulary,
            device,
            rounds,
            turns,
        )
    )


def _rates(
    asked: Sequence[Settings],
    ids: Array,
    author: Array,
    vocabulary: int,
    device: torch.device,
    rounds: int,
    turns: int,
) -> list[float]:
    tokens = float((ids[:, 1:] != PAD).sum()) / len(ids) * min(asked[0].batch, len(ids)) * rounds
    steps = [_steps(one, ids, author, vocabulary, device, rounds) for one in asked]
    best = [float("inf")] * len(steps)
    for turn in range(turns + 1):
        for place, step in enumerate(steps):
            taken = _timed(step, device)
            best[place] = min(best[place], taken) if turn else best[place]
    return [tokens / taken for taken in best]


def _steps(
    settings: Settings,
    ids: Array,
    author: Array,
    vocabulary: int,
    device: torch.device,
    rounds: int,
) -> Callable[[], None]:
    """Something to call that trains for so many steps."""
    private = settings.regularizer == "dp"
    kind = cell(settings.model) if private else torch.nn.LSTM
    model = build(
        settings.model,
        vocabulary,
        settings.width,
        settings.layers,
        settings.dropout,
        settings.longest,
        kind,
    )
    run, batch = Run(progress=False, device=str(device)), min(settings.batch, len(ids))
    if private:
        spending = Spending(
            epsilon=settings.epsilon,
            delta=1e-5,
            clip=settings.clip,
            rate=batch / len(ids),
            steps=rounds,
        )
        return lambda: _forget(
            learn_private(model, ids, spending, settings.lr, run, "", device, noise=1.0)
        )
    made = lesson(
        model,
        settings.regularizer,
        settings.weight,
        authors=int(author.max()) + 1,
        width=settings.width,
        margin=settings.margin,
        lr=settings.lr,
        epochs=rounds / max(1, len(ids) // batch),
    )
    game = Game(
        made.modules,
        [made.phase],
        Feed(Inputs(ids), {AUTHOR: author}, device),
        batch,
        settings.seed,
        "",
    )
    return lambda: game.play(run)


def _forget(_result: object) -> None:
    return None


def _timed(step: Callable[[], None], device: torch.device) -> float:
    start = time.perf_counter()
    step()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start
