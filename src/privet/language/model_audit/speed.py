"""Training speed against the plain model's: tokens per second of both in turn in one process, so
that a busy machine slows both."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch

from privet.data.dataset import Array
from privet.data.schema import PAD, Inputs
from privet.language.models.dp_sgd import lstm_class, train_with_dp
from privet.language.models.networks import build_network
from privet.language.models.regularizers import AUTHOR, regularized_training
from privet.language.models.settings import Settings
from privet.train.feed import Feed
from privet.train.game import Game, Run

# Steps in a turn.
STEPS = {"cpu": 8, "cuda": 25}


class Speed(NamedTuple):
    """Tokens per second of a model, and of the plain one measured in turn with it."""

    tokens_per_second: float
    plain: float

    @property
    def ratio(self) -> float:
        return self.tokens_per_second / self.plain


def measure(
    settings: Settings,
    plain: Settings,
    ids: Array,
    author: Array,
    vocabulary: int,
    device: torch.device,
    steps: int | None = None,
    turns: int = 4,
) -> Speed:
    """The best of so many turns of so many steps each, after one that is not counted."""
    steps = steps or STEPS.get(device.type, STEPS["cpu"])
    models = list(dict.fromkeys([settings, plain]))
    trainings = [_training(model, ids, author, vocabulary, device, steps) for model in models]
    seconds = [[_seconds(training, device) for training in trainings] for _ in range(turns + 1)]
    of_row = float((ids[:, 1:] != PAD).sum()) / len(ids)
    rates = [
        of_row * min(model.batch, len(ids)) * steps / min(times)
        for model, times in zip(models, zip(*seconds[1:], strict=True), strict=True)
    ]
    return Speed(rates[0], rates[-1])


def _training(
    settings: Settings,
    ids: Array,
    author: Array,
    vocabulary: int,
    device: torch.device,
    steps: int,
) -> Callable[[], object]:
    """A function that trains for so many steps."""
    run, batch = Run(progress=False, device=str(device)), min(settings.batch, len(ids))
    if settings.regularizer == "dp":
        model = build_network(settings, vocabulary, lstm_class(settings.model))
        budget = replace(settings.budget(len(ids)), delta=1e-5, steps=steps)
        return lambda: train_with_dp(model, ids, budget, settings.lr, run, device, noise=1.0)
    model = build_network(settings, vocabulary)
    epochs = steps / max(1, len(ids) // batch)
    modules, phase = regularized_training(model, settings, int(author.max()) + 1, epochs)
    feed = Feed(Inputs(ids), {AUTHOR: author}, device)
    game = Game(modules, [phase], feed, batch, settings.seed, "")
    return lambda: game.play(run)


def _seconds(training: Callable[[], object], device: torch.device) -> float:
    start = time.perf_counter()
    training()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start
