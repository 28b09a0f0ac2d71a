"""The story as a user types it, with real workers: one method on a small table, and the same
command once more."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pandas as pd
import pytest
from made_cells import cell
from made_rows import comparison, study
from rich.console import Console
from typer.testing import CliRunner

from privet import Audit
from privet.cli import main as cli
from privet.release.runtime import read_card
from privet.studies import progress
from privet.studies import scheduler as running
from privet.studies.compare import Comparison, interruptible
from privet.studies.scheduler import Job
from small import small

TINY = (sys.executable, str(Path(__file__).parent / "tiny_worker.py"))


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    room = tmp_path_factory.mktemp("story")
    data = small("table", 240)
    frame = data.records.assign(u=data.labels["u"], y=data.labels["y"])
    frame.to_csv(room / "rows.csv", index=False)
    words = [
        "compare",
        "--data",
        room / "rows.csv",
        "--private",
        "u",
        "--utility",
        "y",
        "--methods",
        "leace",
        "--device",
        "cpu",
    ]
    words += ["--workers", "1", "--out", room / "c"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "PROGRAM", TINY)
        said = []
        for _ in range(2):
            stamps = (
                {p: p.stat().st_mtime_ns for p in (room / "c" / "cells").rglob("*.json")}
                if said
                else {}
            )
            result = CliRunner().invoke(cli.app, [str(word) for word in words])
            assert result.exit_code == 0, result.output
            said.append(result.stdout)
    return room / "c", said, stamps


def test_it_ends_with_a_picture_and_all_cells_done(told):
    room, said, _ = told
    assert "2 cells are done. The picture:" in said[0] and said[0] == said[1]
    frame = pd.read_parquet(room / "frontier.parquet")
    assert list(frame["method"]) == ["raw", "leace"] and (frame["state"] == "done").all()
    assert (room / "workers.log").read_text().count("Traceback") == 0
    assert (
        "LEACE" in (room / "frontier.html").read_text()
        and "LEACE" in (room / "table.md").read_text()
    )


def test_the_second_time_nothing_is_done_again(told):
    _, _, stamps = told
    assert stamps and all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())


def test_raw_records_are_attacked_once_for_all(told):
    room, _, _ = told
    frame = pd.read_parquet(room / "frontier.parquet").set_index("method")
    raw, own = (
        Audit.load(room / "cells" / frame["cell"][name] / "audit" / "audit.json")
        for name in ("raw", "leace")
    )
    for before, after in zip(raw.readings, own.readings, strict=True):
        assert [f.score for f in before.released] == [f.score for f in after.raw] and {
            f.source for f in after.raw
        } == {"raw"}
        assert before.worst.score == after.reference.score
    card = read_card(room / "cells" / frame["cell"]["leace"] / "release")
    assert {"u", "y"}.isdisjoint(column["name"] for column in card["input"]["columns"]), (
        "a private or task column is input"
    )


def test_a_line_per_event_says_who_is_at_work(tmp_path, monkeypatch):
    page = io.StringIO()
    monkeypatch.setattr(progress, "console", Console(file=page, width=120))
    jobs = [Job(cell(seed=seed), tmp_path) for seed in range(3)]
    with progress.progress(jobs) as changed:
        for job, state in zip(jobs, ("attacking", "failed", "learned"), strict=True):
            job.state, job.error = state, "Too few." if state == "failed" else ""
            changed(job)
    first, second = page.getvalue().splitlines()
    assert first.endswith("0/3  TIPRDC budget 0.9, seed 0: attacking")
    assert second.endswith("1/3  TIPRDC budget 0.9, seed 1: failed. Too few.")


def test_control_c_says_what_is_kept(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended, interruptible():
        raise KeyboardInterrupt
    assert ended.value.code == 130
    said = capsys.readouterr().err
    assert (
        said
        == "privet: stopped. Cells that are done are kept: run the same command again to go on.\n"
    )
    end = str(Comparison(study(), tuple(comparison()), tmp_path, stopped=True))
    assert (
        end.startswith(
            "Stopped. Cells that are done are kept, 9 so far: run the same command again to go on."
        )
        and "--resume" not in end
    )
