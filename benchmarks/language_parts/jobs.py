"""Jobs of the benchmark of language models: tune DP-SGD, train a reference, train and attack one
model. Each runs in a process of a pool; what the runs of a seed share is made once in a process."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # of scikit-learn

from language_parts.stopped import STOPPED, train_stopped
from privet.adversaries.kernel import Kernel
from privet.adversaries.linear import Logistic
from privet.adversaries.mlp import MLP
from privet.adversaries.neighbours import Neighbours
from privet.core.errors import PrivetError
from privet.core.json_values import finite
from privet.data.schema import PAD
from privet.language.model_audit.jobs import REFERENCE, AuditPlan
from privet.language.models import networks
from privet.language.models.canaries import CanaryPlan
from privet.language.models.corpus import SIDES, build_corpus, load_texts
from privet.language.models.settings import Settings
from privet.language.models.train import tokenizer_for, train_model
from privet.nets.device import pick
from privet.train.game import Run

# Seconds that a model waits at most for the reference of its seed, which is trained beside it.
PATIENCE = 600
# Of the audit's own: those that four hundred authors do not make slow.
ADVERSARIES = (
    Logistic(strengths=(1e-2, 1e-1), rounds=60),
    Neighbours(counts=(1, 5, 15)),
    Kernel(features=1024),
    MLP(shapes=((128,),), rates=(3e-3, 1e-2), decays=(1e-2,), epochs=20, least=300),
)


@dataclass(frozen=True)
class Study:
    """What all jobs have in common.

    Parameters:
        models: Folder of the weights; not kept.
        authors: At most so many of each side; None for all.
        canaries: Planted sentences for each of 0, 1, 4 and 16 repeats.
        settings: Of all models but for what a label changes.
    """

    data: str
    models: Path
    authors: int | None
    canaries: int
    settings: Settings
    device: str = "auto"


@dataclass(frozen=True)
class Job:
    """One piece of work, by its kind, seed and the label of its model."""

    kind: Literal["reference", "tune", "model"]
    seed: int
    label: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.seed} {self.label}".strip()


@cache
def plan_of(study: Study, seed: int) -> AuditPlan:
    """The audit of a seed; its models are added as they come."""
    settings = replace(study.settings, seed=seed)
    corpus = build_corpus(load_texts(study.data, None, False), "", study.authors, seed)
    canaries = CanaryPlan(study.canaries, (0, 1, 4, 16)).draw(corpus.authors("known"), seed)
    tokenizer = tokenizer_for(corpus, settings, canaries)
    models, folder = {"none": settings}, study.models / str(seed)
    return AuditPlan(
        corpus, canaries, tokenizer, models, folder, str(pick(study.device)), False, ADVERSARIES
    )


def start_process(threads: int) -> None:
    torch.set_num_threads(threads)
    networks.BATCH_TOKENS["cuda"] = 1 << 14  # many processes share the GPU's memory
    threadpool_limits(threads)


def done(study: Study, job: Job) -> dict[str, Any]:
    """What a job gives, with its seconds."""
    begin, plan = time.monotonic(), plan_of(study, job.seed)
    result: dict[str, Any]
    if job.kind == "reference":
        plan.trained(REFERENCE)
        result = facts(plan)
    elif job.kind == "tune":
        result = tuned(plan, plan.plain.with_regularizer(job.label))
    else:
        result = attacked(plan, job.label)
    free_memory(plan)
    return {**result, "seconds": round(time.monotonic() - begin, 1)}


def facts(plan: AuditPlan) -> dict[str, Any]:
    """How large each part of the corpus is."""
    corpus = plan.corpus
    return {
        "authors": {side: len(corpus.authors(side)) for side in SIDES},
        "learned": len(corpus.select("known", "train")),
        "chosen_on": len(corpus.select("known", "select")),
        "counted": len(corpus.select("known", "test")),
        "posts": len(corpus.texts),
        "prompts": len(plan.setup.prompts.author),
        "tokenizer": plan.tokenizer.vocabulary,
        "frequencies": frequencies_alone(plan),
    }


def frequencies_alone(plan: AuditPlan) -> float:
    """The perplexity by the frequencies of words alone, each counted once more: a model that is no
    better has learned no language."""
    rows = plan.setup.rows["known"]
    counts = np.bincount(rows["train"].ids[:, 1:].ravel(), minlength=plan.tokenizer.vocabulary) + 1
    counts[PAD] = 0
    seen = rows["test"].ids[:, 1:]
    nats = -np.log((counts / counts.sum())[seen[seen != PAD]])
    return float(np.exp(nats.mean()))


def tuned(plan: AuditPlan, settings: Settings) -> dict[str, Any]:
    """The perplexity of the texts to choose on: neither learned from nor counted on."""
    run = Run(progress=False, device=plan.device)
    trained = train_model(plan.corpus, settings, plan.canaries, tokenizer=plan.tokenizer, run=run)
    told = {"held_out": trained.card["held_out_perplexity"], "dp": trained.card["dp"]}
    return {**told, "settings": asdict(settings)}


def attacked(plan: AuditPlan, label: str) -> dict[str, Any]:
    """What is found in a model: `none`, `triplet:0.3`, `dp:8,batch=1024`, or `stopped:8,271.5`, where
    the last number is the perplexity at which a plain model is stopped."""
    begin = time.monotonic()
    if label.startswith(STOPPED):
        label, _, target = label.partition(",")
        settings = plan.models[label] = plan.plain
        train_stopped(plan, label, float(target))
    else:
        settings = plan.models[label] = plan.plain.with_regularizer(label)
        plan.trained(label)
    seconds = time.monotonic() - begin
    free_memory(plan)
    await_reference(plan)
    findings = plan.findings(label)
    card = json.loads((plan.model_folder(label) / "card.json").read_text(encoding="utf-8"))
    told = {key: card[key] for key in ("history", "held_out_perplexity", "dp") if key in card}
    return {
        "findings": finite(asdict(findings)),
        "settings": asdict(settings),
        **told,
        "training_seconds": round(seconds, 1),
    }


def free_memory(plan: AuditPlan) -> None:
    """Give back what this process holds of the GPU's memory and does not use."""
    if plan.device.startswith("cuda"):
        torch.cuda.empty_cache()


def await_reference(plan: AuditPlan) -> None:
    """Return once another process has trained the reference model."""
    card, end = plan.model_folder(REFERENCE) / "card.json", time.monotonic() + PATIENCE
    while not card.exists():
        if time.monotonic() > end:
            raise PrivetError(f"There is no reference model of seed {plan.plain.seed}.")
        time.sleep(0.5)


def best_setting(results: Mapping[str, Mapping[str, Any]], grid: tuple[str, ...]) -> str:
    """The setting of `grid` whose model predicted the held-out texts best; of one alone, that one.

    >>> best_setting({"tune 0 dp:8,lr=1": {"held_out": 9.0}, "tune 0 dp:8,lr=2": {"error": ""}},
    ...     ("lr=1", "lr=2"))
    'lr=1'
    """
    if len(grid) == 1:
        return grid[0]
    found = {
        setting: result["held_out"]
        for setting in grid
        for key, result in results.items()
        if key.startswith("tune ") and key.endswith(f",{setting}") and "held_out" in result
    }
    return min(found, key=lambda setting: found[setting])
