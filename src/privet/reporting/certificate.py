"""A certificate in sentences: what is bounded, for whom, of what, how surely, and who says so.

The words are those of the table of sentences (evidence/sentences.toml).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from privet.evidence.certificate.values import Certification
from privet.evidence.certified_sentences import bound_sentence, guessed, seen, sure
from privet.evidence.figures import Audit, Certified, CertifiedGroup, Figure, Reading
from privet.evidence.formatting import amount, listed, measured, percent
from privet.evidence.sentences import say

__all__ = ["bound_sentence", "seen", "sure"]

# Certificates of one attribute by the number of releases that are seen.
ByReleases = dict[int, Certified]

# Probability of a value after a release, above which releases are counted.
PROBABILITY = 0.7
# Groups that are named in a sentence.
MOST_GROUPS = 6


def by_attribute(certificates: Sequence[Certified]) -> dict[str, ByReleases]:
    """In the order of the audit: the private attributes, then all of them at once; about one record
    of a person and nothing known beside it; those with a word on one release."""
    attributes: dict[str, ByReleases] = {}
    for one in certificates:
        if one.is_plain:
            attributes.setdefault(one.attribute, {}).setdefault(one.releases, one)
    return {name: releases for name, releases in attributes.items() if 1 in releases}


def variants(certificates: Sequence[Certified], attribute: str) -> list[Certified]:
    """The certificates of an attribute for more than one record of a person, for one release per
    person, or with side information; of one release of each record."""
    first = by_attribute(certificates).get(attribute, {}).get(1)
    return [
        one
        for one in certificates
        if one.attribute == attribute and one.releases == 1 and one is not first
    ]


def found_on(reading: Reading | None, one: Certified) -> Figure | None:
    """The highest figure of an attacker who saw no more than a certificate is about."""
    if reading is None or reading.is_number or not reading.released:
        return None
    by_people = reading.evidence.get("balanced_by_people") if one.weighing == "people" else None
    scores = [by_people or reading.worst.score] if one.records == 1 and not one.given else []
    for finding in reading.others:
        rebuilt = finding.source == "rebuilt" and one.records == 1 and not one.given
        several = one.per == "record" and 1 < finding.records <= one.records
        pooled = finding.source == "pooled" and several
        known = finding.source == "released and kept" and set(finding.columns) <= set(one.given)
        if rebuilt or pooled or known:
            scores.append(finding.score)
    return max(filter(measured, scores), key=lambda score: score.value, default=None)


def is_beaten(one: Certified, reading: Reading | None) -> bool:
    """Whether an attacker who saw no more than the certificate is about did better than it
    allows."""
    score = found_on(reading, one)
    return score is not None and one.bound is not None and score.low > one.bound


def beaten_sentence(bound: float) -> str:
    return say("beaten", bound=percent(bound, "up"))


def headline(audit: Audit, reading: Reading, by: str = "") -> str:
    """The second sentence about a private attribute; empty where it is not certified, which the
    section below says once. Where an attacker beat the certificate beyond chance, a proof's
    assumption does not hold here, and that is said instead."""
    one = by_attribute(audit.certificates).get(reading.attribute, {}).get(1)
    if one is None or one.bound is None or reading.role != "private":
        return ""
    if is_beaten(one, reading):
        return beaten_sentence(one.bound)
    worst = worst_group_sentence([one, *variants(audit.certificates, reading.attribute)])
    return f"{worst} {bound_sentence(one, by)}".lstrip()


def said_of(audit: Audit, attribute: str, by: str = "") -> str:
    """The certificate of an attribute beside what attackers found."""
    for reading in audit.private:
        if reading.attribute == attribute and (text := headline(audit, reading, by)):
            return text
    return bound_sentence(by_attribute(audit.certificates)[attribute][1], by)


def found_in(reading: Reading | None, group: CertifiedGroup) -> Figure | None:
    """What the strongest attacker reads in a group, where that was measured."""
    groups = reading.groups if reading else ()
    scores = [g.score for g in groups if (g.by, g.value) == (group.by, group.value)]
    return next(filter(measured, scores), None)


def prior_sentence(one: Certified) -> str:
    """What holds with the values as frequent as they are; empty where that is not known."""
    if one.bound is None or not one.prior:
        return ""
    most = percent(max(one.prior))
    if one.at_prior is None:
        return say("certified_no_prior", most=most)
    return say("certified_prior", bound=percent(one.at_prior, "up"), most=most)


def average_sentence(one: Certified) -> str:
    """That the bound is an average, and how often an adversary can be surer, where that is
    bounded."""
    points = sorted(one.priors.posterior, key=lambda p: p.at) if one.priors else []
    above = [point for point in points if point.at >= PROBABILITY - 1e-9 and point.bound < 1]
    if not above:
        return say("certified_average")
    share, probability = percent(above[0].bound, "up"), f"{100 * above[0].at:.10g}"
    return say("certified_tail", share=share, probability=probability)


def records_sentence(one: Certified, others: Sequence[Certified]) -> str:
    """What is certified for several records of a person, or that nothing is."""
    several = [c for c in (one, *others) if c.bound is not None and not c.given]
    said = [
        say("certified_by_records", bound=percent(c.bound or 1.0, "up"))
        for c in several
        if c.weighing == "records" and c.records == 1
    ]
    tuples = [c for c in several if c.records > 1 and c.per == "record"]
    if tuples:
        most = max(tuples, key=lambda c: c.records)
        fields = {"records": f"{most.records:,}", "bound": percent(most.bound or 1.0, "up")}
        said.append(say("certified_records", **fields))
    elif one.per == "record":
        said.append(say("certified_one_record"))
    together = [c for c in several if c.per == "person"]
    if together:
        most = max(together, key=lambda c: c.records)
        bound = percent(most.bound or 1.0, "up")
        said.append(say("certified_per_person", seen=seen(most, knowing=False), bound=bound))
    return " ".join(said)


def given_sentence(others: Sequence[Certified]) -> str:
    """What is certified where something is known beside the release."""
    return " ".join(
        say(
            "certified_given",
            given=listed(one.given),
            bound=percent(one.bound, "up"),
            alone="an unknown share of" if one.alone is None else percent(one.alone),
        )
        for one in others
        if one.given and one.bound is not None
    )


def all_groups(certificates: Iterable[Certified]) -> list[CertifiedGroup]:
    """Every group of these certificates once, the worst bound first, those without one last."""
    groups: dict[tuple[str, str], CertifiedGroup] = {}
    for one in certificates:
        for group in one.groups:
            groups.setdefault((group.by, group.value), group)
    return sorted(groups.values(), key=lambda g: (g.bound is None, -(g.bound or 0.0), -g.empirical))


def worst_group_sentence(certificates: Sequence[Certified]) -> str:
    """The bound in the worst certified group; empty where no group is certified."""
    groups = [group for group in all_groups(certificates) if group.bound is not None]
    if not groups:
        return ""
    worst, what = groups[0], guessed(certificates[0])
    bound = percent(worst.bound or 1.0, "up")
    return say("certified_group", by=worst.by, value=worst.value, what=what, bound=bound)


def other_groups_sentence(certificates: Sequence[Certified]) -> str:
    """Groups of which nothing can be said, by name; or that no group was looked at."""
    groups = all_groups(certificates)
    if not groups:
        return say("no_groups")
    names = [f"{group.value} ({group.by})" for group in groups if group.bound is None]
    return say("uncertified_groups", names=listed(names, MOST_GROUPS)) if names else ""


def priors_sentence(one: Certified) -> str:
    """The names under which people look for what holds at every prior; empty without it."""
    if one.priors is None:
        return ""
    said = [
        say(
            "certified_leakage",
            bits=amount(one.priors.leakage_bits, "up"),
            security=amount(one.priors.bayes_security, "down"),
        )
    ]
    points = [point for point in one.priors.epsilon_delta if 0 < point.bound < 1]
    if points:
        epsilon, delta = f"{points[0].at:.3g}", amount(points[0].bound, "up")
        said.append(say("certified_epsilon", epsilon=epsilon, delta=delta))
    return " ".join(said)


def participant_sentence(
    one: Certified, certificates: Sequence[Certified] = (), by: str = ""
) -> str:
    """The certificate in plain words for participants, the worst group first.

    Parameters:
        one: For one release of one record.
        certificates: All of the page, of which those for several records, one release per person
            and side information are told as well.
        by: Who says so.
    """
    worst = worst_group_sentence([one, *variants(certificates, one.attribute)])
    text = f"{worst} {bound_sentence(one, by)}".lstrip()
    return text if one.bound is None else f"{text} {prior_sentence(one)}".rstrip()


def condition_sentences(one: Certified, certificates: Sequence[Certified] = ()) -> list[str]:
    """What the bound is about and what it does not say; `certificates` are all of the page."""
    if one.bound is None:
        return [one.note] if one.note else []
    others = variants(certificates, one.attribute)
    said = (
        given_sentence(others),
        records_sentence(one, others),
        other_groups_sentence([one, *others]),
        average_sentence(one),
        priors_sentence(one),
        "" if one.data_free is None else data_free_sentence(one.data_free),
        say("scope", what=guessed(one), people=f"{sum(one.people):,}"),
        say("computer"),
        one.note,
    )
    return [text for text in said if text]


def data_free_sentence(bound: float) -> str:
    return say("certified_data_free", bound=percent(bound, "up"))


def repeated_sentence(releases: ByReleases) -> str:
    """What several releases of the same record allow; empty where there is nothing to add.

    >>> known = 0.15, 0.55, 0.027, 0.99, (900, 900), 2, 0.4, 1, "smoothed"
    >>> one, four, many = (
    ...     Certified("sex", ("f", "m"), bound, 0.6, (0.5, 0.5), *known)
    ...     for bound in (0.5, 0.7, None)
    ... )
    >>> print(repeated_sentence({1: one, 4: four, 16: many}).replace(": ", ":\\n"))
    Balanced accuracy with several releases of the same record, each with fresh noise:
    4 releases, at most 70.0 %; 16 releases, not certified.
    """
    parts = [
        say("repeated_nothing", releases=f"{number:,}")
        if one.bound is None
        else say("repeated_part", releases=f"{number:,}", bound=percent(one.bound, "up"))
        for number, one in sorted(releases.items())
        if number > 1
    ]
    if releases[1].bound is None or not parts:
        return ""
    return say("repeated", parts="; ".join(parts))


def noise(one: Certified) -> float | None:
    """How strong the noise of a release is: its deviation; of symbols, the share that is
    replaced."""
    return one.sigma if one.flip is None else one.flip


def target_sentence(certification: Certification) -> str:
    """Whether noise chosen on other people did what it was chosen for; empty where none was
    chosen."""
    if certification.target is None:
        return ""
    noisy = [one for one in certification.certificates if noise(one) is not None][:1]
    what = f"Noise of {amount(noise(noisy[0]) if noisy else None)}"
    if noisy and noisy[0].flip is not None:
        what = f"Replacing {percent(noisy[0].flip)} % of the symbols"
    name = "target_met" if certification.met else "target_missed"
    return say(name, what=what, target=percent(certification.target))
