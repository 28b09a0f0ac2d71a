"""Two processes that share every batch learn what one process learns: to twelve digits in double
precision, on every kind of record."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from parallel_work import CASES, exact, learned
from safetensors.torch import load_file

from privet.commands.json_log import read_events
from privet.core.errors import PrivetError
from privet.data.sources import load
from privet.methods.registry import METHODS
from privet.train import distributed as parallel
from privet.train.game import Run
from small import small

HERE = Path(__file__).parent
SETTINGS = ["width=0.1", "warmup=1", "epochs=2", "batch=32", "noise=0.3"]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made, path = small("table", 200), tmp_path_factory.mktemp("rows") / "rows.parquet"
    made.records.assign(u=made.labels["u"], y=made.labels["y"]).to_parquet(path, index=False)
    return path


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory, records: Path) -> Path:
    """What torchrun left: a release by the command, and the weights of every case."""
    out = tmp_path_factory.mktemp("together")
    words = [
        "learn",
        "tiprdc",
        "--data",
        str(records),
        "--private",
        "u",
        "--without",
        "y",
        "--device",
        "cpu",
    ]
    words += ["--out", str(out / "release"), "--log", str(out / "log.jsonl")]
    words += [word for setting in SETTINGS for word in ("--set", setting)]
    run = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        "--",  # or torchrun takes --log for one of its own
        str(HERE / "parallel_work.py"),
        str(out),
    ]
    with (out / "said.txt").open("w") as said, (out / "wrong.txt").open("w") as wrong:
        started = subprocess.Popen(
            [*run, *words], env=_environment(), stdout=said, stderr=wrong, start_new_session=True
        )
        try:
            code = started.wait(600)
        finally:
            with suppress(ProcessLookupError):  # whoever still waits for another
                os.killpg(started.pid, signal.SIGKILL)
    assert code == 0, (out / "wrong.txt").read_text()[-3000:]
    return out


def _environment() -> dict[str, str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("RAY_", "MASTER_"))
    }
    shared = os.pathsep.join([str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {
        **inherited,
        "PYTHONPATH": shared,
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
    }


@pytest.mark.parametrize("case", CASES)
def test_two_processes_learn_what_one_does(case, together):
    with exact():
        alone = learned(case)
    shared = load_file(together / f"{case}.safetensors")
    assert alone.keys() == shared.keys()
    for name in alone:
        torch.testing.assert_close(
            alone[name], shared[name], rtol=1e-9, atol=1e-9, msg=f"{case}: {name}"
        )


def test_the_command_under_torchrun_writes_one_release(together, records):
    made = load_file(together / "release" / "weights.safetensors")
    chosen = METHODS["tiprdc"].parse(SETTINGS, seed=0)
    release = chosen.fit(
        load(str(records)), ["u"], [], without=["y"], run=Run(progress=False, device="cpu")
    )
    for name, value in release.module.state_dict().items():
        torch.testing.assert_close(made[name], value, rtol=1e-3, atol=1e-4)
    assert (together / "said.txt").read_text().count("The release is in") == 1, (
        "only the first process speaks"
    )
    assert not (together / "release" / "checkpoint.safetensors").exists()


def test_only_the_first_process_logs(together):
    events = list(read_events(together / "log.jsonl"))
    assert [e["event"] for e in events if e["event"] != "round"] == ["start", "end"]
    rounds = [(e["phase"], e["round"]) for e in events if e["event"] == "round"]
    assert rounds and len(rounds) == len(set(rounds))


def test_what_would_not_be_the_same_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    with (
        pytest.raises(PrivetError, match="gap is not learned by several processes"),
        parallel.joined("gap", "cpu", tmp_path),
    ):
        pass
    monkeypatch.setattr(parallel._Here, "size", 3)
    feed = _Feed()
    assert [list(rows) for rows in parallel.batches(feed, [range(6)])] == [[0, 1]]
    with pytest.raises(PrivetError, match="32 records cannot be shared equally by 3"):
        list(parallel.batches(feed, [range(32)]))
    for unlike in (
        lambda: torch.randn(7, 2),
        lambda: torch.zeros(7).roll(1, 0),
        lambda: torch.bernoulli(torch.zeros(4)),
    ):
        with pytest.raises(RuntimeError), parallel.whole(4):
            unlike()


class _Feed:
    lengths = None

    def batches(self, indices):
        return iter(indices)


def test_alone_nothing_changes(tmp_path):
    x = torch.arange(4.0)
    assert parallel.everyone(x) is x and parallel.first() and parallel.of_all(len) is len
    with parallel.joined("anything", "cpu", tmp_path) as (device, out):
        assert device == "cpu" and out == tmp_path and parallel.size() == 1
