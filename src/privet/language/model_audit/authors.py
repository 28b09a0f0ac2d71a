"""What a model's hidden states and losses tell of authors: who wrote a text that it has not seen,
and whose texts it has learned.

Identification: the audit's adversaries learn from hidden states of texts whose authors they know -
of texts the model learned from and others, and of others alone - each is tuned on one kept-back
text of each author, the strongest is chosen there too, and it is counted on others. A text longer
than a row has several states: their log-probabilities are added.

Membership: was this author among those the model learned from? Score: by how much the model finds
their texts likelier than the reference model does, per token that both have learned (attacks that
compare with a reference are called calibrated: Watson, Guo, Cormode and Sablayrolles, On the
importance of difficulty calibration in membership inference attacks, ICLR (2022)). Others are
authors that neither model has seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from privet.adversaries.adversary import Adversary, rank
from privet.adversaries.boosting import Boosting
from privet.adversaries.forest import Forest
from privet.adversaries.kernel import Kernel
from privet.adversaries.logistic import Logistic
from privet.adversaries.mlp import MLP
from privet.adversaries.neighbours import Neighbours
from privet.adversaries.quadratic import Quadratic
from privet.adversaries.released import Released
from privet.data.dataset import Array, Attribute, Dataset
from privet.data.schema import Column, TableSchema
from privet.evidence.figures import Figure
from privet.evidence.person_intervals import accuracy_over_people
from privet.evidence.roc import Estimate, auc_over_people, tpr_over_people
from privet.release.release import Release

ADVERSARIES: tuple[Adversary, ...] = (
    Logistic(strengths=(1e-2, 1e-1), rounds=60),
    Neighbours(counts=(1, 5, 15)),
    Quadratic(shrinkages=(0.5, 0.9)),
    Kernel(features=1024),
    Forest(trees=100),
    MLP(shapes=((128,),), rates=(3e-3, 1e-2), decays=(1e-2,), epochs=20, least=300),
)
BOOSTING = Boosting(settings=((("max_iter", 30),),), columns=64)
BOOSTED = 20
"""Most authors for boosted trees: they grow one tree for each at every step, and a hundred take
minutes."""
TINY = 1e-12


class Seen(NamedTuple):
    """Hidden states of rows, and the text and author of each."""

    states: Tensor
    text: Array
    author: Array


class Identified(NamedTuple):
    adversary: str
    learned_from: str
    accuracy: Figure
    tried: dict[str, float]
    """Share of texts that each adversary names, chosen or not."""


def identification(
    seen: Mapping[str, Seen], seed: int = 0, adversaries: Sequence[Adversary] | None = None
) -> Identified | str:
    """The strongest adversary, or why there is none. `seen` has train, attack, select and test."""
    missing = [
        part
        for part in ("train", "select", "test")
        if part not in seen or not len(seen[part].states)
    ]
    if missing:
        return "Authors were not identified: nobody has the five texts that it takes to learn from, to choose on and to count on."
    present = np.unique(np.concatenate([part.author for part in seen.values()]))
    attribute = Attribute("author", "identity", tuple(map(str, present)))
    if adversaries is None:
        adversaries = (*ADVERSARIES, *([BOOSTING] if len(present) <= BOOSTED else []))
    best: tuple[float, str, str] | None = None
    answers: dict[tuple[str, str], tuple[Array, Array]] = {}
    chosen: dict[str, tuple[float, str]] = {}
    for title, learned_from, select, test in _attempts(seen, attribute, adversaries, seed):
        score = rank(*_by_text(select, seen["select"].text, _codes(seen["select"], attribute)))
        answers[title, learned_from] = _by_text(
            test, seen["test"].text, _codes(seen["test"], attribute)
        )
        best = (score, title, learned_from) if best is None or score > best[0] else best
        chosen[title] = max(chosen.get(title, (-1.0, "")), (score, learned_from))
    assert best is not None, "there are adversaries"
    _, title, learned_from = best
    truth, told = answers[title, learned_from]
    guesses = told.argmax(1)
    low, high = accuracy_over_people(truth, truth, guesses)
    figure = Figure(
        float((truth == guesses).mean()),
        low,
        high,
        len(truth),
        1 / len(present),
        interval="bootstrap over authors 95 %",
        measure="authors of unseen texts named from hidden states",
    )
    tried = {
        name: float((truth == answers[name, own][1].argmax(1)).mean())
        for name, (_, own) in chosen.items()
    }
    return Identified(title, learned_from, figure, tried)


def _attempts(
    seen: Mapping[str, Seen], attribute: Attribute, adversaries: Sequence[Adversary], seed: int
) -> Iterator[tuple[str, str, Array, Array]]:
    """Each adversary on each choice of what to learn from: states of texts the model learned from
    may lie elsewhere than new ones.

    Its title, the choice, and its answers on the rows of *select* and *test*.
    """
    choices: dict[str, tuple[str, ...]] = {"texts the model learned from": ("train",)}
    if "attack" in seen and len(np.unique(seen["attack"].author)) > 1:
        choices = {
            "texts the model learned from and others": ("train", "attack"),
            "texts it has not learned from": ("attack",),
        }
    for words, parts in choices.items():
        first = _released([seen[part] for part in parts], attribute)
        select, test = (_released([seen[part]], attribute, first) for part in ("select", "test"))
        for adversary in adversaries:
            if adversary.suits(first.view, attribute):
                trained = adversary.attack(first, select, attribute, seed)
                yield adversary.title, words, trained.answers(select), trained.answers(test)


def _codes(seen: Seen, attribute: Attribute) -> Array:
    return np.searchsorted(np.array([int(name) for name in attribute.values]), seen.author)


def _released(some: Sequence[Seen], attribute: Attribute, like: Released | None = None) -> Released:
    """Hidden states as released records: what the audit's adversaries look at."""
    states = torch.cat([one.states for one in some])
    names = [f"h{place}" for place in range(states.shape[1])]
    label = np.concatenate([_codes(one, attribute) for one in some])
    records = pd.DataFrame(states.cpu().numpy(), columns=names)
    data = Dataset(
        "hidden states",
        "table",
        records,
        {attribute.name: attribute},
        {attribute.name: label},
        np.ones(len(label), dtype=np.int8),
        np.arange(len(label)),
        "",
        np.concatenate([one.author for one in some]),
    )
    return Released(
        Release.identity(TableSchema(tuple(map(Column, names)))),
        data,
        [attribute.name],
        states.device,
        like,
    )


def _by_text(answers: Array, text: Array, truth: Array) -> tuple[Array, Array]:
    """One answer per text: the product of its rows' probabilities."""
    _, first, place = np.unique(text, return_index=True, return_inverse=True)
    total = np.zeros((len(first), answers.shape[1]))
    np.add.at(total, place, np.log(np.maximum(answers, TINY)))
    total = np.exp(total - total.max(1, keepdims=True))
    return truth[first], total / total.sum(1, keepdims=True)


def membership(gains: Array, author: Array, member: Array, what: str) -> dict[str, Figure]:
    """AUC and the share of members found while 1 % of others are flagged. `gains` (rows,): nats per
    token that the model is better by."""
    people, place = np.unique(author, return_inverse=True)
    score = np.bincount(place, gains) / np.bincount(place)
    truth = (np.bincount(place, member) > 0).astype(np.int64)
    area, sure = auc_over_people(people, truth, score), tpr_over_people(people, truth, score)
    assert area is not None and sure is not None, "there are authors on both sides"
    return {
        "auc": _figure(area, len(people), 0.5, f"AUC, {what}"),
        "tpr": _figure(sure, len(people), 0.01, f"members found at 1 %, {what}"),
    }


def _figure(estimate: Estimate, n: int, chance: float, measure: str) -> Figure:
    (low, high), value = estimate.interval, estimate.value
    return Figure(
        value, low, high, n, chance, interval="bootstrap over authors 95 %", measure=measure
    )
