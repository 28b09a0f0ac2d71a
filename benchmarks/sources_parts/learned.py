"""What every row of benchmarks/sources.py gives: a network that is learned once, saved, and then
asked for releases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import privet
from privet.data.dataset import Dataset
from privet.methods.gap import GAP
from privet.methods.method import Method, Problem
from privet.nets.convolutions import prepare
from privet.train.game import Game
from sources_parts.recorded import UnreadGame

PARTS = ("attack", "select", "test")
AT_ONCE = 500


@dataclass(frozen=True)
class Bench:
    """The data of one question on the device.

    Parameters:
        private, tasks: Names of the attributes that are hidden, and of those that readers are asked
            about beside them.
        folder: Where releases, and services that many rows share, are saved.
    """

    data: Dataset
    private: list[str]
    tasks: list[str]
    folder: Path
    device: torch.device
    raw: dict[str, Tensor]
    truth: dict[str, dict[str, Tensor]]

    @staticmethod
    def of(
        data: Dataset, private: list[str], tasks: list[str], folder: Path, device: torch.device
    ) -> Bench:
        views = {part: data.part(part) for part in ("fit", *PARTS)}
        schema = GAP().problem(data, private).schema
        return Bench(
            data,
            private,
            tasks,
            folder,
            device,
            {
                part: torch.as_tensor(schema.inputs(view)[:], device=device)
                for part, view in views.items()
            },
            {
                name: {
                    part: torch.as_tensor(view.labels[name], device=device)
                    for part, view in views.items()
                }
                for name in (*private, *tasks)
            },
        )

    def problem(self, method: Method, tasks: list[str]) -> Problem:
        return method.problem(self.data, self.private, tasks, (), self.run(""))

    def run(self, pace: str) -> privet.Run:
        paces = {"pace": pace} if pace else {}
        return privet.Run(progress=False, device=str(self.device), **paces)

    def play(self, game: Game) -> list[dict[str, Any]]:
        """Plays a game, recorded on a GPU: compiling would take most of a row's time. Of each phase
        the history has the last figures."""
        pace = "recorded" if self.device.type == "cuda" else ""
        return UnreadGame.of(game).play(self.run(pace))

    @cached_property
    def known(self) -> dict[str, dict[str, Tensor]]:
        """`truth` in memory, where attackers are counted: on a GPU that others share, each figure
        that is read from there waits for a turn."""
        return {name: {k: v.cpu() for k, v in parts.items()} for name, parts in self.truth.items()}


@dataclass
class Learned:
    """A release under test.

    Parameters:
        module: Its network, on the device.
        release: Raw bytes of records to released ones, with fresh noise.
        shape: Of a released record.
        record: Whether it has the record's own form, a picture in [-1, 1].
        noisy: Whether two releases of one record differ.
        in_game: What the game's own adversary reads on *select*, per private attribute, as
            shares.
        facts: Further figures for the row.
    """

    module: nn.Module
    release: Callable[[Tensor], Tensor]
    shape: tuple[int, ...]
    record: bool
    noisy: bool
    in_game: dict[str, dict[str, Any]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


class Draws:
    """Released records of a part, drawn anew at every call where they are noisy."""

    def __init__(self, learned: Learned, raw: dict[str, Tensor]) -> None:
        self.learned, self.raw = learned, raw
        learned.module.eval()
        self._kept: dict[str, Tensor] = {}

    @torch.no_grad()
    def __call__(self, part: str, index: Tensor | None = None, mirrored: bool = False) -> Tensor:
        x = self.raw[part].flip(3) if mirrored else self.raw[part]
        if self.learned.noisy:
            return self._released(x if index is None else x[index])
        key = f"{part} {mirrored}"
        if key not in self._kept:
            self._kept[key] = self._released(x)
        return self._kept[key] if index is None else self._kept[key][index]

    def for_learning(self, part: str, index: Tensor) -> Tensor:
        """Records, or what is released of their mirror images: whoever has the release can make
        more to learn from."""
        turned = torch.rand(len(index), device=index.device) < 0.5
        z = self(part, index)
        return torch.where(turned.view(-1, *[1] * (z.dim() - 1)), self(part, index, True), z)

    def _released(self, x: Tensor) -> Tensor:
        return torch.cat([self.learned.release(some).float() for some in x.split(AT_ONCE)])


@torch.no_grad()
def distortion(draws: Draws, raw: dict[str, Tensor]) -> dict[str, float]:
    """How far released *test* pictures lie from raw ones: the mean absolute error of pictures in
    [0, 1], as the authors of generative adversarial privacy count it, and the mean PSNR."""
    own, released = prepare(raw["test"]), draws("test")
    apart = (released - own).flatten(1) / 2
    # As pictures are stored: in bytes.
    stored = (released.clamp(-1, 1) * 127.5 + 127.5).round() - raw["test"].float()
    square = stored.flatten(1).square().mean(1).clamp(min=1e-3)
    psnr = 10 * torch.log10(255.0**2 / square)
    return {"distortion": float(apart.abs().mean()), "psnr": float(psnr.mean())}
