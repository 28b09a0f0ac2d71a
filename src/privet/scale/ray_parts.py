"""`privet apply --parts` on a Ray cluster: every worker writes its own parts, and nothing but their
hashes comes back.

The bytes of a part follow from the key, the release and its rows: a task that Ray gives to another
worker, because one was lost, puts the same file in the same place. Every node must see the inputs
and the folder under the same address: a shared disk, or an object store.
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from privet.core.errors import PrivetError, first_line, refuse_if
from privet.core.stores import Store, StoredFile, version_of
from privet.data.part_manifest import UNFINISHED, Part
from privet.release.part_plan import Job
from privet.release.part_writing import Recipe, release_part
from privet.scale.cluster import connected, read_files
from privet.scale.ray_apply import fetched, load_release

# Tasks that wait for every core, so that none is idle.
TASKS_PER_CORE = 2
# Seconds for tasks to end where another was refused.
STOP_SECONDS = 600.0
# How often a task is given to another worker.
RETRIES = 3


def spread_parts(address: str, folder: Path, recipe: Recipe, jobs: Sequence[Job]) -> Iterator[Part]:
    """The parts of jobs, in the order in which they are done.

    Parameters:
        address: Of the Ray cluster.
        folder: Of the release, which travels.
        recipe: What makes a part; the key of the noise is in it.
        jobs: One task each.
    """
    if not jobs:
        return
    with connected(address) as ray:
        release = read_files(folder.resolve())
        fingerprint = hashlib.sha256(release["card.json"]).hexdigest()
        shared = replace(recipe, store=_absolute_store(recipe.store))
        # In lists, so that they are fetched once by a process and not once by a task.
        stored = [ray.put(release)], [ray.put(shared)]
        task = ray.remote(make_part).options(max_retries=RETRIES, num_cpus=1)
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting = [_absolute(job) for job in reversed(jobs)]
        flying: list[Any] = []
        try:
            while waiting or flying:
                while waiting and len(flying) < TASKS_PER_CORE * cores:
                    flying.append(task.remote(waiting.pop(), fingerprint, *stored))
                ready, flying = ray.wait(flying, num_returns=1)
                yield from (_part(made) for made in ray.get(ready))
        except ray.exceptions.RayError as error:
            raise PrivetError(
                f"The cluster lost a part {RETRIES + 1} times ({first_line(error)}): go on with "
                "--resume."
            ) from None
        except PrivetError:
            # Else they would write into a folder that nobody looks after; a task that is cancelled
            # counts as done before its process has cleaned up.
            if flying:
                ray.wait(flying, num_returns=len(flying), timeout=STOP_SECONDS)
            raise


def make_part(job: Job, fingerprint: str, release: list[Any], recipe: list[Any]) -> Part | str:
    """What one task does: its part, or why there is none."""
    try:
        shared: Recipe = fetched(recipe[0])
        _check_sight(job, shared.store)
        loaded, run = load_release(fingerprint, release[0])
        return release_part(loaded, run, shared, job, workers=1)
    except PrivetError as refused:
        return str(refused)


def _part(made: Part | str) -> Part:
    if isinstance(made, str):
        raise PrivetError(made)
    return made


def _check_sight(job: Job, store: Store) -> None:
    """PrivetError where this node sees other files than the machine that asks."""
    host = socket.gethostname()
    refuse_if(
        version_of(job.file) != job.version,
        f"{host} does not have the same {job.file}: put it on a disk that all nodes see, or into "
        "an object store.",
    )
    refuse_if(
        not store.has(UNFINISHED),
        f"{host} does not see {store.address}: put --out on a disk that all nodes see, or into an "
        "object store.",
    )


def _absolute(job: Job) -> Job:
    return job if isinstance(job.file, StoredFile) else replace(job, file=job.file.resolve())


def _absolute_store(store: Store) -> Store:
    return store if store.folder is None else Store(store.folder.resolve())
