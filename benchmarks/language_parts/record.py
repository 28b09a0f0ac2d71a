"""The results files of the benchmark of language models: the models, and how DP-SGD was tuned.

Several seeds are one row: exposure is the mean over the planted sentences of all of them, with an
interval over sentences; other figures are means of seeds, with the means of their intervals' ends.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from tables import RESULTS, Study, write

from privet.core.json_values import read
from privet.evidence.figures import Figure
from privet.language.model_audit.findings import ModelFindings, exposure_below, mean_exposure

COMMAND = [
    "python benchmarks/language.py --data blogs.parquet --out language.json",
    "python benchmarks/language.py --write language.json",
]
LEARNED, SAME = "auc, texts it learned from", "auc, texts of the same authors"
NAMES = {"none": "plain", "adversarial": "adversarial", "triplet": "triplet", "dp": "DP-SGD, ε"}

Cell = dict[str, Any] | Decimal | list[Any] | None


def number(value: float, digits: int = 1) -> Decimal:
    """As it is printed.

    >>> number(-0.04), number(2.25)
    (Decimal('0.0'), Decimal('2.2'))
    """
    rounded = Decimal(f"{value:.{digits}f}")
    return abs(rounded) if rounded == 0 else rounded


def cell(figures: Sequence[Figure | None], factor: float = 1.0) -> Cell:
    """The mean of seeds, of the ends of their intervals too."""
    there = [one for one in figures if one is not None]
    if not there:
        return None
    ends = ("value", "low", "high")
    means = {key: factor * float(np.mean([getattr(one, key) for one in there])) for key in ends}
    found: dict[str, Any] = {key: number(value) for key, value in means.items()}
    if len(there) > 1:
        found["seeds"] = [number(factor * one.value) for one in there]
    return found


def pooled(found: Sequence[ModelFindings]) -> ModelFindings:
    """One with the planted sentences of all seeds."""
    return replace(found[0], canaries=tuple(one for each in found for one in each.canaries))


def findings_of(jobs: Mapping[str, Any]) -> dict[str, dict[int, ModelFindings]]:
    """Of each model, by seed; the plain one first."""
    found: dict[str, dict[int, ModelFindings]] = {}
    for key, result in jobs.items():
        kind, seed, *label = key.split(" ")
        if kind == "model" and "findings" in result:
            one = read(ModelFindings, result["findings"], key)
            found.setdefault(label[0], {})[int(seed)] = one
    return {label: dict(sorted(found[label].items())) for label in sorted(found, key=order)}


def order(label: str) -> tuple[int, float]:
    name, _, strength = label.partition(":")
    return list(NAMES).index(name), float(strength or 0)


def row(found: Mapping[int, ModelFindings], plain: Mapping[int, ModelFindings]) -> dict[str, Any]:
    """The figures of a model, all in per cent but perplexity and bits."""
    seeds = list(found.values())
    every, base = pooled(seeds), pooled([plain[seed] for seed in found if seed in plain])
    planted = [one for one in every.canaries if one.canary.repeats]
    repeats = sorted({one.canary.repeats for one in every.canaries})

    def per_cent(figure: Callable[[ModelFindings], Figure | None]) -> Cell:
        return cell([figure(one) for one in seeds], 100)

    below = exposure_below(every, base) if len(every.canaries) == len(base.canaries) else None
    return {
        "perplexity": cell([one.perplexity for one in seeds]),
        "exposure": cell([mean_exposure(planted)] if planted else []),
        "below": None if every.name == "none" else cell([below]),
        "by_repeats": [
            number(mean_exposure([c for c in every.canaries if c.canary.repeats == r]).value)
            for r in repeats
        ],
        "tab": per_cent(lambda one: one.tab_excess),
        "canaries": per_cent(lambda one: one.tab_canaries),
        "repeated": per_cent(lambda one: one.repeated),
        "longest": max(one.longest_repeated for one in seeds),
        "author": per_cent(lambda one: one.identified.accuracy if one.identified else None),
        "member": per_cent(lambda one: one.membership.get(LEARNED)),
        "member_text": per_cent(lambda one: one.membership.get(SAME)),
        "gap": number(float(np.mean([one.gap for one in seeds])), 3),
        "seeds": len(seeds),
    }


def title(label: str) -> str:
    name, _, strength = label.partition(":")
    return f"{NAMES[name]} {strength}".strip()


def models_study(content: Mapping[str, Any], machine: str | None) -> Study:
    found = findings_of(content["jobs"])
    plain = found["none"]
    first, facts = plain[min(plain)], facts_of(content["jobs"])
    chance = 100 * first.repeated.chance
    assert first.identified is not None
    named = 100 * first.identified.accuracy.chance
    return Study(
        title="Language models that must not remember, on all posts",
        command=COMMAND,
        data=(
            f"Blog Authorship corpus, {facts['posts']:,} posts: {facts['authors']['known']} "
            f"authors whose {facts['learned']:,} posts are learned from and {facts['counted']} "
            f"counted on, {facts['authors']['reference']} of the reference model, "
            f"{facts['authors']['others']} that no model sees; {len(first.canaries)} planted "
            "sentences a seed, as many for each of 0, 1, 4 and 16 repeats"
        ),
        n=facts["counted"],
        seeds=len(plain),
        confidence=0.95,
        machine=machine,
        commit=None,
        published_in=None,
        source="Mireshghallah and others, Privacy regularization, NAACL (2021)",
        columns=[
            {"key": "model", "title": "model"},
            {"key": "perplexity", "title": "perplexity"},
            {"key": "exposure", "title": "exposure (chance 1.4)", "unit": "bits"},
            {"key": "below", "title": "exposure below the plain model's", "unit": "bits"},
            {
                "key": "by_repeats",
                "title": "exposure at 0 / 1 / 4 / 16 repeats",
                "unit": "bits",
                "joined": " / ",
            },
            {
                "key": "tab",
                "title": "tab attack: completed in 10 tries beyond the reference",
                "unit": "%",
            },
            {"key": "canaries", "title": "canaries completed", "unit": "%"},
            {
                "key": "repeated",
                "title": f"written texts that repeat 8 words of a post (chance {chance:.1f})",
                "unit": "%",
            },
            {"key": "longest", "title": "longest repeated, words"},
            {"key": "author", "title": f"author named (chance {named:.1f})", "unit": "%"},
            {"key": "member", "title": "authors learned from, AUC (chance 50)", "unit": "%"},
            {"key": "member_text", "title": "posts of theirs, AUC (chance 50)", "unit": "%"},
            {"key": "gap", "title": "subgroup gap"},
        ],
        rows=[{"model": title(label), **row(seeds, plain)} for label, seeds in found.items()],
        notes=[
            f"A private word: one that a single author uses, {facts['prompts']:,} prompts in the "
            "first seed. The chance of repeated texts is of the plain model's texts against posts "
            "of authors whom it has not seen.",
            "With several seeds exposure is over the planted sentences of all of them; other "
            "figures are means of seeds, of the ends of intervals too.",
            f"Word frequencies alone: perplexity {facts['frequencies']:.0f}.",
            *dp_notes(content["jobs"]),
        ],
    )


def facts_of(jobs: Mapping[str, Any]) -> dict[str, Any]:
    return next(dict(jobs[key]) for key in jobs if key.startswith("reference 0"))


def dp_notes(jobs: Mapping[str, Any]) -> list[str]:
    """What DP-SGD was trained with."""
    tuned = [
        result
        for key, result in jobs.items()
        if re.match("model . dp", key) and "settings" in result
    ]
    if not tuned:
        return []
    used, spent = tuned[0]["settings"], tuned[0]["dp"]
    return [
        f"DP-SGD as it was best on texts to choose on (language-tuning.json): batches of "
        f"{used['batch']:,} rows, {used['epochs']} epochs, learning rate {used['lr']:g}, clipping "
        f"norm {used['clip']:g}, dropout {used['dropout']:g}; ε and δ {spent['delta']:g} are of "
        f"one row of tokens, and an author has up to {spent['most_rows_of_an_author']}. What the "
        "tuning itself gives away is not counted."
    ]


def tuning_study(content: Mapping[str, Any], machine: str | None) -> Study:
    facts, rows = facts_of(content["jobs"]), []
    for key, result in content["jobs"].items():
        if key.startswith("tune") and "held_out" in result:
            used = result["settings"]
            rows.append(
                {
                    "batch": used["batch"],
                    "epochs": used["epochs"],
                    "lr": number(used["lr"], 3),
                    "clip": number(used["clip"]),
                    "dropout": number(used["dropout"]),
                    "noise": number(result["dp"]["noise"], 2),
                    "held_out": number(result["held_out"]),
                }
            )
    best = min(rows, key=lambda one: one["held_out"])
    best["held_out"] = {"value": best["held_out"], "strong": True}
    return Study(
        title="DP-SGD for language models, tuned at ε 8",
        command=COMMAND,
        data=f"As language-posts; {facts['chosen_on']} posts by the authors learned from that are "
        "neither learned from nor counted on",
        n=facts["chosen_on"],
        seeds=1,
        confidence=None,
        machine=machine,
        commit=None,
        published_in=None,
        source=None,
        columns=[
            {"key": "batch", "title": "rows in a batch"},
            {"key": "epochs", "title": "epochs"},
            {"key": "lr", "title": "learning rate"},
            {"key": "clip", "title": "clipping norm"},
            {"key": "dropout", "title": "dropout"},
            {"key": "noise", "title": "noise, in clipping norms"},
            {"key": "held_out", "title": "perplexity of texts to choose on"},
        ],
        rows=rows,
    )


def write_results(path: Path, machine: str | None, folder: Path = RESULTS) -> None:
    """Write language-posts.json and language-tuning.json."""
    content = json.loads(path.read_text(encoding="utf-8"))
    write(folder / "language-posts.json", models_study(content, machine))
    write(folder / "language-tuning.json", tuning_study(content, machine))
