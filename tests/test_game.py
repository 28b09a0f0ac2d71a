"""The training loop: it resumes to the same weights, lets players see only their records, and moves only their own parameters."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from privet.data.schema import Inputs
from privet.errors import PrivetError
from privet.feed import Feed
from privet.game import Game, Move, Phase, Player, Run
from privet.methods.tiprdc import TIPRDC, Players, jensen_shannon
from small import small

CPU = torch.device("cpu")
QUIET = Run(progress=False, device="cpu")


def _feed(n: int = 64) -> Feed:
    x = np.random.default_rng(0).standard_normal((n, 4)).astype(np.float32)
    return Feed(Inputs(x), {"i": np.arange(n)}, CPU)


def test_a_player_sees_only_its_records_and_all_of_them():
    seen = {"a": set(), "b": set()}
    nets = {name: nn.Linear(4, 1) for name in seen}

    def watch(name):
        def objective(batch):
            seen[name].update(batch.labels["i"].tolist())
            return Move(nets[name](batch.x).square().mean())

        return objective

    records = {"a": np.arange(0, 40), "b": np.arange(40, 64)}
    players = [Player(name, nets[name], watch(name), steps=steps, records=records[name]) for name, steps in (("a", 2), ("b", 3))]
    Game(nets, [Phase("p", 2, players)], _feed(), batch=8, seed=0, identity="").play(QUIET)
    assert seen == {name: set(rows.tolist()) for name, rows in records.items()}


def test_a_move_changes_only_its_own_player():
    first, second = nn.Linear(4, 4), nn.Linear(4, 1)
    before = [p.clone() for p in second.parameters()]
    player = Player("first", first, lambda batch: Move(second(first(batch.x)).square().mean()))
    Game({"first": first, "second": second}, [Phase("p", 1, [player])], _feed(), 8, 0, "").play(QUIET)
    assert all(torch.equal(a, b) for a, b in zip(before, second.parameters(), strict=True))
    assert all(p.grad is None for p in second.parameters())


def test_players_with_the_same_records_see_the_same_batch():
    drawn = {"a": [], "b": []}
    nets = {name: nn.Linear(4, 1) for name in drawn}

    def watch(name):
        return lambda batch: drawn[name].append(batch.labels["i"].tolist()) or Move(nets[name](batch.x).mean())

    Game(nets, [Phase("p", 1, [Player(n, nets[n], watch(n)) for n in nets])], _feed(), 8, 0, "").play(QUIET)
    assert drawn["a"] == drawn["b"] and sorted(i for batch in drawn["a"] for i in batch) == list(range(64))


def test_a_schedule_sets_every_rate():
    """With the rate at zero for the second half, the weights stand still from there on."""
    net = nn.Linear(4, 1)
    weights = []

    def objective(batch):
        weights.append(net.weight.detach().clone())
        return Move(net(batch.x).square().mean())

    phase = Phase("p", 4, [Player("a", net, objective, lr=0.1)], schedule=lambda done: 1.0 if done < 0.5 else 0.0)
    Game({"a": net}, [phase], _feed(), 8, 0, "").play(QUIET)
    half = len(weights) // 2
    assert all(not torch.equal(a, b) for a, b in pairwise(weights[: half + 1]))
    assert all(torch.equal(weights[half], w) for w in weights[half:])


def test_divergence_is_said_in_a_sentence():
    net = nn.Linear(4, 1)
    player = Player("a", net, lambda batch: Move(net(batch.x).mean(), {"loss": torch.tensor(float("nan"))}))
    with pytest.raises(PrivetError, match="diverged"):
        Game({"a": net}, [Phase("p", 1, [player])], _feed(), 8, 0, "").play(QUIET)


@pytest.mark.parametrize("modality", ["table", "image", "text", "signal"])
@pytest.mark.parametrize("budget", [0.0, 0.3, 1.0])
def test_fused_step_gives_every_player_its_own_gradient(modality, budget):
    data = small(modality, 80)
    method = TIPRDC(budget=budget, width=0.05)
    problem = method.problem(data, ["u", "y"], [], [], QUIET)
    torch.manual_seed(1)
    players = Players(problem, method)
    batch = problem.feed().batch(np.arange(16))
    phase = players.play(1, 1e-3, fused=True)
    together = phase.fused(batch).loss
    for player in phase.players:
        parameters = list(player.module.parameters())
        alone = torch.autograd.grad(player.objective(batch).loss, parameters, allow_unused=True)
        fused = torch.autograd.grad(together, parameters, retain_graph=True, allow_unused=True)
        for a, b in zip(alone, fused, strict=True):
            torch.testing.assert_close(b if b is not None else torch.zeros_like(a), a if a is not None else torch.zeros_like(b))


def test_jensen_shannon_is_bounded_and_zero_information_is_minus_two_log_two():
    score = torch.zeros(100)
    assert torch.isclose(jensen_shannon(score, score), torch.tensor(-2 * np.log(2), dtype=torch.float32))
    assert jensen_shannon(score + 50, score - 50) > -1e-6
    assert jensen_shannon(score + 1, score - 1) > jensen_shannon(score - 1, score + 1)


@pytest.mark.parametrize("stop", [1, 3, 4, 7])
def test_resumes_to_the_same_weights(tmp_path, stop):
    """Stopped after any round, by an exception out of the loop, a game goes on to the same weights."""
    data, method = small("table", 160), TIPRDC(width=0.05, warmup=1, epochs=2, batch=16, noise=0.1)
    whole = method.fit(data, ["u"], run=QUIET)
    calls = 0

    def breaking(self, *args):
        nonlocal calls
        calls += 1
        if calls > stop:
            raise KeyboardInterrupt
        return real(self, *args)

    real = Game._round
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Game, "_round", breaking)
        with pytest.raises(KeyboardInterrupt):
            method.fit(data, ["u"], run=Run(tmp_path, progress=False, rounds_between=1, device="cpu"))
    again = method.fit(data, ["u"], run=Run(tmp_path, resume=True, progress=False, rounds_between=1, device="cpu"))
    for key, value in whole.module.state_dict().items():
        assert torch.equal(value, again.module.state_dict()[key]), key
    assert again.card["history"] == whole.card["history"]


def test_a_checkpoint_of_other_work_is_refused(tmp_path):
    data = small("table", 160)
    run = Run(tmp_path, progress=False, rounds_between=1, device="cpu")
    TIPRDC(width=0.05, warmup=1, epochs=1, batch=16).fit(data, ["u"], run=run)
    with pytest.raises(PrivetError, match="other settings"):
        TIPRDC(width=0.05, warmup=1, epochs=2, batch=16).fit(data, ["u"], run=Run(tmp_path, resume=True, progress=False, device="cpu"))


def test_kill_9_and_resume_give_the_same_bytes(tmp_path):
    """Really killed, at several points, and gone on with: the weights are those of a run nobody disturbed."""
    words = [
        "--data",
        "portraits:400",
        "--private",
        "beard",
        "--set",
        "width=0.05",
        "--set",
        "warmup=1",
        "--set",
        "epochs=4",
        "--set",
        "batch=16",
    ]
    words += ["--checkpoint-rounds", "2"]

    def learn(out: Path, *more: str) -> subprocess.Popen:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "privet", "learn", "tiprdc", *words, "--out", str(out), *more]
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    calm = learn(tmp_path / "calm")
    killed = 0
    for more in ((), ("--resume",), ("--resume",)):
        process, mark, began = learn(tmp_path / "rough", *more), tmp_path / "rough" / "checkpoint.safetensors", time.monotonic()
        before = mark.stat().st_mtime_ns if mark.exists() else 0
        while process.poll() is None and time.monotonic() - began < 120 and (not mark.exists() or mark.stat().st_mtime_ns == before):
            time.sleep(0.002)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        process.communicate()
        assert not (tmp_path / "rough" / "card.json").exists()
    last = learn(tmp_path / "rough", "--resume")
    assert last.wait(240) == 0, last.stderr.read()
    assert calm.wait(240) == 0, calm.stderr.read()
    assert killed == 3
    calm_weights, rough_weights = (load_file(tmp_path / name / "weights.safetensors") for name in ("calm", "rough"))
    assert calm_weights.keys() == rough_weights.keys()
    for key, value in calm_weights.items():
        assert torch.equal(value, rough_weights[key]), key
    assert not (tmp_path / "rough" / "checkpoint.safetensors").exists()
