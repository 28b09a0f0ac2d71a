"""The scheduler: nothing is done twice, whatever dies is survived, and a time limit holds. The
workers only pretend."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from made_cells import cell

from privet.core.errors import PrivetError
from privet.studies import scheduler as running
from privet.studies.cells import RAW, Cell
from privet.studies.scheduler import jobs_of, locked, run

HERE = Path(__file__).parent
FAKE = (sys.executable, str(HERE / "fake_worker.py"))


@pytest.fixture(autouse=True)
def _pretend(monkeypatch):
    monkeypatch.setattr(running, "PROGRAM", FAKE)


def cells(n: int = 3, **settings) -> list[Cell]:
    return [cell(RAW, None), *(replace(cell(seed=seed), settings=settings) for seed in range(n))]


def go(own: list[Cell], room: Path, **words):
    jobs = jobs_of(own, room)
    run(own, jobs, room, **{"workers": 1, "device": "cpu", **words})
    return [jobs[c.key] for c in own]


def asked(room: Path) -> list[list[str]]:
    return [line.split() for line in (room / "asked.txt").read_text().splitlines()]


def test_raw_first_then_each_is_learned_and_attacked(tmp_path):
    assert {job.state for job in go(cells(), tmp_path)} == {"done"}
    said = asked(tmp_path)
    assert [line[:3] for line in said] == [
        ["attack", "raw", "0"],
        *(
            ["learn", "tiprdc", str(s)] if turn == 0 else ["attack", "tiprdc", str(s)]
            for s in range(3)
            for turn in (0, 1)
        ),
    ]
    assert len({line[3] for line in said}) == 1, "one worker did it all"
    assert [line[4] for line in said if line[0] == "attack"] == ["own", "raw", "raw", "raw"]


def test_what_is_done_is_not_done_again(tmp_path):
    go(cells(2), tmp_path)
    before = len(asked(tmp_path))
    jobs = go(cells(3), tmp_path)
    assert {job.state for job in jobs} == {"done"}
    assert [line[:3] for line in asked(tmp_path)[before:]] == [
        ["learn", "tiprdc", "2"],
        ["attack", "tiprdc", "2"],
    ]


def test_a_cell_is_its_content_and_not_its_words():
    one, same = cell(), cell(label="another name", question="q")
    assert one.key == same.key == Cell.from_json(one.to_json()).key
    others = [
        replace(one, **change)
        for change in (
            {"seed": 1},
            {"battery": "strong"},
            {"utility": ("hat",)},
            {"audited_print": "2"},
        )
    ]
    others += [
        replace(one, settings={**one.settings, "width": 0.5}),
        replace(one, brought=("3",)),
        replace(one, without=()),
    ]
    assert len({one.key, *(other.key for other in others)}) == len(others) + 1


def test_a_dead_worker_is_replaced_and_its_job_tried_once_more(tmp_path):
    once, twice = (
        replace(cell(seed=0), settings={"die": 1}),
        replace(cell(seed=1), settings={"die": 2}),
    )
    jobs = go([cell(RAW, None), once, twice, cell(seed=2)], tmp_path)
    assert [job.state for job in jobs] == ["done", "done", "failed", "done"]
    assert jobs[2].error == "The process that worked on it ended (SIGKILL)."
    assert sum(line[:3] == ["learn", "tiprdc", "0"] for line in asked(tmp_path)) == 1, (
        "what was learned is not learned again"
    )
    assert go([cell(RAW, None), twice], tmp_path)[1].state == "done", "the next run tries again"


def test_a_sentence_is_kept_and_the_rest_goes_on(tmp_path):
    jobs = go(
        [cell(RAW, None), replace(cell(), settings={"refuse": "Too few."}), cell(seed=1)], tmp_path
    )
    assert [job.state for job in jobs] == ["done", "failed", "done"] and jobs[1].error == "Too few."
    assert sum(line[:3] == ["learn", "tiprdc", "0"] for line in asked(tmp_path)) == 1, (
        "what is refused is not asked again"
    )


def test_several_workers_learn_while_raw_records_are_attacked(tmp_path):
    raw = replace(cell(RAW, None), settings={"seconds": 3})
    assert {job.state for job in go([raw, *cells(3)[1:]], tmp_path, workers=2)} == {"done"}
    said = asked(tmp_path)
    assert len({line[3] for line in said}) == 2
    assert "learn" in [line[0] for line in said[:2]], "the second worker waited"
    assert all(line[4] == "raw" for line in said if line[0] == "attack" and line[1] != "raw")


def test_cells_of_two_questions_that_are_the_same_are_one(tmp_path):
    twice = [replace(c, question=q) for q in ("a", "b") for c in cells(1)]
    assert {job.state for job in go(twice, tmp_path)} == {"done"} and len(asked(tmp_path)) == 3


def test_the_time_limit_holds_and_the_next_run_goes_on(tmp_path):
    endless = replace(cell(seed=9), settings={"seconds": 3000})
    own = cells(2, seconds=0.1)
    started = time.monotonic()
    jobs = go([*own, endless], tmp_path, time_limit=1.5)
    assert time.monotonic() - started < 1000, "it waited for what was under way"
    states = [job.state for job in jobs]
    assert "left" in states and not {"learning", "attacking", "failed"} & set(states)
    assert {job.state for job in go(own, tmp_path)} == {"done"}
    assert all(int(line[3]) not in _alive() for line in asked(tmp_path))


def _alive() -> set[int]:
    return {
        int(p.name)
        for p in Path("/proc").iterdir()
        if p.name.isdigit() and _state(p) not in ("Z", "")
    }


def _state(process: Path) -> str:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


SCRIPT = """
import sys
sys.path[:0] = [{here!r}]
from pathlib import Path
from privet.studies import scheduler as running
from test_scheduler import FAKE, cells
running.PROGRAM = FAKE
room = Path({room!r})
own = cells(3, seconds=0.5)
with running.locked(room):
    running.run(own, running.jobs_of(own, room), room, workers=2, device="cpu")
"""


def test_killed_in_the_middle_its_workers_end_and_another_run_finishes(tmp_path):
    script = SCRIPT.format(here=str(HERE), room=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", script])
    own = cells(3, seconds=0.5)
    try:
        _until(
            lambda: (
                (tmp_path / "asked.txt").exists()
                and any(j.state == "learned" for j in jobs_of(own, tmp_path).values())
            )
        )
        with pytest.raises(PrivetError, match="Another comparison is at work"), locked(tmp_path):
            pass
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    _until(lambda: not {int(line[3]) for line in asked(tmp_path)} & _alive())
    done = (
        {line[2] for line in asked(tmp_path) if line[0] == "learn"}
        if (tmp_path / "asked.txt").exists()
        else set()
    )
    with locked(tmp_path):
        assert {job.state for job in go(own, tmp_path)} == {"done"}
    learned = [line[2] for line in asked(tmp_path) if line[0] == "learn"]
    assert done and len(learned) <= 3 + 2, "at most what was under way is done again"


def _until(holds, seconds: float = 600.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def test_workers_are_counted():
    assert running.count(3) == 3 and running.count(None) >= 1
    with pytest.raises(PrivetError, match="At least one worker"):
        running.count(0)
