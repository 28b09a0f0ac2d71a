"""What attacks find in one trained model, as values; and the file that keeps them beside the
model."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privet.core.files import write_text
from privet.core.json_values import finite, read
from privet.data.dataset import Array
from privet.data.schema import PAD
from privet.evidence.figures import Figure
from privet.language.mean_figure import mean_figure
from privet.language.model_audit.attack_setup import AttackSetup
from privet.language.model_audit.authors import HiddenStates, Identification, identify_authors
from privet.language.model_audit.exposure import BY_CHANCE, Exposure, exposures
from privet.language.model_audit.extraction import repeated_figure, texts_of, written_rows
from privet.language.model_audit.members import memberships
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
)
from privet.language.models.canaries import Pattern
from privet.language.models.dp_sgd import author_guarantee
from privet.language.models.networks import Scores, hidden_states, row_nats, scores_of
from privet.language.models.train import TrainedModel

# Of the attacks: findings of another version are made again.
VERSION = 3


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
        repeated: Share of freely written texts that repeat a run of a training text, and the tokens
            of the longest such run.
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
    repeated: Figure
    longest_repeated: int
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


def attack_model(trained: TrainedModel, setup: AttackSetup, name: str) -> ModelFindings:
    """Attack one model in every way; `name` is what the audit calls it."""
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
    seed = setup.reference.settings.seed
    written = texts_of(written_rows(trained.model, setup.device, seed=seed))
    repeated, longest = repeated_figure(
        written, setup.runs["known"], setup.runs["others"], "tokens"
    )
    notes = [] if spent is None else [author_guarantee(spent)]
    return ModelFindings(
        name=name,
        **_perplexities(scores, setup),
        **_exposures(scores, setup),
        tries=TRIES,
        **_tab_attack(ranks, setup),
        tab_canaries=_completed_canaries(scores, setup),
        repeated=repeated,
        longest_repeated=len(longest),
        identified=None if isinstance(identified, str) else identified,
        membership=memberships(nats, setup),
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
