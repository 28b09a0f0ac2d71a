"""The audit of language models: plant canaries, train a reference and every model that is asked
for, and attack each of them.

All models share data, canaries, tokenizer and seed, so that they differ in the regulariser alone.
What is trained and what was found of it is kept under `models/`, and a second call with the same
words goes on where the first was stopped.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from privet.adversaries.adversary import Adversary
from privet.core.errors import PrivetError
from privet.core.files import writable_folder, write_text
from privet.core.progress import console
from privet.language.model_audit.findings import Reading
from privet.language.model_audit.jobs import Work, check_workers, readings
from privet.language.model_audit.speed import Speed, measure
from privet.language.model_audit.verdict import LanguageAudit, verdict
from privet.language.models.canaries import PATTERNS, draw
from privet.language.models.corpus import gather, load_texts
from privet.language.models.dp_sgd import require_opacus
from privet.language.models.train import Settings, rows, tokenizer_for
from privet.nets.device import pick


def audit_to(
    folder: Path,
    spec: str,
    words: Sequence[str],
    settings: Settings,
    *,
    author: str = "",
    authors: int | None = 100,
    canaries: int = 8,
    repeats: Sequence[int] = (0, 1, 4, 16),
    patterns: Sequence[str] = PATTERNS,
    schema: Path | None = None,
    device: str = "auto",
    progress: bool = True,
    workers: int = 1,
    adversaries: Sequence[Adversary] | None = None,
) -> LanguageAudit:
    """Train and attack, and write language.json and report.html to `folder`, again whenever another
    model was attacked."""
    asked = _asked(settings, words)
    workers = check_workers(workers, asked)
    if any(one.regularizer == "dp" for one in asked.values()):
        require_opacus()
    corpus = gather(load_texts(spec, schema, progress), author, authors, settings.seed)
    for side in ("reference", "others"):
        if not len(corpus.where(side, "train")):
            raise PrivetError(
                f"{corpus.name} has no authors left that no model has seen: add authors."
            )
    planted = draw(patterns, canaries, repeats, corpus.authors("known"), settings.seed)
    tokenizer = tokenizer_for(corpus, settings, planted)
    undo = writable_folder(folder)
    try:
        work = Work(
            corpus,
            planted,
            tokenizer,
            asked,
            folder / "models",
            str(pick(device)),
            progress,
            adversaries,
        )
        return _audit(work, folder, workers)
    except BaseException:
        undo()
        raise


def _audit(work: Work, folder: Path, workers: int) -> LanguageAudit:
    done: dict[str, Reading] = {}
    notes = (*work.corpus.notes, *_notes(work))
    if work.progress:
        console.print(
            f"{len(work.asked)} models and a reference, {workers} at a time: training, then attacking",
            highlight=False,
        )
    for one in readings(work, workers):
        done[one.name] = one
        if work.progress:
            console.print(
                f"{one.name}: attacked ({len(done)} of {len(work.asked)})", highlight=False
            )
        _write(work, folder, done, notes)
    # Last, when nothing else runs: models that train side by side slow each other.
    ids, author = rows(work.corpus, work.plain, work.tokenizer, work.planted)
    for name, settings in work.asked.items():
        speed = _speed(work.place(name) / "speed.json", work.identity(name))
        if speed is None:
            speed = measure(settings, ids, author, work.tokenizer.vocabulary, pick(work.device))
            told = {"identity": work.identity(name), "device": work.device, **speed._asdict()}
            write_text(work.place(name) / "speed.json", json.dumps(told) + "\n")
        done[name] = replace(done[name], speed=speed.tokens_per_second, time_ratio=speed.ratio)
        found = _write(work, folder, done, notes)
    return found


def _write(
    work: Work, folder: Path, done: dict[str, Reading], notes: tuple[str, ...]
) -> LanguageAudit:
    """The report over what is done so far; none before the plain model, with which all are
    compared."""
    from privet.language.model_audit.page import render

    patterns = tuple(dict.fromkeys(one.pattern for one in work.planted))
    models = [done[name] for name in work.asked if name in done]
    if work.plain.called in done:
        left = len(work.asked) - len(done)
        unfinished = (
            (f"{left} of {len(work.asked)} models are still to come: the audit is not finished.",)
            if left
            else ()
        )
        known = len(work.corpus.authors("known"))
        found = LanguageAudit(
            work.corpus.name,
            known,
            work.plain,
            patterns,
            models,
            verdict(models),
            (*unfinished, *notes),
        )
        write_text(folder / "language.json", found.to_json())
        write_text(folder / "report.html", render(found))
        return found
    return LanguageAudit(work.corpus.name, 0, work.plain, patterns, models, "", notes)


def _speed(path: Path, identity: str) -> Speed | None:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return (
            Speed(told["tokens_per_second"], told["plain"])
            if told["identity"] == identity
            else None
        )
    except (OSError, ValueError, KeyError):
        return None


def _asked(settings: Settings, words: Sequence[str]) -> dict[str, Settings]:
    """The plain model first, then the others, each once, by what they are called."""
    made = [settings.regularized("none"), *(settings.regularized(word) for word in words)]
    return {one.called: one for one in made}


def _notes(work: Work) -> list[str]:
    corpus = work.corpus
    test = corpus.where("known", "test")
    tokens = corpus.cut(test, work.tokenizer, work.plain.longest).tokens
    return [
        f"The models learn from {len(corpus.where('known', 'train')):,} texts by {len(corpus.authors('known'))} authors; {len(test)} texts "
        f"by the same authors ({tokens:,} tokens) were kept back to count on. The reference model learned from "
        f"{len(corpus.authors('reference'))} other authors, and membership is asked against {len(corpus.authors('others'))} more.",
        "A word that one known author alone uses counts as private in the tab attack; the unknown word counts as a word in perplexities.",
        "Tokens a second were measured last, of each model in turn with the plain one, in one process, after this command's others.",
    ]
