"""Figures of an audit that are about no attribute, by name: search, people, words."""

from __future__ import annotations

from privet.evidence.figures import Audit, Figure


def named_figures(audit: Audit) -> dict[str, Figure]:
    """Every such figure under the name that a gate takes: `recall_at_10`, `membership auc`,
    `re-identification top_1`, `word alice`, `words from released vectors f1_words`.

    Of two figures with one name, the higher one; of what is read from raw records, none.
    """
    found = dict(audit.retrieval)
    for one in audit.people:
        found |= {f"{one.attack} {key}": figure for key, figure in one.figures.items()}
    for rebuilt in audit.rebuilt:
        if " raw " in f" {rebuilt.decoder} ":
            continue
        for key, figure in rebuilt.figures.items():
            name = key if key.startswith("word ") else f"{rebuilt.decoder} {key}"
            if name not in found or found[name].value < figure.value:
                found[name] = figure
    return found
