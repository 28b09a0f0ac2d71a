"""The training loop: it resumes to the same weights, lets players see only their records, and moves
only their own parameters."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from typer.testing import CliRunner

from privet.cli import main as cli
from privet.core.errors import PrivetError
from privet.data.schema import Inputs
from privet.methods.tiprdc import TIPRDC, TIPRDCNetworks, jensen_shannon
from privet.nets.device import place
from privet.train import checkpoint
from privet.train.checkpoint import like
from privet.train.feed import Feed
from privet.train.game import Game, Move, Phase, Player, Run
from privet.train.step import PlainStep, RecordedStep, pace, take_step
from small import small
from stopping import resumes_to_the_same

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
    players = [
        Player(name, nets[name], watch(name), steps=steps, records=records[name])
        for name, steps in (("a", 2), ("b", 3))
    ]
    Game(nets, [Phase("p", 2, players)], _feed(), batch=8, seed=0, identity="").play(QUIET)
    assert seen == {name: set(rows.tolist()) for name, rows in records.items()}


def test_a_move_changes_only_its_own_player():
    first, second = nn.Linear(4, 4), nn.Linear(4, 1)
    before = [p.clone() for p in second.parameters()]
    player = Player("first", first, lambda batch: Move(second(first(batch.x)).square().mean()))
    Game({"first": first, "second": second}, [Phase("p", 1, [player])], _feed(), 8, 0, "").play(
        QUIET
    )
    assert all(torch.equal(a, b) for a, b in zip(before, second.parameters(), strict=True))
    assert all(p.grad is None for p in second.parameters())


def test_players_with_the_same_records_see_the_same_batch():
    drawn = {"a": [], "b": []}
    nets = {name: nn.Linear(4, 1) for name in drawn}

    def watch(name):
        return lambda batch: (
            drawn[name].append(batch.labels["i"].tolist()) or Move(nets[name](batch.x).mean())
        )

    Game(
        nets, [Phase("p", 1, [Player(n, nets[n], watch(n)) for n in nets])], _feed(), 8, 0, ""
    ).play(QUIET)
    assert drawn["a"] == drawn["b"] and sorted(i for batch in drawn["a"] for i in batch) == list(
        range(64)
    )


def test_every_player_has_its_own_order_and_a_new_one_every_epoch():
    """Whoever moves before or after, and however many records they see: the order follows from
    (seed, phase, epoch) alone."""
    drawn = {"a": [], "b": []}
    nets = {name: nn.Linear(4, 1) for name in drawn}

    def watch(name):
        return lambda batch: (
            drawn[name].append(batch.labels["i"].tolist()) or Move(nets[name](batch.x).mean())
        )

    records = {"a": np.arange(0, 40), "b": np.arange(40, 64)}
    players = [
        Player(name, nets[name], watch(name), steps=steps, records=records[name])
        for name, steps in (("a", 2), ("b", 3))
    ]
    Game(nets, [Phase("p", 4, players)], _feed(), batch=8, seed=5, identity="").play(QUIET)
    for name, rows in records.items():
        per_epoch = len(rows) // 8
        for move, batch in enumerate(drawn[name]):
            order = rows[np.random.default_rng([5, 0, move // per_epoch]).permutation(len(rows))]
            assert batch == order[move % per_epoch * 8 :][:8].tolist(), (name, move)


def _plain_step(seed: int = 3) -> tuple[PlainStep, nn.Module]:
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 1))

    def objective(batch):
        loss = net(batch.x + torch.randn_like(batch.x)).square().mean()
        return Move(loss, {"loss": loss, "labels": batch.labels["i"].float().mean()})

    return PlainStep(objective, [net], [torch.optim.Adam(net.parameters(), lr=0.05)]), net


@pytest.mark.parametrize("way", ["recorded", "weighed", "not compiled"])
def test_a_recorded_turn_moves_as_a_plain_one(way, monkeypatch, capfd):
    """Where there is nothing to record on, and where compiling fails, which is said once."""

    def broken(function, **_):
        def raises(*_):
            raise RuntimeError("no compiler")

        return raises

    monkeypatch.setattr(torch, "compile", broken)
    (plain, one), (turn, other) = _plain_step(), _plain_step()
    recorded = RecordedStep(
        turn,
        steps=10**9,
        mode="default" if way == "not compiled" else None,
        weighs=way == "weighed",
    )
    feed = _feed()
    for number in range(6):
        torch.manual_seed(number)
        first = plain(feed.batch(np.arange(8) + number))
        torch.manual_seed(number)
        second = recorded(feed.batch(np.arange(8) + number))
        assert {k: float(v) for k, v in first.items()} == {k: float(v) for k, v in second.items()}
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert capfd.readouterr().err.count("Not compiled") == (way == "not compiled")


@pytest.mark.parametrize("word", ["fast", "recorded:default", "compiled:fastest"])
def test_an_unknown_pace_is_refused(word):
    with pytest.raises(PrivetError):
        pace(word, _plain_step()[0], steady=True, steps=100, device=CPU)


def test_only_a_steady_phase_on_a_gpu_is_recorded():
    turn, gpu = _plain_step()[0], torch.device("cuda")
    assert pace("recorded", turn, steady=True, steps=9, device=CPU) is turn
    assert pace("recorded", turn, steady=False, steps=9, device=gpu) is turn
    assert pace("auto", turn, steady=True, steps=9, device=gpu) is turn
    assert isinstance(pace("auto", turn, steady=True, steps=900, device=gpu), RecordedStep)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="recording needs a GPU")
def test_a_gpu_replays_what_a_plain_turn_computes():
    def weights(how):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 1))
        x = np.random.default_rng(0).standard_normal((64, 4)).astype(np.float32)
        feed = Feed(Inputs(x), {"i": np.arange(64)}, torch.device("cuda"))
        player = Player(
            "a",
            net,
            lambda batch: Move(net(batch.x + torch.randn_like(batch.x)).square().mean()),
            lr=0.01,
        )
        phase = Phase("p", 8, [player], schedule=lambda done: 1 - done, steady=True)
        Game({"a": net}, [phase], feed, 8, 0, "").play(Run(progress=False, device="cuda", pace=how))
        return torch.cat([p.flatten() for p in net.parameters()])

    torch.testing.assert_close(weights("recorded"), weights("plain"), rtol=1e-3, atol=1e-4)


def test_the_benchmarks_reference_plays_the_same_game():
    """Written without this package, it gives the same figures and weights from the same start, a
    move at a time."""
    spec = importlib.util.spec_from_file_location(
        "reference", Path(__file__).parents[2] / "benchmarks" / "reference_tiprdc.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    method = TIPRDC(width=0.05, batch=16)
    problem = method.problem(small("image", 80), ["u"], [], [], QUIET)
    torch.manual_seed(1)
    networks = TIPRDCNetworks(problem, method)
    reference = module.Reference(32, 32, width=0.05)
    reference.take(**networks.modules())
    reference.to(CPU)
    for net in networks.modules().values():
        net.train()
    feed = problem.feed()
    batch = feed.batch(np.arange(16))
    fused = {k: v.item() for k, v in networks.all_at_once(batch).figures.items()}
    theirs = {k: float(v) for k, v in reference.step(batch.x, batch.labels["u"]).items()}
    assert theirs == pytest.approx({k: fused[k] for k in theirs}, rel=1e-4)
    for player in networks.play(1, method.lr, fused=False).players:
        PlainStep(
            player.objective,
            [player.module],
            [torch.optim.Adam(player.module.parameters(), lr=player.lr)],
        )(batch)
    for ours, net in (
        (networks.adversary, reference.adversary),
        (networks.extractor, reference.extractor),
    ):
        for a, b in zip(ours.parameters(), net.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=2e-4)


def test_a_schedule_sets_every_rate():
    """With the rate at zero for the second half, the weights stand still from there on."""
    net = nn.Linear(4, 1)
    weights = []

    def objective(batch):
        weights.append(net.weight.detach().clone())
        return Move(net(batch.x).square().mean())

    phase = Phase(
        "p",
        4,
        [Player("a", net, objective, lr=0.1)],
        schedule=lambda done: 1.0 if done < 0.5 else 0.0,
    )
    Game({"a": net}, [phase], _feed(), 8, 0, "").play(QUIET)
    half = len(weights) // 2
    assert all(not torch.equal(a, b) for a, b in pairwise(weights[: half + 1]))
    assert all(torch.equal(weights[half], w) for w in weights[half:])


def test_divergence_is_said_in_a_sentence():
    net = nn.Linear(4, 1)
    player = Player(
        "a", net, lambda batch: Move(net(batch.x).mean(), {"loss": torch.tensor(float("nan"))})
    )
    with pytest.raises(PrivetError, match="diverged"):
        Game({"a": net}, [Phase("p", 1, [player])], _feed(), 8, 0, "").play(QUIET)


@pytest.mark.parametrize("modality", ["table", "image", "text", "signal"])
@pytest.mark.parametrize("budget", [0.0, 0.3, 1.0])
def test_fused_step_gives_every_player_its_own_gradient(modality, budget):
    data = small(modality, 80)
    method = TIPRDC(budget=budget, width=0.05)
    problem = method.problem(data, ["u", "y"], [], [], QUIET)
    torch.manual_seed(1)
    networks = TIPRDCNetworks(problem, method)
    batch = problem.feed().batch(np.arange(16))
    phase = networks.play(1, 1e-3, fused=True)
    together = phase.fused(batch).loss
    for player in phase.players:
        parameters = list(player.module.parameters())
        alone = torch.autograd.grad(player.objective(batch).loss, parameters, allow_unused=True)
        fused = torch.autograd.grad(together, parameters, retain_graph=True, allow_unused=True)
        for a, b in zip(alone, fused, strict=True):
            torch.testing.assert_close(
                b if b is not None else torch.zeros_like(a),
                a if a is not None else torch.zeros_like(b),
            )


def test_jensen_shannon_is_bounded_and_zero_information_is_minus_two_log_two():
    score = torch.zeros(100)
    assert torch.isclose(
        jensen_shannon(score, score), torch.tensor(-2 * np.log(2), dtype=torch.float32)
    )
    assert jensen_shannon(score + 50, score - 50) > -1e-6
    assert jensen_shannon(score + 1, score - 1) > jensen_shannon(score - 1, score + 1)


@pytest.mark.parametrize("stop", [1, 3, 4, 7])
def test_resumes_to_the_same_weights(tmp_path, stop):
    """Stopped after any round, a game goes on to the same weights."""
    resumes_to_the_same(
        TIPRDC(width=0.05, warmup=1, epochs=2, batch=16, noise=0.1),
        small("table", 160),
        tmp_path,
        stop,
    )


def _pictures_net() -> tuple[nn.Module, torch.optim.Optimizer]:
    """Layers whose layouts differ: 3 x 3, 1 x 1 (both layouts are one), one channel, a full one;
    channels last."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 5, 3),
        nn.BatchNorm2d(5),
        nn.Conv2d(5, 4, 1),
        nn.Conv2d(4, 3, 3),
        nn.Flatten(),
        nn.Linear(48, 2),
    )
    place(net, CPU)
    return net, torch.optim.Adam(net.parameters(), lr=0.01)


def _layouts(optimiser: torch.optim.Optimizer) -> list[tuple]:
    return [
        tuple(s[k].stride() for k in ("exp_avg", "exp_avg_sq")) for s in optimiser.state.values()
    ]


@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_gradients_have_their_parameters_layout(layout):
    """One kernel for all of Adam takes no other; whatever layout the records come in."""
    net, optimiser = _pictures_net()
    x = torch.randn(6, 1, 8, 8).contiguous(memory_format=layout)
    wanted = torch.autograd.grad(net(x).square().mean(), list(net.parameters()))
    take_step(net(x).square().mean(), [net], [optimiser])
    for parameter, gradient in zip(net.parameters(), wanted, strict=True):
        assert parameter.grad.stride() == parameter.stride() and torch.equal(
            parameter.grad, gradient
        )


def test_a_gradient_in_another_layout_is_put_in_the_parameters():
    parameter = torch.randn(4, 5, 3, 3).contiguous(memory_format=torch.channels_last)
    gradient = torch.randn(4, 5, 3, 3)
    assert like(parameter, gradient).stride() == parameter.stride() != gradient.stride()
    assert torch.equal(like(parameter, gradient), gradient)
    assert like(gradient, gradient) is gradient


@pytest.mark.parametrize("beside", [False, True])
def test_a_restored_optimiser_has_its_parameters_layout_and_goes_on_as_before(tmp_path, beside):
    (net, optimiser), (other, again) = _pictures_net(), _pictures_net()
    x = torch.randn(6, 1, 8, 8).contiguous(memory_format=torch.channels_last)
    for _ in range(3):
        take_step(net(x).square().mean(), [net], [optimiser])
    with checkpoint.CheckpointWriter(beside) as keeper:
        keeper.save(tmp_path / "c", {"a": net}, {"a": optimiser}, {"round": 3})
        take_step(net(x).square().mean(), [net], [optimiser])  # what is saved is how it stood
    tensors, meta = checkpoint.load(tmp_path / "c")
    checkpoint.restore_modules(tensors, {"a": other})
    checkpoint.restore_optimiser(tensors, "a", again)
    assert meta == {"round": 3}
    assert _layouts(again) == _layouts(optimiser) == [(p.stride(),) * 2 for p in other.parameters()]
    take_step(other(x).square().mean(), [other], [again])
    assert all(
        torch.equal(a, b)
        for a, b in zip(net.state_dict().values(), other.state_dict().values(), strict=True)
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="Adam in one kernel needs a GPU")
def test_a_gpu_goes_on_from_a_checkpoint_of_pictures(tmp_path):
    def learn(run: Run, stop: int | None = None) -> torch.Tensor:
        net, gpu = _pictures_net()[0], torch.device("cuda")
        x = np.random.default_rng(0).standard_normal((64, 1, 8, 8)).astype(np.float32)
        calls = 0

        def objective(batch):
            nonlocal calls
            calls += 1
            if stop is not None and calls > stop:
                raise KeyboardInterrupt
            return Move(net(batch.x).square().mean())

        phase = Phase("p", 2, [Player("a", net, objective, lr=0.01)], steady=True)
        Game({"a": net}, [phase], Feed(Inputs(x), {"i": np.arange(64)}, gpu), 8, 0, "").play(run)
        return torch.cat([p.detach().flatten() for p in net.parameters()])

    run = Run(tmp_path, progress=False, device="cuda", rounds_between=1, pace="plain")
    whole = learn(replace(run, folder=None))
    with pytest.raises(KeyboardInterrupt):
        learn(run, stop=5)
    torch.testing.assert_close(
        learn(replace(run, resume=True, pace="recorded")), whole, rtol=1e-2, atol=1e-3
    )


@pytest.mark.parametrize("beside", [False, True])
def test_what_cannot_be_written_is_said(tmp_path, beside):
    with pytest.raises(OSError), checkpoint.CheckpointWriter(beside) as keeper:
        keeper.save(tmp_path / "gone" / "c", {"a": nn.Linear(4, 1)}, {}, {})


def test_a_checkpoint_that_cannot_be_written_stops_the_game(tmp_path):
    net = nn.Linear(4, 1)
    player = Player("a", net, lambda batch: Move(net(batch.x).square().mean()))
    with pytest.raises(OSError):
        Game({"a": net}, [Phase("p", 1, [player])], _feed(), 8, 0, "").play(
            Run(tmp_path / "gone", progress=False, rounds_between=1, device="cpu")
        )


def test_texts_of_like_length_share_a_batch_and_resuming_keeps_their_order(tmp_path):
    """The order follows from (seed, phase, epoch), so a game stopped within an epoch goes on with
    the batches it had not seen."""
    lengths = np.random.default_rng(0).integers(1, 40, 210)
    ids = np.where(np.arange(40) < lengths[:, None], 7, 0).astype(np.int64)

    def play(run: Run, stop: int | None = None) -> list[list[int]]:
        net, seen = nn.Embedding(8, 3), []

        def objective(batch):
            if len(seen) == stop:
                raise KeyboardInterrupt
            seen.append(batch.labels["i"].tolist())
            return Move(net(batch.x).mean())

        feed = Feed(Inputs(ids), {"i": np.arange(len(ids))}, CPU)
        try:
            Game({"a": net}, [Phase("p", 3, [Player("a", net, objective)])], feed, 8, 0, "").play(
                run
            )
        except KeyboardInterrupt:
            assert stop is not None
        return seen

    whole, per_epoch = play(QUIET), 210 // 8
    assert len(whole) == 3 * per_epoch
    for epoch in range(3):
        drawn = whole[epoch * per_epoch : (epoch + 1) * per_epoch]
        assert len({i for batch in drawn for i in batch}) == 8 * per_epoch, "one comes twice"
        assert np.mean([np.ptp(lengths[batch]) for batch in drawn]) < 4 < np.ptp(lengths)
        firsts = [lengths[batch].mean() for batch in drawn]
        assert firsts != sorted(firsts), "short texts come first"
    assert whole[:per_epoch] != whole[per_epoch : 2 * per_epoch]
    run = replace(QUIET, folder=tmp_path, rounds_between=1)
    before = play(run, stop=per_epoch + 5)
    assert before + play(replace(run, resume=True)) == whole


def test_a_checkpoint_of_other_work_is_refused(tmp_path):
    data = small("table", 160)
    run = Run(tmp_path, progress=False, rounds_between=1, device="cpu")
    TIPRDC(width=0.05, warmup=1, epochs=1, batch=16).fit(data, ["u"], run=run)
    with pytest.raises(PrivetError, match="other settings"):
        TIPRDC(width=0.05, warmup=1, epochs=2, batch=16).fit(
            data, ["u"], run=Run(tmp_path, resume=True, progress=False, device="cpu")
        )


KILLED = """
import os, signal, sys
from privet.cli.main import app
from privet.train import checkpoint

left, write = int(sys.argv.pop(1)), checkpoint._write

def write_and_die(*given):
    global left
    write(*given)
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

checkpoint._write = write_and_die
app()
"""
"""The command line, killed without warning once it has written so many checkpoints."""


def test_kill_9_and_resume_give_the_same_bytes(tmp_path):
    """Really killed, in either phase, and gone on with: the weights are those of a run nobody
    disturbed."""
    words = ["learn", "tiprdc", "--data", "portraits:400", "--private", "beard"]
    words += ["--device", "cpu", "--checkpoint-rounds", "2"]
    for setting in ("width=0.05", "warmup=1", "epochs=2", "batch=16"):
        words += ["--set", setting]
    rough, mark = ["--out", str(tmp_path / "rough")], tmp_path / "rough" / checkpoint.CHECKPOINT
    for phase, (written, *more) in enumerate(((2,), (9, "--resume"))):
        command = [sys.executable, "-c", KILLED, str(written), *words, *rough, *more]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        assert checkpoint.load(mark)[1]["phase"] == phase
        assert not (tmp_path / "rough" / "card.json").exists()
    for more in ([*rough, "--resume"], ["--out", str(tmp_path / "calm")]):
        said = CliRunner().invoke(cli.app, [*words, *more])
        assert said.exit_code == 0, said.output
    calm_weights, rough_weights = (
        load_file(tmp_path / name / "weights.safetensors") for name in ("calm", "rough")
    )
    assert calm_weights.keys() == rough_weights.keys()
    for key, value in calm_weights.items():
        assert torch.equal(value, rough_weights[key]), key
    assert not (tmp_path / "rough" / "checkpoint.safetensors").exists()
