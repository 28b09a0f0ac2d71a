"""What language models remember of 12,000 posts: plain, adversarial, triplet, a tuned DP-SGD, and
plain models that are stopped at DP-SGD's perplexity.

    python benchmarks/language.py --data blogs.parquet --out language.json --seconds 420
    python benchmarks/language.py --write language.json --machine "one GPU" --commit HASH

DP-SGD is tuned first, at epsilon 8 and one seed, by the perplexity of texts that are neither learned
from nor counted on; its best setting is then used at every epsilon. `--dp SETTING` takes one that
was tuned before. The result is written again after every job; no job starts once --seconds are over,
and the same line goes on. Seeds may run side by side, each with an --out of its own. `--only` names
the models to train, in the order that counts; `--models` keeps weights, so that a line that goes on
need not train the reference models again. `--write` makes language-posts, -members, -pairs and, of a
run that was tuned, -tuning.json in benchmarks/results.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from language_parts.jobs import REFERENCE, Job, Study, best_setting, done, start_process
from language_parts.stopped import STOPPED

from privet.core.files import write_text
from privet.core.progress import console
from privet.language.models.dp_sgd import require_opacus
from privet.language.models.settings import Settings

SETTINGS = Settings(vocabulary=10_000, epochs=15, batch=64, lr=3e-3)
# Adam's step hardly depends on the clipping norm once all rows are clipped: two norms, more rates.
# The last is what the other models have.
GRID = (
    *(
        f"epochs=20,batch=1024,lr={rate},dropout=0,clip={clip}"
        for clip in (0.1, 1.0)
        for rate in (0.005, 0.01, 0.02)
    ),
    *(f"epochs=40,batch=2048,lr={rate},dropout=0,clip=0.1" for rate in (0.01, 0.02, 0.04)),
    "clip=1.0",
)
TUNED_AT = "dp:8"
# All seeds of these come first. What is stopped starts once DP-SGD's model is there; DP-SGD takes
# the most memory, so not all of it starts at once.
FIRST = (TUNED_AT, "none", "dp:2", "adversarial:1", "dp:32", "triplet:0.3")
THEN = ("stopped:8", "stopped:2", "stopped:32")
LAST = ("adversarial:0.3", "triplet:1", "adversarial:3", "triplet:0.1")


def jobs_of(seeds: Sequence[int], grid: Sequence[str], only: Sequence[str] = ()) -> list[Job]:
    """All jobs, the most wanted first. One setting alone needs no tuning. Of `only`, every seed has
    its first model before any has its second."""
    if only:
        models = [Job("model", seed, label) for label in only for seed in seeds]
        return [*(Job("reference", seed) for seed in seeds), *models]
    tuned = grid if len(grid) > 1 else ()
    return [
        *(Job("reference", seed) for seed in seeds),
        *(Job("tune", 0, f"{TUNED_AT},{setting}") for setting in tuned),
        *(
            Job("model", seed, label)
            for labels in (FIRST, THEN, LAST)
            for seed in seeds
            for label in labels
        ),
    ]


def is_ready(job: Job, results: dict[str, Any], grid: Sequence[str]) -> bool:
    """Whether what a job starts from is there: for DP-SGD the tuning, and for what is stopped the
    perplexity of DP-SGD's model."""
    if job.kind != "model":
        return True
    if job.label.startswith(STOPPED):
        return "held_out_perplexity" in results.get(dp_of(job), {})
    tuning = [results.get(f"tune 0 {TUNED_AT},{setting}") for setting in grid]
    tuned = all(tuning) and any("held_out" in one for one in tuning if one)
    return tuned or len(grid) == 1 or not job.label.startswith("dp")


def dp_of(job: Job) -> str:
    """The job of DP-SGD at whose perplexity this one is stopped."""
    return str(Job("model", job.seed, job.label.replace(STOPPED, "dp")))


def told(job: Job, results: dict[str, Any], grid: tuple[str, ...]) -> Job:
    """The job with what it needs of others in its label."""
    if job.kind == "model" and job.label.startswith("dp"):
        return Job(job.kind, job.seed, f"{job.label},{best_setting(results, grid)}")
    if job.label.startswith(STOPPED):
        target = results[dp_of(job)]["held_out_perplexity"]
        return Job(job.kind, job.seed, f"{job.label},{target}")
    return job


def play(
    pending: list[Job],
    results: dict[str, Any],
    grid: tuple[str, ...],
    submit: Callable[[Job], Future[dict[str, Any]]],
    workers: int,
    deadline: float,
    save: Callable[[dict[str, Any]], None],
) -> None:
    """Do jobs, so many at a time, until none is left or the time is over."""
    running: dict[Future[dict[str, Any]], Job] = {}
    while True:
        while len(running) < workers and time.monotonic() < deadline:
            job = next((one for one in pending if is_ready(one, results, grid)), None)
            if job is None:
                break
            pending.remove(job)
            running[submit(told(job, results, grid))] = job
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            job, error = running.pop(future), future.exception()
            results[str(job)] = {"error": str(error)} if error else future.result()
            save(results)
            took = results[str(job)].get("seconds", error)
            console.print(f"{job}: {took} s, {len(pending)} left", highlight=False)


def earlier(path: Path) -> dict[str, Any]:
    """The jobs that an earlier run has done."""
    if not path.exists():
        return {}
    results = json.loads(path.read_text(encoding="utf-8"))["jobs"]
    return {key: result for key, result in results.items() if "error" not in result}


def left(jobs: Sequence[Job], results: Mapping[str, Any], kept: Callable[[int], bool]) -> list[Job]:
    """The jobs that are to be done: those without a result, and the references of models among them
    whose weights are not `kept` from an earlier run."""
    models = [job for job in jobs if job.kind != "reference" and str(job) not in results]
    seeds = {job.seed for job in models if job.kind == "model"}
    first = [
        job
        for job in jobs
        if job.kind == "reference"
        and (str(job) not in results or (job.seed in seeds and not kept(job.seed)))
    ]
    return [*first, *models]


def measure(study: Study, args: argparse.Namespace, grid: tuple[str, ...] = GRID) -> None:
    deadline = time.monotonic() + args.seconds
    results = earlier(args.out)
    pending = left(
        jobs_of(args.seeds, grid, args.only),
        results,
        lambda seed: (study.models / str(seed) / REFERENCE / "card.json").exists(),
    )

    def save(results: dict[str, Any]) -> None:
        content = {"canaries": study.canaries, "grid": grid, "jobs": results}
        write_text(args.out, json.dumps(content) + "\n")

    pool = ProcessPoolExecutor(args.workers, get_context("spawn"), start_process, (args.threads,))
    with pool:
        play(
            pending,
            results,
            grid,
            lambda job: pool.submit(done, study, job),
            args.workers,
            deadline,
            save,
        )
    console.print(f"{len(results)} jobs are done, {len(pending)} are left.", highlight=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", default="blogs.parquet")
    parser.add_argument("--out", type=Path, default=Path("out/language.json"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--dp", metavar="SETTING", help="of DP-SGD, which is then not tuned")
    parser.add_argument("--only", nargs="+", metavar="LABEL", default=[], help="these models alone")
    parser.add_argument(
        "--models", type=Path, help="where weights are kept; otherwise they are not"
    )
    parser.add_argument("--authors", type=int, default=0, help="of each side; 0 for all")
    parser.add_argument("--canaries", type=int, default=16)
    parser.add_argument("--workers", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="of each worker")
    parser.add_argument("--seconds", type=float, default=420)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--write", type=Path, nargs="+", help="make the results files of these")
    parser.add_argument("--machine", default=None, help="with --write: where it ran")
    parser.add_argument("--commit", default=None, help="with --write: the commit that was run")
    args = parser.parse_args()
    if args.write:
        from language_parts.record import write_results

        planned = (*FIRST, *THEN, *LAST)
        write_results(args.write, args.machine, commit=args.commit, planned=planned)
        return
    require_opacus()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with nullcontext(args.models) if args.models else tempfile.TemporaryDirectory() as folder:
        study = Study(
            args.data,
            Path(folder),
            args.authors or None,
            args.canaries,
            SETTINGS.updated(args.settings),
            args.device,
        )
        measure(study, args, (args.dp,) if args.dp else GRID)


if __name__ == "__main__":
    main()
