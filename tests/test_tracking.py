"""Logs of runs: what is written down is what happened, once, and changes nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import privet
from privet.adversaries.linear import Logistic
from privet.cli import main as cli
from privet.commands.audit import audit
from privet.commands.certify import certify
from privet.commands.json_log import JsonLog, read_events
from privet.commands.learn import learn
from privet.commands.logs import open_log
from privet.core.errors import PrivetError
from privet.train.game import Game, Run
from small import small

SETTINGS = ["width=0.1", "epochs=10", "batch=32", "memory=64"]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made, path = small("table", 300), tmp_path_factory.mktemp("rows") / "rows.parquet"
    made.records.assign(u=made.labels["u"], y=made.labels["y"]).to_parquet(path, index=False)
    return path


def hedge(rows: Path, out: Path, **more: Any) -> privet.Release:
    run = more.pop("run", Run(progress=False, device="cpu"))
    return learn("hedge", rows, "u", "y", out=out, settings=SETTINGS, run=run, **more)


def rounds_of(path: Path) -> list[tuple[str, int]]:
    return [(e["phase"], e["round"]) for e in read_events(path) if e["event"] == "round"]


@pytest.fixture(scope="module")
def calm(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release and its log."""
    folder = tmp_path_factory.mktemp("calm")
    hedge(rows, folder / "r", log=folder / "log.jsonl")
    return folder


def test_a_log_changes_nothing(calm: Path, rows: Path, tmp_path: Path) -> None:
    hedge(rows, tmp_path / "r")
    weights = [(folder / "r/weights.safetensors").read_bytes() for folder in (calm, tmp_path)]
    assert weights[0] == weights[1]


def test_lines_tell_the_run(calm: Path) -> None:
    first, *rounds, last = map(json.loads, (calm / "log.jsonl").read_text().splitlines())
    assert (first["event"], first["verb"], first["settings"]["private"]) == (
        "start",
        "learn",
        ["u"],
    )
    assert first["settings"]["width"] == 0.1
    numbers = [event["round"] for event in rounds]
    assert numbers == sorted(set(numbers)) and numbers[-1] == rounds[-1]["of"]
    assert all(np.isfinite(list(event["figures"].values())).all() for event in rounds)
    history = json.loads((calm / "r/card.json").read_text())["history"][-1]
    shared = history.keys() & rounds[-1]["figures"].keys()
    assert shared and all(abs(history[k] - rounds[-1]["figures"][k]) < 1e-4 for k in shared)
    assert last["event"] == "end" and str(calm / "r/card.json") in last["files"]
    assert len({event["run"] for event in (first, *rounds, last)}) == 1


KILLED = """
import os, signal
from privet.cli.main import app
from privet.commands.json_log import JsonLog

left, write = 13, JsonLog.round

def write_and_die(*given):
    global left
    write(*given)
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

JsonLog.round = write_and_die
app()
"""
"""The command line, killed without warning once it has logged so many rounds."""


def test_kill_9_loses_no_round_and_doubles_none(calm: Path, rows: Path, tmp_path: Path) -> None:
    out, log = tmp_path / "r", tmp_path / "log.jsonl"
    words = ["learn", "hedge", "--data", str(rows), "--private", "u", "--device", "cpu"]
    words += ["--utility", "y", "--out", str(out), "--log", str(log), "--checkpoint-rounds", "7"]
    words += [word for setting in SETTINGS for word in ("--set", setting)]
    command = [sys.executable, "-c", KILLED, *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert len(rounds_of(log)) == 13
    assert (out / "checkpoint.safetensors").exists() and not (out / "card.json").exists()
    with log.open("a") as file:
        file.write('{"time": "2026-')  # a line that was cut off
    done = CliRunner().invoke(cli.app, [*words, "--resume"])
    assert done.exit_code == 0, done.output
    assert rounds_of(log) == rounds_of(calm / "log.jsonl")
    figures = [
        [e["figures"] for e in read_events(path) if e["event"] == "round"]
        for path in (log, calm / "log.jsonl")
    ]
    assert figures[0] == figures[1]
    events = list(read_events(log))
    assert [e["event"] for e in events if e["event"] != "round"] == ["start", "resume", "end"]
    assert len({event["run"] for event in events}) == 1


def test_a_finished_run_is_not_taken_up_again(tmp_path: Path) -> None:
    path, settings = tmp_path / "log.jsonl", {"method": "x", "out": None}
    for _ in range(2):
        log = JsonLog(path, resume=True)
        log.start("learn", settings)
        log.round("p", 1, 1, {"loss": float("nan")})
        log.end({})
    assert len({event["run"] for event in read_events(path)}) == 2
    assert [e["figures"] for e in read_events(path) if e["event"] == "round"] == [
        {"loss": None}
    ] * 2


def test_what_breaks_off_says_why(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Game, "_round", broken)
    with pytest.raises(KeyboardInterrupt):
        hedge(rows, tmp_path / "r", log=tmp_path / "log.jsonl")
    assert [e["event"] for e in read_events(tmp_path / "log.jsonl")] == ["start", "failed"]


def test_parts_of_a_search_have_rounds_of_their_own(tmp_path: Path) -> None:
    log = JsonLog(tmp_path / "log.jsonl")
    for name in ("beta-0.1", "beta-1"):
        log.within(name).round("veiling", 1, 9, {})
    assert rounds_of(tmp_path / "log.jsonl") == [("beta-0.1/veiling", 1), ("beta-1/veiling", 1)]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("runs.txt", "FILE.jsonl or mlflow:URI"),
        ("no/folder/runs.jsonl", "Cannot write the log"),
        ("mlflow:nonsense://x", "cannot be reached|privet\\[mlflow\\]"),
    ],
)
def test_a_place_that_is_none(spec: str, said: str) -> None:
    with pytest.raises(PrivetError, match=said):
        open_log(spec)


def test_mlflow_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "mlflow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(PrivetError, match=r"pip install 'privet\[mlflow\]'"):
        open_log("mlflow:sqlite:///x.db")


@pytest.fixture(scope="module")
def tracked(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """MLflow's own client of a store with a learned, an audited and a certified release."""
    tracking = pytest.importorskip("mlflow.tracking", reason="pip install 'privet[mlflow]'")
    folder = tmp_path_factory.mktemp("tracked")
    uri, here = f"sqlite:///{folder / 'runs.db'}", Path.cwd()
    os.chdir(folder)  # where MLflow puts artefacts beside a store without a server
    try:
        stopped_and_resumed(rows, folder, f"mlflow:{uri}")
        release = privet.Release.load(folder / "r")
        battery = privet.Battery((Logistic(),), people=False)
        options: Any = {"out": folder / "a", "log": f"mlflow:{uri}", "device": "cpu"}
        audit(release, rows, battery=battery, progress=False, **options)
        certify(release, rows, out=folder / "c", log=f"mlflow:{uri}", device="cpu")
    finally:
        os.chdir(here)
    return tracking.MlflowClient(tracking_uri=uri), folder


def stopped_and_resumed(rows: Path, folder: Path, log: str) -> None:
    calls, real = 0, Game._round

    def breaking(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 20:
            raise KeyboardInterrupt
        return real(*args)

    run = Run(progress=False, device="cpu", rounds_between=7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Game, "_round", breaking)
        with pytest.raises(KeyboardInterrupt):
            hedge(rows, folder / "r", log=log, run=run)
    hedge(rows, folder / "r", log=log, run=Run(resume=True, progress=False, device="cpu"))


def run_of(client: Any, verb: str) -> Any:
    [experiment] = [e for e in client.search_experiments() if e.name == "privet"]
    [run] = client.search_runs([experiment.experiment_id], f"tags.`privet.verb` = '{verb}'")
    assert run.info.status == "FINISHED"
    return run


def test_mlflow_holds_settings_and_every_round_once(tracked: Any, calm: Path) -> None:
    client, _ = tracked
    run = run_of(client, "learn")
    assert run.data.params["method"] == "hedge" and run.data.params["width"] == "0.1"
    wanted: dict[str, list[tuple[int, float]]] = {}
    for event in read_events(calm / "log.jsonl"):
        for name, value in event.get("figures", {}).items():
            wanted.setdefault(f"{event['phase']}/{name}", []).append((event["round"], value))
    assert wanted
    for key, points in wanted.items():
        found = client.get_metric_history(run.info.run_id, key.replace("(", "_").replace(")", "_"))
        assert sorted((metric.step, metric.value) for metric in found) == points, key


def test_a_release_comes_back_from_mlflow(tracked: Any, tmp_path: Path) -> None:
    client, folder = tracked
    client.download_artifacts(run_of(client, "learn").info.run_id, "release", str(tmp_path))
    mine, theirs = (privet.Release.load(place) for place in (folder / "r", tmp_path / "release"))
    assert mine.noise == theirs.noise
    x = torch.from_numpy(mine.schema.random(16))
    with torch.no_grad():
        z, again = (release.module.eval()(x, torch.zeros(16, 2)) for release in (mine, theirs))
    assert torch.equal(z, again)


def test_mlflow_holds_figures_with_their_intervals_and_the_pages(
    tracked: Any, tmp_path: Path
) -> None:
    client, folder = tracked
    run = run_of(client, "audit")
    score = privet.Audit.load(folder / "a/audit.json").private[0].headline.score
    figures = run.data.metrics
    assert [figures[f"private/u{end}"] for end in ("", "/low", "/high")] == [
        score.value,
        score.low,
        score.high,
    ]
    client.download_artifacts(run.info.run_id, "audit", str(tmp_path))
    for name in ("audit.json", "report.html"):
        assert (tmp_path / "audit" / name).read_bytes() == (folder / "a" / name).read_bytes()
    certified = run_of(client, "certify")
    [bound] = [
        one.bound
        for one in privet.Certification.load(folder / "c/certificate.json").certificates
        if one.is_plain and one.releases == 1 and one.records == 1 and one.weighing != "records"
    ]
    assert certified.data.metrics["certified/u"] == bound
