"""What the attacks on all models of an audit share: texts, prompts, and the reference's answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from privet.adversaries.adversary import Adversary
from privet.data.dataset import Array
from privet.data.schema import PAD, UNKNOWN
from privet.language.model_audit.extraction import Run, runs_of, texts_of
from privet.language.model_audit.tab import Prompts, completion_ranks, prompts
from privet.language.models.canaries import Canary
from privet.language.models.corpus import ROLES, Corpus, TokenRows
from privet.language.models.networks import Scores, row_nats, scores_of
from privet.language.models.train import TrainedModel


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
    def runs(self) -> dict[str, set[Run]]:
        """Runs of tokens of the texts that the model learns from, and of others'."""
        return {
            side: runs_of(texts_of(by_role["train"].ids)) for side, by_role in self.rows.items()
        }

    @cached_property
    def reference_answers(self) -> tuple[Array, dict[str, dict[str, Array]]]:
        """What the reference model answers."""
        return self.answers(scores_of(self.reference.model))
