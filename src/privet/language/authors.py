"""What a model's hidden states and losses tell of authors: who wrote a text that it has not seen, and whose texts it has learned.

Identification: the audit's adversaries on vectors learn from hidden states of texts whose authors they know - of texts the model learned
from and others, and of others alone - are chosen on one kept-back text of each author, and are counted on others. A text longer than a
row has several states: their log-probabilities are added.

Membership: was this author among those the model learned from? Score: by how much the model finds their texts likelier than the
reference model does, per token that both have learned (attacks that compare with a reference are called calibrated: Watson, Guo,
Cormode and Sablayrolles, On the importance of difficulty calibration in membership inference attacks, ICLR (2022)). Others are
authors that neither model has seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from privet.adversaries.adversary import rank
from privet.adversaries.logistic import Logistic
from privet.adversaries.neighbours import Neighbours
from privet.adversaries.vectors import Answer, OnVectors
from privet.data.dataset import Array, Attribute
from privet.evidence.curves import Estimate, auc_over_people, tpr_over_people
from privet.evidence.figures import Figure
from privet.evidence.people import accuracy_over_people

ADVERSARIES: tuple[OnVectors, ...] = (Logistic(strengths=(1e-2, 1e-1), rounds=100), Neighbours(counts=(1, 5, 15)))
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


def identification(seen: Mapping[str, Seen], seed: int = 0) -> Identified | str:
    """The strongest adversary, or why there is none. `seen` has train, attack, select and test."""
    missing = [part for part in ("train", "select", "test") if part not in seen or not len(seen[part].states)]
    if missing:
        return "Authors were not identified: nobody has the five texts that it takes to learn from, to choose on and to count on."
    present = np.unique(np.concatenate([part.author for part in seen.values()]))
    attribute = Attribute("author", "identity", tuple(map(str, present)))
    mean, deviation = _scale(seen["train"].states)
    x = {name: (part.states - mean) / deviation for name, part in seen.items()}
    y = {name: np.searchsorted(present, part.author) for name, part in seen.items()}
    best: tuple[float, str, str, Answer] | None = None
    for title, learned_from, answer in _attempts(x, y, attribute, seed):
        truth, told = _by_text(answer(x["select"]), seen["select"].text, y["select"])
        score = rank(truth, told)
        best = (score, title, learned_from, answer) if best is None or score > best[0] else best
    assert best is not None, "there are adversaries"
    _, title, learned_from, answer = best
    truth, told = _by_text(answer(x["test"]), seen["test"].text, y["test"])
    guesses = told.argmax(1)
    low, high = accuracy_over_people(truth, truth, guesses)
    figure = Figure(
        float((truth == guesses).mean()), low, high, len(truth), 1 / len(present), interval="bootstrap over authors 95 %",
        measure="authors of unseen texts named from hidden states",
    )  # fmt: skip
    return Identified(title, learned_from, figure)


def _attempts(x: Mapping[str, Tensor], y: Mapping[str, Array], attribute: Attribute, seed: int) -> Iterator[tuple[str, str, Answer]]:
    """Each adversary on each choice of what to learn from: states of texts the model learned from may lie elsewhere than new ones."""
    choices: dict[str, tuple[str, ...]] = {"texts the model learned from": ("train",)}
    if len(np.unique(y.get("attack", ()))) > 1:
        choices = {"texts the model learned from and others": ("train", "attack"), "texts it has not learned from": ("attack",)}
    for words, parts in choices.items():
        rows, labels = torch.cat([x[part] for part in parts]), np.concatenate([y[part] for part in parts])
        for adversary in ADVERSARIES:
            for answer in adversary.candidates(rows, labels, attribute, seed):
                yield adversary.title, words, answer


def _scale(states: Tensor) -> tuple[Tensor, Tensor]:
    return states.mean(0), states.std(0).clamp(min=1e-6)


def _by_text(answers: Array, text: Array, truth: Array) -> tuple[Array, Array]:
    """One answer per text: the product of its rows' probabilities."""
    _, first, place = np.unique(text, return_index=True, return_inverse=True)
    total = np.zeros((len(first), answers.shape[1]))
    np.add.at(total, place, np.log(np.maximum(answers, TINY)))
    total = np.exp(total - total.max(1, keepdims=True))
    return truth[first], total / total.sum(1, keepdims=True)


def membership(gains: Array, author: Array, member: Array, what: str) -> dict[str, Figure]:
    """AUC and the share of members found while 1 % of others are flagged. `gains` (rows,): nats per token that the model is better by."""
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
    return Figure(value, low, high, n, chance, interval="bootstrap over authors 95 %", measure=measure)
