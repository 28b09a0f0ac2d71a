"""What attacks find in one trained model, as values; and the file that keeps them beside the
model."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from privet.adversaries.adversary import Adversary
from privet.core.files import write_text
from privet.core.json_values import finite, read
from privet.data.dataset import Array
from privet.data.schema import PAD, UNKNOWN
from privet.evidence.figures import Figure
from privet.language.mean_figure import mean_figure
from privet.language.model_audit.authors import (
    HiddenStates,
    Identification,
    identify_authors,
    membership,
)
from privet.language.model_audit.exposure import BY_CHANCE, Exposure, exposures
from privet.language.model_audit.subgroups import (
    Group,
    group_perplexities,
    largest_gap,
    perplexity_of,
)
from privet.language.model_audit.tab import (
    TRIES,
    Prompts,
    completion_ranks,
    completion_rates,
    excess_over_reference,
    prompts,
)
from privet.language.models.canaries import Canary, Pattern
from privet.language.models.corpus import ROLES, Corpus, TokenRows
from privet.language.models.dp_sgd import author_guarantee
from privet.language.models.networks import Scores, hidden_states, row_nats, scores_of
from privet.language.models.train import TrainedModel

# Of the attacks: findings of another version are made again.
VERSION = 2


@dataclass(frozen=True)
class ModelFindings:
    """Everything that an audit says of one model.

    Parameters:
        name: The regulariser and its strength.
        gap: How much worse the worst group fares than the best of the same attribute.
        exposure: Mean over planted canaries, in bits.
        by_repeats: Mean exposure by how often canaries were planted.
        disagreement: Mean difference, in bits, between exposure by listing and by fit, where both
            are known.
        tab: Share of private words completed, per number of tries; chance is the reference model's.
        tab_excess: The same within ten tries, beyond the reference model's.
        tab_canaries: Planted canaries completed whole within ten tries.
        epsilon: Spent, per row of tokens.
        speed: Tokens per second while training.
        time_ratio: The same as a share of the plain model's, in the same process.
    """

    name: str
    perplexity: Figure
    groups: tuple[Group, ...]
    gap: float
    exposure: Figure | None
    by_repeats: dict[int, Figure]
    canaries: tuple[Exposure, ...]
    disagreement: float
    tries: tuple[int, ...]
    tab: tuple[Figure, ...]
    tab_excess: Figure | None
    tab_canaries: Figure | None
    identified: Identification | None
    membership: dict[str, Figure]
    epsilon: float | None
    notes: tuple[str, ...] = ()
    speed: float = math.nan
    time_ratio: float = math.nan

    def save(self, path: Path, identity: str) -> None:
        """Write a file that `load` reads for the same `identity` alone."""
        content = {"version": VERSION, "identity": identity, "reading": finite(asdict(self))}
        write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")

    @staticmethod
    def load(path: Path, identity: str) -> ModelFindings | None:
        """The findings in a file, or None where it is missing or was made for something else."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if (content["version"], content["identity"]) != (VERSION, identity):
                return None
            findings: ModelFindings = read(ModelFindings, content["reading"], path.name)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return findings


@dataclass(frozen=True, eq=False)
class AttackSetup:
    """What the attacks on all models of an audit share; each part is computed once.

    Parameters:
        reference: A model that never saw the known authors.
        adversaries: That name authors; None for those of authors.py.
    """

    corpus: Corpus
    canaries: Sequence[Canary]
    reference: TrainedModel
    device: torch.device
    adversaries: Sequence[Adversary] | None = None

    def token_rows(self, selected: Array) -> TokenRows:
        """Texts of the corpus, as all models of the audit read them."""
        longest = self.reference.settings.longest
        return self.corpus.token_rows(selected, self.reference.tokenizer, longest)

    @cached_property
    def rows(self) -> dict[str, dict[str, TokenRows]]:
        """Of known authors and of others, by role."""
        selected = {
            side: {role: self.corpus.select(side, role) for role in ROLES}
            for side in ("known", "others")
        }
        return {
            side: {role: self.token_rows(texts) for role, texts in by_role.items() if len(texts)}
            for side, by_role in selected.items()
        }

    @cached_property
    def prompts(self) -> Prompts:
        """Of the tab attack."""
        train = self.rows["known"]["train"]
        return prompts(train, self.corpus.author[train.text], seed=self.reference.settings.seed)

    @cached_property
    def shared(self) -> Array:
        """(vocabulary,): tokens that the reference model has learned too. Others it finds unlikely
        whoever wrote them, and since the tokenizer was learned on members, that alone would give
        members away."""
        ids = self.token_rows(self.corpus.select("reference", "train")).ids[:, 1:]
        shared = np.bincount(ids.ravel(), minlength=self.reference.tokenizer.vocabulary) > 0
        shared[[PAD, UNKNOWN]] = False
        return np.asarray(shared)

    def answers(self, scores: Scores) -> tuple[Array, dict[str, dict[str, Array]]]:
        """What a model answers: the rank of each prompt's completion, and -log p of rows in the
        roles train and test, by side and role."""
        nats: dict[str, dict[str, Array]] = {
            side: {
                role: row_nats(scores, by_role[role].ids, self.device, self.shared)
                for role in ("train", "test")
                if role in by_role
            }
            for side, by_role in self.rows.items()
        }
        return completion_ranks(scores, self.prompts, self.device), nats

    @cached_property
    def reference_answers(self) -> tuple[Array, dict[str, dict[str, Array]]]:
        """What the reference model answers."""
        return self.answers(scores_of(self.reference.model))


def attack_model(trained: TrainedModel, setup: AttackSetup) -> ModelFindings:
    """Attack one model in every way."""
    scores, spent = scores_of(trained.model), trained.card.get("dp")
    ranks, nats = setup.answers(scores)
    states = {
        role: HiddenStates(
            hidden_states(trained.model, rows.ids, setup.device),
            rows.text,
            setup.corpus.author[rows.text],
        )
        for role, rows in setup.rows["known"].items()
    }
    identified = identify_authors(states, setup.reference.settings.seed, setup.adversaries)
    notes = [] if spent is None else [author_guarantee(spent)]
    return ModelFindings(
        name=trained.settings.label,
        **_perplexities(scores, setup),
        **_exposures(scores, setup),
        tries=TRIES,
        **_tab_attack(ranks, setup),
        tab_canaries=_completed_canaries(scores, setup),
        identified=None if isinstance(identified, str) else identified,
        membership=_membership(nats, setup),
        epsilon=None if spent is None else spent["epsilon"],
        notes=(*notes, identified) if isinstance(identified, str) else tuple(notes),
    )


def _perplexities(scores: Scores, setup: AttackSetup) -> dict[str, Any]:
    corpus, train, test = setup.corpus, setup.rows["known"]["train"], setup.rows["known"]["test"]
    nats = row_nats(scores, test.ids, setup.device)
    tokens = np.bincount(corpus.author[train.text], train.lengths)
    learned = {int(author): int(tokens[author]) for author in corpus.authors("known")}
    groups = group_perplexities(corpus, test.text, nats, test.lengths, learned)
    return {
        "perplexity": perplexity_of(nats, test.lengths, corpus.author[test.text]),
        "groups": groups,
        "gap": largest_gap(groups),
    }


def _exposures(scores: Scores, setup: AttackSetup) -> dict[str, Any]:
    measured = exposures(
        setup.canaries,
        setup.reference.tokenizer,
        lambda ids: row_nats(scores, ids, setup.device),
        setup.reference.settings.seed,
    )
    planted = [one for one in measured if one.canary.repeats]
    by_repeats = {
        repeats: mean_exposure([one for one in measured if one.canary.repeats == repeats])
        for repeats in sorted({one.canary.repeats for one in measured})
    }
    differences = [abs(one.bits - one.fitted) for one in measured if one.listed]
    return {
        "exposure": mean_exposure(planted) if planted else None,
        "by_repeats": by_repeats,
        "canaries": measured,
        "disagreement": float(np.mean(differences)) if differences else 0.0,
    }


def mean_exposure(found: Sequence[Exposure]) -> Figure:
    """The mean in bits, with an interval over canaries; chance is that of a sentence that was never
    planted."""
    bits = np.array([one.bits for one in found])
    most = max(one.most for one in found)
    return _over_canaries(bits, (0.0, most), "mean exposure", chance=BY_CHANCE)


def exposure_below(
    findings: ModelFindings, plain: ModelFindings, confidence: float = 0.95
) -> Figure | None:
    """By how many bits a model's exposure is below the plain one's, canary by canary: the same ones
    are planted for all models."""
    pairs = [
        (one.bits - other.bits, one.most)
        for one, other in zip(plain.canaries, findings.canaries, strict=True)
        if one.canary.repeats
    ]
    if not pairs:
        return None
    less, most = (np.array(column) for column in zip(*pairs, strict=True))
    return _over_canaries(
        less,
        (-float(most.max()), float(most.max())),
        "exposure below the plain model's",
        confidence=confidence,
        better="higher",
    )


def _over_canaries(
    values: Array, bounds: tuple[float, float], measure: str, **about: Any
) -> Figure:
    """Their mean. A canary that was not drawn may be as extreme as those that were."""
    unseen = (float(values.min()), float(values.max())) if len(values) > 1 else bounds
    about = {"over": "canaries", "unit": "bits", **about}
    return mean_figure(
        values, np.arange(len(values)), measure, bounds=bounds, unseen=unseen, **about
    )


def _tab_attack(ranks: Array, setup: AttackSetup) -> dict[str, Any]:
    author, (reference, _) = setup.prompts.author, setup.reference_answers
    if not len(ranks):
        return {"tab": (), "tab_excess": None}
    return {
        "tab": completion_rates(ranks, author, reference=reference),
        "tab_excess": excess_over_reference(ranks, reference, author, 10),
    }


def _completed_canaries(scores: Scores, setup: AttackSetup) -> Figure | None:
    planted = [canary for canary in setup.canaries if canary.repeats]
    ranks = []
    for text in dict.fromkeys(canary.pattern for canary in planted):
        pattern = Pattern(text)
        fills = np.array([canary.fill for canary in planted if canary.pattern == text])
        ids = pattern.rows(setup.reference.tokenizer, fills)
        end = (ids != PAD).sum(1) - 1  # the last token is the end of the text
        start = np.full(len(ids), pattern.prompt_length(setup.reference.tokenizer))
        prompts_here = Prompts(ids, start, end, np.arange(len(ids)))
        ranks.append(completion_ranks(scores, prompts_here, setup.device))
    if not ranks:
        return None
    rank = np.concatenate(ranks)
    return completion_rates(rank, np.arange(len(rank)), (10,))[0]


def _membership(nats: dict[str, dict[str, Array]], setup: AttackSetup) -> dict[str, Figure]:
    """From texts that the model was trained on, and from other texts by the same authors; and from
    the tokenizer's words alone, without the model."""
    figures: dict[str, Figure] = {}
    _, reference = setup.reference_answers
    for role, what in (("train", "texts it learned from"), ("test", "other texts by them")):
        if not all(role in by_role for by_role in nats.values()):
            continue
        rows = {side: setup.rows[side][role] for side in nats}
        author = np.concatenate([setup.corpus.author[one.text] for one in rows.values()])
        member = np.concatenate([np.full(len(rows[side]), side == "known") for side in rows])
        # Nats per token by which the model finds each row likelier than the reference does.
        gains = [
            (reference[side][role] - nats[side][role])
            / np.maximum(setup.shared[one.ids[:, 1:]].sum(1), 1)
            for side, one in rows.items()
        ]
        known_words = [-(one.ids == UNKNOWN).sum(1) / one.lengths for one in rows.values()]
        for key, figure in membership(np.concatenate(gains), author, member, what).items():
            figures[f"{key}, {what}"] = figure
        by_words = membership(np.concatenate(known_words), author, member, what)
        figures[f"auc of the word list alone, {what}"] = by_words["auc"]
    return figures
