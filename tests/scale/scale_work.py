"""What tasks do in tests of the cluster: the real work with a battery that takes a second,
checkpoints at every round, and a diary."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import torch

from privet.adversaries.linear import Logistic
from privet.adversaries.mlp import MLP
from privet.auditing.batteries import BATTERIES, Battery
from privet.studies import worker
from privet.train.feed import Batch, Feed

DIARY = "PRIVET_TEST_DIARY"
# Seconds that a round takes in a task that begins anew: long enough for somebody to be killed in
# the middle.
PACE = 0.05


def do(job: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    brief = MLP(shapes=((8,),), rates=(3e-3,), decays=(1e-2,), whites=(False,), epochs=1, least=5)
    BATTERIES["quick"] = Battery((Logistic(strengths=(0.1,)),), (brief,), (), people=False)
    room = Path(job["folder"]) / "release"
    resumed = (room / "checkpoint.safetensors").exists()
    note = {
        **{key: job["cell"][key] for key in ("method", "seed")},
        "do": job["do"],
        "pid": os.getpid(),
        "resumed": resumed,
    }
    with Path(os.environ[DIARY]).open("a") as diary:
        diary.write(json.dumps({**note, "folder": job["folder"]}) + "\n")
    plain_run, plain_batch = worker.Run, Feed.batch

    def slowly(self: Feed, index: Any) -> Batch:
        time.sleep(PACE)
        return plain_batch(self, index)

    worker.Run = lambda *words, **named: plain_run(*words, **named, rounds_between=1)  # type: ignore[misc, assignment]
    if job["do"] == "learn" and not resumed:
        Feed.batch = slowly  # type: ignore[method-assign]
    try:
        worker.do(job)
    finally:
        worker.Run, Feed.batch = plain_run, plain_batch  # type: ignore[misc, method-assign]
