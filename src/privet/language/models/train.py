"""Train a language model on the texts of known authors, and keep it as safetensors with a card."""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import nn

from privet.core.errors import PrivetError, unknown
from privet.core.files import write_bytes, write_text
from privet.core.version import __version__
from privet.data.dataset import Array
from privet.data.schema import PAD, Inputs
from privet.language.models.canaries import Canary, Pattern, plant
from privet.language.models.corpus import Corpus
from privet.language.models.dp_sgd import Spending, cell, copy_weights, learn_private
from privet.language.models.networks import LanguageModel, build, perplexity
from privet.language.models.regularizers import AUTHOR, REGULARIZERS, lesson
from privet.language.models.scoring import nats, scores_of
from privet.language.models.tokens import Tokenizer, learn_tokenizer, tokenizer_from_json
from privet.nets.device import pick
from privet.train.feed import Feed
from privet.train.game import Game, Run

VERSION = 1
KIND = "language model"


@dataclass(frozen=True, kw_only=True)
class Settings:
    model: str = "lstm"
    """lstm or gpt."""
    tokens: str = "word"
    """word or subword."""
    vocabulary: int = 5000
    """Most codes."""
    longest: int = 64
    """Tokens in a row; longer texts are cut."""
    width: int = 256
    layers: int = 1
    dropout: float = 0.2
    epochs: int = 15
    batch: int = 32
    lr: float = 2e-3
    regularizer: str = "none"
    weight: float = 1.0
    """Of the privacy term, for adversarial and triplet."""
    margin: float = 0.5
    """For triplet."""
    epsilon: float = 8.0
    delta: float = 0.0
    """For dp; 0 takes one in ten times as many as there are rows, at most 1e-5."""
    clip: float = 1.0
    """Norm to which a text's gradient is clipped, for dp."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.regularizer not in REGULARIZERS:
            raise unknown("regularizer", self.regularizer, REGULARIZERS)
        for name in ("vocabulary", "longest", "width", "layers", "epochs", "batch", "lr", "clip"):
            if not getattr(self, name) > 0:
                raise PrivetError(
                    f"The setting {name} must be above 0, and {getattr(self, name)} is not."
                )
        if not 0 <= self.dropout < 1 or not 0 <= self.weight < math.inf or self.margin < 0:
            raise PrivetError(
                "Dropout lies between 0 and 1, and neither weight nor margin is below 0."
            )
        if self.regularizer == "dp":
            Spending(
                epsilon=self.epsilon, delta=self.delta or 1e-5, clip=self.clip, rate=0.5, steps=1
            )

    @property
    def called(self) -> str:
        """The regulariser and its strength, as one word."""
        strength = {"none": "", "dp": f":{self.epsilon:g}"}.get(
            self.regularizer, f":{self.weight:g}"
        )
        return self.regularizer + strength

    def with_words(self, words: Sequence[str]) -> Settings:
        """The settings with KEY=VALUE words taken into account."""
        kinds: dict[str, Any] = {f.name: type(f.default) for f in fields(self)}
        found: dict[str, Any] = {}
        for word in words:
            key, _, value = word.partition("=")
            if key not in kinds:
                raise unknown("setting", key, kinds)
            try:
                found[key] = kinds[key](value)
            except ValueError:
                raise PrivetError(f"The setting {key} takes a number, not '{value}'.") from None
        return replace(self, **found)

    def regularized(self, word: str) -> Settings:
        """The same with another regulariser, as in none, adversarial:1, triplet:0.5 or dp:8."""
        name, _, strength = word.partition(":")
        try:
            value = float(strength) if strength else None
        except ValueError:
            raise PrivetError(
                f"'{word}' should be a regulariser and its strength, such as adversarial:1."
            ) from None
        given: dict[str, Any] = (
            {} if value is None else {"epsilon" if name == "dp" else "weight": value}
        )
        return replace(self, regularizer=name, **given)


@dataclass
class Trained:
    model: LanguageModel
    tokenizer: Tokenizer
    settings: Settings
    card: dict[str, Any]

    def save(self, folder: Path) -> None:
        weights = save_tensors(
            {k: v.detach().cpu().contiguous().clone() for k, v in self.model.state_dict().items()}
        )
        write_bytes(folder / "model.safetensors", weights)
        card = {
            "privet": __version__,
            "kind": KIND,
            "version": VERSION,
            "settings": asdict(self.settings),
            **self.card,
            "sha256": hashlib.sha256(weights).hexdigest(),
            "tokenizer": self.tokenizer.to_json(),
        }
        write_text(folder / "card.json", json.dumps(card, indent=1, ensure_ascii=False) + "\n")

    @staticmethod
    def load(folder: Path, device: str = "cpu") -> Trained:
        try:
            card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
            if card["kind"] != KIND or card["version"] != VERSION:
                raise KeyError("kind")
            content = (folder / "model.safetensors").read_bytes()
            settings, tokenizer = (
                Settings(**card.pop("settings")),
                tokenizer_from_json(card.pop("tokenizer")),
            )
            if hashlib.sha256(content).hexdigest() != card["sha256"]:
                raise PrivetError(
                    f"The weights in {folder} are not the ones its card was written for; train it again."
                )
            model = _build(settings, tokenizer)
            model.load_state_dict(load_tensors(content))
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError):
            raise PrivetError(
                f"There is no language model in {folder} that can be read: make one with  privet lm train."
            ) from None
        return Trained(model.to(pick(device)).eval(), tokenizer, settings, card)


def learn(
    corpus: Corpus,
    settings: Settings,
    canaries: Sequence[Canary] = (),
    *,
    side: str = "known",
    tokenizer: Tokenizer | None = None,
    run: Run | None = None,
) -> Trained:
    """A language model of the training texts of one side's authors, with canaries among them; the
    tokenizer is learned on the same."""
    run, device = run or Run(), pick((run or Run()).device)
    tokenizer = tokenizer or tokenizer_for(corpus, settings, canaries)
    ids, author = rows(corpus, settings, tokenizer, canaries, side)
    held = corpus.where(side, "select")
    apart = corpus.cut(held, tokenizer, settings.longest).ids if len(held) else None
    identity = identity_of(corpus, settings, canaries, side)
    torch.manual_seed(settings.seed)
    card: dict[str, Any] = {
        "data": {
            "name": corpus.name,
            "fingerprint": corpus.fingerprint,
            "authors": len(np.unique(author)),
            "rows": len(ids),
            "side": side,
        },
        "canaries": [{**asdict(one), "sentence": one.sentence} for one in canaries],
        "notes": list(corpus.notes),
        "identity": identity,
    }
    model = _build(settings, tokenizer)
    if settings.regularizer == "dp":
        shadow = _build(settings, tokenizer, cell(settings.model))
        copy_weights(model, shadow)
        spending = spending_of(settings, len(ids))
        spent = learn_private(shadow, ids, spending, settings.lr, run, identity, device)
        copy_weights(shadow, model)
        most = int(np.bincount(author).max())
        told = {k: v for k, v in asdict(spent).items() if k != "history"} | {
            "unit": "row of tokens",
            "most_rows_of_an_author": most,
        }
        card |= {"history": spent.history, "dp": told}
    else:
        model, card["history"] = play(model, ids, author, apart, settings, run, identity, device)
    model.to(device).eval()
    if apart is not None:
        card["held_out_perplexity"] = _held_out(model, apart, device)
    return Trained(model, tokenizer, settings, card)


def tokenizer_for(corpus: Corpus, settings: Settings, canaries: Sequence[Canary] = ()) -> Tokenizer:
    """Learned on the training texts of the known authors, and on every sentence that a planted
    pattern can become."""
    patterns = [Pattern(text) for text in dict.fromkeys(one.pattern for one in canaries)]
    always = [word for pattern in patterns for word in pattern.vocabulary]
    tokenizer = learn_tokenizer(
        settings.tokens,
        [str(t) for t in corpus.texts[corpus.where("known", "train")]],
        settings.vocabulary,
        always,
    )
    for pattern in patterns:
        pattern.check(tokenizer, settings.longest)
    return tokenizer


def rows(
    corpus: Corpus,
    settings: Settings,
    tokenizer: Tokenizer,
    canaries: Sequence[Canary],
    side: str = "known",
) -> tuple[Array, Array]:
    """What is learned from: token rows, and the author of each, counted from 0."""
    pieces = corpus.cut(corpus.where(side, "train"), tokenizer, settings.longest)
    ids, author = pieces.ids, corpus.author[pieces.text]
    if any(one.repeats for one in canaries):
        planted, own = plant(canaries, tokenizer)
        wide = max(ids.shape[1], planted.shape[1])
        ids = np.vstack(
            [
                np.pad(some, ((0, 0), (0, wide - some.shape[1])), constant_values=PAD)
                for some in (ids, planted)
            ]
        )
        author = np.concatenate([author, own])
    return ids, np.unique(author, return_inverse=True)[1]


def spending_of(settings: Settings, n: int) -> Spending:
    rate = min(1.0, settings.batch / n)
    delta = settings.delta or min(1e-5, 1 / (10 * n))
    return Spending(
        epsilon=settings.epsilon,
        delta=delta,
        clip=settings.clip,
        rate=rate,
        steps=max(1, round(settings.epochs / rate)),
    )


class _Best(nn.Module):
    """The model as it was after the epoch that predicted the held-out texts best; part of the game,
    so that a resumed run has it too."""

    loss: torch.Tensor

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.copy = copy.deepcopy(model)
        self.register_buffer("loss", torch.tensor(math.inf))

    def offer(self, model: LanguageModel, loss: float) -> None:
        if loss < float(self.loss):
            self.copy.load_state_dict(model.state_dict())
            self.loss.fill_(loss)


def play(
    model: LanguageModel,
    ids: Array,
    author: Array,
    apart: Array | None,
    settings: Settings,
    run: Run,
    identity: str,
    device: torch.device,
) -> tuple[LanguageModel, list[dict[str, Any]]]:
    """The model as it was when it predicted the texts kept `apart` best, and the figures of every
    epoch."""
    best = _Best(model)

    def after() -> Mapping[str, float]:
        if apart is None:
            return {}
        model.eval()
        nats_per_token = math.log(_held_out(model, apart, device))
        model.train()
        best.offer(model, nats_per_token)
        return {"held-out perplexity": perplexity(nats_per_token)}

    made = lesson(
        model,
        settings.regularizer,
        settings.weight,
        authors=int(author.max()) + 1,
        width=settings.width,
        margin=settings.margin,
        lr=settings.lr,
        epochs=settings.epochs,
        after=after,
    )
    feed = Feed(Inputs(ids), {AUTHOR: author}, device)
    game = Game(
        {**made.modules, "best": best}, [made.phase], feed, settings.batch, settings.seed, identity
    )
    game.play(run)
    return (model if apart is None else best.copy), game.history


def _held_out(model: LanguageModel, ids: Array, device: torch.device) -> float:
    return perplexity(
        float(nats(scores_of(model), ids, device).sum()) / max(int((ids[:, 1:] != PAD).sum()), 1)
    )


def _build(settings: Settings, tokenizer: Tokenizer, kind: Any = nn.LSTM) -> LanguageModel:
    return build(
        settings.model,
        tokenizer.vocabulary,
        settings.width,
        settings.layers,
        settings.dropout,
        settings.longest,
        kind,
    )


def identity_of(corpus: Corpus, settings: Settings, canaries: Sequence[Canary], side: str) -> str:
    """Names the work, so that other work's checkpoint or model is not taken for it."""
    words = [
        corpus.fingerprint,
        side,
        len(corpus.texts),
        asdict(settings),
        [asdict(one) for one in canaries],
    ]
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()
