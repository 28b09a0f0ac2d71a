"""The jobs of an audit of language models: train one, attack one; one after the other, or side by
side in several processes.

A job leaves its result in the model's folder - model.safetensors with its card, then reading.json -
and a job whose result is there is not done again. Training goes on from its checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cached_property
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path

import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # of scikit-learn

from privet.adversaries.adversary import Adversary
from privet.core.errors import PrivetError
from privet.core.files import writable_folder
from privet.language.model_audit.attack_setup import AttackSetup
from privet.language.model_audit.findings import ModelFindings, attack_model
from privet.language.models.canaries import Canary
from privet.language.models.corpus import Corpus
from privet.language.models.settings import Settings
from privet.language.models.tokens import Tokenizer
from privet.language.models.train import TrainedModel, identity_of, train_model
from privet.nets.device import pick
from privet.train.checkpoint import CHECKPOINT
from privet.train.game import Run

REFERENCE = "reference"


@dataclass(frozen=True, eq=False)
class AuditPlan:
    """The models of an audit, and all that a process needs to train and attack one of them.

    Parameters:
        models: By their labels, the plain one first.
        adversaries: That name authors from hidden states; None for those of authors.py.
    """

    corpus: Corpus
    canaries: list[Canary]
    tokenizer: Tokenizer
    models: dict[str, Settings]
    folder: Path
    device: str
    progress: bool
    adversaries: Sequence[Adversary] | None = None

    @property
    def plain(self) -> Settings:
        return next(iter(self.models.values()))

    def model_folder(self, name: str) -> Path:
        return self.folder / re.sub("[:,]", "-", name)

    def identity(self, name: str) -> str:
        """A hash of all that the training of a model depends on."""
        return identity_of(self.corpus, *self._training(name))

    def _training(self, name: str) -> tuple[Settings, list[Canary], str]:
        """Settings, canaries, and on whose texts a model is trained."""
        if name == REFERENCE:
            return self.plain, [], REFERENCE
        return self.models[name], self.canaries, "known"

    def trained(self, name: str) -> TrainedModel:
        """The model in its folder, if it is this plan's, or a new one."""
        folder = self.model_folder(name)
        if (folder / "card.json").exists():
            trained = TrainedModel.load(folder, self.device)
            if trained.card["identity"] == self.identity(name):
                return trained
            raise PrivetError(
                f"{folder} holds a model of other settings or data: repeat those, or choose "
                "another --out."
            )
        writable_folder(folder)
        run = Run(folder, resume=True, device=self.device, progress=self.progress)
        settings, canaries, side = self._training(name)
        trained = train_model(
            self.corpus, settings, canaries, side=side, tokenizer=self.tokenizer, run=run
        )
        trained.save(folder)
        (folder / CHECKPOINT).unlink(missing_ok=True)
        return trained

    def findings(self, name: str) -> ModelFindings:
        """What was found in the model before, or is found now. It and the reference model are
        trained first where they are missing."""
        trained, reference = self.trained(name), self.setup.reference
        # DP-SGD cannot be repeated, so the weights themselves are part of the identity.
        parts = [one.card[key] for one in (reference, trained) for key in ("identity", "sha256")]
        identity = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        path = self.model_folder(name) / "reading.json"
        findings = ModelFindings.load(path, identity)
        if findings is None:
            findings = attack_model(trained, self.setup, name)
            findings.save(path, identity)
        return findings

    @cached_property
    def setup(self) -> AttackSetup:
        """What all attacks share."""
        reference = self.trained(REFERENCE)
        return AttackSetup(
            self.corpus, self.canaries, reference, pick(self.device), self.adversaries
        )


def all_findings(plan: AuditPlan, workers: int = 1) -> Iterator[ModelFindings]:
    """The findings of every model, as they are finished."""
    if workers == 1:
        plan.trained(REFERENCE)
        yield from map(plan.findings, plan.models)
        return
    threads, context = max(1, (os.cpu_count() or 1) // workers), get_context("spawn")
    start = (replace(plan, progress=False), threads, context.Event())
    pool = ProcessPoolExecutor(workers, context, _start_process, start)
    try:
        # Models with differential privacy take the longest, so they go first.
        order = sorted(plan.models, key=lambda name: not name.startswith("dp"))
        for job in as_completed([pool.submit(_job, name) for name in (REFERENCE, *order)]):
            if (findings := job.result()) is not None:
                yield findings
    finally:
        pool.shutdown(cancel_futures=True)


# In a process of the pool: the plan, and whether the reference model is trained.
_shared: list[tuple[AuditPlan, Event]] = []


def _start_process(plan: AuditPlan, threads: int, reference_trained: Event) -> None:
    torch.set_num_threads(threads)
    threadpool_limits(threads)
    _shared.append((plan, reference_trained))


def _job(name: str) -> ModelFindings | None:
    """Train a model, and attack it once the reference model is trained."""
    plan, reference_trained = _shared[0]
    try:
        plan.trained(name)
    finally:
        if name == REFERENCE:
            reference_trained.set()  # also where it failed: nobody waits for it any longer
    if name == REFERENCE:
        return None
    reference_trained.wait()
    return plan.findings(name)
