"""The page of a certificate: every statement about one release, all under one confidence.

Per private attribute: one record; several releases of it; every record weighing the same where
people have several; several records of a person, one by one and as one release per person; what
somebody reads who knows something else about the person, on average and in every group; and every
prior. Which statements are made depends on the options and on who has which records and labels,
never on a code, so that delta can be shared over them beforehand: half of it goes to the headlines,
one record of each private attribute, and each other statement gets as much as the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from privet.auditing.certificate_targets import GivenAttributes, GuessTarget
from privet.auditing.certified_codes import CertifiedCodes
from privet.data.dataset import Array
from privet.evidence.certificate.all_priors import certify_all_priors
from privet.evidence.certificate.coded_people import BALANCED, CodedPeople, certify_people
from privet.evidence.certificate.confidence import share_delta
from privet.evidence.certificate.data_free import box_diameter, gaussian_bound, symbols_bound
from privet.evidence.certificate.gaussian import Certificate
from privet.evidence.certificate.mechanisms import GaussianNoise, Mechanism, RandomisedSymbols
from privet.evidence.certificate.several_records import one_per_person, tuples_of_records
from privet.evidence.certificate.side_information import certify_given
from privet.evidence.certificate.smoothing import Draws
from privet.evidence.certificate.symbols import response
from privet.evidence.figures import Certified
from privet.nets.symbols import ROUNDING
from privet.release.graph_shape import NoisyGraph

# Share of delta that the headlines get.
HEADLINES = 0.5
# What the bounds at every prior weigh among the other statements: they are many points of a curve.
PRIORS = 4.0
# Draws of the Monte Carlo integral, where no grid will do: of the headline, and of all others.
DRAWS, OTHER_DRAWS = 100_000, 20_000

Kind = Literal["headline", "releases", "weighing", "records", "person", "given", "priors"]


@dataclass(frozen=True)
class Statement:
    """One statement that is going to be made.

    Parameters:
        target: Index of what is guessed.
        kind: What is said about it.
        number: How many releases, or records of a person.
        side: What is known beside the release.
        weight: Its part of what the statements beside the headlines share.
    """

    target: int
    kind: Kind
    number: int = 1
    side: int = -1
    weight: float = 1.0


@dataclass(frozen=True)
class Page:
    """What is certified, and of whom.

    Parameters:
        coded: The codes of *test* records, and the noise on them.
        person: Whose record each is.
        targets: What is guessed; those of the private attributes first.
        private: How many of them are private attributes by themselves, and get a headline.
        sides: What may be known beside the release.
        releases: How many releases of a record are seen, each with fresh noise.
        records: How many records of a person are seen.
        seed: Of draws.
    """

    coded: CertifiedCodes
    person: Array
    targets: Sequence[GuessTarget]
    private: int
    sides: Sequence[GivenAttributes] = ()
    releases: Sequence[int] = (1, 4, 16)
    records: Sequence[int] = (2, 5)
    seed: int = 0


def headline_confidence(confidence: float, attributes: int) -> float:
    """How sure the bound on balanced accuracy of each headline is, of several private attributes,
    where the whole page is as sure as that.

    >>> round(headline_confidence(0.99, 1), 4)
    0.996
    """
    return 1 - (1 - confidence) * HEADLINES * BALANCED / max(attributes, 1)


def certify_page(page: Page, confidence: float) -> tuple[Certified, ...]:
    """Every statement of the page, all of them right at once with this confidence."""
    plan = _plan(page)
    others = sum(s.weight for s in plan if s.kind != "headline")
    share = (1 - HEADLINES) if others else 0.0
    weights = {
        s: s.weight * share / others if s.kind != "headline" else (1 - share) / page.private
        for s in plan
    }
    deltas = share_delta(1 - confidence, weights)
    made = [_certified(page, s, delta) for s, delta in deltas.items() if s.kind != "priors"]
    said = sum(1 + sum(not group.reason for group in one.groups) for one in made)
    said += sum(s.kind == "priors" for s in plan)
    priors = {s.target: delta for s, delta in deltas.items() if s.kind == "priors"}
    return tuple(
        replace(
            one,
            confidence=confidence,
            statements=said,
            priors=_priors(page, s.target, priors[s.target])
            if s.kind == "headline" and s.target in priors
            else None,
        )
        for s, one in zip((s for s in plan if s.kind != "priors"), made, strict=True)
    )


def _plan(page: Page) -> list[Statement]:
    """Which statements are made; a headline for each private attribute first of its own."""
    plan = []
    for t, target in enumerate(page.targets):
        alone = t < page.private
        present = target.labels >= 0
        counts = np.unique(page.person[present], return_counts=True)[1]
        plan.append(Statement(t, "headline" if alone else "releases"))
        plan += [Statement(t, "releases", k) for k in page.releases if k > 1]
        if not alone:
            continue
        most = int(counts.max(initial=1))
        if most > 1:
            plan.append(Statement(t, "weighing"))
        several = [m for m in page.records if 1 < m <= most]
        numbers = page.coded.shape is not None and not page.coded.shape.symbols
        for m in several:
            plan.append(Statement(t, "records", m))
            plan += [Statement(t, "person", m)] * numbers
        plan += [
            Statement(t, "given", side=i, weight=1.0 + len(side.known.values))
            for i, side in enumerate(page.sides)
            if target.name not in side.names
        ]
        plan.append(Statement(t, "priors", weight=PRIORS))
    return plan


def _certified(page: Page, statement: Statement, delta: float) -> Certified:
    """One statement, made with its share of delta."""
    shape = _shape(page)
    people = _people(page, statement.target)
    target, number = page.targets[statement.target], statement.number
    releases = number if statement.kind == "releases" else 1
    noise = mechanism(
        shape, releases, Draws(DRAWS if statement.kind == "headline" else OTHER_DRAWS, page.seed)
    )
    about: dict[str, Any] = {"note": target.note, "d": people.codes.shape[1]}
    if shape.symbols:
        about |= {"d": shape.symbols, "flip": shape.scale}
    if statement.kind == "given":
        side = page.sides[statement.side]
        known = side.known.take(np.flatnonzero(target.labels >= 0))
        given = certify_given(people, noise, known, delta=delta)
        about |= {"given": side.names, "alone": given.alone, "groups": given.groups}
        return _filled(given.average, about)
    if statement.kind == "weighing":
        people = replace(people, weighing="records")
        about["weighing"] = "records"
    if statement.kind in ("records", "person"):
        make = tuples_of_records if statement.kind == "records" else one_per_person
        people = make(people, number, seed=page.seed)
        about |= {"records": number, "per": "person" if statement.kind == "person" else "record"}
    about["data_free"] = _data_free(shape, people, len(target.values), statement)
    return _filled(certify_people(people, noise, delta=delta), about)


def _filled(one: Certificate, about: dict[str, Any]) -> Certified:
    return Certified(**{**vars(one), **about})


def _shape(page: Page) -> NoisyGraph:
    assert page.coded.shape is not None, "a graph of unknown shape was refused"
    return page.coded.shape


def _people(page: Page, target: int) -> CodedPeople:
    return coded_people(page.targets[target], page.coded.values, page.person)


def coded_people(target: GuessTarget, codes: Array, person: Array) -> CodedPeople:
    """The records whose value is known, with their codes."""
    rows = np.flatnonzero(target.labels >= 0)
    return CodedPeople(codes[rows], target.labels[rows], person[rows], target.name, target.values)


def mechanism(shape: NoisyGraph, releases: int, draws: Draws) -> Mechanism:
    """What a graph does to a code before it leaves."""
    if not shape.symbols:
        width = shape.reach[1] - shape.reach[0] if shape.reach else None
        return GaussianNoise(shape.scale, releases, draws, width=width)
    rounding = (shape.symbols + 1) * ROUNDING
    return RandomisedSymbols(
        shape.symbols, response(shape.symbols, shape.scale), releases, rounding
    )


def _data_free(
    shape: NoisyGraph, people: CodedPeople, values: int, statement: Statement
) -> float | None:
    """The bound that needs no people; None where nothing limits the codes."""
    releases = statement.number if statement.kind == "releases" else 1
    records = statement.number if statement.kind == "records" else 1
    if shape.symbols:
        rounding = releases * records * (shape.symbols + 1) * ROUNDING
        bound = symbols_bound(shape.scale, values, records=records, releases=releases)
        return min(1.0, bound + rounding)
    if shape.reach is None:
        return None
    diameter = box_diameter(people.codes.shape[1] // records, *shape.reach)
    return gaussian_bound(diameter, shape.scale, values, records=records, releases=releases)


def _priors(page: Page, target: int, delta: float) -> Any:
    noise = mechanism(_shape(page), 1, Draws(OTHER_DRAWS, page.seed))
    return certify_all_priors(_people(page, target), noise, delta=delta)
