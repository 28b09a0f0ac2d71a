"""The audit of language models: plant canaries, train a reference and every model that is asked for, and attack each of them.

All models share data, canaries, tokenizer and seed, so that they differ in the regulariser alone. What is trained is kept under
`models/`, and a second call with the same words goes on where the first was stopped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from privet.data import load
from privet.device import pick
from privet.errors import PrivetError
from privet.evidence.people import best_of
from privet.files import writable_folder, write_text
from privet.game import Run
from privet.language.canaries import PATTERNS, Canary, draw
from privet.language.corpus import Corpus, gather
from privet.language.private import require_opacus
from privet.language.reading import Reading, Stage, exposure_below, read
from privet.language.speed import measure
from privet.language.tokens import Tokenizer
from privet.language.train import Settings, Trained, identity_of, learn, rows, tokenizer_for
from privet.progress import console

NEAR = 0.03
"""Perplexities that differ by less than this share count as equal."""


@dataclass(frozen=True)
class LanguageAudit:
    data: str
    authors: int
    settings: Settings
    patterns: tuple[str, ...]
    models: list[Reading]
    """The plain one first."""
    verdict: str
    notes: tuple[str, ...]

    def to_json(self) -> str:
        return json.dumps(_plain(asdict(self)), indent=1, ensure_ascii=False) + "\n"


def audit_to(
    folder: Path, spec: str, words: Sequence[str], settings: Settings, *, author: str = "", authors: int | None = 100, canaries: int = 8,
    repeats: Sequence[int] = (0, 1, 4, 16), patterns: Sequence[str] = PATTERNS, schema: Path | None = None, device: str = "auto",
    progress: bool = True,
) -> LanguageAudit:  # fmt: skip
    """Train and attack, and write language.json and report.html to `folder`."""
    from privet.language.report import render

    asked = _asked(settings, words)
    if any(one.regularizer == "dp" for one in asked):
        require_opacus()
    corpus = gather(load(spec, schema, progress), author, authors, settings.seed)
    planted = draw(patterns, canaries, repeats, corpus.authors("known"), settings.seed)
    tokenizer = tokenizer_for(corpus, settings, planted)
    undo = writable_folder(folder)
    try:
        found = audit(corpus, asked, planted, tokenizer, folder / "models", pick(device), progress)
        write_text(folder / "language.json", found.to_json())
        write_text(folder / "report.html", render(found))
    except BaseException:
        undo()
        raise
    return found


def audit(
    corpus: Corpus,
    asked: Sequence[Settings],
    planted: list[Canary],
    tokenizer: Tokenizer,
    folder: Path,
    device: torch.device,
    progress: bool = True,
) -> LanguageAudit:
    """All models of `asked`, of which the first is the plain one."""
    plain = asked[0]
    for side in ("reference", "others"):
        if not len(corpus.where(side, "train")):
            raise PrivetError(f"{corpus.name} has no authors left that no model has seen: add authors.")
    run = Run(device=str(device), resume=True, progress=progress)
    reference = _trained(folder / "reference", corpus, plain, (), tokenizer, "reference", run)
    stage = Stage.set(corpus, tokenizer, planted, reference, plain.longest, device, plain.seed)
    ids, author = rows(corpus, plain, tokenizer, planted)
    models = []
    for settings in asked:
        if progress:
            console.print(f"{settings.called}: training, then attacking", highlight=False)
        trained = _trained(folder / settings.called.replace(":", "-"), corpus, settings, planted, tokenizer, "known", run)
        speed = measure(settings, ids, author, tokenizer.vocabulary, device)
        models.append(read(trained, stage, speed.tokens_per_second, speed.ratio))
    notes = (*corpus.notes, *_notes(corpus, stage))
    patterns = tuple(dict.fromkeys(one.pattern for one in planted))
    return LanguageAudit(corpus.name, len(corpus.authors("known")), plain, patterns, models, verdict(models), notes)


def verdict(models: Sequence[Reading]) -> str:
    """Whether any regulariser remembers less at equal perplexity, in one sentence."""
    plain, others = models[0], models[1:]
    if not others:
        return "Only the plain model was trained: there is nothing to compare it with."
    near = [one for one in others if one.perplexity.value <= (1 + NEAR) * plain.perplexity.value]
    # The best of several is named: all intervals are to hold at once.
    confidence = best_of(max(len(near), 1))
    below = {one.name: figure for one in near if (figure := exposure_below(one, plain, confidence)) is not None}
    sure = {name: figure for name, figure in below.items() if figure.low > 0}
    if sure:
        name = max(sure, key=lambda one: sure[one].value)
        best = sure[name]
        return (
            f"At a perplexity at most {100 * NEAR:.0f} % above the plain model's, {name} lowers the mean exposure of planted sentences by "
            f"{best.value:.1f} bits ({best.low:.1f} to {best.high:.1f}); {len(sure)} of {len(others)} models do so beyond the interval."
        )
    if not near:
        return f"No regularised model has a perplexity within {100 * NEAR:.0f} % of the plain model's: none can be compared at equal use."
    return (
        f"Of {len(near)} models with a perplexity at most {100 * NEAR:.0f} % above the plain model's, none has a mean exposure that is "
        "lower beyond the interval: at equal use, no regulariser was shown to remember less."
    )


def _asked(settings: Settings, words: Sequence[str]) -> list[Settings]:
    """The plain model first, then the others, each once."""
    made = [settings.regularized("none"), *(settings.regularized(word) for word in words)]
    return list({one.called: one for one in made}.values())


def _trained(
    folder: Path, corpus: Corpus, settings: Settings, planted: Sequence[Canary], tokenizer: Tokenizer, side: str, run: Run
) -> Trained:
    """What the folder holds, if it is this work's, or a new model."""
    if (folder / "card.json").exists():
        held = Trained.load(folder, run.device)
        if held.card["identity"] == identity_of(corpus, settings, planted, side):
            return held
        raise PrivetError(f"{folder} holds a model of other settings or data: repeat those, or choose another --out.")
    writable_folder(folder)
    made = learn(corpus, settings, planted, side=side, tokenizer=tokenizer, run=replace(run, folder=folder))
    made.save(folder)
    (folder / "checkpoint.safetensors").unlink(missing_ok=True)
    return made


def _notes(corpus: Corpus, stage: Stage) -> list[str]:
    unseen, test = stage.known["test"], len(corpus.where("known", "test"))
    return [
        f"The models learn from {len(corpus.where('known', 'train')):,} texts by {len(corpus.authors('known'))} authors; {test} texts by "
        f"the same authors ({unseen.tokens:,} tokens) were kept back to count on. The reference model learned from "
        f"{len(corpus.authors('reference'))} other authors, and membership is asked against {len(corpus.authors('others'))} more.",
        "A word that one known author alone uses counts as private in the tab attack; the unknown word counts as a word in perplexities.",
        "DP-SGD's epsilon is about one row of tokens: a sentence repeated r times has r times as much.",
    ]


def _plain(value: Any) -> Any:
    """What JSON can hold: names for keys, and null where there is no number."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
