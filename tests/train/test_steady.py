"""What a phase says is steady is the same when it is recorded and replayed later with other
records.

No GPU is asked: torch's tracer stands for the recording. It keeps the operations of one move, with
every number of Python's as it was then; held against later moves, it shows what should have been a
tensor. Reading a tensor's value back is refused, as on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from test_contract_methods import QUICK
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

from privet import METHODS, Run
from privet.methods.tiprdc import MAIN_STREAM, TIPRDC, TIPRDCNetworks
from privet.train.feed import Batch, Feed
from privet.train.game import Game, Phase
from privet.train.step import PlainStep
from small import small

RECORDED = 5
"""The move that is recorded; a GPU has chosen its kernels by then."""
READ_BACK = ("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "lift_fresh")
"""Operations that wait for the device, or bring numbers to it from outside."""

LONGER: dict[str, dict[str, Any]] = {
    "hedge": {"epochs": 5},
    "codebook": {"epochs": 5},
    "tiprdc": {"batch": 16, "warmup": 2, "epochs": 2},
    "confusion": {"batch": 16, "warmup": 2, "epochs": 2, "restart": 3},
    "veil": {"batch": 16, "lessons": 3, "epochs": 3, "restart": 3, "view": 0.5},
    "blend": {"batch": 16, "lessons": 3, "epochs": 3, "drawing": 3, "restart": 3},
    "encoder": {"batch": 16, "epochs": 2},
    "cloak": {
        "batch": 16,
        "lessons": 2,
        "epochs": 2,
        "constants": 2,
        "kind": "constant",
        "noisy": True,
    },
    "shredder": {"batch": 16, "lessons": 2, "epochs": 2},
    "unoise": {"batch": 16, "lessons": 2, "epochs": 2},
    "collaborative": {
        "batch": 16,
        "lessons": 2,
        "epochs": 2,
        "adversarial": True,
        "stochastic": True,
    },
    "gap": {"batch": 16, "pre_d": 6, "pre_g": 6, "rounds": 6},
    "hybrid": {"batch": 16, "epochs": 2},
}
"""Per method that plays games, settings with enough moves, so that the time goes on after the
recording."""


class NothingReadBack(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert not any(word in func.name() for word in READ_BACK), (
            f"{func.name()} cannot be recorded"
        )
        return func(*args, **(kwargs or {}))


class Watched:
    """Makes the moves; holds what was recorded in one of them against all that follow."""

    def __init__(self, turn: PlainStep, game: Game, name: str, seen: dict[str, int]) -> None:
        self.turn, self.game, self.name, self.seen = turn, game, name, seen
        self.moves, self.replay = 0, None

    def __call__(self, batch: Batch) -> Mapping[str, Tensor]:
        self.moves += 1
        given, names = (batch.x, *batch.labels.values()), tuple(batch.labels)

        def objective(x: Tensor, *labels: Tensor) -> Tensor:
            return self.turn.objective(Batch(x, dict(zip(names, labels, strict=True)))).loss

        if self.moves == RECORDED:
            with NothingReadBack():
                self.undone(lambda: objective(*given))
            self.replay = self.undone(lambda: make_fx(objective)(*given))
        elif self.replay is not None:
            with torch.no_grad():  # a trace does not know which of its operations need no gradient
                now, then = (
                    self.undone(lambda: objective(*given)),
                    self.undone(lambda: self.replay(*given)),
                )
            torch.testing.assert_close(
                then, now, msg=lambda said: f"{self.name}, move {self.moves}: {said}"
            )
            self.seen[self.name] = self.seen.get(self.name, 0) + 1
        return self.turn(batch)

    def undone(self, work: Callable[[], Any]) -> Any:
        """What it gives, with nothing changed by it."""
        dice = torch.get_rng_state()
        states = {
            module: {k: v.clone() for k, v in module.state_dict().items()}
            for module in self.game.modules.values()
        }
        try:
            return work()
        finally:
            torch.set_rng_state(dice)
            for module, state in states.items():
                module.load_state_dict(state)

    def end(self) -> None:
        self.turn.end()


def played(
    name: str, modality: str, monkeypatch: pytest.MonkeyPatch, **more: Any
) -> tuple[dict[str, int], set[str]]:
    """How many moves of each player were held against its recording; and the phases there were."""
    seen: dict[str, int] = {}
    phases: set[str] = set()
    real = Game._steps

    def watched(game: Game, phase: Phase, *given: Any) -> Any:
        turns = real(game, phase, *given)
        phases.add(phase.name)
        if not phase.steady:
            return turns
        return {
            player: Watched(turn, game, f"{phase.name}: {player}", seen)
            for player, turn in turns.items()
        }

    monkeypatch.setattr(Game, "_steps", watched)
    # On a CPU torch's own looks at the values first.
    monkeypatch.setattr(
        torch.nn.functional,
        "one_hot",
        lambda codes, classes: (codes.unsqueeze(-1) == torch.arange(classes)).long(),
    )
    method = METHODS[name](**{**QUICK[name][0], **LONGER.get(name, {}), **more})
    method.fit(
        small(modality, 160),
        ["u"],
        ["y"] if method.tasks != "none" else [],
        run=Run(progress=False, device="cpu"),
    )
    return seen, phases


@pytest.mark.parametrize(
    ("name", "modality"),
    [(n, m) for n in LONGER for m in ("image", "table") if m in METHODS[n].modalities],
)
def test_a_recorded_move_is_the_move(name, modality, monkeypatch):
    seen, phases = played(name, modality, monkeypatch)
    assert phases and {place.partition(":")[0] for place in seen} == phases, (
        "every phase is steady, and was held against its recording"
    )
    assert min(seen.values()) >= 3


@pytest.mark.parametrize("name", sorted(set(METHODS) - set(LONGER)))
def test_the_others_play_no_game(name, monkeypatch):
    assert played(name, "table", monkeypatch) == ({}, set())


def test_gap_by_structural_similarity(monkeypatch):
    seen, _ = played("gap", "image", monkeypatch, distance="ssim", rounds=4)
    assert seen["hiding: channel"] >= 3


def test_features_that_blend_learns(monkeypatch):
    seen, _ = played("blend", "image", monkeypatch, features=3)
    assert seen["learning features: features"] >= 3


def test_a_number_of_python_is_caught(monkeypatch):
    """The test can fail: a weight that grows from round to round, and is no tensor."""
    real, calls = TIPRDCNetworks.all_at_once, []

    def growing(self: TIPRDCNetworks, batch: Batch) -> Any:
        calls.append(1)
        move = real(self, batch)
        return type(move)(move.loss * (1 + 0.1 * len(calls)), move.figures)

    monkeypatch.setattr(TIPRDCNetworks, "all_at_once", growing)
    with pytest.raises(AssertionError, match="hiding"):
        played("tiprdc", "table", monkeypatch)


def test_reading_back_is_caught(monkeypatch):
    real = TIPRDCNetworks.all_at_once

    def reading(self: TIPRDCNetworks, batch: Batch) -> Any:
        move = real(self, batch)
        float(move.loss.detach())
        return move

    monkeypatch.setattr(TIPRDCNetworks, "all_at_once", reading)
    with pytest.raises(AssertionError, match="cannot be recorded"):
        played("tiprdc", "table", monkeypatch)


def _fused() -> tuple[TIPRDCNetworks, Feed]:
    method = TIPRDC(width=0.05, batch=16)
    problem = method.problem(small("image", 80), ["u"], [], [], Run(progress=False))
    torch.manual_seed(1)
    return TIPRDCNetworks(problem, method), problem.feed()


def test_a_compiler_sees_the_fused_step_as_one_graph():
    networks, feed = _fused()
    batch = feed.batch(np.arange(16))

    def objective(x: Tensor, u: Tensor) -> Tensor:
        return networks.all_at_once(Batch(x, {"u": u})).loss

    for net in networks.modules().values():
        net.to(feed.device).eval()
    compiled = torch.compile(objective, backend="eager", fullgraph=True)
    torch.testing.assert_close(
        compiled(batch.x, batch.labels["u"]), objective(batch.x, batch.labels["u"])
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="streams need a GPU")
@pytest.mark.parametrize("pace", ["plain", "recorded"])
def test_a_gpu_learns_the_same_on_two_streams_as_on_one(monkeypatch, pace):
    def weights() -> Tensor:
        networks, feed = _fused()
        Game(networks.modules(), [networks.play(20, 1e-3, fused=True)], feed, 16, 0, "").play(
            Run(progress=False, pace=pace)
        )
        return torch.cat(
            [p.detach().flatten() for net in networks.modules().values() for p in net.parameters()]
        )

    two = weights()
    monkeypatch.setattr(TIPRDCNetworks, "_adversary_stream", lambda *_: MAIN_STREAM)
    torch.testing.assert_close(two, weights(), rtol=1e-2, atol=1e-3)
