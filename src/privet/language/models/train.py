"""Training of a language model on the texts of known authors, and the trained model in a folder."""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import nn

from privet.core.errors import PrivetError, refuse_if
from privet.core.files import results_folder, write_bytes, write_text
from privet.core.version import __version__
from privet.data.dataset import Array
from privet.data.schema import PAD, Inputs
from privet.language.models.canaries import Canary, CanaryPlan, Pattern, planted_rows
from privet.language.models.corpus import Corpus, build_corpus, load_texts
from privet.language.models.dp_sgd import (
    author_guarantee,
    copy_weights,
    lstm_class,
    require_opacus,
    train_with_dp,
)
from privet.language.models.networks import LanguageModel, build_network, perplexity, row_perplexity
from privet.language.models.regularizers import AUTHOR, regularized_training
from privet.language.models.settings import Settings
from privet.language.models.tokens import Tokenizer, learn_tokenizer, tokenizer_from_json
from privet.nets.device import pick
from privet.train.feed import Feed
from privet.train.game import Game, Run

VERSION = 1
KIND = "language model"


@dataclass
class TrainedModel:
    """A language model, its tokenizer, and how it was trained.

    Parameters:
        card: Data, canaries, notes, history and, for dp, the budget that was spent.
    """

    model: LanguageModel
    tokenizer: Tokenizer
    settings: Settings
    card: dict[str, Any]

    def save(self, folder: Path) -> None:
        """Write model.safetensors and card.json."""
        weights = save_tensors(
            {k: v.detach().cpu().contiguous().clone() for k, v in self.model.state_dict().items()}
        )
        write_bytes(folder / "model.safetensors", weights)
        self.card["sha256"] = hashlib.sha256(weights).hexdigest()
        card = {
            "privet": __version__,
            "kind": KIND,
            "version": VERSION,
            "settings": asdict(self.settings),
            **self.card,
            "tokenizer": self.tokenizer.to_json(),
        }
        write_text(folder / "card.json", json.dumps(card, indent=1, ensure_ascii=False) + "\n")

    def sentences(self) -> list[str]:
        """Notes on the data, the perplexity, and what DP-SGD has spent."""
        lines = list(self.card["notes"])
        if "held_out_perplexity" in self.card:
            perplexity = self.card["held_out_perplexity"]
            lines.append(f"Perplexity of held-out texts: {perplexity:.1f}")
        if "dp" in self.card:
            spent = self.card["dp"]
            lines.append(
                f"Spent: epsilon {spent['epsilon']:.2f} at delta {spent['delta']:.1g}, per row of "
                f"tokens, in {spent['steps']} steps"
            )
            lines.append(author_guarantee(spent))
        return lines

    @staticmethod
    def load(folder: Path, device: str = "cpu") -> TrainedModel:
        """The model that `save` wrote."""
        try:
            card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
            if card["kind"] != KIND or card["version"] != VERSION:
                raise KeyError("kind")
            weights = (folder / "model.safetensors").read_bytes()
            settings = Settings(**card.pop("settings"))
            tokenizer = tokenizer_from_json(card.pop("tokenizer"))
            if hashlib.sha256(weights).hexdigest() != card["sha256"]:
                raise PrivetError(
                    f"The weights in {folder} are not the ones its card was written for; train it "
                    "again."
                )
            model = build_network(settings, tokenizer.vocabulary)
            model.load_state_dict(load_tensors(weights))
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError):
            raise PrivetError(
                f"There is no language model in {folder} that can be read: make one with  "
                "privet lm train."
            ) from None
        return TrainedModel(model.to(pick(device)).eval(), tokenizer, settings, card)


def train_to(
    folder: Path,
    spec: str,
    settings: Settings,
    *,
    author: str = "",
    authors: int | None = None,
    canaries: CanaryPlan | None = None,
    schema: Path | None = None,
    device: str = "auto",
    resume: bool = False,
    checkpoint_rounds: int | None = None,
    command: str | None = None,
) -> TrainedModel:
    """Train a language model on texts with authors, and write model.safetensors and card.json.

    Parameters:
        folder: Where the model goes. Nothing is left there where an argument is wrong.
        spec: A parquet or CSV file of texts, or the name of a published set.
        settings: Of the model and its training.
        author: The column of authors, where they are not the people of the data.
        authors: At most so many authors of the fit part; all of them by default.
        canaries: Sentences to plant; none by default.
        schema: TOML file that describes the columns.
        device: cpu, cuda or auto.
        resume: Go on from the checkpoint in `folder`, if there is one.
        checkpoint_rounds: Steps between checkpoints, in place of 30 seconds.
        command: Written into the card as it is.
    """
    if settings.regularizer == "dp":
        require_opacus()
    corpus = build_corpus(load_texts(spec, schema), author, authors, settings.seed)
    planted = (canaries or CanaryPlan()).draw(corpus.authors("known"), settings.seed)
    tokenizer = tokenizer_for(corpus, settings, planted)
    with results_folder(folder):
        run = Run(folder, resume, device, rounds_between=checkpoint_rounds)
        assert run.checkpoint is not None
        refuse_if(
            not resume and run.checkpoint.exists(),
            f"{folder} holds a checkpoint of unfinished work: go on with --resume, or remove "
            "it first.",
        )
        trained = train_model(corpus, settings, planted, tokenizer=tokenizer, run=run)
        trained.card["command"] = command
        trained.save(folder)
        run.checkpoint.unlink(missing_ok=True)
    return trained


def train_model(
    corpus: Corpus,
    settings: Settings,
    canaries: Sequence[Canary] = (),
    *,
    side: str = "known",
    tokenizer: Tokenizer | None = None,
    run: Run | None = None,
) -> TrainedModel:
    """A language model of the training texts of one side's authors, with canaries among them. The
    tokenizer is learned on the same texts where none is given."""
    run, device = run or Run(), pick((run or Run()).device)
    tokenizer = tokenizer or tokenizer_for(corpus, settings, canaries)
    ids, author = training_rows(corpus, settings, tokenizer, canaries, side)
    selected = corpus.select(side, "select")
    held_out = corpus.token_rows(selected, tokenizer, settings.longest).ids
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
        "canaries": [{**asdict(canary), "sentence": canary.sentence} for canary in canaries],
        "notes": list(corpus.notes),
        "identity": identity,
    }
    model = build_network(settings, tokenizer.vocabulary)
    if settings.regularizer == "dp":
        watched = build_network(settings, tokenizer.vocabulary, lstm_class(settings.model))
        copy_weights(model, watched)
        budget = settings.budget(len(ids))
        spent, card["history"] = train_with_dp(
            watched, ids, budget, settings.lr, run, device, identity
        )
        copy_weights(watched, model)
        rows = int(np.bincount(author).max())
        card["dp"] = {**spent, "unit": "row of tokens", "most_rows_of_an_author": rows}
    else:
        model, card["history"] = fit_network(model, ids, author, held_out, settings, run, identity)
    model.to(device).eval()
    if len(held_out):
        card["held_out_perplexity"] = row_perplexity(model, held_out, device)
    return TrainedModel(model, tokenizer, settings, card)


def tokenizer_for(corpus: Corpus, settings: Settings, canaries: Sequence[Canary] = ()) -> Tokenizer:
    """A tokenizer learned on the training texts of the known authors, that can represent every
    sentence of the canaries' patterns."""
    patterns = [Pattern(text) for text in dict.fromkeys(canary.pattern for canary in canaries)]
    texts = [str(text) for text in corpus.texts[corpus.select("known", "train")]]
    always = [word for pattern in patterns for word in pattern.vocabulary]
    tokenizer = learn_tokenizer(settings.tokens, texts, settings.vocabulary, always)
    for pattern in patterns:
        pattern.check(tokenizer, settings.longest)
    return tokenizer


def training_rows(
    corpus: Corpus,
    settings: Settings,
    tokenizer: Tokenizer,
    canaries: Sequence[Canary] = (),
    side: str = "known",
) -> tuple[Array, Array]:
    """Token rows to train on, canaries among them, and the author of each, counted from 0."""
    rows = corpus.token_rows(corpus.select(side, "train"), tokenizer, settings.longest)
    parts, authors = [rows.ids], [corpus.author[rows.text]]
    if any(canary.repeats for canary in canaries):
        planted, author = planted_rows(canaries, tokenizer)
        parts, authors = [*parts, planted], [*authors, author]
    width = max(ids.shape[1] for ids in parts)
    wide = [np.pad(ids, ((0, 0), (0, width - ids.shape[1])), constant_values=PAD) for ids in parts]
    return np.vstack(wide), np.unique(np.concatenate(authors), return_inverse=True)[1]


class _BestModel(nn.Module):
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


def fit_network(
    model: LanguageModel,
    ids: Array,
    author: Array,
    held_out: Array,
    settings: Settings,
    run: Run,
    identity: str,
) -> tuple[LanguageModel, list[dict[str, Any]]]:
    """The network as it was when it predicted the held-out rows best, or at the end where there are
    none; and the figures of every epoch."""
    best, device = _BestModel(model), pick(run.device)

    def after() -> Mapping[str, float]:
        if not len(held_out):
            return {}
        model.eval()
        nats_per_token = math.log(row_perplexity(model, held_out, device))
        model.train()
        best.offer(model, nats_per_token)
        return {"held-out perplexity": perplexity(nats_per_token)}

    modules, phase = regularized_training(
        model, settings, int(author.max()) + 1, settings.epochs, after
    )
    feed = Feed(Inputs(ids), {AUTHOR: author}, device)
    modules["best"] = best
    game = Game(modules, [phase], feed, settings.batch, settings.seed, identity)
    game.play(run)
    return (best.copy if len(held_out) else model), game.history


def identity_of(corpus: Corpus, settings: Settings, canaries: Sequence[Canary], side: str) -> str:
    """A hash of all that training depends on: a checkpoint or model of other work is refused."""
    parts = [
        corpus.fingerprint,
        side,
        len(corpus.texts),
        asdict(settings),
        [asdict(canary) for canary in canaries],
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
