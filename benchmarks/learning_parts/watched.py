"""The product's own loop, watched."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from torch import Tensor

from learning_parts.bench import Bench
from learning_parts.works import Work
from privet.train.game import Game, Run


class Watched(Game):
    """The game itself; notes when round `warm` begins, and every round's figures where they are
    asked for."""

    warm, keeps, wait = 0, False, staticmethod(lambda: None)
    started = 0.0
    done = 0

    def _round(self, *given: Any) -> dict[str, Tensor]:
        if self.done == self.warm:
            self.wait()
            self.started = time.perf_counter()
        self.done += 1
        moved = super()._round(*given)
        if self.keeps:
            self.curve.append({name: value.clone() for name, value in moved.items()})
        return moved


def play(
    bench: Bench,
    work: Work,
    pace: str,
    warm: int,
    rounds: int,
    kind: type[Watched] = Watched,
    keeps: bool = False,
) -> Watched:
    """`warm` + `rounds` rounds of the phase; the seconds of one are in `.each`."""
    game = kind(work.modules, [work.phase], work.feed, work.batch, 0, "")
    per_epoch = game.rounds(replace(work.phase, epochs=1))
    game.phases = [replace(work.phase, epochs=(warm + rounds) / per_epoch)]
    game.warm, game.keeps, game.wait, game.curve = warm, keeps, bench.wait, []  # type: ignore[attr-defined,misc]
    began = time.perf_counter()
    game.play(Run(device=bench.device.type, progress=False, pace=pace))
    bench.wait()
    game.each = (time.perf_counter() - game.started) / rounds  # type: ignore[attr-defined]
    game.before = game.started - began  # type: ignore[attr-defined]
    return game
