"""The benchmark of language models: a small run is tuned, goes on where it stopped, and becomes two
tables; a job that fails or is late leaves the others."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import tables
from language_parts.jobs import Job, Study, best_setting
from language_parts.record import write_results

import language
from privet.language.models.settings import Settings

GRID = ("batch=8,lr=0.01", "clip=0.5")


def played(deadline: float, failing: str = "") -> dict[str, Any]:
    """Jobs by a pool that does nothing."""
    results: dict[str, Any] = {}

    def submit(job: Job) -> Future[dict[str, Any]]:
        future: Future[dict[str, Any]] = Future()
        if failing and failing in str(job):
            future.set_exception(ValueError("no memory"))
        else:
            future.set_result(
                {
                    "held_out": 5.0 + job.label.count("lr"),
                    "held_out_perplexity": 271.5,
                    "ran": job.label,
                }
            )
        return future

    pending = language.jobs_of((0, 1), GRID)
    language.play(pending, results, GRID, submit, 2, deadline, lambda _: None)
    return results


def test_dp_waits_for_the_tuning_and_takes_its_best() -> None:
    results = played(time.monotonic() + 60)
    models = (*language.FIRST, *language.THEN, *language.LAST)
    assert len(results) == 2 + 2 + 2 * len(models)
    assert results["model 1 dp:2"]["ran"] == "dp:2,clip=0.5" and "model 1 none" in results
    assert not played(time.monotonic() - 1), "no job starts late"
    assert results["model 1 stopped:2"]["ran"] == "stopped:2,271.5"
    failed = played(time.monotonic() + 60, failing="clip=0.5")
    assert failed["model 0 dp:8"]["ran"] == "dp:8,batch=8,lr=0.01"
    assert best_setting(failed, GRID) == GRID[0]


def test_a_reference_is_trained_again_only_for_a_model_that_is_left() -> None:
    jobs = language.jobs_of((0, 1), GRID[:1], ("stopped:8", "none"))
    assert [str(job) for job in jobs[2:]] == [
        "model 0 stopped:8",
        "model 1 stopped:8",
        "model 0 none",
        "model 1 none",
    ]
    there: dict[str, Any] = {str(job): {} for job in jobs}
    assert language.left(jobs, there, lambda _: False) == []
    del there["model 1 none"]
    assert language.left(jobs, there, lambda _: True) == [Job("model", 1, "none")]
    assert language.left(jobs, there, lambda _: False)[0] == Job("reference", 1)
    assert language.left(jobs, {}, lambda _: True) == jobs


@pytest.mark.filterwarnings("ignore:Optimal order")
def test_a_small_run_becomes_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opacus")
    random, words = np.random.default_rng(0), [f"w{one}" for one in "abcdefghijklmnop"]
    rows = [
        {
            "text": " ".join(random.choice(words, 30)) + f" own{'xyz'[one % 3] * (1 + one // 3)}",
            "author": f"a{one}",
        }
        for one in range(24)
        for _ in range(8)
    ]
    data, out = tmp_path / "texts.parquet", tmp_path / "found.json"
    pd.DataFrame(rows).to_parquet(data)
    small = Settings(width=8, vocabulary=300, longest=24, epochs=2, batch=16, lr=0.03)
    study = Study(str(data), tmp_path / "models", None, 2, small, "cpu")
    monkeypatch.setattr(language, "FIRST", ("none", "triplet:1", "dp:8"))
    monkeypatch.setattr(language, "THEN", ("stopped:8",))
    monkeypatch.setattr(language, "LAST", ())
    monkeypatch.setattr(
        language, "ProcessPoolExecutor", lambda *_: InPlace()
    )  # a process takes seconds to start
    args = Namespace(seconds=100.0, out=out, seeds=[0], workers=1, threads=1, only=[])
    language.measure(study, args, GRID)
    jobs = json.loads(out.read_text())["jobs"]
    assert len(jobs) == 7 and not [one for one in jobs.values() if "error" in one]
    assert set(language.earlier(out)) == set(jobs)
    again = json.loads(out.read_text())
    again["jobs"]["model 1 none"] = again["jobs"]["model 0 none"]  # as if it had a second seed
    out.write_text(json.dumps(again))
    write_results([out], "a test", tmp_path, "abc", ("none", "triplet:3"))
    posts, members, pairs, tuning = (
        tables.read(tmp_path / f"language-{one}.json")
        for one in ("posts", "members", "pairs", "tuning")
    )
    names = ["plain", "plain, stopped as at ε 8", "triplet 1", "triplet 3", "DP-SGD, ε 8"]
    assert [row["model"] for row in posts.rows] == [row["model"] for row in members.rows] == names
    assert [row["which"] for row in posts.rows] == ["2: 0, 1", "1: 0", "1: 0", "0", "1: 0"]
    assert posts.seeds is None and posts.commit == "abc", "no number of seeds holds for all rows"
    there = [row["exposure"] for row in posts.rows if row["seeds"]]
    assert len(there) == 4 and all(one["low"] <= one["value"] <= one["high"] for one in there)
    assert posts.rows[3]["exposure"] is members.rows[3]["member"] is None
    assert all(row["seeds"] == 1 for row in pairs.rows), "of the seed that both have"
    assert len(tuning.rows) == 2 and "epochs" in posts.notes[-2]
    del again["jobs"]["model 1 none"], again["jobs"]["model 0 dp:8"]
    again["jobs"]["model 0 triplet:1"] = again["jobs"]["model 0 none"]
    out.write_text(json.dumps(again))
    write_results([out], "a test", tmp_path, "def", ("none", "triplet:3", "dp:8"))
    later = tables.read(tmp_path / "language-posts.json")
    commits = [row.get("commit", later.commit) for row in later.rows]
    assert [row["model"] for row in later.rows] == names
    assert commits == ["abc", "def", "def", "def", "abc"], "more seeds, or not in this run"
    assert later.rows[2]["perplexity"] != posts.rows[2]["perplexity"], "as many: the newer one"


class InPlace:
    """A pool whose jobs are done at once."""

    def __enter__(self) -> InPlace:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Any, *about: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(*about))
        except Exception as error:
            future.set_exception(error)
        return future
