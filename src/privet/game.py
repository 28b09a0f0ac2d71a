"""Players, moves, rounds: the one training loop that every learned method uses.

A game is a list of phases. In each round of a phase every player moves in turn: it draws a batch from the records it may see,
computes its objective and takes a step against it. Players that see the same records see the same batch. A method may
hand over one *fused* step instead: one loss whose gradient is every player's own, for one forward and one backward pass.

Nothing random is carried from round to round. The order of the records and the state of torch's generator follow from
(seed, phase, round), so a game that is killed and resumed from a checkpoint ends in the same weights.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from privet import checkpoint
from privet.data.dataset import Array
from privet.device import place, precision
from privet.errors import PrivetError
from privet.feed import Batch, Feed
from privet.progress import bar

Optimisers = Mapping[str, torch.optim.Optimizer]
"""One per player of the phase, by name."""


@dataclass(frozen=True)
class Move:
    """What a player's objective gives: a loss to step against, and figures to show."""

    loss: Tensor
    figures: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Player:
    name: str
    module: nn.Module
    """Whose parameters this player moves."""
    objective: Callable[[Batch], Move]
    lr: float = 1e-4
    steps: int = 1
    """Moves per round."""
    records: Array | None = None
    """Positions in the feed it may see; None for all."""
    decay: float = 0.0
    """Decoupled weight decay."""


@dataclass(frozen=True)
class Phase:
    name: str
    epochs: float
    """How often the first player sees each of its records; the number of rounds follows."""
    players: Sequence[Player]
    fused: Callable[[Batch], Move] | None = None
    """One loss with every player's gradient; used in place of the separate objectives."""
    schedule: Callable[[float], float] = lambda _done: 1.0
    """Factor on every learning rate, given the share of the phase that is done."""
    after: Callable[[], Mapping[str, float]] = dict
    """Called at the end of every epoch, to judge and to keep a state; what it gives is shown with the other figures."""


@dataclass(frozen=True)
class Run:
    """How and where to play: nothing here changes what is learned."""

    folder: Path | None = None
    """Where checkpoints go; None keeps none."""
    resume: bool = False
    device: str = "auto"
    progress: bool = True
    every: float = 30.0
    """Seconds between checkpoints."""
    rounds_between: int | None = None
    """Rounds between checkpoints, instead of seconds."""

    @property
    def checkpoint(self) -> Path | None:
        return None if self.folder is None else self.folder / "checkpoint.safetensors"


class Game:
    def __init__(self, modules: Mapping[str, nn.Module], phases: Sequence[Phase], feed: Feed, batch: int, seed: int, identity: str) -> None:
        """`identity` names the work (method, settings, data): a checkpoint of other work is refused."""
        self.modules, self.phases, self.feed, self.seed, self.identity = modules, phases, feed, seed, identity
        self.batch = min(batch, len(feed))
        self.history: list[dict[str, Any]] = []
        """One row per epoch: the phase, the epoch, and every figure's running mean."""

    def play(self, run: Run) -> None:
        for module in self.modules.values():
            place(module, self.feed.device).train()
        start_phase, start_round, tensors = self._resume(run)
        for number in range(start_phase, len(self.phases)):
            self._play_phase(number, start_round if number == start_phase else 0, tensors if number == start_phase else {}, run)

    def _play_phase(self, number: int, start: int, tensors: Mapping[str, Tensor], run: Run) -> None:
        phase = self.phases[number]
        optimisers = {p.name: self._optimiser(p) for p in phase.players}
        for name, optimiser in optimisers.items():
            checkpoint.restore_optimiser(tensors, name, optimiser)
        rounds, per_epoch = self.rounds(phase), self._rounds_per_epoch(phase)
        shown, saved = time.monotonic(), time.monotonic()
        figures = dict(self._figures) if start else {}
        with bar(phase.name, rounds, run.progress) as tick:
            batches = self._batches(number, phase, start, rounds)
            for done in range(start, rounds):
                torch.manual_seed(_mix(self.seed, number, done))
                self._set_rate(phase, optimisers, done / rounds)
                with precision(self.feed.device):
                    moved = self._round(phase, optimisers, batches)
                figures = {k: v.detach() if k not in figures else torch.lerp(figures[k], v.detach(), 0.05) for k, v in moved.items()}
                if (done + 1) % per_epoch == 0 or done + 1 == rounds:
                    judged = {k: torch.tensor(v) for k, v in phase.after().items()}
                    self._remember(phase, (done + 1) / per_epoch, {**figures, **judged})
                now = time.monotonic()
                if run.progress and (now - shown > 0.5 or done + 1 == rounds):
                    shown = now
                    tick(done + 1, "  ".join(f"{k} {float(v):.3f}" for k, v in figures.items()))
                due = now - saved > run.every if run.rounds_between is None else (done + 1) % run.rounds_between == 0
                if run.checkpoint and due:
                    self._save(run.checkpoint, number, done + 1, optimisers, figures)
                    saved = time.monotonic()
        if run.checkpoint and number + 1 < len(self.phases):
            self._save(run.checkpoint, number + 1, 0, {}, {})

    def _round(self, phase: Phase, optimisers: Optimisers, batches: Iterator[Batch]) -> dict[str, Tensor]:
        if phase.fused is not None:
            move = phase.fused(next(batches))
            _step(move.loss, [p.module for p in phase.players], list(optimisers.values()))
            return dict(move.figures)
        figures: dict[str, Tensor] = {}
        for player in phase.players:
            for _ in range(player.steps):
                move = player.objective(next(batches))
                _step(move.loss, [player.module], [optimisers[player.name]])
                figures |= move.figures
        return figures

    def rounds(self, phase: Phase) -> int:
        """How many rounds a phase has."""
        return max(1, round(phase.epochs * self._rounds_per_epoch(phase))) if phase.epochs > 0 else 0

    def _rounds_per_epoch(self, phase: Phase) -> int:
        first = phase.players[0]
        return max(1, self._count(first) // self.batch // (1 if phase.fused else first.steps))

    def _count(self, player: Player) -> int:
        return len(self.feed) if player.records is None else len(player.records)

    def _batches(self, number: int, phase: Phase, start: int, rounds: int) -> Iterator[Batch]:
        """The batches of all moves from round `start` on, in the order they are needed."""

        def indices() -> Iterator[Array]:
            for done in range(start, rounds):
                for player in phase.players[:1] if phase.fused else phase.players:
                    for step in range(1 if phase.fused else player.steps):
                        yield self._draw(number, player, done * (1 if phase.fused else player.steps) + step)

        return self.feed.batches(indices())

    def _draw(self, number: int, player: Player, move: int) -> Array:
        """Positions of a player's batch: the records it may see in a new order every epoch, a part of it per move."""
        size = min(self.batch, self._count(player))
        epoch, place_in_epoch = divmod(move, max(1, self._count(player) // size))
        key = (number, epoch, self._count(player))
        if key != getattr(self, "_order_key", None):
            self._order = np.random.default_rng([self.seed, number, epoch]).permutation(self._count(player))
            self._order_key = key
        chosen = self._order[place_in_epoch * size : (place_in_epoch + 1) * size]
        return chosen if player.records is None else player.records[chosen]

    def _optimiser(self, player: Player) -> torch.optim.Optimizer:
        fused = self.feed.device.type == "cuda" or None
        if player.decay:
            return torch.optim.AdamW(player.module.parameters(), lr=player.lr, weight_decay=player.decay, fused=fused)
        return torch.optim.Adam(player.module.parameters(), lr=player.lr, fused=fused)

    def _set_rate(self, phase: Phase, optimisers: Optimisers, done: float) -> None:
        for player in phase.players:
            for group in optimisers[player.name].param_groups:
                group["lr"] = player.lr * phase.schedule(done)

    def _remember(self, phase: Phase, epoch: float, figures: Mapping[str, Tensor]) -> None:
        row = {"phase": phase.name, "epoch": round(epoch, 3), **{k: round(float(v), 5) for k, v in figures.items()}}
        if not all(math.isfinite(v) for v in row.values() if isinstance(v, float)):
            raise PrivetError(f"Learning diverged in the phase '{phase.name}' ({row}); try a smaller learning rate with --set lr=...")
        self.history.append(row)

    def _save(self, path: Path, number: int, done: int, optimisers: Optimisers, figures: Mapping[str, Tensor]) -> None:
        meta = {
            "identity": self.identity, "phase": number, "round": done, "history": self.history,
            "figures": {k: float(v) for k, v in figures.items()},
        }  # fmt: skip
        checkpoint.save(path, self.modules, optimisers, meta)

    def _resume(self, run: Run) -> tuple[int, int, dict[str, Tensor]]:
        self._figures: dict[str, Tensor] = {}
        if not (run.resume and run.checkpoint and run.checkpoint.exists()):
            return 0, 0, {}
        tensors, meta = checkpoint.load(run.checkpoint)
        if meta["identity"] != self.identity:
            raise PrivetError(f"The checkpoint in {run.folder} was made with other settings or data; repeat those, or leave out --resume.")
        checkpoint.restore_modules(tensors, self.modules)
        self.history = meta["history"]
        self._figures = {k: torch.tensor(v, device=self.feed.device) for k, v in meta["figures"].items()}
        return meta["phase"], meta["round"], tensors


def _step(loss: Tensor, modules: Sequence[nn.Module], optimisers: Sequence[torch.optim.Optimizer]) -> None:
    """One step of each optimiser against the loss; parameters of other players get no gradient."""
    parameters = [p for module in modules for p in module.parameters() if p.requires_grad]
    for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters, allow_unused=True), strict=True):
        parameter.grad = gradient
    for optimiser in optimisers:
        optimiser.step()


def _mix(seed: int, phase: int, done: int) -> int:
    return int(np.random.SeedSequence([seed, phase, done]).generate_state(1, np.uint64)[0] >> 1)
