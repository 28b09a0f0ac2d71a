"""Every kind of page with made-up figures, for tests that look at pages as a whole."""

from __future__ import annotations

from dataclasses import replace

import example_audits as example
import made_cells
import made_rows
import numpy as np

from privet.data.portraits.source import portraits
from privet.evidence.certificate.values import Certification, Step
from privet.evidence.figures import CertifiedGroup, Figure
from privet.language.model_audit import page as language_page
from privet.language.model_audit.findings import ModelFindings
from privet.language.model_audit.verdict import LanguageAudit
from privet.language.private_words import page as words_page
from privet.language.private_words.attacks import EpsilonFigures
from privet.language.private_words.statistics import WordStatistics
from privet.methods.services.evaluation import (
    Identification,
    ProbabilityHistogram,
    ServiceAnswers,
    ServiceEvaluation,
)
from privet.reporting.data_page import render_data
from privet.reporting.page import render, render_certificate
from privet.studies.collaborative_page import page as collaborative_page
from privet.studies.frontier_page import render as render_frontier


def figure(value: float, half: float, chance: float = 0.0) -> Figure:
    return Figure(value, value - half, value + half, 60, chance, interval="95 %")


def compared() -> str:
    others = [example.other("GAP", 0.7, 0.8, budget=0.5), example.other("LEACE", 0.8, 0.9)]
    return render(replace(example.audit(), checks=("A column tells sex.",)), others)


def certification(target: float | None = 0.64, bound: float = 0.645) -> Certification:
    scores = {"smiling": figure(0.9, 0.02, 0.5), "age": figure(0.7, 0.1, 0.25)}
    steps = tuple(
        Step(sigma, {"beard": 0.98 - 0.2 * i if i else None}, scores)
        for i, sigma in enumerate((0.1, 0.4, 1.6))
    )
    group = CertifiedGroup("hair", "red", 0.731, 0.7, 0.03, (90, 90))
    one = replace(example.certificates()[0], bound=bound, groups=(group,))
    card = {"method": "hedge", "title": "Hedge", "private": ["beard"]}
    data = {"name": "portraits", "fingerprint": "ab12" * 16}
    return Certification(card, data, (one,), 3.0, target, steps, looks=2)


def frontier(methods: int = 2) -> str:
    if methods == 2:
        return render_frontier(made_rows.study(seeds=2), made_rows.comparison(), "privet compare")
    random = np.random.default_rng(0)
    rows = [made_rows.row(made_cells.cell("raw", None), 0.93, 0.92, card={})]
    for method in ("tiprdc", "hedge", "gap", "leace", "dp", "shredder")[:methods]:
        for i, budget in enumerate((0.1, 0.5, 1.0, 10.0, 50.0)):
            leak, use = 0.55 + 0.07 * i, 0.6 + 0.06 * i
            bound = 0.05 + leak if method == "hedge" else None
            shift = 0.03 * random.random()
            cell = made_cells.cell(method, budget)
            rows.append(made_rows.row(cell, leak + shift, use + shift, bound))
    return render_frontier(made_rows.study(), rows)


def collaborative() -> str:
    cards = []
    for alpha in (0.1, 0.5, 0.9):
        counts = tuple(range(20))
        sure = tuple(ProbabilityHistogram(value, counts, counts[::-1]) for value in ("no", "yes"))
        before, after = {"balanced": 0.95}, {"balanced": 0.95 - 0.4 * alpha}
        answers = tuple(
            ServiceAnswers(name, role, "test", 400, before, after, 0.9, "yes", sure)  # type: ignore[arg-type]
            for name, role in (("smiling", "utility"), ("beard", "private"), ("beard", "given"))
        )
        first, again = {"top_1": 0.8, "top_5": 0.9}, {"top_1": 0.6, "top_5": 0.8}
        people = Identification("person", "test", 100, 400, first, again)
        cards.append(
            {
                "method": "collaborative",
                "settings": {"alpha": alpha, "adversarial": False, "stochastic": False},
                "private": ["beard"],
                "utility": ["smiling"],
                "data": {"name": "portraits"},
                "services": {"smiling": {"role": "utility", "source": "trained here"}},
                "outcomes": ServiceEvaluation("test", answers, (people,), 0.1, 0.0).to_json(),
            }
        )
    return collaborative_page(cards)


def language() -> str:
    def model(name: str, perplexity: float, bits: float) -> ModelFindings:
        repeats = {k: figure(bits * m, 0.8) for k, m in ((0, 0.3), (1, 0.5), (4, 0.9), (16, 1.6))}
        tab = [figure(0.05 * i + bits / 100, 0.02, 0.03 * i) for i in range(1, 6)]
        share = figure(0.1, 0.02)
        return ModelFindings(
            name, figure(perplexity, 3), [], 0.1, figure(bits, 1), repeats, [], 0.0,
            (1, 2, 5, 10, 20), tab, share, share, share, 12, None, {"auc": figure(0.6, 0.03, 0.5)},
            None,
        )  # fmt: skip

    models = [model("none", 100, 9), model("triplet:1", 108, 6), model("dp:3", 131, 2)]
    verdict = "triplet:1 remembers less than plain at about the same perplexity."
    return language_page.render(LanguageAudit("mail", 32, None, (), models, verdict, ()))  # type: ignore[arg-type]


def words_statistics() -> str:
    random, n = np.random.default_rng(0), 80
    names = tuple(f"word{i}" for i in range(n))
    counts, shares = random.integers(1, 500, n), random.random(n)
    several = random.integers(1, 50, n).astype(float)
    critical = random.lognormal(2, 0.6, (n, 50))
    examples = tuple(("a", "b") for _ in range(n))
    found = WordStatistics(10.0, 50, names, counts, shares, several, shares, critical, examples)
    return words_page.statistics_page(found, "mail")


def words_attacked() -> str:
    points = [
        EpsilonFigures(
            epsilon,
            {"sex": figure(0.5 + 0.03 * i, 0.02, 0.5)},
            {"topic": figure(0.3 + 0.1 * i, 0.03, 0.25)},
            {"bigram prior": figure(0.1 + 0.15 * i, 0.02)},
            0.5,
        )
        for i, epsilon in enumerate((1.0, 10.0, 40.0))
    ]
    raw = {"sex": figure(0.8, 0.02, 0.5), "topic": figure(0.9, 0.02, 0.25)}
    return words_page.curve_page(points, raw, "mail")


PAGES = {
    "report": lambda: render(example.full()),
    "report-compared": compared,
    "report-empty": lambda: render(example.nothing_counted()),
    "certificate": lambda: render_certificate(certification()),
    "frontier": frontier,
    "frontier-many": lambda: frontier(6),
    "collaborative": collaborative,
    "language": language,
    "words": words_statistics,
    "words-attacked": words_attacked,
    "data": lambda: render_data(portraits(60, seed=0), ["beard"], ["hat"]),
}
