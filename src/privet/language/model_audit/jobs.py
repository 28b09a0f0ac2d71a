"""The jobs of an audit of language models: train one, attack one. One after the other, or side by
side in several processes.

A job leaves what it made in the model's own folder - model.safetensors with its card, then
reading.json - and a job whose result lies there is not done again. Training goes on from its
checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence, Sized
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

import torch

from privet.adversaries.adversary import Adversary
from privet.core.errors import PrivetError
from privet.core.files import writable_folder
from privet.language.model_audit.findings import Reading, Stage, read
from privet.language.model_audit.saved_findings import keep, kept
from privet.language.models.canaries import Canary
from privet.language.models.corpus import Corpus
from privet.language.models.tokens import Tokenizer
from privet.language.models.train import Settings, Trained, identity_of, learn
from privet.nets.device import pick
from privet.train.checkpoint import CHECKPOINT
from privet.train.game import Run

REFERENCE = "reference"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True, eq=False)
class Work:
    """All that a process needs in order to train or attack one of the models."""

    corpus: Corpus
    planted: list[Canary]
    tokenizer: Tokenizer
    asked: dict[str, Settings]
    """By what they are called, the plain one first."""
    folder: Path
    device: str
    progress: bool
    adversaries: Sequence[Adversary] | None = None
    """That name authors from hidden states; None for authors.py's own."""

    @property
    def plain(self) -> Settings:
        return next(iter(self.asked.values()))

    def place(self, name: str) -> Path:
        return self.folder / name.replace(":", "-")

    def identity(self, name: str) -> str:
        if name == REFERENCE:
            return identity_of(self.corpus, self.plain, (), REFERENCE)
        return identity_of(self.corpus, self.asked[name], self.planted, "known")


def train(work: Work, name: str) -> Trained:
    """What the model's folder holds, if it is this work's, or a new model."""
    folder = work.place(name)
    if (folder / "card.json").exists():
        held = Trained.load(folder, work.device)
        if held.card["identity"] == work.identity(name):
            return held
        raise PrivetError(
            f"{folder} holds a model of other settings or data: repeat those, or choose another --out."
        )
    writable_folder(folder)
    run = Run(folder, resume=True, device=work.device, progress=work.progress)
    settings, planted, side = (
        (work.plain, [], REFERENCE)
        if name == REFERENCE
        else (work.asked[name], work.planted, "known")
    )
    made = learn(work.corpus, settings, planted, side=side, tokenizer=work.tokenizer, run=run)
    made.save(folder)
    (folder / CHECKPOINT).unlink(missing_ok=True)
    return made


def attack(work: Work, name: str) -> Reading:
    """What was found of the model before, or is found now. It and the reference model are trained
    where they are not there."""
    model, path = train(work, name), work.place(name) / "reading.json"
    # A dp run cannot be repeated, so the weights themselves name what was read.
    about = [
        work.identity(REFERENCE),
        _weights(work, REFERENCE),
        work.identity(name),
        _weights(work, name),
    ]
    identity = hashlib.sha256(json.dumps(about).encode()).hexdigest()
    found = kept(path, identity)
    if found is None:
        found = read(model, stage(work))
        keep(path, found, identity)
    return found


def _weights(work: Work, name: str) -> str:
    return str(json.loads((work.place(name) / "card.json").read_text(encoding="utf-8"))["sha256"])


@lru_cache(maxsize=1)
def stage(work: Work) -> Stage:
    plain, reference = work.plain, train(work, REFERENCE)
    return Stage.set(
        work.corpus,
        work.tokenizer,
        work.planted,
        reference,
        plain.longest,
        pick(work.device),
        plain.seed,
        work.adversaries,
    )


def readings(work: Work, workers: int = 1) -> Iterator[Reading]:
    """Of every model, as they are finished."""
    if workers == 1:
        train(work, REFERENCE)
        yield from (attack(work, name) for name in work.asked)
        return
    with _pool(work, workers) as submit:
        # Models with differential privacy take the longest, so they go first.
        order = sorted(work.asked, key=lambda name: not name.startswith("dp"))
        training = {submit(_train, name): name for name in (REFERENCE, *order)}
        attacking: dict[Future[Reading], str] = {}
        waiting: list[str] = []
        referred = False
        while training or attacking:
            done, _ = wait([*training, *attacking], return_when=FIRST_COMPLETED)
            for one in done:
                if one in attacking:
                    del attacking[one]
                    yield one.result()
                    continue
                name = training.pop(one)
                one.result()
                referred, waiting = (
                    referred or name == REFERENCE,
                    waiting if name == REFERENCE else [*waiting, name],
                )
            if referred:
                attacking |= {submit(_attack, name): name for name in waiting}
                waiting = []


_own: list[Work] = []
"""In a process of the pool: its work."""


def _begin(work: Work, threads: int) -> None:
    torch.set_num_threads(threads)
    _own.append(work)


def _train(name: str) -> None:
    train(_own[0], name)


def _attack(name: str) -> Reading:
    return attack(_own[0], name)


@contextmanager
def _pool(work: Work, workers: int) -> Iterator[Callable[..., Future[Reading]]]:
    """Processes that share the cores; each has the work from its start. What was not begun is
    dropped when one of them fails."""
    threads = max(1, (os.cpu_count() or 1) // workers)
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, str(threads)))
    pool = ProcessPoolExecutor(
        workers, get_context("spawn"), _begin, (replace(work, progress=False), threads)
    )
    try:
        yield pool.submit
    finally:
        pool.shutdown(cancel_futures=True)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def check_workers(workers: int, asked: Sized) -> int:
    """So many processes, and never more than there are models."""
    if workers < 1:
        raise PrivetError(f"--workers {workers} would do nothing: take 1 or more.")
    return min(workers, len(asked) + 1)
