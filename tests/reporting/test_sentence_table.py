"""Every sentence of the table is printed where it is true, and is not where it would be false.

Of each sentence there is one case that prints it, with the exact words, and one in which it would
be false: there it must not be printed. The counterexamples to certificates are laws of codes, from
which what would be printed is computed.
"""

from __future__ import annotations

import itertools
import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import example_audits as example
import made_cells
import made_rows
import numpy as np
import pandas as pd
import pytest

from privet.auditing.gate import gate
from privet.auditing.signatures import Signer, sign
from privet.core.key_text import to_base64
from privet.data.checks import check_data
from privet.data.in_memory import Dataset
from privet.data.sources import load
from privet.evidence.certificate.gaussian import certify
from privet.evidence.certificate.values import Certification
from privet.evidence.certified_sentences import bound_sentence
from privet.evidence.figures import (
    AllPriors,
    Audit,
    Certified,
    CertifiedGroup,
    ClassScore,
    CurvePoint,
    Fairness,
    Figure,
    Finding,
    Group,
    People,
    PriorPoint,
    Reading,
    Rebuilt,
    Risk,
)
from privet.evidence.sentences import table
from privet.evidence.verdict import verdicts
from privet.evidence.what_leaves import WhatLeaves
from privet.exchange.owner.published import published_audit
from privet.exchange.participant.claims import Claim, claim
from privet.exchange.participant.ledger import Account, Bound, Entry
from privet.exchange.participant.ledger_lines import known, ledger
from privet.exchange.participant.owners import Standing
from privet.exchange.participant.sentences import about, hidden, how_many
from privet.language.model_audit import verdict as language_verdict
from privet.language.models.dp_sgd import author_guarantee
from privet.language.private_words.attacks import EpsilonFigures
from privet.language.private_words.page import epsilon_verdict
from privet.language.private_words.statistics import WordStatistics
from privet.methods.dp import LaplaceBudget, accuracy_bound
from privet.release.what_runs import runs_hash
from privet.reporting import (
    certificate,
    certificate_plots,
    certificate_screen,
    first_screen,
    sections,
)
from privet.reporting import sentences as words
from privet.reporting.markdown import summary
from privet.reporting.page import render, render_certificate
from privet.studies.frontier_page import answer
from privet.studies.groups import Group as ComparedRelease

VOID = Figure(float("nan"), 0.0, 1.0, 0, 0.5)
AGE = replace(example.AGE, raw=())


class Case(NamedTuple):
    """One sentence.

    Parameters:
        text: Its exact words in `true`.
        true: What is printed where the sentence is true.
        false: What is printed where it would be false.
    """

    text: str
    true: Callable[[], str]
    false: Callable[[], str]


def private(
    *, n: int = 20_000, values: tuple[str, ...] = ("no", "yes"), **released: float
) -> Reading:
    """A private attribute, its attackers by name; on this many records."""
    return example.reading("beard", "private", released or {"mlp": 0.61}, {}, values, n)


def said(reading: Reading) -> str:
    return words.private_sentence(reading)


def other(value: float, source: str, **more: object) -> Finding:
    return replace(example.finding("mlp", value, source), **more)  # type: ignore[arg-type]


RACES = ("a", "b", "c", "d", "e", "f")


def races(*scores: float, rare: int = 0) -> Reading:
    """Six values, of which the mean is read as by guessing; the first values are told from the rest
    so well, the last are rare."""
    mean = private(mlp=0.18, values=RACES, n=900)
    classes = [
        ClassScore(
            value, 18 if i >= 6 - rare else 900, example.figure(score, 900), "mlp", i >= 6 - rare
        )
        for i, (value, score) in enumerate(zip(RACES, scores, strict=False))
    ]
    return replace(mean, classes=tuple(classes))


# --- laws of codes: what would be printed is computed from them ----------------------------------


@cache
def one_number(seed: int = 0, apart: float = 0.2, share: float = 0.5, n: int = 6000) -> Certified:
    """A certificate of one number with noise; `share` of the people are of the second value."""
    random = np.random.default_rng(seed)
    labels = (random.random(n) < share).astype(int)
    codes = random.normal(size=(n, 1)) + apart * labels[:, None]
    found = certify(codes, 1.0, labels, np.arange(n), "sex", ("f", "m"))
    assert found.bound is not None
    return Certified(**vars(found))


@cache
def known_beside(n: int = 8000) -> tuple[Certified, float]:
    """Codes that tell the sex of married people one way and of others the other way round, so that
    together they tell nothing; and how well a threshold reads married people."""
    random = np.random.default_rng(1)
    sex, married = random.integers(0, 2, n), random.integers(0, 2, n)
    codes = np.where(sex == married, 1.0, -1.0)[:, None]
    found = certify(codes, 1.0, sex, np.arange(n), "sex", ("f", "m"))
    released = codes[:, 0] + random.normal(size=n)
    right = (released > 0) == (sex == 1)
    married_right = float(np.mean([right[(married == 1) & (sex == s)].mean() for s in (0, 1)]))
    return Certified(**vars(found)), married_right


@cache
def two_records(n: int = 8000) -> tuple[Certified, float]:
    """Two records of each person with the same law for both sexes, and an opposite coupling; and
    how well both together tell the sex."""
    random = np.random.default_rng(2)
    sex, sign = random.integers(0, 2, n), random.choice([-1.0, 1.0], n)
    first, second = sign, np.where(sex == 1, sign, -sign)
    codes, person = np.concatenate([first, second])[:, None], np.tile(np.arange(n), 2)
    found = certify(codes, 0.4, np.tile(sex, 2), person, "sex", ("f", "m"))
    seen = codes[:, 0] + 0.4 * random.normal(size=2 * n)
    right = (seen[:n] * seen[n:] > 0) == (sex == 1)
    return Certified(**vars(found)), float(right.mean())


@cache
def surer(n: int = 8000) -> tuple[Certified, float]:
    """Codes that tell nothing of most people and much of a few; and the share of releases after
    which the true value has a probability of 0.7 or more."""
    random = np.random.default_rng(3)
    sex = random.integers(0, 2, n)
    codes = np.where(random.random(n) < 0.05, np.where(sex == 1, 3.0, -3.0), 0.0)[:, None]
    found = certify(codes, 1.0, sex, np.arange(n), "sex", ("f", "m"))
    released = codes[:, 0] + random.normal(size=n)
    toward = np.where(sex == 1, released, -released)

    def density(at: np.ndarray, centre: float) -> np.ndarray:
        return 0.95 * np.exp(-(at**2) / 2) + 0.05 * np.exp(-((at - centre) ** 2) / 2)

    likely = density(toward, 3.0)
    return Certified(**vars(found)), float(
        (likely / (likely + density(toward, -3.0)) >= 0.7).mean()
    )


TAIL = AllPriors(
    (PriorPoint(0.0, 0.1), PriorPoint(1.0, 1.0)),
    (PriorPoint(0.6, 0.4), PriorPoint(0.7, 0.081), PriorPoint(0.9, 0.02)),
    0.1234,
    0.9456,
    (PriorPoint(0.0, 1.0), PriorPoint(1.0, 0.0312)),
)
MARRIED = CertifiedGroup("marital status", "married", 0.7342, 0.7, 0.03, (900, 900))
SALES = CertifiedGroup("job", "sales", 0.61, 0.58, 0.03, (900, 900))
CLERGY = CertifiedGroup("job", "clergy", None, 0.5, 0.4, (3, 1), "too few people")


def bounded(**more: object) -> Certified:
    return replace(example.certificates()[0], **more)  # type: ignore[arg-type]


def certified_audit(*certificates: Certified, reading: Reading | None = None) -> Audit:
    beard = reading or private(mlp=0.52)
    return replace(example.audit((beard,)), certificates=certificates)


# Of the secret key of 32 zero bytes.
KEY = "139e 3940 e64b 5491 7220 88d9 a0d7 4162"


@cache
def signed_audit() -> Audit:
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        key.write_text(to_base64(bytes(32)), encoding="utf-8")
        key.chmod(0o600)
        return sign(certified_audit(bounded()), Signer(key, "Ada"))


NOISE = {"law": "gaussian", "shape": [1], "scale": 1.0}
CHECKED = Claim("checked", "Ada", KEY)


def checked_audit(noise: object = None) -> tuple[Audit, str, Claim]:
    """An audit that names what a campaign runs, signed by a trusted key; and who stands for it,
    where the campaign's card has this noise."""
    graph = "1" * 64
    about = {"sha256": {"graph": graph}, "runs": runs_hash(graph, {}, NOISE)}
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        key.write_text(to_base64(bytes(32)), encoding="utf-8")
        key.chmod(0o600)
        audit = sign(replace(certified_audit(bounded()), release=about), Signer(key, "Ada"))
    manifest: Any = SimpleNamespace(release=SimpleNamespace(graph=graph), signing_key="")
    trusted = {KEY: "Ada of the institute"}
    card = {"input": {}, "noise": noise or NOISE}
    return audit, "beard", claim(json.loads(audit.to_json()), trusted, manifest, card)


def account(records: int, campaign: str = "0", owner: str = "A") -> Account:
    """A campaign that something was sent to, with a bound for so many records."""
    bound = Bound(attribute="beard", records=records, bound=0.7, blind=0.5)
    names = {"server": "https://x.org", "title": "T", "who": f"Lab {owner}", "owner": owner * 43}
    words = {"claim": "checked", "auditor": "Ada", "key": KEY}
    return Account(campaign=campaign * 32, private=["beard"], bounds=[bound], **names, **words)  # type: ignore[arg-type]


def whole(one: Certified, *others: Certified) -> str:
    """Everything that is said of a certificate."""
    everything = (one, *others)
    return " ".join(
        [
            certificate.participant_sentence(one, everything),
            *certificate.condition_sentences(one, everything),
        ]
    )


def repeated(**bounds: float | None) -> str:
    often = {int(k[1:]): bounded(bound=b, releases=int(k[1:])) for k, b in bounds.items()}
    return certificate.repeated_sentence({1: bounded(), **often})


def targeted(target: float) -> str:
    one = Certification({"private": ["beard"]}, {}, (bounded(),), 1.0, target)
    return certificate.target_sentence(one)


def held_to(audit: Audit, **limits: dict[str, float]) -> str:
    return gate(audit, **limits)[0].found  # type: ignore[arg-type]


def people(attack: str, value: float, chance: float, raw: float | None = None) -> str:
    key = "top_1" if attack in ("re-identification", "raw vector") else "balanced_accuracy"
    before = {} if raw is None else {key: example.figure(raw, 280, chance)}
    more = {"top_5": example.figure(0.82, 280, chance)} if raw is not None else {}
    found = {key: example.figure(value, 280, chance), **more}
    return sections.people_sentence(People(attack, "x", found, before))  # type: ignore[arg-type]


def undeclared(*values: float) -> str:
    tried = [example.reading(f"a{i}", "undeclared", {"mlp": v}, {}) for i, v in enumerate(values)]
    return sections.undeclared_sentence(replace(example.audit(), undeclared=tuple(tried)))


def fair(raw: float | None) -> str:
    def gap(value: float) -> dict[str, Figure]:
        return {"demographic_parity_difference": example.figure(value, 2000, 0.0)}

    return sections.fairness_sentence(
        Fairness("t", "g", gap(0.121), {} if raw is None else gap(raw))
    )


def grouped(*values: float) -> str:
    groups = tuple(Group("job", f"g{i}", example.figure(v)) for i, v in enumerate(values))
    return sections.found_groups_sentence(replace(private(), groups=groups))


def curve(*values: float) -> str:
    points = [CurvePoint(1000 * 2**i, example.figure(v)) for i, v in enumerate(values)]
    return words.curve_sentence(replace(private(), curve=tuple(points)))


def rebuilt(measure: str, value: float) -> str:
    return sections.rebuilt_sentence(Rebuilt(measure, value, 400), "texts")


def raw_vector(alone: float) -> str:
    figures = {"top_1": Figure(0.61, 0.551, 0.669, 280, 1 / 280)}
    figures["top_1_without_release"] = Figure(alone, alone, alone, 280, 1 / 280)
    return sections.people_sentence(People("raw vector", "cosine", figures))


def vectors_audit(recall: float) -> Audit:
    ends = recall - 0.018, recall + 0.018
    kept = Figure(recall, *ends, 1000, 0.004, better="higher", measure="recall@10")
    return replace(example.audit((private(),)), retrieval={"recall_at_10_raw_queries": kept})


def searched(recall: float) -> str:
    audit = vectors_audit(recall)
    assert ("Does search still work?" in render(audit)) and summary(audit)
    return " ".join(sections.search_sentences(audit))


def words_told(key: str) -> Rebuilt:
    figure = Figure(0.5, 0.401, 0.6, 400, 0.5)
    return Rebuilt("share", 0.5, 400, decoder="chosen words", figures={key: figure})


def inverted(key: str) -> str:
    f1 = Figure(0.5, 0.4, 0.6, 9, 0.1)
    return " ".join(
        words.inversion_sentences([Rebuilt("F1", 0.5, 9, decoder="words", figures={key: f1})])
    )


def knowing(value: float) -> str:
    tasks = {"task first": example.figure(0.7), "task t": example.figure(value)}
    return words.baseline_sentence(replace(private(), baselines=tasks))


def visible(value: float) -> str:
    least = {"smallest_visible": Figure(0.531, 0.531, 0.531, 2000, 0.5)}
    return said(replace(private(mlp=value), evidence=least))


RIGHT = "right 61 times in 100 (between 60 and 62)"


def laplace(epsilon: float) -> str:
    budget = LaplaceBudget.of(epsilon, "value", 4, 3)
    return budget.sentence({"sex": accuracy_bound(budget.record, 2)})


def remembered(perplexity: float, low: float) -> str:
    """The verdict on a plain model and one other; `low` is the lower end of how much less that
    one remembers."""
    plain_model, other_model = (
        SimpleNamespace(
            name=name,
            perplexity=Figure(at, at, at, 9, 0.0),
            exposure=Figure(bits, bits - 1, bits + 1, 9, 0.0),
        )
        for name, at, bits in (("plain", 50.0, 8.0), ("triplet", perplexity, 3.0))
    )
    with pytest.MonkeyPatch.context() as patch:
        less = Figure(5.0, low, 6.0, 9, 0.0)
        patch.setattr(language_verdict, "exposure_below", lambda *given: less)
        return language_verdict.verdict([plain_model, other_model])  # type: ignore[list-item]


def stay(epsilon: float) -> str:
    about = SimpleNamespace(epsilon=epsilon, stay=0.5, support=3.0, draws=2)
    return WordStatistics.sentence.fget(about)  # type: ignore[attr-defined]


def read_words(value: float) -> str:
    found = {"sex": example.figure(value)}
    return EpsilonFigures(8.0, found, {}, {"prior": example.figure(0.4)}, 0.5).sentence


def attached(audit: str | None) -> str:
    """What a participant reads of a campaign whose audit, if there is one, cannot be read."""
    release = SimpleNamespace(audit=audit)
    manifest = SimpleNamespace(
        **dict.fromkeys(("title", "purpose", "who", "method"), "x"),
        **{"labels": [], "private": ["beard"], "records_per_person": 1, "retention_days": 3},
        **{"mode": "sealed", "release": release},
        **{"counts_epsilon": None, "least_people": 1, "consent": ""},
    )
    campaign = SimpleNamespace(manifest=manifest, audit=None, fingerprint="ab", claim=Claim())
    return about(campaign, Standing("new"))  # type: ignore[arg-type]


def first_page() -> str:
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    return " ".join(text.split())


def judged(reading: Reading, *certificates: Certified, **more: object) -> str:
    """The verdict on an attribute, and where its goal comes from."""
    audit = replace(example.audit((reading,)), certificates=certificates, **more)  # type: ignore[arg-type]
    (one,) = verdicts(audit)
    return f"{one.sentence}. {one.goal.sentence}."


AT_60 = {"goals": {"beard": 0.6, "age": 0.1}}


def among(*values: float, mean: float = 0.52) -> Reading:
    """A private attribute that is read so well in groups of people."""
    groups = tuple(Group("job", f"g{i}", example.figure(v)) for i, v in enumerate(values))
    return replace(private(mlp=mean), groups=groups)


def for_task(value: float, raw: float | None, *groups: float) -> str:
    made = example.reading("t", "utility", {"mlp": value}, {} if raw is None else {"mlp": raw})
    made = replace(made, groups=among(*groups).groups)
    audit = example.audit((made,))
    (one,) = first_screen.attributes(audit)
    return " ".join([one.said, *one.worst])


def on_first_screen(reading: Reading) -> str:
    (one,) = first_screen.attributes(example.audit((reading,)))
    return " ".join(one.worst)


def compared(*points: tuple[float, float]) -> str:
    """What a comparison says first, of releases with these figures."""
    groups = [
        ComparedRelease(
            (made_rows.row(made_cells.cell(budget=float(i)), leak, use),),
            made_rows.figure(leak),
            made_rows.figure(use),
            None,
            "beard",
            "smiling",
        )
        for i, (leak, use) in enumerate(points, 1)
    ]
    return answer(groups, made_rows.figure(0.9)).said


def certified_at(target: float) -> str:
    one = bounded(bound=0.621)
    card = {"private": ["beard"]}
    (made,) = certificate_screen.judged(Certification(card, {}, (one,), 1.0, target))
    return made.verdict


def words_at(value: float) -> str:
    point = EpsilonFigures(8.0, {"sex": example.figure(value)}, {}, {}, 0.5)
    return epsilon_verdict(point, "sex", {})[1]


CASES = {
    "verdict_held": Case(
        "beard is held: the strongest attacker has 57.5 to 58.5 % balanced accuracy, within the"
        " goal of at most 60 %",
        lambda: judged(private(mlp=0.58, n=40_000), **AT_60),
        # The value is below the goal, and the interval is not.
        lambda: judged(private(mlp=0.58, n=900), **AT_60),
    ),
    "verdict_proved": Case(
        "beard is held, and certified: no attacker who sees one release of one record and knows"
        " nothing else about the person exceeds 58.0 % balanced accuracy on average over people"
        " (99 % confidence for this statement by itself), within the goal of at most 60 %",
        lambda: judged(private(mlp=0.58, n=900), bounded(bound=0.58), **AT_60),
        # A column leaves as well, of which the certificate does not speak.
        lambda: judged(
            private(mlp=0.58, n=900),
            bounded(bound=0.58),
            leaves=WhatLeaves(kept=("income",)),
            **AT_60,
        ),
    ),
    "verdict_risk": Case(
        "beard is at risk: the strongest attacker has 57.5 to 62.5 % balanced accuracy, and that"
        " may be more than the goal of at most 60 %",
        lambda: judged(private(mlp=0.6, n=1600), **AT_60),
        # No attacker can have more than the bound, whatever the interval.
        lambda: judged(private(mlp=0.6, n=1600), bounded(bound=0.595), **AT_60),
    ),
    "verdict_group": Case(
        "beard is at risk: it is held on average, but among people with job = g1 the strongest"
        " attacker has 67.9 to 72.1 % balanced accuracy, beyond the goal of at most 60 %",
        lambda: judged(among(0.5, 0.7), **AT_60),
        lambda: judged(among(0.5, 0.61), **AT_60),
    ),
    "verdict_value": Case(
        "beard is at risk: it is held on average, but the value a is told from the rest with 58.4"
        " to 64.8 % balanced accuracy, beyond the 56 % that the goal comes to there",
        lambda: judged(races(0.616, 0.5, 0.5, 0.5, 0.5, 0.5), goals={"beard": 4 / 15}),
        lambda: judged(races(0.56, 0.5, 0.5, 0.5, 0.5, 0.5), goals={"beard": 4 / 15}),
    ),
    "verdict_readable": Case(
        "beard is readable: the strongest attacker has 60.3 to 61.7 % balanced accuracy, beyond the"
        " goal of at most 60 %",
        lambda: judged(private(), **AT_60),
        lambda: judged(private(n=900), **AT_60),
    ),
    "verdict_unknown": Case(
        "beard was not measured: nothing is known of how well it is hidden",
        lambda: judged(example.unmeasured()),
        lambda: judged(private()),
    ),
    "goal_stated": Case(
        "The goal was stated with this audit",
        lambda: judged(private(), **AT_60),
        lambda: judged(private(), goals={"age": 0.1}),
    ),
    "goal_release": Case(
        "The goal is what the release itself was made for",
        lambda: judged(private(), release={"settings": {"target": 0.64}}),
        # Guessing is already right as often: nothing can have been made for that.
        lambda: judged(private(), release={"settings": {"target": 0.5}}),
    ),
    "goal_raw": Case(
        "Nobody stated a goal: this one is a fifth of the way from guessing to what is read"
        " from raw records",
        lambda: judged(example.BEARD),
        lambda: judged(private()),
    ),
    "goal_least": Case(
        "Nobody stated a goal: this one is a twentieth of the way from guessing to never being"
        " wrong, because hardly more is read from raw records",
        lambda: judged(replace(example.BEARD, raw=(other(0.55, "raw"),), best_raw=0)),
        lambda: judged(example.BEARD),
    ),
    "goal_certain": Case(
        "Nobody stated a goal: this one is a fifth of the way from guessing to never being wrong",
        lambda: judged(private()),
        lambda: judged(example.BEARD),
    ),
    "task_kept": Case(
        "Still useful for t: 75 % of what raw pictures give beyond guessing is kept (80.0 %"
        " balanced accuracy, raw 90.0 %)",
        lambda: for_task(0.8, 0.9),
        lambda: for_task(0.5, 0.9),
    ),
    "task_alone": Case(
        "For t, models reach 80.0 % balanced accuracy; guessing has 50.0 %",
        lambda: for_task(0.8, None),
        lambda: for_task(0.8, 0.9),
    ),
    "task_lost": Case(
        "No longer useful for t: models reach 48.8 to 53.2 % balanced accuracy, which cannot be"
        " told from guessing (50.0 %)",
        lambda: for_task(0.51, 0.9),
        lambda: for_task(0.8, 0.9),
    ),
    "worst_group": Case(
        "Most readable group: job = g1, 70.0 % (67.9 to 72.1) balanced accuracy, 2,000 records",
        lambda: on_first_screen(among(0.5, 0.7)),
        lambda: on_first_screen(among(0.8, 0.7)),
    ),
    "worst_served": Case(
        "Least served group: job = g0, 60.0 % (57.8 to 62.2) balanced accuracy, 2,000 records",
        lambda: for_task(0.8, 0.9, 0.6, 0.7),
        lambda: for_task(0.8, 0.9, 0.6, 0.55),
    ),
    "worst_value": Case(
        "Most readable value: a, told from the rest with 61.6 % (58.4 to 64.8) balanced accuracy;"
        " guessing has 50 %",
        lambda: on_first_screen(races(0.616, 0.5, 0.5, 0.5, 0.5, 0.5)),
        # Of two values, telling one from the rest is the attribute itself.
        lambda: on_first_screen(
            replace(private(), classes=races(0.616, 0.5, 0.5, 0.5, 0.5, 0.5).classes)
        ),
    ),
    "frontier_best": Case(
        "beard is held by 1 of 2 releases, against a goal of at most 58 % balanced accuracy. Of"
        " these, TIPRDC budget 1 is the most useful for smiling: 70.0 % (67.0 to 73.0), with beard"
        " at 53.0 % (50.0 to 56.0)",
        lambda: compared((0.53, 0.7), (0.8, 0.9)),
        # Its interval reaches beyond the goal: it is not known to be held.
        lambda: compared((0.56, 0.7), (0.8, 0.9)),
    ),
    "frontier_none": Case(
        "beard is held by none of 2 releases, against a goal of at most 58 % balanced accuracy. The"
        " nearest is TIPRDC budget 1, at 56.0 % (53.0 to 59.0)",
        lambda: compared((0.56, 0.7), (0.8, 0.9)),
        lambda: compared((0.53, 0.7), (0.8, 0.9)),
    ),
    "certificate_held": Case(
        "beard is held: the certified bound of 62.1 % balanced accuracy is within the goal of at"
        " most 64 %",
        lambda: certified_at(0.64),
        lambda: certified_at(0.62),
    ),
    "certificate_missed": Case(
        "beard is not certified at the goal: the bound of 62.1 % balanced accuracy is above the"
        " goal of at most 62 %, and an attacker may be anywhere below the bound",
        lambda: certified_at(0.62),
        lambda: certified_at(0.64),
    ),
    "words_verdict": Case(
        "At epsilon 8, sex is at risk: 57.8 to 62.2 % balanced accuracy, and the goal is at most"
        " 60 %",
        lambda: words_at(0.6),
        lambda: words_at(0.55),
    ),
    "tries": Case("90 times in 100", lambda: undeclared(0.9), lambda: undeclared(0.5)),
    "found": Case(
        f"from one released record the only attacker is {RIGHT} where both values are equally"
        " frequent",
        lambda: said(private()),
        # What leaves with the numbers reads more: the figure of the numbers alone is no headline.
        lambda: said(replace(private(), others=(other(0.8, "kept columns", columns=("job",)),))),
    ),
    "found_number": Case(
        "from one released record the best of 2 attackers explains 31 % of the differences between"
        " people",
        lambda: said(AGE),
        lambda: said(replace(AGE, released=(replace(AGE.worst, score=VOID),), best=0)),
    ),
    "between": Case(" (between 27 and 35)", lambda: said(AGE), lambda: said(replace(AGE, best=0))),
    "guessing": Case(
        "; guessing is right 50 times", lambda: said(private()), lambda: said(private(mlp=0.501))
    ),
    "guessing_number": Case(
        "; guessing explains none",
        lambda: said(AGE),
        lambda: said(replace(AGE, released=(example.guessed("ridge", 0.01),), best=0)),
    ),
    "as_guessing": Case(
        ", not distinguishable from guessing (17)",
        lambda: said(races(0.5, 0.5, 0.5, 0.5, 0.5, 0.5)),
        # COMPAS: the mean over six values is guessing, and one of them is read.
        lambda: said(races(0.616, 0.5, 0.5, 0.5, rare=2)),
    ),
    "as_guessing_number": Case(
        ", not distinguishable from guessing, which explains none",
        lambda: said(replace(AGE, released=(example.guessed("ridge", 0.01),), best=0)),
        lambda: said(AGE),
    ),
    "could_be": Case(
        ", but with 30 records tested it could also be 69",
        lambda: said(private(mlp=0.51, n=30)),
        lambda: said(private(mlp=0.501)),
    ),
    "visible": Case(
        "; a leak of 54 times in 100 or more would have been seen eight times in ten",
        lambda: visible(0.501),
        lambda: visible(0.61),
    ),
    "class_read": Case(
        "The value a is told from the rest 62 times in 100 (between 58 and 65); guessing is right"
        " 50 times",
        lambda: words.classes_sentence(races(0.616, 0.5, 0.5, 0.5, 0.5, 0.5)),
        lambda: words.classes_sentence(races(0.51, 0.5, 0.5, 0.5, 0.5, 0.5)),
    ),
    "classes_rare": Case(
        "Too few people to judge: e (18) and f (18)",
        lambda: said(races(0.5, 0.5, 0.5, 0.5, 0.5, 0.5, rare=2)),
        lambda: said(races(0.5, 0.5, 0.5, 0.5, 0.5, 0.5)),
    ),
    "classes_unknown": Case(
        "; whether single values can be told from the rest was not looked at",
        lambda: said(private(mlp=0.17, values=RACES)),
        lambda: said(races(0.5, 0.5, 0.5, 0.5, 0.5, 0.5)),
    ),
    "real_frequencies": Case(
        "At the real frequencies it is right 65 times in 100; always naming the most frequent"
        " value, 58",
        lambda: said(private()),
        lambda: said(replace(private(), released=(replace(private().worst, plain=VOID),))),
    ),
    "by_people": Case(
        "Where every person weighs the same, however many records they have, an attacker is right"
        " 57 times in 100 (between 53 and 61), balanced",
        lambda: said(
            replace(private(), evidence={"balanced_by_people": example.figure(0.57, 900)})
        ),
        lambda: said(private()),
    ),
    "misses": Case("; it misses by 8.14 on average", lambda: said(AGE), lambda: said(private())),
    "guessing_misses": Case(", guessing by 9.80", lambda: said(AGE), lambda: said(private())),
    "on_raw": Case(
        "On the raw records the best is right 97 times",
        lambda: said(example.BEARD),
        lambda: said(replace(example.BEARD, raw=(other(0.505, "raw"),), best_raw=0)),
    ),
    "nothing_hidden": Case(
        "On the raw records nothing beyond guessing was found either (51), so nothing was hidden",
        lambda: said(replace(example.BEARD, raw=(other(0.505, "raw"),), best_raw=0)),
        lambda: said(example.BEARD),
    ),
    "is_right": Case(
        "is right 97 times",
        lambda: said(example.BEARD),
        lambda: said(replace(example.BEARD, raw=())),
    ),
    "explains": Case("explains 62 %", lambda: said(example.AGE), lambda: said(AGE)),
    "task_found": Case(
        "a model trained on the release is right 88 times in 100 (between 86 and 90) where both"
        " values are equally frequent",
        lambda: words.utility_sentence(example.SMILING),
        lambda: words.utility_sentence(replace(example.SMILING, released=())),
    ),
    "task_found_number": Case(
        "a model trained on the release explains 55 % of the differences between people",
        lambda: words.utility_sentence(example.INCOME),
        lambda: words.utility_sentence(example.SMILING),
    ),
    "baseline": Case(
        "knowing only t is right 60 times", lambda: knowing(0.6), lambda: knowing(float("nan"))
    ),
    "too_few": Case(
        "not measured, because too few test records have a label, or all have the same.",
        lambda: said(example.unmeasured()),
        lambda: said(private()),
    ),
    "no_attacker": Case(
        "no attacker was run, so nothing is known about it.",
        lambda: said(replace(private(), released=())),
        lambda: said(private()),
    ),
    "no_model": Case(
        "no model was trained on the release, so nothing is known about it.",
        lambda: words.utility_sentence(replace(example.SMILING, released=())),
        lambda: words.utility_sentence(example.SMILING),
    ),
    "other_way": Case(
        "From 5 released records of a person together: right 80 times in 100 (between 78 and 82),"
        " balanced.",
        lambda: " ".join(
            words.louder(replace(private(), others=(other(0.8, "pooled", records=5),)))
        ),
        lambda: " ".join(
            words.louder(replace(private(), others=(other(0.61, "pooled", records=5),)))
        ),
    ),
    "right_other": Case(
        "right 80 times in 100 (between 78 and 82), balanced",
        lambda: words.other_sentence(other(0.8, "averaged", releases=4)),
        lambda: words.other_sentence(other(0.8, "averaged", releases=4, score=VOID)),
    ),
    "highest": Case(
        "The highest on the test part, with a wider interval because it was picked for being the"
        " highest: right 62 times in 100 (between 58 and 66), balanced.",
        lambda: render(example.full()),
        lambda: render(example.audit()),
    ),
    "in_game": Case(
        "the method's own adversary is right 52 times in 100, the strongest one trained afterwards"
        " 61 times (balanced accuracy).",
        lambda: words.in_game_sentence(0.523, "balanced", example.figure(0.611)),
        lambda: words.in_game_sentence(0.523, "balanced", None),
    ),
    "in_game_alone": Case(
        "the method's own adversary is right 52 times in 100 (balanced accuracy); not measured"
        " afterwards.",
        lambda: words.in_game_sentence(0.523, "balanced", None),
        lambda: words.in_game_sentence(0.523, "balanced", example.figure(0.611)),
    ),
    "group_apart": Case(
        "It is read best among job = g1 (71.0 %) and least among job = g0 (55.0 %), balanced within"
        " each group.",
        lambda: grouped(0.55, 0.71),
        lambda: grouped(0.55, 0.56),
    ),
    "groups_alike": Case(
        "The intervals of the groups read most and least overlap, so they may be read alike.",
        lambda: grouped(0.55, 0.56),
        lambda: grouped(0.55, 0.71),
    ),
    "sure": Case(
        "For 2.1 % of the records (1.4 to 2.8) the strongest attacker is right and at least nine"
        " tenths sure.",
        lambda: sections.sure_sentence(
            replace(private(), risk=Risk((0.0, 1.0), (9,), example.figure(0.021, 2000, 0.0)))
        ),
        lambda: sections.sure_sentence(replace(private(), risk=Risk((0.0, 1.0), (0,), VOID))),
    ),
    "still_learning": Case(
        "From 2,000 to 4,000 records the strongest attacker gained 5.0 points: with more records it"
        " may read more.",
        lambda: curve(0.55, 0.60, 0.65),
        lambda: curve(0.55, 0.65, 0.65),
    ),
    "learned_out": Case(
        "From 2,000 to 4,000 records the strongest attacker gained nothing that could be measured.",
        lambda: curve(0.55, 0.65, 0.65),
        lambda: curve(0.55, 0.60, 0.65),
    ),
    "large": Case(
        "in 100, balanced",
        lambda: str(words.score(private())),
        lambda: str(words.score(example.unmeasured())),
    ),
    "large_value": Case(
        "in 100, balanced: a against the rest",
        lambda: str(words.score(races(0.616, 0.5, 0.5, 0.5, 0.5, 0.5))),
        lambda: str(words.score(races(0.51, 0.5, 0.5, 0.5, 0.5, 0.5))),
    ),
    "large_number": Case(
        "% explained", lambda: str(words.score(AGE)), lambda: str(words.score(private()))
    ),
    "looks": Case(
        "The test part of this data had been looked at 12 times before: choosing among what was"
        " seen makes the best look better than it is.",
        lambda: render(replace(example.audit(), looks=12)),
        lambda: render(replace(example.audit(), looks=0)),
    ),
    "rebuilt": Case(
        "Words: 0.23, over 400 test texts.",
        lambda: rebuilt("words", 0.231),
        lambda: rebuilt("w", float("nan")),
    ),
    "rebuilt_share": Case(
        "Share of words: 23 in 100, over 400 test texts.",
        lambda: rebuilt("share of words", 0.231),
        lambda: rebuilt("share of variance explained", -0.2),
    ),
    "rebuilt_psnr": Case(
        "PSNR in dB: 14.2, over 400 test texts. Higher is closer to the original; compressed"
        " pictures reach 30 to 50 dB.",
        lambda: rebuilt("PSNR in dB", 14.23),
        lambda: rebuilt("PSNR in dB", float("inf")),
    ),
    "rebuilt_worse": Case(
        "Share of variance explained: below 0, over 400 test texts: worse than the same answer for"
        " every record.",
        lambda: rebuilt("share of variance explained", -0.2),
        lambda: rebuilt("share of variance explained", 0.2),
    ),
    "found_again": Case(
        "Of 280 people, one other record is enough to find the right person first for 61 % (between"
        " 55 and 67); guessing finds 0.4 %",
        lambda: people("re-identification", 0.61, 1 / 280),
        lambda: people("re-identification", float("nan"), 1 / 280),
    ),
    "first_five": Case(
        "; 82 % are among the first five",
        lambda: people("re-identification", 0.61, 1 / 280, 0.9),
        lambda: people("re-identification", 0.61, 1 / 280),
    ),
    "member": Case(
        "An attacker who guesses whether a person was in the training data is right 70 times in 100"
        " (between 64 and 76) where members and others are equally frequent",
        lambda: people("membership", 0.7, 0.5),
        lambda: people("membership", float("nan"), 0.5),
    ),
    "from_raw": Case(
        "; from raw records it is 90 %",
        lambda: people("re-identification", 0.61, 1 / 280, 0.9),
        lambda: people("re-identification", 0.61, 1 / 280),
    ),
    "undeclared_none": Case(
        "2 other attributes were tried, and none could be told from guessing by the small attackers"
        " used for it.",
        lambda: undeclared(0.5, 0.51),
        lambda: undeclared(0.5, 0.7),
    ),
    "undeclared_some": Case(
        "Of 2 other attributes, 1 can be read beyond guessing: above all a1 (70 times in 100),"
        " balanced.",
        lambda: undeclared(0.5, 0.7),
        lambda: undeclared(0.5, 0.51),
    ),
    "fair_gap": Case(
        "it gives an answer up to 12.1 points more often in one group than in another",
        lambda: fair(None),
        lambda: sections.fairness_sentence(Fairness("t", "g", {}, {})),
    ),
    "fair_raw": Case(" (on raw data 8.3)", lambda: fair(0.083), lambda: fair(None)),
    "raw_vector_found": Case(
        "Whoever holds the raw vector of one of 280 records finds its release first for 61 %"
        " (between 55 and 67); guessing finds 0.4 %",
        lambda: people("raw vector", 0.61, 1 / 280),
        lambda: people("raw vector", float("nan"), 1 / 280),
    ),
    "raw_vector_alone": Case(
        "; without the release itself for 40 %",
        lambda: raw_vector(0.4),
        lambda: raw_vector(float("nan")),
    ),
    "member_by_similarity": Case(
        "An attacker who looks only at how alike vectors are is right 70 times in 100 (between 64"
        " and 76) about who was in the training data, where members and others are equally"
        " frequent",
        lambda: people("membership by similarity", 0.7, 0.5),
        lambda: people("membership", 0.7, 0.5),
    ),
    "search_kept": Case(
        "Of the 10 records that a search of raw vectors finds, a search of released ones finds 81 %"
        " (between 79 and 83), with raw queries; a ranking at random finds 0.4 %",
        lambda: searched(0.81),
        lambda: searched(float("nan")),
    ),
    "word_found": Case(
        "Whether \u201calice\u201d was in it is told right 50 times in 100 (between 40 and 60)"
        " where texts with and without it are equally frequent",
        lambda: " ".join(sections.word_sentences(words_told("word alice"))),
        lambda: " ".join(sections.word_sentences(words_told("f1_words"))),
    ),
    "gate_figure": Case(
        "recall@10 81.0 of 100 (79.2 to 82.8, n = 1,000)",
        lambda: held_to(vectors_audit(0.81), min_figure={"recall_at_10_raw_queries": 0.5}),
        lambda: held_to(vectors_audit(float("nan")), min_figure={"recall_at_10_raw_queries": 0.5}),
    ),
    "inverted": Case(
        "Words: told with an F1 of 0.500 (0.400 to 0.600); the same words for every text give"
        " 0.100.",
        lambda: inverted("f1_words"),
        lambda: inverted("psnr"),
    ),
    "certified": Case(
        "No adversary who sees one release of one record and knows nothing else about the person"
        " can guess beard with a balanced accuracy above 64.5 % on average over people;"
        " guessing blindly has 50.0 % (99 % confidence for"
        " this statement by itself; claimed by whoever ran this audit, checked by nobody else).",
        lambda: render(certified_audit(bounded())),
        # Certified at 64.5, found at 72: the claim is not repeated.
        lambda: render(certified_audit(bounded(), reading=private(mlp=0.72))),
    ),
    "seen_record": Case(
        "one release of one record",
        lambda: bound_sentence(bounded()),
        lambda: bound_sentence(bounded(records=5)),
    ),
    "seen_releases": Case(
        "4 releases of the same record, each with fresh noise,",
        lambda: bound_sentence(bounded(releases=4)),
        lambda: bound_sentence(bounded()),
    ),
    "seen_records": Case(
        "5 records of a person, each released once,",
        lambda: bound_sentence(bounded(records=5)),
        lambda: bound_sentence(bounded(per="person", records=5)),
    ),
    "seen_person": Case(
        "one release made of all records of a person",
        lambda: bound_sentence(bounded(per="person")),
        lambda: bound_sentence(bounded(records=5)),
    ),
    "seen_person_of": Case(
        "one release made of 5 records of a person",
        lambda: bound_sentence(bounded(per="person", records=5)),
        lambda: bound_sentence(bounded(records=5)),
    ),
    "and_knows": Case(
        " and knows income",
        lambda: bound_sentence(bounded(given=("income",))),
        lambda: bound_sentence(bounded()),
    ),
    "knows_nothing": Case(
        " and knows nothing else about the person",
        lambda: bound_sentence(bounded()),
        lambda: bound_sentence(bounded(given=("income",))),
    ),
    "sure_together": Case(
        "99 % confidence for all 49 statements together",
        lambda: bound_sentence(bounded(statements=49)),
        # The lowest of 49 cells, each at 99 % by itself, fails more often than one time in 100.
        lambda: bound_sentence(bounded()),
    ),
    "sure_alone": Case(
        "(99 % confidence; ",
        lambda: bound_sentence(bounded(statements=1)),
        lambda: bound_sentence(bounded(statements=0)),
    ),
    "sure_each": Case(
        "99 % confidence for this statement by itself",
        lambda: bound_sentence(bounded(statements=0)),
        lambda: bound_sentence(bounded(statements=49)),
    ),
    "claimed": Case(
        "claimed by the campaign's owner, checked by nobody else",
        lambda: hidden(certified_audit(bounded()), "beard"),
        lambda: hidden(signed_audit(), "beard"),
    ),
    "checked": Case(
        f"checked by Ada of the institute, key {KEY}",
        lambda: hidden(*checked_audit()),
        lambda: hidden(signed_audit(), "beard"),
    ),
    "signed_stranger": Case(
        f"claimed by the campaign's owner; signed in the name of Ada with key {KEY}, which you "
        "have not said to trust",
        lambda: hidden(signed_audit(), "beard"),
        lambda: hidden(*checked_audit()),
    ),
    "signed_unbound": Case(
        f"claimed by the campaign's owner; Ada of the institute, key {KEY}, signed it for another "
        "encoding or noise, or without naming them",
        lambda: hidden(*checked_audit(noise={"law": "gaussian", "shape": [1], "scale": 0.001})),
        lambda: hidden(*checked_audit()),
    ),
    "owner_claims": Case(
        "The campaign's owner claims, and nobody whose key you trust has checked:",
        lambda: hidden(certified_audit(bounded()), "beard"),
        lambda: hidden(*checked_audit()),
    ),
    "claimed_group": Case(
        "Among people with marital status = married the claim is a balanced accuracy of at most "
        "73.5 % for beard, the highest of all groups.",
        lambda: hidden(certified_audit(bounded(groups=(SALES, MARRIED, CLERGY))), "beard"),
        lambda: hidden(certified_audit(bounded()), "beard"),
    ),
    "records_claimed": Case(
        "Up to 2 records per person. A bound for 5 of them together is claimed, and nobody whose "
        "key you trust has checked it.",
        lambda: how_many(2, certified_audit(bounded(), bounded(records=5)), ["beard"]),
        lambda: how_many(2, certified_audit(bounded(), bounded(records=5)), ["beard"], CHECKED),
    ),
    "sent_bound": Case(
        "beard: no adversary who sees 5 records of a person, each released once, and knows nothing "
        "else about the person can guess it with a balanced accuracy above 70.0 % on average over "
        f"people; guessing blindly has 50.0 % (checked by Ada, key {KEY}).",
        lambda: known(account(5), "beard", 3),
        lambda: known(account(5), "beard", 6),
    ),
    "sent_uncertified": Case(
        "beard: not certified for 6 records of one person.",
        lambda: known(account(5), "beard", 6),
        lambda: known(account(5), "beard", 5),
    ),
    "sent_owner": Case(
        "3 records in 2 campaigns of this owner: nothing is certified for them together.",
        lambda: ledger([Entry(account(5), (), 0, 2), Entry(account(1, "1"), (), 0, 1)]),
        lambda: ledger([Entry(account(5), (), 0, 2), Entry(account(1, "1", "B"), (), 0, 1)]),
    ),
    "sent_owners": Case(
        "3 records to 2 owners: if they put together what they have, nothing is certified.",
        lambda: ledger([Entry(account(5), (), 0, 2), Entry(account(1, "1", "B"), (), 0, 1)]),
        lambda: ledger([Entry(account(5), (), 0, 2)]),
    ),
    "signed": Case(
        f"signed in the name of Ada with key {KEY}",
        lambda: summary(signed_audit()),
        lambda: summary(replace(signed_audit(), seconds=1.0)),
    ),
    "changed": Case(
        "signed by somebody and changed since: do not rely on it",
        lambda: render(replace(signed_audit(), seconds=1.0)),
        lambda: render(signed_audit()),
    ),
    "certified_prior": Case(
        "At the real frequencies such an adversary is right at most 66.0 % of the time; always"
        " naming the most frequent value is right 52.0 %.",
        lambda: whole(bounded()),
        lambda: whole(bounded(at_prior=None)),
    ),
    "certified_no_prior": Case(
        "At the real frequencies nothing is certified; always naming the most frequent value is"
        " right 52.0 %.",
        lambda: whole(bounded(at_prior=None)),
        lambda: whole(bounded()),
    ),
    "certified_tail": Case(
        "This is an average over releases: starting from equally likely values, at most 8.1 % of"
        " the releases of people of any one value give that value a probability of 70 % or more.",
        lambda: whole(bounded(priors=TAIL)),
        lambda: whole(bounded()),
    ),
    "certified_average": Case(
        "This is an average over people and releases: after some releases an adversary can be"
        " surer, and how much surer is not certified.",
        lambda: whole(surer()[0]),
        lambda: whole(bounded(priors=TAIL)),
    ),
    "certified_one_record": Case(
        "For several records of the same person together nothing is certified.",
        lambda: whole(two_records()[0]),
        lambda: whole(bounded(), bounded(records=5, bound=0.7)),
    ),
    "certified_records": Case(
        "For 5 records of a person together: a balanced accuracy of at most 70.0 %. For more than 5"
        " nothing is certified.",
        lambda: whole(bounded(), bounded(records=5, bound=0.7)),
        lambda: whole(bounded(), bounded(records=5, bound=None)),
    ),
    "certified_per_person": Case(
        "For one release made of all records of a person: a balanced accuracy of at most 70.0 %.",
        lambda: whole(bounded(), bounded(per="person", bound=0.7)),
        lambda: whole(bounded(), bounded(records=5, bound=0.7)),
    ),
    "certified_by_records": Case(
        "Where every record weighs the same, however many a person has: a balanced accuracy of at"
        " most 72.0 %.",
        # Certified at 64.5 with people weighing the same, found at 72 with records doing so.
        lambda: whole(bounded(), bounded(weighing="records", bound=0.72)),
        lambda: whole(bounded(), bounded(weighing="records", bound=None)),
    ),
    "certified_given": Case(
        "With income known as well: a balanced accuracy of at most 68.0 % on average; income alone"
        " gives 60.1 %.",
        lambda: whole(bounded(), bounded(given=("income",), bound=0.68, alone=0.601)),
        lambda: whole(bounded(), bounded(given=("income",), bound=None, alone=0.601)),
    ),
    "certified_group": Case(
        "Among people with marital status = married, the worst certified group, no adversary who"
        " knows only that beside the release can guess beard with a balanced accuracy above"
        " 73.5 %.",
        lambda: whole(bounded(groups=(SALES, MARRIED, CLERGY))),
        lambda: whole(bounded(groups=(CLERGY,))),
    ),
    "uncertified_groups": Case(
        "Not certified, most for too few people: clergy (job).",
        lambda: whole(bounded(groups=(SALES, MARRIED, CLERGY))),
        lambda: whole(bounded(groups=(SALES, MARRIED))),
    ),
    "no_groups": Case(
        "For people of whom something is known beside the release (their job, their marital status)"
        " nothing is certified: knowledge and release together can tell more than either.",
        lambda: whole(known_beside()[0]),
        lambda: whole(bounded(groups=(SALES,))),
    ),
    "certified_data_free": Case(
        "From the noise alone, whoever the people are: a balanced accuracy of at most 70.1 %.",
        lambda: whole(bounded(data_free=0.7001)),
        lambda: whole(bounded()),
    ),
    "certified_leakage": Case(
        "Maximal leakage 0.124 bits, Bayes security 0.945.",
        lambda: whole(bounded(priors=TAIL)),
        lambda: whole(bounded()),
    ),
    "certified_epsilon": Case(
        "Of this attribute, any two values are (1, 0.0312)-indistinguishable; this is no"
        " differential privacy of the record.",
        lambda: whole(bounded(priors=TAIL)),
        lambda: whole(bounded(priors=replace(TAIL, epsilon_delta=(PriorPoint(1.0, 1.0),)))),
    ),
    "computer": Case(
        "It holds whatever computer the adversary has if noise is truly random; where noise is made"
        " from a key, unless the pseudo-random function is broken.",
        lambda: whole(bounded()),
        lambda: whole(bounded(bound=None, reason="no noise")),
    ),
    "scope": Case(
        "It is about beard of people like the 2,000 test people and about nothing else that a"
        " record shows.",
        lambda: whole(bounded()),
        lambda: whole(bounded(bound=None, reason="no noise")),
    ),
    "not_certified": Case(
        "Not certified: no noise.",
        lambda: whole(bounded(bound=None, reason="no noise")),
        lambda: whole(bounded()),
    ),
    "beaten": Case(
        "A certificate claims a balanced accuracy of at most 64.5 %, and an attacker did better"
        " than that, so it does not hold for this release: do not rely on it.",
        lambda: render(certified_audit(bounded(), reading=private(mlp=0.72))),
        lambda: render(certified_audit(bounded())),
    ),
    "repeated": Case(
        "Balanced accuracy with several releases of the same record, each with fresh noise: 4"
        " releases, at most 70.0 %; 16 releases, not certified.",
        lambda: repeated(k4=0.7, k16=None),
        lambda: repeated(),
    ),
    "repeated_part": Case(
        "4 releases, at most 70.0 %", lambda: repeated(k4=0.7), lambda: repeated(k4=None)
    ),
    "repeated_nothing": Case(
        "4 releases, not certified", lambda: repeated(k4=None), lambda: repeated(k4=0.7)
    ),
    "target_met": Case(
        "Noise of 0.400 was chosen on the select part, for a bound of 65.0 % on balanced"
        " accuracy: the test part meets it.",
        lambda: targeted(0.65),
        lambda: targeted(0.64),
    ),
    "target_missed": Case(
        "Noise of 0.400 was chosen on the select part, for a bound of 64.0 % on balanced"
        " accuracy, and the test part does NOT meet it. The figures above are what holds; no"
        " other noise was tried on the test part.",
        lambda: targeted(0.64),
        lambda: targeted(0.65),
    ),
    "gate_found": Case(
        "61.0 in 100 (60.3 to 61.7, n = 20,000)",
        lambda: held_to(example.audit((private(),)), max_accuracy={"beard": 0.7}),
        lambda: held_to(example.audit((example.unmeasured(),)), max_accuracy={"beard": 0.7}),
    ),
    "gate_beaten": Case(
        "an attacker reads 72.0 in 100, balanced (71.3 to 72.7), which is above",
        lambda: held_to(
            certified_audit(bounded(), reading=private(mlp=0.72)), max_certified={"beard": 0.7}
        ),
        lambda: held_to(certified_audit(bounded()), max_certified={"beard": 0.7}),
    ),
    "gate_certified": Case(
        "certified, no adversary who sees one release of one record and knows nothing else about"
        " the person above 64.5 in 100, balanced (99 % confidence for this statement by itself,"
        " 2,000 people)",
        lambda: held_to(certified_audit(bounded()), max_certified={"beard": 0.7}),
        lambda: held_to(certified_audit(bounded(bound=None)), max_certified={"beard": 0.7}),
    ),
    "no_audit": Case(
        "How well it is hidden is not known: the campaign's owner has attached no audit.",
        lambda: hidden(None, "beard"),
        lambda: hidden(certified_audit(bounded()), "beard"),
    ),
    "unread_audit": Case(
        "How well it is hidden is not known: the audit that the campaign's owner attached cannot be"
        " read here.",
        lambda: attached("ab12"),
        lambda: attached(None),
    ),
    "unmeasured": Case(
        "No attacker's success was measured.",
        lambda: hidden(example.audit((example.SMILING,)), "beard"),
        lambda: hidden(certified_audit(bounded()), "beard"),
    ),
    "uncertified": Case(
        "Not certified: a stronger attacker may read more.",
        lambda: hidden(example.audit(), "beard"),
        lambda: hidden(certified_audit(bounded()), "beard"),
    ),
    "records_once": Case(
        "Once per person",
        lambda: how_many(1, None, ["beard"]),
        lambda: how_many(2, certified_audit(bounded()), ["beard"]),
    ),
    "records_uncertified": Case(
        "Up to 2 records per person. The figures are about one; nothing is known of several"
        " together, and they can tell much more.",
        lambda: how_many(
            2, certified_audit(replace(two_records()[0], attribute="beard")), ["beard"]
        ),
        lambda: how_many(2, certified_audit(bounded(), bounded(records=2, bound=0.99)), ["beard"]),
    ),
    "records_certified": Case(
        "Up to 2 records per person, which the certificate for 5 records covers.",
        lambda: how_many(2, certified_audit(bounded(), bounded(records=5)), ["beard"], CHECKED),
        lambda: how_many(6, certified_audit(bounded(), bounded(records=5)), ["beard"], CHECKED),
    ),
    "dp_noise": Case(
        "Laplace noise of 1.11 times its range on each of 4 values is epsilon 0.9 for a value, and"
        " 3 x 0.9 = 2.7 for the record, whose sensitivity is 3.",
        lambda: laplace(0.9),
        lambda: laplace(0.8),
    ),
    "dp_bound": Case(
        "By this alone, nobody who sees one release of one record reads sex in more than 93.8 % of"
        " balanced guesses.",
        lambda: laplace(0.9),
        lambda: laplace(90.0),
    ),
    "dp_part": Case(
        "sex in more than 93.8 % of balanced guesses", lambda: laplace(0.9), lambda: laplace(90.0)
    ),
    "dp_unbounded": Case(
        "So large an epsilon bounds no adversary: what protects here, if anything, is only what"
        " attackers fail to do.",
        lambda: laplace(90.0),
        lambda: laplace(0.9),
    ),
    "dp_more": Case(
        "Every further release of the same record costs as much again, and so does every further"
        " record of the same person.",
        lambda: laplace(0.9),
        lambda: laplace(90.0),
    ),
    "lm_equal": Case(
        "At equal perplexity (50.5 against 50.0, at most 3 % above) triplet has a mean exposure of"
        " 3.0 [2.0, 4.0] bits against the plain model's 8.0 [7.0, 9.0]: canary by canary 5.0 bits"
        " lower [4.0, 6.0]",
        lambda: remembered(50.5, 4.0),
        lambda: remembered(80.0, 4.0),
    ),
    "lm_less": Case(
        ", beyond the interval. So do 1 of 1 regularised models.",
        lambda: remembered(50.5, 4.0),
        lambda: remembered(50.5, -1.0),
    ),
    "lm_no_less": Case(
        ", which is within the interval. Of 1 models at equal perplexity none has a mean exposure"
        " that is lower beyond the interval: at equal use, no regulariser was shown to remember"
        " less.",
        lambda: remembered(50.5, -1.0),
        lambda: remembered(50.5, 4.0),
    ),
    "lm_none_near": Case(
        "No regularised model has a perplexity within 3 % of the plain model's (triplet comes"
        " closest, 60 % above): none can be compared at equal use.",
        lambda: remembered(80.0, 4.0),
        lambda: remembered(50.5, 4.0),
    ),
    "lm_author": Case(
        "DP-SGD's epsilon of 3.00 at delta 1e-05 is about one row of tokens. Of an author as a"
        " whole, who has up to 40 rows here, it promises nothing.",
        lambda: author_guarantee({"epsilon": 3.0, "delta": 1e-5, "most_rows_of_an_author": 40}),
        lambda: author_guarantee({"epsilon": 0.1, "delta": 1e-9, "most_rows_of_an_author": 2}),
    ),
    "words_stay": Case(
        "At epsilon 10, 50% of words stay, and one becomes 3 in 2 draws.",
        lambda: stay(10.0),
        lambda: stay(12.0),
    ),
    "words_read": Case(
        "epsilon 8: sex 61.0% (balanced); 50.0% of words stay, 40.0% are recovered.",
        lambda: read_words(0.61),
        lambda: read_words(0.72),
    ),
    "check_same_person": Case(
        "10 records are exact copies of another record of the same person, and count more than "
        "once.",
        lambda: checked(pd.concat([table_rows(), table_rows()[:10]])),
        lambda: checked(
            pd.concat([table_rows(), table_rows()[:10].assign(person=range(5000, 5010))])
        ),
    ),
    "check_joined": Case(
        "Every record is there 2 times or a multiple of it, under different people: the file seems "
        "to have been joined with itself, so the parts share people, and 632 of 800 test records "
        "are known from other parts. Remove the copies.",
        lambda: checked(pd.concat([table_rows(), table_rows().assign(person=range(5000, 7000))])),
        lambda: checked(
            pd.concat([table_rows(), table_rows()[:300].assign(person=range(5000, 5300))])
        ),
    ),
    "check_chance": Case(
        "1,992 records are the same as one of another person, 399 of 400 test records as one of "
        "another part: no more than records as coarse as these coincide by chance.",
        lambda: checked(table_rows().assign(height=table_rows().height.round(-1))),
        lambda: checked(table_rows()),
    ),
    "check_copies": Case(
        "600 records are exact copies of a record of another person, and 85 of 460 test records "
        "are known from other parts: the parts share people. Remove the copies, or name the column "
        "that tells people apart (person = ...  in a --schema file).",
        lambda: checked(
            pd.concat([table_rows(), table_rows()[:300].assign(person=range(5000, 5300))])
        ),
        lambda: checked(table_rows()),
    ),
    "check_near": Case(
        "20 pairs of pictures of different people are nearly the same photograph; 4 of 84 test "
        "pictures are nearly one of another part.",
        lambda: checked_pictures(20),
        lambda: checked_pictures(0),
    ),
    "check_tells": Case(
        "The column 'town' of the input alone tells the task 'income' (99.9 % balanced)",
        lambda: checked(telling(0.001)),
        lambda: checked(telling(0.2)),
    ),
    "check_parts": Case(
        "Some parts have fewer than 30 people (select 20): figures are of these people, and say "
        "little about others.",
        lambda: checked(table_rows(200)),
        lambda: checked(table_rows()),
    ),
    "check_points": Case(
        ": its balanced accuracy is known to about +-14 points",
        lambda: checked(table_rows(300)),
        lambda: checked(table_rows()),
    ),
    "readme_demo": Case(
        "A report: from one picture released by Hedge the best of 6 attackers reads beard 51 times"
        " in 100, balanced, where guessing is right 50 times, and nobody who knows nothing else"
        " is claimed to read it above 65 % on average over people, or above 73 % in the worst"
        " certified group; hat is"
        " read 94 times",
        lambda: first_page(),
        lambda: render(example.full()),
    ),
    "readme_gap": Case(
        "At full size, attackers trained afterwards read beard from such a release 79 times in 100"
        " where the method's own adversary claims 50, both balanced",
        lambda: first_page(),
        lambda: render(example.full()),
    ),
}


# --- data with something wrong about it -----------------------------------------------------------


def table_rows(n: int = 2000) -> pd.DataFrame:
    """Rows of which no two are alike: `sex` to hide, `income` to keep."""
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "person": np.arange(n),
            "height": random.normal(170, 10, n),
            "town": random.choice(["A", "B", "C"], n),
            "sex": random.choice(["f", "m"], n),
            "income": random.integers(0, 2, n),
        }
    )


def telling(wrong: float) -> pd.DataFrame:
    """The same where the town says whether the income is high, but for a share."""
    frame = table_rows()
    other = np.arange(len(frame)) < wrong * len(frame)
    return frame.assign(town=np.where((frame.income == 1) ^ other, "A", "B"))


def checked(frame: pd.DataFrame) -> str:
    data = load(frame.reset_index(drop=True))
    return " ".join(check.sentence for check in check_data(data, ["sex"], ["income"]))


@cache
def checked_pictures(copies: int) -> str:
    """Smooth random pictures, of which so many come back a little brighter under other people."""
    random = np.random.default_rng(0)
    coarse = random.integers(0, 200, (400, 3, 8, 8))
    pictures = coarse.repeat(4, 2).repeat(4, 3).astype(np.uint8)
    pictures = np.concatenate([pictures, pictures[:copies] + 6])
    sex = np.arange(len(pictures)) % 2
    data = Dataset.from_arrays(pictures, {"sex": sex}, person=np.arange(len(pictures)))
    return " ".join(check.sentence for check in check_data(data, ["sex"]))


def plain(text: str) -> str:
    """What a page says, without what keeps a sign on its line or stands for a character."""
    return text.replace("\u00a0", " ").replace("&#39;", "'")


def test_every_sentence_has_a_case() -> None:
    assert set(CASES) == set(table())


@pytest.mark.parametrize("name", CASES)
def test_a_sentence_is_printed_where_it_is_true_only(name: str) -> None:
    case, pattern = CASES[name], table()[name].pattern
    assert pattern.search(case.text), "the case is about another sentence"
    assert case.text in plain(case.true())
    assert case.text not in plain(case.false())


# Parts of a sentence that stand behind one that says what its figure counts, or inside it.
ATTACHED = {
    "tries", "guessing", "as_guessing", "could_be", "visible", "class_read", "on_raw", "is_right",
    "nothing_hidden", "baseline", "other_way", "highest", "in_game", "in_game_alone",
    "undeclared_none", "repeated_part", "still_learning", "learned_out", "certified_tail",
    "certified_leakage", "certified_epsilon", "gate_found", "dp_bound",
}  # fmt: skip


def test_every_figure_says_what_it_counts() -> None:
    for name, sentence in table().items():
        if sentence.about == "balanced" and name not in ATTACHED:
            assert re.search("[Bb]alanced|equally frequent", sentence.text), name
        if sentence.about == "real frequencies" and "frequent value" in sentence.text:
            assert sentence.text.startswith("At the real frequencies"), name
    assert {n for n, sentence in table().items() if sentence.about == "balanced"} >= ATTACHED


def test_knowledge_and_release_together_tell_more_than_the_average_says() -> None:
    one, married = known_beside()
    assert one.bound is not None and one.bound < 0.56 and married > 0.8
    text = whole(one)
    assert "what is known anyway" not in text and "adds to" not in text
    assert "nothing is certified: knowledge and release together" in text
    group = CertifiedGroup("marital status", "married", 0.87, 0.84, 0.03, (2000, 2000))
    first = certificate.participant_sentence(replace(one, groups=(group,)))
    assert first.startswith("Among people with marital status = married"), "the worst group first"


def test_two_records_with_equal_laws_and_opposite_coupling() -> None:
    one, both = two_records()
    assert one.bound is not None and one.bound < 0.56 and both > 0.95
    assert "nothing is certified" in whole(one) and "a little more" not in whole(one)
    assert "can tell much more" in how_many(2, certified_audit(replace(one, attribute="b")), ["b"])


def test_always_naming_the_most_frequent_value_stands_beside_the_balanced_bound() -> None:
    one = one_number(share=2 / 3)
    assert one.bound is not None and one.bound < 0.62
    text = whole(one)
    assert "with a balanced accuracy above" in text
    most = max(one.prior)
    assert f"always naming the most frequent value is right {100 * most:.1f} %" in text
    assert one.bound < most, "by the balanced figure alone a constant answer would beat the bound"


def test_a_curve_of_bounds_lies_nowhere_below_what_is_certified() -> None:
    priors = replace(TAIL, roc=(PriorPoint(0.1, 0.4), PriorPoint(0.5, 0.8)))
    drawn = certificate_plots.roc_plot(priors)
    (steps,) = re.findall(r'class="curve" d="M([^"]+)"', drawn)
    places = [tuple(map(float, place.split())) for place in steps.split("L")]
    for (x, y), (next_x, next_y) in itertools.pairwise(places):
        assert x == next_x or y == next_y, "a chord lies below a concave bound"
    assert places[0][1] == places[1][1], "left of the first point its bound holds"


def test_people_and_records_are_compared_with_their_like() -> None:
    reading = private(mlp=0.72)
    assert certificate.is_beaten(bounded(), reading), "nobody knows how well people are read"
    weighed = replace(reading, evidence={"balanced_by_people": example.figure(0.57)})
    assert not certificate.is_beaten(bounded(), weighed)
    assert certificate.is_beaten(bounded(weighing="records"), weighed)


def test_an_average_is_not_said_of_everyone() -> None:
    one, often = surer()
    assert one.bound is not None and one.bound < 0.56 and often > 0.019
    text = whole(one)
    assert "odds" not in text and " to 4" not in text and "people like you" not in text
    assert "after some releases an adversary can be surer" in text


def test_the_headline_is_the_worst_of_what_leaves() -> None:
    kept = other(0.8, "kept columns", columns=("relationship",))
    both = other(0.83, "released and kept", columns=("relationship", "job"))
    decoded = other(0.86, "rebuilt")
    pooled = other(0.9, "pooled", records=5)
    reading = replace(private(mlp=0.52), others=(kept, both, decoded, pooled))
    assert words.score(reading) == ("86", "in 100, balanced")
    assert said(reading).startswith("from one rebuilt record the only attacker is right 86 times")
    without = replace(reading, others=(kept, both, pooled))
    assert said(without).startswith("from one released record with relationship and job")
    assert words.louder(without)[0].startswith("From 5 released records of a person together")
    page = plain(render(example.audit((without,))))
    assert "not distinguishable" not in page and "83 times in 100" in page
    assert "not distinguishable" not in summary(example.audit((without,)))


def test_what_is_wrong_with_the_data_stands_before_any_figure() -> None:
    audit = replace(example.audit(), checks=("400 people are in the data twice.",), looks=3)
    for page in (plain(render(audit)), summary(audit)):
        first = min(page.index(word) for word in ("61 times in 100", "61.1") if word in page)
        assert page.index("400 people are in the data twice.") < first
        assert page.index("looked at 3 times before") < first


def test_a_page_of_a_certificate_names_who_claims_it_and_the_worst_group() -> None:
    certified = Certification(
        {"private": ["beard"], "method": "hedge"},
        {},
        (bounded(groups=(SALES, MARRIED, CLERGY), priors=TAIL, statements=12),),
        1.0,
    )
    page = plain(render_certificate(certified))
    assert "claimed by whoever ran this certification, checked by nobody else" in page
    assert page.index("married") < page.index("sales") and "clergy" in page
    assert "99 % confidence for all 12 statements together" in page
    assert ">worst group 73.5<" in page


def test_a_signed_audit_is_published_with_its_signature_or_without_a_broken_one() -> None:
    graph = "1" * 64
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        key.write_text(to_base64(bytes(32)), encoding="utf-8")
        key.chmod(0o600)
        for rebuilt_records, said_so in (
            ((), "signed in the name of"),
            ((example.texts(),), "claimed"),
        ):
            audit = replace(certified_audit(bounded()), rebuilt=rebuilt_records)
            content = sign(audit, Signer(key, "Ada")).to_json().encode()
            published = published_audit(content, graph, Path("audit.json"))
            text = hidden(Audit.from_json(published.decode()), "beard")
            assert said_so in text and "changed since" not in text
