"""Attacks on authors: who wrote a text, from the model's hidden state, and whose texts the model
was trained on, from its losses.

Identification: the adversaries of the audit of releases learn from hidden states of texts whose
authors they know - of texts the model was trained on and others, and of others alone. Each is tuned
on one held-out text of each author, the strongest is chosen there too, and it is counted on others.
A text longer than a row has several states: their log-probabilities are added.

Membership: was this author among those the model was trained on? Score: by how much the model finds
their texts likelier than the reference model does, per token that both have learned (attacks that
compare with a reference are called calibrated: Watson, Guo, Cormode and Sablayrolles, On the
importance of difficulty calibration in membership inference attacks, ICLR (2022)). Non-members are
authors that neither model has seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from privet.adversaries.adversary import Adversary, ranking_score
from privet.adversaries.kernel import Kernel
from privet.adversaries.linear import Logistic
from privet.adversaries.mlp import MLP
from privet.adversaries.neighbours import Neighbours
from privet.adversaries.quadratic import Quadratic
from privet.adversaries.released import Released
from privet.adversaries.trees import Boosting, Forest
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
# Boosted trees grow one tree for each author at every step, and a hundred take minutes.
MOST_AUTHORS_BOOSTED = 20
INTERVAL = "bootstrap over authors 95 %"
SMALLEST_PROBABILITY = 1e-12


class HiddenStates(NamedTuple):
    """Hidden states of rows, and the text and author of each."""

    states: Tensor
    text: Array
    author: Array


@dataclass(frozen=True)
class Identification:
    """The adversary that names the most authors, and how many it names.

    Parameters:
        learned_from: From which texts it has learned.
        tried: Share of texts that each adversary names, chosen or not.
    """

    adversary: str
    learned_from: str
    accuracy: Figure
    tried: dict[str, float]


def identify_authors(
    states: Mapping[str, HiddenStates],
    seed: int = 0,
    adversaries: Sequence[Adversary] | None = None,
) -> Identification | str:
    """The strongest adversary, or a sentence why there is none. `states` is by role: train, attack,
    select and test."""
    if not all(role in states and len(states[role].states) for role in ("train", "select", "test")):
        return (
            "Authors were not identified: nobody has the five texts that it takes to learn from, "
            "to choose on and to count on."
        )
    present = np.unique(np.concatenate([part.author for part in states.values()]))
    attribute = Attribute("author", "identity", tuple(map(str, present)))
    if adversaries is None:
        few = len(present) <= MOST_AUTHORS_BOOSTED
        adversaries = (*ADVERSARIES, BOOSTING) if few else ADVERSARIES
    truth = {role: _by_text(states[role], attribute)[0] for role in ("select", "test")}
    attempts = []
    for title, learned_from, select, test in _attempts(states, attribute, adversaries, seed):
        score = ranking_score(truth["select"], _by_text(states["select"], attribute, select)[1])
        guesses = _by_text(states["test"], attribute, test)[1].argmax(1)
        attempts.append((score, learned_from, title, guesses))
    _, learned_from, best, guesses = max(attempts, key=lambda attempt: attempt[0])
    tried = dict.fromkeys((title for _, _, title, _ in attempts), 0.0)
    for _, _, title, named in sorted(attempts, key=lambda attempt: attempt[:2]):
        tried[title] = float((truth["test"] == named).mean())  # the best of each comes last
    low, high = accuracy_over_people(truth["test"], truth["test"], guesses)
    figure = Figure(
        float((truth["test"] == guesses).mean()),
        low,
        high,
        len(guesses),
        1 / len(present),
        interval=INTERVAL,
        measure="authors of unseen texts named from hidden states",
    )
    return Identification(best, learned_from, figure, tried)


def _attempts(
    states: Mapping[str, HiddenStates],
    attribute: Attribute,
    adversaries: Sequence[Adversary],
    seed: int,
) -> Iterator[tuple[str, str, Array, Array]]:
    """Each adversary on each choice of texts to learn from: states of training texts may differ
    from those of new ones.

    Yields its title, the choice, and its answers on the rows of *select* and *test*.
    """
    choices: dict[str, tuple[str, ...]] = {"texts the model learned from": ("train",)}
    if "attack" in states and len(np.unique(states["attack"].author)) > 1:
        choices = {
            "texts the model learned from and others": ("train", "attack"),
            "texts it has not learned from": ("attack",),
        }
    for description, roles in choices.items():
        first = _released([states[role] for role in roles], attribute)
        select, test = (_released([states[role]], attribute, first) for role in ("select", "test"))
        for adversary in adversaries:
            if adversary.suits(first.view, attribute):
                trained = adversary.attack(first, select, attribute, seed)
                yield adversary.title, description, trained.answers(select), trained.answers(test)


def _codes(states: HiddenStates, attribute: Attribute) -> Array:
    return np.searchsorted(np.array([int(name) for name in attribute.values]), states.author)


def _released(
    parts: Sequence[HiddenStates], attribute: Attribute, like: Released | None = None
) -> Released:
    """Hidden states as released records, which the audit's adversaries attack."""
    states = torch.cat([part.states for part in parts])
    names = [f"h{place}" for place in range(states.shape[1])]
    label = np.concatenate([_codes(part, attribute) for part in parts])
    data = Dataset(
        "hidden states",
        "table",
        pd.DataFrame(states.cpu().numpy(), columns=names),
        {attribute.name: attribute},
        {attribute.name: label},
        np.ones(len(label), dtype=np.int8),
        np.arange(len(label)),
        "",
        np.concatenate([part.author for part in parts]),
    )
    release = Release.identity(TableSchema(tuple(map(Column, names))))
    return Released(release, data, [attribute.name], states.device, like)


def _by_text(
    states: HiddenStates, attribute: Attribute, answers: Array | None = None
) -> tuple[Array, Array]:
    """The author of each text, and the product of its rows' probabilities."""
    _, first, place = np.unique(states.text, return_index=True, return_inverse=True)
    total = np.zeros((len(first), len(attribute.values)))
    if answers is not None:
        np.add.at(total, place, np.log(np.maximum(answers, SMALLEST_PROBABILITY)))
    total = np.exp(total - total.max(1, keepdims=True))
    return _codes(states, attribute)[first], total / total.sum(1, keepdims=True)


def membership(
    gains: Array, author: Array, member: Array, what: str, text: Array | None = None
) -> dict[str, Figure]:
    """AUC, and the share of members found while 1 % of others are flagged. `gains` (rows,): nats
    per token by which the model is better than the reference. Authors are asked for, or texts where
    `text` says of which each row is; intervals are over authors in any case."""
    unit = author if text is None else text
    units, first, place = np.unique(unit, return_index=True, return_inverse=True)
    people, score = author[first], np.bincount(place, gains) / np.bincount(place)
    truth = (np.bincount(place, member) > 0).astype(np.int64)
    estimates: dict[str, tuple[Estimate | None, float, str]] = {
        "auc": (auc_over_people(people, truth, score), 0.5, "AUC"),
        "tpr": (tpr_over_people(people, truth, score), 0.01, "members found at 1 %"),
    }
    figures = {}
    for name, (estimate, chance, measure) in estimates.items():
        assert estimate is not None, "there are members and others"
        figures[name] = Figure(
            estimate.value,
            *estimate.interval,
            len(units),
            chance,
            interval=INTERVAL,
            measure=f"{measure}, {what}",
        )
    return figures
