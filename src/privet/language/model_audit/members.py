"""Membership of an audit's models: whose texts a model was trained on, and which of their texts."""

from __future__ import annotations

import numpy as np

from privet.data.dataset import Array
from privet.data.schema import UNKNOWN
from privet.evidence.figures import Figure
from privet.language.model_audit.attack_setup import AttackSetup
from privet.language.model_audit.authors import membership


def memberships(nats: dict[str, dict[str, Array]], setup: AttackSetup) -> dict[str, Figure]:
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
    return {**figures, **_text_membership(nats["known"], reference["known"], setup)}


def _text_membership(
    nats: dict[str, Array], reference: dict[str, Array], setup: AttackSetup
) -> dict[str, Figure]:
    """Which texts of the known authors were learned from: the harder question, since members and
    others have the same authors."""
    rows = {role: setup.rows["known"][role] for role in nats}
    if len(rows) < 2:
        return {}
    gains = [
        (reference[role] - nats[role]) / np.maximum(setup.shared[one.ids[:, 1:]].sum(1), 1)
        for role, one in rows.items()
    ]
    text = np.concatenate([one.text for one in rows.values()])
    member = np.concatenate([np.full(len(one), role == "train") for role, one in rows.items()])
    what = "texts of the same authors"
    figures = membership(np.concatenate(gains), setup.corpus.author[text], member, what, text)
    return {f"{key}, {what}": figure for key, figure in figures.items()}
