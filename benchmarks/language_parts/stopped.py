"""The control of DP-SGD: a plain model that is stopped as soon as it predicts as well.

DP-SGD's model has learned less of the language than the plain one, and whoever learned less may
remember less for that reason alone. So the plain model is trained again, with the same start,
batches and rates, and stopped after the first step at which its perplexity of the texts to choose
on is no higher than that of DP-SGD's model of the same seed.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from privet.core.errors import PrivetError
from privet.data.schema import Inputs
from privet.language.model_audit.jobs import AuditPlan
from privet.language.models.networks import build_network, row_perplexity
from privet.language.models.regularizers import AUTHOR, regularized_training
from privet.language.models.train import TrainedModel, training_rows
from privet.nets.device import pick
from privet.train.feed import Batch, Feed
from privet.train.game import Game, Move, Run

STOPPED = "stopped"


class _ReachedError(Exception):
    """The model is good enough; its weights are those before this step."""


def train_stopped(plan: AuditPlan, label: str, target: float) -> TrainedModel:
    """The plain model as it first was when its perplexity was at most `target`, in the folder of
    `label`."""
    settings, device = plan.plain, pick(plan.device)
    ids, author = training_rows(plan.corpus, settings, plan.tokenizer, plan.canaries)
    selected = plan.corpus.select("known", "select")
    held_out = plan.corpus.token_rows(selected, plan.tokenizer, settings.longest).ids
    torch.manual_seed(settings.seed)  # as train_model does
    model = build_network(settings, plan.tokenizer.vocabulary)
    authors = int(author.max()) + 1
    modules, phase = regularized_training(model, settings, authors, settings.epochs)
    seen: list[float] = []
    plain = phase.players[0].objective

    def watched(batch: Batch) -> Move:
        model.eval()
        seen.append(row_perplexity(model, held_out, device))
        model.train()
        if seen[-1] <= target:
            raise _ReachedError
        return plain(batch)

    phase = replace(phase, fused=watched)
    feed, identity = Feed(Inputs(ids), {AUTHOR: author}, device), plan.identity(label)
    game = Game(modules, [phase], feed, settings.batch, settings.seed, identity)
    try:
        game.play(Run(device=plan.device, progress=False))
    except _ReachedError:
        pass
    else:
        raise PrivetError(f"The plain model never came to a perplexity of {target:.1f}.")
    steps = len(seen) - 1
    model.to(device).eval()
    stopped = {
        "target": target,
        "steps": steps,
        "epochs": steps / max(1, len(ids) // settings.batch),
    }
    card = {
        "notes": list(plan.corpus.notes),
        "identity": identity,
        "history": [stopped],
        "held_out_perplexity": seen[-1],
    }
    trained = TrainedModel(model, plan.tokenizer, settings, card)
    folder = plan.model_folder(label)
    folder.mkdir(parents=True, exist_ok=True)
    trained.save(folder)
    return trained
