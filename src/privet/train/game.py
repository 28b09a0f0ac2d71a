"""Players, moves, rounds: the one training loop that every learned method uses.

A game is a list of phases. In each round of a phase every player moves in turn: it draws a batch
from the records it may see, computes its objective and takes a step against it. Players that see
the same records see the same batch. A method may hand over one *fused* step instead: one loss whose
gradient is every player's own, for one forward and one backward pass.

Nothing random is carried from round to round. The order of the records and the state of torch's
generator follow from (seed, phase, round), so a game that is killed and resumed from a checkpoint
ends in the same weights. (On a GPU: it sees the same records and the same noise. Sums are taken
there in another order from run to run, disturbed or not.)

No round waits for a GPU: an epoch's order is sent there once, and figures are read twice a second.
How a move is made there, recorded or compiled, is in step.py.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from privet.core.errors import PrivetError
from privet.core.progress import bar
from privet.core.run_log import RunLog, is_logged
from privet.data.dataset import Array
from privet.nets.device import RunAheadLimit, place, tried_kernels
from privet.train import checkpoint
from privet.train import distributed as parallel
from privet.train.cuda_graph import set_rate
from privet.train.feed import Batch, Feed, Positions
from privet.train.step import Move, PlainStep, RecordedStep, pace

__all__ = ["Game", "Move", "Phase", "Player", "Run"]

# One per player of the phase, by name.
Optimisers = Mapping[str, torch.optim.Optimizer]
# One per player of the phase, by name; a single one under the first player's name where the step is
# fused.
Steps = Mapping[str, PlainStep | RecordedStep]


@dataclass(frozen=True)
class Player:
    """One network of a game, with what it minimises.

    Parameters:
        module: Whose parameters this player moves.
        steps: Moves per round.
        records: Positions in the feed it may see; None for all.
        decay: Decoupled weight decay.
    """

    name: str
    module: nn.Module
    objective: Callable[[Batch], Move]
    lr: float = 1e-4
    steps: int = 1
    records: Array | None = None
    decay: float = 0.0


@dataclass(frozen=True)
class Phase:
    """A stretch of a game with the same players.

    Parameters:
        epochs: How often the first player sees each of its records; the number of rounds follows.
        fused: One loss with every player's gradient; used in place of the separate objectives.
        schedule: Factor on every learning rate, given the share of the phase that is done.
        after: Called at the end of every epoch, to judge and to keep a state; what it gives is
            shown with the other figures.
        steady: Whether a move computes the same for every batch: whatever changes from round to
            round is a tensor on the device, changed in place, and nothing is read back. A GPU may
            then be told once.
    """

    name: str
    epochs: float
    players: Sequence[Player]
    fused: Callable[[Batch], Move] | None = None
    schedule: Callable[[float], float] = lambda _done: 1.0
    after: Callable[[], Mapping[str, float]] = dict
    steady: bool = False


@dataclass(frozen=True)
class Run:
    """How and where to play: nothing here changes what is learned.

    Parameters:
        folder: Where checkpoints go; None keeps none.
        every: Seconds between checkpoints.
        rounds_between: Rounds between checkpoints, instead of seconds.
        pace: On a GPU: plain, recorded, compiled (or compiled:MODE of torch.compile), or auto for
            what pays.
        command: Written into the card as the command that made the release.
        accept: Kinds of checks of the data (data/checks.py) that shall not stop the work.
        force: Whether a release that is in the folder already may be replaced.
        log: Is told the figures of rounds.
    """

    folder: Path | None = None
    resume: bool = False
    device: str = "auto"
    progress: bool = True
    every: float = 30.0
    rounds_between: int | None = None
    pace: str = "auto"
    command: str | None = None
    accept: tuple[str, ...] = ()
    force: bool = False
    log: RunLog | None = None

    def is_due(self, seconds: float, rounds: int) -> bool:
        """Whether to save, so many seconds after the last checkpoint and at the end of this
        round."""
        if self.rounds_between is None:
            return seconds > self.every
        return rounds % self.rounds_between == 0

    @property
    def checkpoint(self) -> Path | None:
        """The file of the checkpoint."""
        return None if self.folder is None else self.folder / checkpoint.CHECKPOINT


class Game:
    """The training loop: phases of players, played from a seed, with checkpoints."""

    def __init__(
        self,
        modules: Mapping[str, nn.Module],
        phases: Sequence[Phase],
        feed: Feed,
        batch: int,
        seed: int,
        identity: str,
    ) -> None:
        """`identity` names the work (method, settings, data): a checkpoint of other work is
        refused."""
        self.modules, self.phases, self.feed, self.seed, self.identity = (
            modules,
            phases,
            feed,
            seed,
            identity,
        )
        self.batch = min(batch, len(feed))
        self.history: list[dict[str, Any]] = []
        """One row per epoch: the phase, the epoch, and every figure's running mean."""

    def play(self, run: Run) -> list[dict[str, Any]]:
        """Play all phases; gives the history."""
        for module in self.modules.values():
            place(module, self.feed.device).train()
        start_phase, start_round, tensors = self._resume(run)
        parallel.agree(self.modules)
        with (
            tried_kernels(self.feed.device),
            checkpoint.CheckpointWriter(self.feed.device.type == "cuda") as self._keeper,
        ):
            for number in range(start_phase, len(self.phases)):
                self._play_phase(
                    number,
                    start_round if number == start_phase else 0,
                    tensors if number == start_phase else {},
                    run,
                )
        parallel.agree(self.modules)
        return self.history

    def _play_phase(self, number: int, start: int, tensors: Mapping[str, Tensor], run: Run) -> None:
        phase = self.phases[number]
        optimisers = {p.name: parallel.averaging(self._optimiser(p)) for p in phase.players}
        for name, optimiser in optimisers.items():
            checkpoint.restore_optimiser(tensors, name, optimiser)
        rounds, per_epoch = self.rounds(phase), self._rounds_per_epoch(phase)
        steps, ahead = self._steps(phase, optimisers, rounds, run), RunAheadLimit(self.feed.device)
        shown = saved = time.monotonic()
        figures = dict(self._figures) if start else {}
        with bar(phase.name, rounds, run.progress) as tick:
            batches = self._batches(number, phase, start, rounds)
            for done in range(start + 1, rounds + 1):
                torch.manual_seed(_mix(self.seed, number, done - 1))
                self._set_rate(phase, optimisers, (done - 1) / rounds)
                figures = _smoothed(figures, self._round(phase, steps, batches))
                ahead.round()
                judged: dict[str, Tensor] = {}
                if epoch_ends := done % per_epoch == 0 or done == rounds:
                    judged = {k: torch.tensor(v) for k, v in phase.after().items()}
                    self._remember(phase, done / per_epoch, {**figures, **judged})
                if run.log is not None and (epoch_ends or is_logged(done, rounds)):
                    run.log.round(phase.name, done, rounds, _numbers({**figures, **judged}))
                now = time.monotonic()
                if run.progress and (now - shown > 0.5 or done == rounds):
                    shown = now
                    tick(done, "  ".join(f"{k} {float(v):.3f}" for k, v in figures.items()))
                if run.checkpoint and run.is_due(now - saved, done):
                    self._save(run.checkpoint, number, done, optimisers, figures)
                    saved = time.monotonic()
        self._end_phase(number, steps, run)

    def _end_phase(self, number: int, steps: Steps, run: Run) -> None:
        for player in self.phases[number].players:
            player.module.zero_grad()
        for step in steps.values():
            step.end()
        if run.checkpoint and number + 1 < len(self.phases):
            self._save(run.checkpoint, number + 1, 0, {}, {})

    def _round(self, phase: Phase, steps: Steps, batches: Iterator[Batch]) -> dict[str, Tensor]:
        if phase.fused is not None:
            return dict(steps[phase.players[0].name](next(batches)))
        figures: dict[str, Tensor] = {}
        for player in phase.players:
            for _ in range(player.steps):
                figures |= steps[player.name](next(batches))
        return figures

    def _steps(self, phase: Phase, optimisers: Optimisers, rounds: int, run: Run) -> Steps:
        if phase.fused is not None:
            together = PlainStep(
                parallel.of_all(phase.fused),
                [p.module for p in phase.players],
                list(optimisers.values()),
            )
            each = {phase.players[0].name: (together, rounds)}
        else:
            each = {
                p.name: (
                    PlainStep(parallel.of_all(p.objective), [p.module], [optimisers[p.name]]),
                    rounds * p.steps,
                )
                for p in phase.players
            }
        steady = phase.steady and self.feed.lengths is None and parallel.size() == 1
        return {
            name: pace(run.pace, step, steady=steady, steps=n, device=self.feed.device)
            for name, (step, n) in each.items()
        }

    def rounds(self, phase: Phase) -> int:
        """How many rounds a phase has."""
        return (
            max(1, round(phase.epochs * self._rounds_per_epoch(phase))) if phase.epochs > 0 else 0
        )

    def _rounds_per_epoch(self, phase: Phase) -> int:
        first = phase.players[0]
        return max(1, self._count(first) // self.batch // (1 if phase.fused else first.steps))

    def _count(self, player: Player) -> int:
        return len(self.feed) if player.records is None else len(player.records)

    def _batches(self, number: int, phase: Phase, start: int, rounds: int) -> Iterator[Batch]:
        """The batches of all moves from round `start` on, in the order they are needed."""

        orders: dict[str, tuple[int, Positions]] = {}

        def indices() -> Iterator[Positions]:
            for done in range(start, rounds):
                for player in phase.players[:1] if phase.fused else phase.players:
                    for step in range(1 if phase.fused else player.steps):
                        yield self._draw(
                            number,
                            player,
                            done * (1 if phase.fused else player.steps) + step,
                            orders,
                        )

        return parallel.batches(self.feed, indices())

    def _draw(
        self, number: int, player: Player, move: int, orders: dict[str, tuple[int, Positions]]
    ) -> Positions:
        """Positions of a player's batch: the records it may see in a new order every epoch, a part
        of it per move.

        `orders` holds every player's latest epoch and its order.
        """
        count = self._count(player)
        size = min(self.batch, count)
        epoch, place_in_epoch = divmod(move, max(1, count // size))
        if player.name not in orders or orders[player.name][0] != epoch:
            rng = np.random.default_rng([self.seed, number, epoch])
            order = rng.permutation(count)
            order = self.feed.order(
                order if player.records is None else player.records[order], size, rng
            )
            orders[player.name] = epoch, self.feed.places(order)
        return orders[player.name][1][place_in_epoch * size : (place_in_epoch + 1) * size]

    def _optimiser(self, player: Player) -> torch.optim.Optimizer:
        gpu = self.feed.device.type == "cuda"
        rate = (
            torch.tensor(player.lr, device=self.feed.device) if gpu else player.lr
        )  # a recorded step reads it anew
        gpus: dict[str, Any] = {"fused": True, "capturable": True} if gpu else {}
        if player.decay:
            return torch.optim.AdamW(
                player.module.parameters(), lr=rate, weight_decay=player.decay, **gpus
            )
        return torch.optim.Adam(player.module.parameters(), lr=rate, **gpus)

    def _set_rate(self, phase: Phase, optimisers: Optimisers, done: float) -> None:
        factor = phase.schedule(done)
        for player in phase.players:
            set_rate(optimisers[player.name], player.lr * factor)

    def _remember(self, phase: Phase, epoch: float, figures: Mapping[str, Tensor]) -> None:
        row = {
            "phase": phase.name,
            "epoch": round(epoch, 3),
            **{k: round(float(v), 5) for k, v in figures.items()},
        }
        if not all(math.isfinite(v) for v in row.values() if isinstance(v, float)):
            raise PrivetError(
                f"Learning diverged in the phase '{phase.name}' ({row}); try a smaller learning"
                " rate with --set lr=..."
            )
        self.history.append(row)

    def _save(
        self,
        path: Path,
        number: int,
        done: int,
        optimisers: Optimisers,
        figures: Mapping[str, Tensor],
    ) -> None:
        if not parallel.first():
            return
        meta = {
            "identity": self.identity,
            "phase": number,
            "round": done,
            "history": self.history,
            "figures": {k: float(v) for k, v in figures.items()},
        }
        self._keeper.save(path, self.modules, optimisers, meta)

    def _resume(self, run: Run) -> tuple[int, int, dict[str, Tensor]]:
        self._figures: dict[str, Tensor] = {}
        if not (run.resume and run.checkpoint and run.checkpoint.exists()):
            return 0, 0, {}
        tensors, meta = checkpoint.load(run.checkpoint)
        if meta["identity"] != self.identity:
            raise PrivetError(
                f"The checkpoint in {run.folder} was made with other settings or data; repeat"
                " those, or leave out --resume."
            )
        checkpoint.restore_modules(tensors, self.modules)
        self.history = meta["history"]
        self._figures = {
            k: torch.tensor(v, device=self.feed.device) for k, v in meta["figures"].items()
        }
        return meta["phase"], meta["round"], tensors


def _smoothed(figures: Mapping[str, Tensor], new: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Running means of what rounds report."""
    return {
        k: torch.lerp(figures[k], v, 0.05) if k in figures else v.clone() for k, v in new.items()
    }


def _numbers(figures: Mapping[str, Tensor]) -> dict[str, float]:
    return {name: float(value) for name, value in figures.items()}


def _mix(seed: int, phase: int, done: int) -> int:
    return int(np.random.SeedSequence([seed, phase, done]).generate_state(1, np.uint64)[0] >> 1)
