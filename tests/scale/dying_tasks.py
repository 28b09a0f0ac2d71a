"""A task of `privet apply --parts --ray` whose process is killed once, before or after its part is
in place."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from privet.release.part_plan import Job
from privet.scale import ray_parts

# Where a task leaves a note of its process and of its death.
DIARY = "PRIVET_TEST_DEATHS"
# Parts whose first task dies: before it has written anything, and after the file is in place.
BEFORE, AFTER = "part-00001.parquet", "part-00004.parquet"
_make = ray_parts.make_part


def make_part(job: Job, *given: Any) -> Any:
    diary = Path(os.environ[DIARY])
    mine = diary / f"{job.name} {os.getpid()}"
    first = not list(diary.glob(f"{job.name} *"))
    mine.touch()
    if first and job.name == BEFORE:
        os.kill(os.getpid(), signal.SIGKILL)
    made = _make(job, *given)
    if first and job.name == AFTER:
        os.kill(os.getpid(), signal.SIGKILL)
    return made
