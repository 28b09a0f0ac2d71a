"""From a user's words to a trained model in a folder, written whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from privet.core.errors import PrivetError
from privet.core.files import writable_folder
from privet.language.models.canaries import PATTERNS, draw
from privet.language.models.corpus import gather, load_texts
from privet.language.models.dp_sgd import require_opacus
from privet.language.models.train import Settings, Trained, learn, tokenizer_for
from privet.train.checkpoint import CHECKPOINT
from privet.train.game import Run


def chosen(
    model: str,
    tokens: str,
    seed: int,
    epochs: int | None,
    words: Sequence[str],
    *,
    regularizer: str = "none",
    weight: float | None = None,
    epsilon: float | None = None,
) -> Settings:
    """The settings, with whatever is given in place of the default."""
    wished = {"epochs": epochs, "weight": weight, "epsilon": epsilon}
    given: dict[str, Any] = {key: value for key, value in wished.items() if value is not None}
    wanted = Settings(model=model, tokens=tokens, seed=seed, **given)
    if weight is not None and regularizer not in ("adversarial", "triplet"):
        raise PrivetError(
            f"--weight is for adversarial and triplet: the regulariser {regularizer} has none."
        )
    if epsilon is not None and regularizer != "dp":
        raise PrivetError("--epsilon is for --regularizer dp.")
    return replace(wanted, regularizer=regularizer).with_words(words)


def train_to(
    folder: Path,
    spec: str,
    settings: Settings,
    *,
    author: str = "",
    authors: int | None = None,
    canaries: int = 0,
    repeats: Sequence[int] = (),
    patterns: Sequence[str] = PATTERNS,
    schema: Path | None = None,
    device: str = "auto",
    resume: bool = False,
    checkpoint_rounds: int | None = None,
    command: str | None = None,
) -> Trained:
    """Train and write to `folder`. Everything that can be wrong with the words is found before the
    work starts."""
    if settings.regularizer == "dp":
        require_opacus()
    corpus = gather(load_texts(spec, schema), author, authors, settings.seed)
    planted = (
        draw(patterns, canaries, repeats, corpus.authors("known"), settings.seed)
        if canaries
        else []
    )
    tokenizer = tokenizer_for(corpus, settings, planted)
    undo = writable_folder(folder)
    try:
        if not resume and (folder / CHECKPOINT).exists():
            raise PrivetError(
                f"{folder} holds a checkpoint of unfinished work: go on with --resume, or remove it first."
            )
        run = Run(folder, resume, device, rounds_between=checkpoint_rounds)
        made = learn(corpus, settings, planted, tokenizer=tokenizer, run=run)
        made.card["command"] = command
        made.save(folder)
        (folder / CHECKPOINT).unlink(missing_ok=True)
    except BaseException:
        undo()
        raise
    return made
