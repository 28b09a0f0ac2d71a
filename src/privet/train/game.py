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
How a move is made there, recorded or compiled, is in turn.py.
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
from privet.data.dataset import Array
from privet.nets.device import Leash, place, tried_kernels
from privet.train import checkpoint
from privet.train import distributed as parallel
from privet.train.cuda_graph import set_rate
from privet.train.feed import Batch, Feed, Places
from privet.train.step import Move, Recorded, Turn, pace

__all__ = ["Game", "Move", "Phase", "Player", "Run"]

# One per player of the phase, by name.
Optimisers = Mapping[str, torch.optim.Optimizer]
# One per player of the phase, by name; a single one under the first player's name where the step is
# fused.
Turns = Mapping[str, Turn | Recorded]


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
    """

    folder: Path | None = None
    resume: bool = False
    device: str = "auto"
    progress: bool = True
    every: float = 30.0
    rounds_between: int | None = None
    pace: str = "auto"
    command: str | None = None

    @property
    def checkpoint(self) -> Path | None:
        return None if self.folder is None else self.folder / checkpoint.CHECKPOINT


class Game:
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

    def play(self, run: Run) -> None:
        for module in self.modules.values():
            place(module, self.feed.device).train()
        start_phase, start_round, tensors = self._resume(run)
        parallel.agree(self.modules)
        with (
            tried_kernels(self.feed.device),
            checkpoint.Keeper(self.feed.device.type == "cuda") as self._keeper,
        ):
            for number in range(start_phase, len(self.phases)):
                self._play_phase(
                    number,
                    start_round if number == start_phase else 0,
                    tensors if number == start_phase else {},
                    run,
                )
        parallel.agree(self.modules)

    def _play_phase(self, number: int, start: int, tensors: Mapping[str, Tensor], run: Run) -> None:
        phase = self.phases[number]
        optimisers = {p.name: parallel.averaging(self._optimiser(p)) for p in phase.players}
        for name, optimiser in optimisers.items():
            checkpoint.restore_optimiser(tensors, name, optimiser)
        rounds, per_epoch = self.rounds(phase), self._rounds_per_epoch(phase)
        turns, leash = self._turns(phase, optimisers, rounds, run), Leash(self.feed.device)
        shown, saved = time.monotonic(), time.monotonic()
        figures = dict(self._figures) if start else {}
        with bar(phase.name, rounds, run.progress) as tick:
            batches = self._batches(number, phase, start, rounds)
            for done in range(start, rounds):
                torch.manual_seed(_mix(self.seed, number, done))
                self._set_rate(phase, optimisers, done / rounds)
                moved = self._round(phase, turns, batches)
                figures = {
                    k: v.clone() if k not in figures else torch.lerp(figures[k], v, 0.05)
                    for k, v in moved.items()
                }
                leash.round()
                if (done + 1) % per_epoch == 0 or done + 1 == rounds:
                    judged = {k: torch.tensor(v) for k, v in phase.after().items()}
                    self._remember(phase, (done + 1) / per_epoch, {**figures, **judged})
                now = time.monotonic()
                if run.progress and (now - shown > 0.5 or done + 1 == rounds):
                    shown = now
                    tick(done + 1, "  ".join(f"{k} {float(v):.3f}" for k, v in figures.items()))
                due = (
                    now - saved > run.every
                    if run.rounds_between is None
                    else (done + 1) % run.rounds_between == 0
                )
                if run.checkpoint and due:
                    self._save(run.checkpoint, number, done + 1, optimisers, figures)
                    saved = time.monotonic()
        for player in phase.players:
            player.module.zero_grad()
        for turn in turns.values():
            turn.end()
        if run.checkpoint and number + 1 < len(self.phases):
            self._save(run.checkpoint, number + 1, 0, {}, {})

    def _round(self, phase: Phase, turns: Turns, batches: Iterator[Batch]) -> dict[str, Tensor]:
        if phase.fused is not None:
            return dict(turns[phase.players[0].name](next(batches)))
        figures: dict[str, Tensor] = {}
        for player in phase.players:
            for _ in range(player.steps):
                figures |= turns[player.name](next(batches))
        return figures

    def _turns(self, phase: Phase, optimisers: Optimisers, rounds: int, run: Run) -> Turns:
        if phase.fused is not None:
            together = Turn(
                parallel.of_all(phase.fused),
                [p.module for p in phase.players],
                list(optimisers.values()),
            )
            each = {phase.players[0].name: (together, rounds)}
        else:
            each = {
                p.name: (
                    Turn(parallel.of_all(p.objective), [p.module], [optimisers[p.name]]),
                    rounds * p.steps,
                )
                for p in phase.players
            }
        steady = phase.steady and self.feed.lengths is None and parallel.size() == 1
        return {
            name: pace(run.pace, turn, steady=steady, turns=n, device=self.feed.device)
            for name, (turn, n) in each.items()
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

        orders: dict[str, tuple[int, Places]] = {}

        def indices() -> Iterator[Places]:
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
        self, number: int, player: Player, move: int, orders: dict[str, tuple[int, Places]]
    ) -> Places:
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


def _mix(seed: int, phase: int, done: int) -> int:
    return int(np.random.SeedSequence([seed, phase, done]).generate_state(1, np.uint64)[0] >> 1)
