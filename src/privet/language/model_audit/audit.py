"""The audit of language models: plant canaries, train a reference and every model that is asked
for, and attack each of them.

All models share data, canaries, tokenizer and seed, so that they differ in the regulariser alone.
Models and findings are kept under `models/`: a second call with the same arguments goes on where
the first was stopped.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from privet.adversaries.adversary import Adversary
from privet.core.errors import refuse_if
from privet.core.files import results_folder, write_text
from privet.core.progress import console
from privet.language.model_audit.findings import ModelFindings
from privet.language.model_audit.jobs import AuditPlan, all_findings
from privet.language.model_audit.page import render
from privet.language.model_audit.speed import Speed, measure
from privet.language.model_audit.verdict import LanguageAudit, verdict
from privet.language.models.canaries import CanaryPlan
from privet.language.models.corpus import build_corpus, load_texts
from privet.language.models.dp_sgd import require_opacus
from privet.language.models.settings import Settings
from privet.language.models.train import tokenizer_for, training_rows
from privet.nets.device import pick


def audit_to(
    folder: Path,
    spec: str,
    regularizers: Sequence[str],
    settings: Settings,
    *,
    author: str = "",
    authors: int | None = 100,
    canaries: CanaryPlan | None = None,
    schema: Path | None = None,
    device: str = "auto",
    progress: bool = True,
    workers: int = 1,
    adversaries: Sequence[Adversary] | None = None,
) -> LanguageAudit:
    """Train language models, attack them, and write language.json and report.html; both are written
    again whenever another model was attacked.

    Parameters:
        folder: Where the results go.
        spec: A parquet or CSV file of texts, or the name of a published set.
        regularizers: What to compare with the plain model: labels such as "triplet:0.5", "dp:8" or
            "dp:8,batch=1024,lr=0.01".
        settings: Of all models but for their regulariser.
        author, authors, schema, device: As for `train_to`; `authors` is the most of each side.
        canaries: Sentences to plant; by default 8 for each of 0, 1, 4 and 16 repeats.
        progress: Whether progress is printed.
        workers: Models that are trained or attacked at the same time, each in its own process.
        adversaries: That name authors from hidden states; None for those of authors.py.
    """
    refuse_if(workers < 1, f"--workers {workers} would do nothing: take 1 or more.")
    wanted = [settings.with_regularizer(label) for label in ("none", *regularizers)]
    if any(one.regularizer == "dp" for one in wanted):
        require_opacus()
    corpus = build_corpus(load_texts(spec, schema, progress), author, authors, settings.seed)
    refuse_if(
        not all(len(corpus.select(side, "train")) for side in ("reference", "others")),
        f"{corpus.name} has no authors left that no model has seen: add authors.",
    )
    canaries = canaries or CanaryPlan(8, (0, 1, 4, 16))
    planted = canaries.draw(corpus.authors("known"), settings.seed)
    plan = AuditPlan(
        corpus,
        planted,
        tokenizer_for(corpus, settings, planted),
        {one.label_beside(settings): one for one in wanted},
        folder / "models",
        str(pick(device)),
        progress,
        adversaries,
    )
    with results_folder(folder):
        return _audit(plan, folder, min(workers, len(plan.models) + 1))


def _audit(plan: AuditPlan, folder: Path, workers: int) -> LanguageAudit:
    findings: dict[str, ModelFindings] = {}
    notes = (*plan.corpus.notes, *_notes(plan))
    count = len(plan.models)
    _say(plan, f"{count} models and a reference, {workers} at a time: training, then attacking")
    for one in all_findings(plan, workers):
        findings[one.name] = one
        _say(plan, f"{one.name}: attacked ({len(findings)} of {count})")
        if plan.plain.label in findings:
            _write(plan, folder, findings, notes)
    # Last, when nothing else runs: models that train side by side slow each other.
    for name in plan.models:
        speed = _speed(plan, name)
        findings[name] = replace(
            findings[name], speed=speed.tokens_per_second, time_ratio=speed.ratio
        )
    return _write(plan, folder, findings, notes)


def _say(plan: AuditPlan, line: str) -> None:
    if plan.progress:
        console.print(line, highlight=False)


def _write(
    plan: AuditPlan, folder: Path, findings: dict[str, ModelFindings], notes: tuple[str, ...]
) -> LanguageAudit:
    """The audit of the models that are attacked so far."""
    left = len(plan.models) - len(findings)
    if left:
        unfinished = f"{left} of {len(plan.models)} models are still to come"
        notes = (f"{unfinished}: the audit is not finished.", *notes)
    models = [findings[name] for name in plan.models if name in findings]
    audit = LanguageAudit(
        plan.corpus.name,
        len(plan.corpus.authors("known")),
        plan.plain,
        tuple(dict.fromkeys(canary.pattern for canary in plan.canaries)),
        models,
        verdict(models),
        notes,
    )
    write_text(folder / "language.json", audit.to_json())
    write_text(folder / "report.html", render(audit))
    return audit


def _speed(plan: AuditPlan, name: str) -> Speed:
    """From the file beside the model, or measured."""
    path, identity = plan.model_folder(name) / "speed.json", plan.identity(name)
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        if saved["identity"] == identity:
            return Speed(saved["tokens_per_second"], saved["plain"])
    except (OSError, ValueError, KeyError):
        pass
    ids, author = training_rows(plan.corpus, plan.plain, plan.tokenizer, plan.canaries)
    vocabulary, device = plan.tokenizer.vocabulary, pick(plan.device)
    speed = measure(plan.models[name], plan.plain, ids, author, vocabulary, device)
    content = {"identity": identity, "device": plan.device, **speed._asdict()}
    write_text(path, json.dumps(content) + "\n")
    return speed


def _notes(plan: AuditPlan) -> list[str]:
    corpus, test = plan.corpus, plan.corpus.select("known", "test")
    tokens = corpus.token_rows(test, plan.tokenizer, plan.plain.longest).lengths.sum()
    authors = {side: len(corpus.authors(side)) for side in ("known", "reference", "others")}
    return [
        f"The models learn from {len(corpus.select('known', 'train')):,} texts by "
        f"{authors['known']} authors; {len(test)} texts by the same authors ({tokens:,} tokens) "
        f"were kept back to count on. The reference model learned from {authors['reference']} "
        f"other authors, and membership is asked against {authors['others']} more.",
        "A word that one known author alone uses counts as private in the tab attack; the unknown "
        "word counts as a word in perplexities.",
        "Tokens a second were measured last, of each model in turn with the plain one, in one "
        "process, after this command's others.",
    ]
