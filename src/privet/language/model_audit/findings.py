"""Everything that is said of one trained model, as values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from privet.adversaries.adversary import Adversary
from privet.data.dataset import Array
from privet.data.schema import PAD, UNKNOWN
from privet.evidence.figures import Figure
from privet.evidence.intervals import Interval
from privet.evidence.person_intervals import bootstrap_people
from privet.language.model_audit.authors import Identified, Seen, identification, membership
from privet.language.model_audit.exposure import BY_CHANCE, Exposure, exposures
from privet.language.model_audit.subgroups import Group, gap, groups, perplexity_of
from privet.language.model_audit.tab import TRIES, Prompts, excess, hits, places, prompts
from privet.language.models.canaries import Canary, Pattern
from privet.language.models.corpus import ROLES, Corpus, Pieces
from privet.language.models.dp_sgd import group_note
from privet.language.models.networks import Scores
from privet.language.models.scoring import hidden, nats, scores_of
from privet.language.models.tokens import Tokenizer
from privet.language.models.train import Trained


@dataclass(frozen=True)
class Reading:
    name: str
    """The regulariser and its strength."""
    perplexity: Figure
    groups: list[Group]
    gap: float
    """How much worse the worst group fares than the best of the same attribute."""
    exposure: Figure | None
    """Mean over planted canaries, in bits."""
    by_repeats: dict[int, Figure]
    canaries: list[Exposure]
    disagreement: float
    """Mean difference, in bits, between exposure by listing and by fit, where both are known."""
    tries: tuple[int, ...]
    tab: list[Figure]
    """Per number of tries; chance is the reference model's."""
    tab_excess: Figure | None
    tab_canaries: Figure | None
    """Planted canaries completed whole within ten tries."""
    identified: Identified | None
    membership: dict[str, Figure]
    epsilon: float | None
    """Spent, per row of tokens."""
    notes: list[str] = field(default_factory=list)
    speed: float = math.nan
    """Tokens per second while training."""
    time_ratio: float = math.nan
    """The same as a share of the plain model's, in the same process."""


@dataclass(frozen=True)
class Stage:
    """What all models of an audit are asked about; made once."""

    corpus: Corpus
    tokenizer: Tokenizer
    canaries: list[Canary]
    known: dict[str, Pieces]
    """By role."""
    others: dict[str, Pieces]
    asked: Prompts
    device: torch.device
    seed: int
    reference_places: Array
    reference_nats: dict[str, Array]
    adversaries: Sequence[Adversary] | None
    """That name authors; None for authors.py's own."""
    shared: Array
    """(vocabulary,): tokens that the reference model has learned too. Others it finds unlikely
    whoever wrote them, and since the list of words was learned on members, that alone would give
    members away."""

    @staticmethod
    def set(
        corpus: Corpus,
        tokenizer: Tokenizer,
        canaries: list[Canary],
        reference: Trained,
        longest: int,
        device: torch.device,
        seed: int,
        adversaries: Sequence[Adversary] | None = None,
    ) -> Stage:
        known, others = (
            {
                role: corpus.cut(where, tokenizer, longest)
                for role in ROLES
                if len(where := corpus.where(side, role))
            }
            for side in ("known", "others")
        )
        asked = prompts(known["train"], corpus.author[known["train"].text], seed=seed)
        scores = scores_of(reference.model)
        learned = corpus.cut(corpus.where("reference", "train"), tokenizer, longest).ids
        shared = np.bincount(learned[:, 1:].ravel(), minlength=tokenizer.vocabulary) > 0
        shared[[PAD, UNKNOWN]] = False
        held = {
            name: nats(scores, pieces.ids, device, shared)
            for name, pieces in _membership_rows(known, others).items()
        }
        return Stage(
            corpus,
            tokenizer,
            canaries,
            known,
            others,
            asked,
            device,
            seed,
            places(scores, asked, device),
            held,
            adversaries,
            shared,
        )


def read(trained: Trained, stage: Stage) -> Reading:
    scores, corpus, device = scores_of(trained.model), stage.corpus, stage.device
    test = stage.known["test"]
    own, tokens, author = nats(scores, test.ids, device), _tokens(test), corpus.author[test.text]
    train = stage.known["train"]
    learned = np.bincount(corpus.author[train.text], _tokens(train))
    by = groups(
        corpus, test.text, own, tokens, {int(a): int(learned[a]) for a in corpus.authors("known")}
    )
    shown = exposures(
        stage.canaries, stage.tokenizer, lambda ids: nats(scores, ids, device), stage.seed
    )
    planted = [one for one in shown if one.canary.repeats]
    place = places(scores, stage.asked, device)
    dp = trained.card.get("dp")
    notes = (
        [] if dp is None else [group_note(dp["epsilon"], dp["delta"], dp["most_rows_of_an_author"])]
    )
    seen = {
        role: Seen(hidden(trained.model, p.ids, device), p.text, corpus.author[p.text])
        for role, p in stage.known.items()
    }
    identified = identification(seen, stage.seed, stage.adversaries)
    if isinstance(identified, str):
        notes.append(identified)
    repeats = sorted({one.canary.repeats for one in shown})
    apart = [abs(one.bits - one.fitted) for one in shown if one.listed]
    return Reading(
        trained.settings.called,
        perplexity_of(own, tokens, author),
        by,
        gap(by),
        mean_exposure(planted) if planted else None,
        {
            often: mean_exposure([one for one in shown if one.canary.repeats == often])
            for often in repeats
        },
        shown,
        float(np.mean(apart)) if apart else 0.0,
        TRIES,
        hits(place, stage.asked.author, chance=stage.reference_places) if len(place) else [],
        excess(place, stage.reference_places, stage.asked.author, 10) if len(place) else None,
        _tab_canaries(scores, stage),
        None if isinstance(identified, str) else identified,
        _membership(scores, stage),
        None if dp is None else dp["epsilon"],
        notes,
    )


def mean_exposure(shown: list[Exposure]) -> Figure:
    """The mean in bits, with an interval over canaries; chance is that of a sentence that was never
    planted."""
    bits = np.array([one.bits for one in shown])
    low, high = _over_canaries(bits, (0.0, max(one.most for one in shown)))
    return Figure(
        float(bits.mean()),
        low,
        high,
        len(bits),
        BY_CHANCE,
        unit="bits",
        interval="bootstrap over canaries 95 %",
        measure="mean exposure",
    )


def exposure_below(reading: Reading, plain: Reading, confidence: float = 0.95) -> Figure | None:
    """By how many bits a model's exposure is below the plain one's, canary by canary: all models
    are given the same ones."""
    pairs = [
        (a.bits, b.bits, a.most)
        for a, b in zip(plain.canaries, reading.canaries, strict=True)
        if a.canary.repeats
    ]
    if not pairs:
        return None
    more, less, most = (np.array(column) for column in zip(*pairs, strict=True))
    found = _over_canaries(more - less, (-float(most.max()), float(most.max())), confidence)
    return Figure(
        float((more - less).mean()),
        *found,
        len(more),
        0.0,
        unit="bits",
        interval=f"bootstrap over canaries {100 * confidence:.4g} %",
        measure="exposure below the plain model's",
        better="higher",
    )


def _over_canaries(
    values: Array, bounds: tuple[float, float], confidence: float = 0.95
) -> Interval:
    """Of their mean. A canary that was not drawn may be as extreme as those that were."""
    unseen = (float(values.min()), float(values.max())) if len(values) > 1 else bounds
    sums = np.c_[values, np.ones(len(values))]
    return bootstrap_people(
        np.arange(len(values)),
        sums,
        lambda s: s[:, 0] / s[:, 1],
        confidence,
        bounds=bounds,
        unseen=unseen,
    )


def _tokens(pieces: Pieces) -> Array:
    return np.asarray((pieces.ids[:, 1:] != PAD).sum(1))


def _tab_canaries(scores: Scores, stage: Stage) -> Figure | None:
    planted = [one for one in stage.canaries if one.repeats]
    if not planted:
        return None
    found = []
    for text in dict.fromkeys(one.pattern for one in planted):
        pattern, own = Pattern(text), [one for one in planted if one.pattern == text]
        ids = pattern.rows(stage.tokenizer, np.array([one.fill for one in own]))
        end = (ids != PAD).sum(1) - 1  # the last token is the end of the text
        start = np.full(len(own), pattern.prompt(stage.tokenizer))
        found.append(places(scores, Prompts(ids, start, end, np.arange(len(own))), stage.device))
    place = np.concatenate(found)
    return hits(place, np.arange(len(place)), (10,))[0]


def _membership_rows(known: dict[str, Pieces], others: dict[str, Pieces]) -> dict[str, Pieces]:
    return {
        f"{side} {role}": parts[role]
        for side, parts in (("known", known), ("others", others))
        for role in ("train", "test")
        if role in parts
    }


def _membership(scores: Scores, stage: Stage) -> dict[str, Figure]:
    """Of texts that the model learned from, and of other texts by the same authors; and from the
    list of words alone, without the model."""
    rows = _membership_rows(stage.known, stage.others)
    found: dict[str, Figure] = {}
    for role, what in (("train", "texts it learned from"), ("test", "other texts by them")):
        sides = [name for name in (f"known {role}", f"others {role}") if name in rows]
        if len(sides) < 2:
            continue
        author = np.concatenate([stage.corpus.author[rows[name].text] for name in sides])
        member = np.concatenate(
            [np.full(len(rows[name]), name.startswith("known")) for name in sides]
        )
        gain = np.concatenate([_gain(scores, stage, name, rows[name]) for name in sides])
        found |= {
            f"{key}, {what}": one for key, one in membership(gain, author, member, what).items()
        }
        words = np.concatenate(
            [-(rows[name].ids == UNKNOWN).sum(1) / _tokens(rows[name]) for name in sides]
        )
        found[f"auc of the word list alone, {what}"] = membership(words, author, member, what)[
            "auc"
        ]
    return found


def _gain(scores: Scores, stage: Stage, name: str, pieces: Pieces) -> Array:
    """Nats per token by which the model finds each row likelier than the reference does."""
    counted = stage.shared[pieces.ids[:, 1:]].sum(1)
    return np.asarray(
        (stage.reference_nats[name] - nats(scores, pieces.ids, stage.device, stage.shared))
        / np.maximum(counted, 1)
    )
