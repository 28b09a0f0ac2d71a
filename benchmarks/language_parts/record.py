"""The results files of the benchmark of language models: the models, what they repeat and whose posts
they have learned from, pairs of them at about equal perplexity, and how DP-SGD was tuned."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from tables import RESULTS, Study, read, write

from language_parts.rows import (
    LEARNED,
    SAME,
    above,
    below,
    findings_of,
    number,
    of_seeds,
    order,
    row,
    title,
    which,
)
from privet.language.model_audit.verdict import NEAR

TUNED = [
    "python benchmarks/language.py --data blogs.parquet --out language.json --workers 5 \\",
    "    --threads 1 --seconds 340   # and again, to go on",
    "python benchmarks/language.py --write language.json",
]
COMMAND = [
    "for seed in 0 1 2; do",
    "    python benchmarks/language.py --data blogs.parquet --out language-$seed.json \\",
    "        --seeds $seed --dp epochs=40,batch=2048,lr=0.02,dropout=0,clip=0.1 \\",
    "        --workers 4 --threads 1 --seconds 440 &",
    "done; wait",
    "python benchmarks/language.py --write language-0.json language-1.json language-2.json",
]
NOT_RUN = {"which": which([]), "seeds": 0}
COLUMNS = [
    {"key": "model", "title": "model"},
    {"key": "which", "title": "seeds: which"},
    {"key": "perplexity", "title": "perplexity"},
    {"key": "above", "title": "perplexity above the plain model's", "unit": "%"},
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
    {"key": "gap", "title": "subgroup gap"},
]


def member_columns(named: float) -> list[dict[str, str]]:
    """Of extraction, authors and membership; `named` is the chance of naming an author."""
    return [
        {"key": "model", "title": "model"},
        {"key": "which", "title": "seeds: which"},
        {
            "key": "repeated",
            "title": "written texts that repeat 8 words of a post it learned from",
            "unit": "%",
        },
        {"key": "chance", "title": "of a post by an author it has not seen", "unit": "%"},
        {"key": "longest", "title": "longest repeated, words of at most 64"},
        {"key": "author", "title": f"author named (chance {named:.1f})", "unit": "%"},
        {"key": "member", "title": "authors learned from, AUC (chance 50)", "unit": "%"},
        {"key": "words", "title": "the same by the word list alone", "unit": "%"},
        {"key": "member_text", "title": "posts of theirs, AUC (chance 50)", "unit": "%"},
    ]


def models_studies(
    content: Mapping[str, Any],
    machine: str | None,
    commit: str | None = None,
    planned: Sequence[str] = (),
) -> tuple[Study, Study]:
    """Both tables of the models, a row for each; one that was planned and not run has dashes."""
    found = findings_of(content["jobs"])
    plain, numbers = found["none"], {len(seeds) for seeds in found.values()}
    first, facts = plain[min(plain)], facts_of(content["jobs"])
    assert first.identified is not None
    rows: dict[str, Mapping[str, Any]] = dict.fromkeys(planned, NOT_RUN)
    rows |= {label: row(seeds, plain) for label, seeds in found.items()}
    posts = Study(
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
        seeds=len(plain) if len(numbers) == 1 else None,
        confidence=0.95,
        machine=machine,
        commit=commit,
        published_in=None,
        source="Mireshghallah and others, Privacy regularization, NAACL (2021)",
        columns=COLUMNS,
        rows=shown(rows, COLUMNS),
        notes=[
            f"A private word: one that a single author uses, {facts['prompts']:,} prompts in the "
            "first seed.",
            "A model is compared with the plain one of the same seeds and the same run. A row with a "
            "commit of its own is of an earlier run, which had more seeds of it.",
            "With several seeds exposure is over the planted sentences of all of them; other "
            "figures are means of seeds, of the ends of intervals too.",
            f"Word frequencies alone: perplexity {facts['frequencies']:.0f}.",
            *dp_notes(content["jobs"]),
            *stopped_notes(content["jobs"]),
        ],
    )
    columns = member_columns(100 * first.identified.accuracy.chance)
    return posts, replace(
        posts,
        title="What language models repeat, and whose posts they have learned from",
        n=None,
        columns=columns,
        rows=shown(rows, columns),
        notes=[
            f"In each seed {first.repeated.n:,} written texts, {first.identified.accuracy.n:,} posts "
            f"whose author is named, {first.membership[LEARNED].n:,} authors and "
            f"{first.membership[SAME].n:,} posts that may have been learned from.",
            "Words that are repeated may be numbers and marks.",
            "Word list: the share of words that the tokenizer does not know, without any model.",
            *posts.notes,
        ],
    )


def shown(
    rows: Mapping[str, Mapping[str, Any]], columns: Sequence[Mapping[str, str]]
) -> list[dict[str, Any]]:
    """The rows with these columns alone; a dash where a model was not run."""
    keys = [column["key"] for column in columns if column["key"] != "model"]
    return [
        {
            "model": title(label),
            **{key: one.get(key) for key in keys if key in one or one is NOT_RUN},
            "seeds": one["seeds"],
        }
        for label, one in sorted(rows.items(), key=lambda item: order(item[0]))
    ]


def pairs_study(
    content: Mapping[str, Any], machine: str | None, commit: str | None = None
) -> Study:
    """Every two models whose perplexities are about equal on the seeds that both have."""
    found, rows = findings_of(content["jobs"]), []
    for first, second in combinations(found, 2):
        one, other = found[first], found[second]
        shared = [seed for seed in one if seed in other]
        ratios = above(other, one, shared)
        meant = first.replace("stopped", "dp") == second
        if shared and (meant or abs(float(np.mean(ratios))) <= 100 * NEAR):
            tabs = [(other[seed].tab_excess, one[seed].tab_excess) for seed in shared]
            less = [100 * (b.value - a.value) for a, b in tabs if a is not None and b is not None]
            rows.append(
                {
                    "first": title(first),
                    "second": title(second),
                    "which": which(shared),
                    "above": of_seeds(ratios),
                    "below": below(other, one),
                    "tab": of_seeds(less) if less else None,
                    "seeds": len(shared),
                }
            )
    return Study(
        title="Language models of about equal perplexity, two by two",
        command=COMMAND,
        data=f"As language-posts; every two models whose perplexities are, over the seeds that "
        f"both have, within {100 * NEAR:.0f} % of each other, and every model of DP-SGD beside the "
        "plain one that was stopped at its perplexity of the texts to choose on",
        n=facts_of(content["jobs"])["counted"],
        seeds=None,
        confidence=0.95,
        machine=machine,
        commit=commit,
        published_in=None,
        source=None,
        columns=[
            {"key": "first", "title": "the first"},
            {"key": "second", "title": "the second"},
            {"key": "which", "title": "seeds: which"},
            {"key": "above", "title": "perplexity of the second above the first's", "unit": "%"},
            {"key": "below", "title": "exposure of the second below the first's", "unit": "bits"},
            {
                "key": "tab",
                "title": "private words: by how many points the second completes fewer",
            },
        ],
        rows=rows,
        notes=["Each interval is of its own row alone: nothing is paid for the number of pairs."],
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


def stopped_notes(jobs: Mapping[str, Any]) -> list[str]:
    """After how much of its training the plain model was stopped."""
    epochs: dict[str, list[float]] = {}
    for key, result in jobs.items():
        if re.match("model . stopped:", key) and "history" in result:
            epochs.setdefault(key.split(":")[1], []).append(result["history"][-1]["epochs"])
    if not epochs:
        return []
    said = ", ".join(
        f"{' / '.join(f'{one:.2f}' for one in epochs[epsilon])} at ε {epsilon}"
        for epsilon in sorted(epochs, key=float)
    )
    return [
        "Stopped: the plain model after the first step at which it predicts the texts to choose on "
        f"as well as DP-SGD's model of the same seed and ε: after {said} of 15 epochs."
    ]


def tuning_study(
    content: Mapping[str, Any], machine: str | None, commit: str | None = None
) -> Study:
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
    rows.sort(key=lambda one: (one["batch"], one["lr"], one["clip"]))
    best = min(rows, key=lambda one: one["held_out"])
    best["held_out"] = {"value": best["held_out"], "strong": True}
    return Study(
        title="DP-SGD for language models, tuned at ε 8",
        command=TUNED,
        data=f"As language-posts; {facts['chosen_on']} posts by the authors learned from that are "
        "neither learned from nor counted on",
        n=facts["chosen_on"],
        seeds=1,
        confidence=None,
        machine=machine,
        commit=commit,
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


def with_kept(path: Path, study: Study, names: Sequence[str], order: Sequence[Any]) -> Study:
    """The study with those rows of the file there that have more seeds than its own; they say which
    commit was run. A row is known by its cells in the columns `names`; those in `order` come so."""
    if not path.exists():
        return study
    earlier, rows = read(path), {called(one, names): one for one in study.rows}
    for one in earlier.rows:
        fewer = rows.get(called(one, names), {}).get("seeds", 0)
        if earlier.columns == study.columns and one["seeds"] > fewer:
            rows[called(one, names)] = {"commit": earlier.commit, **one}
    places = {each: place for place, each in enumerate(order)}

    def place(one: Mapping[str, Any]) -> list[int]:
        return [places.get(each, len(places)) for each in called(one, names)]

    return replace(study, rows=sorted(rows.values(), key=place))


def called(one: Mapping[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(one[name] for name in names)


def write_results(
    paths: Sequence[Path],
    machine: str | None,
    folder: Path = RESULTS,
    commit: str | None = None,
    planned: Sequence[str] = (),
) -> None:
    """Write language-posts, -members, -pairs and, where a run was tuned, -tuning.json, of what all of
    these runs found. Rows that were there before for more seeds stay."""
    content: dict[str, Any] = {"jobs": {}}
    for path in paths:
        for key, result in json.loads(path.read_text(encoding="utf-8"))["jobs"].items():
            if "error" not in result or key not in content["jobs"]:  # another run may have done it
                content["jobs"][key] = result
    made = models_studies(content, machine, commit, planned)
    models = [row["model"] for row in made[0].rows]
    posts, members = (
        with_kept(folder / f"language-{name}.json", study, ["model"], models)
        for name, study in zip(("posts", "members"), made, strict=True)
    )
    pairs = with_kept(
        folder / "language-pairs.json",
        pairs_study(content, machine, commit),
        ["first", "second"],
        models,
    )
    studies = {"posts": posts, "members": members, "pairs": pairs}
    if any(key.startswith("tune") for key in content["jobs"]):
        studies["tuning"] = tuning_study(content, machine, commit)
    for name, study in studies.items():
        write(folder / f"language-{name}.json", study)
