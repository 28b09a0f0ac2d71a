"""`privet compare`: learn and attack the cells of a study, here or on a Ray cluster."""

from __future__ import annotations

from pathlib import Path

from privet.scale.ray_cells import worker_pool
from privet.studies.compare import Comparison, interruptible, run_study
from privet.studies.study import Study


def compare(
    study: Study,
    out: str | Path,
    *,
    workers: int | None = None,
    time_limit: float | None = None,
    device: str = "auto",
    ray: str | None = None,
    command: str | None = None,
) -> Comparison:
    """Learn and attack every cell of `study`; write frontier.parquet, frontier.html and table.md.

    The same call goes on where another was stopped or killed.

    study: methods, budgets, seeds and questions (`privet.Study.of`, or a recipe by
        `privet.studies.recipes.recipe`).
    out: the folder for the cells and the results.
    workers: how many processes work at the same time.
    time_limit: seconds after which no new work is begun.
    device: cpu, cuda or auto.
    ray: the address of a Ray cluster whose tasks do the work.
    command: what the page says the command was.
    """
    with interruptible(), worker_pool(ray, workers, device) as pool:
        return run_study(
            study,
            Path(out),
            workers=pool.workers,
            time_limit=time_limit,
            device=pool.device,
            start_worker=pool.start_worker,
            command=command,
        )
