"""Which certificate speaks of everything that leaves, and what speaks against relying on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from privet.evidence.figures import Audit, Certified
from privet.evidence.formatting import between, measured, percent
from privet.evidence.sentences import say
from privet.evidence.what_leaves import WhatLeaves


def certificate_for(
    certificates: Sequence[Certified], attribute: str, leaves: WhatLeaves
) -> tuple[Certified | None, str]:
    """The certificate that speaks of everything that leaves, and what is missing where there is
    none."""
    own = [c for c in certificates if c.attribute == attribute and c.weighing == "people"]
    if not own:
        return None, "the audit holds no certificate of it"
    several = leaves.records != 1 or leaves.releases != 1
    if leaves.columns and several:
        return None, "nothing certifies columns kept beside several records or releases together"
    if leaves.columns:
        named = [c for c in own if {*c.given} == {*leaves.columns}]
        said = f"with {' and '.join(leaves.columns)} beside it"
    elif leaves.records is None:
        return None, "nothing limits how many records of a person leave"
    elif leaves.made_of is None:
        return None, "nothing limits how many records of a person its release is made of"
    elif leaves.made_of > 1:
        if several:
            return None, "nothing certifies several releases that are each made of several records"
        mean = [c for c in own if not c.given and (c.per == "person" or c.records == 1)]
        most = max((c.records for c in mean if c.per == "person"), default=1)
        named = _for_records(mean, replace(leaves, records=leaves.made_of))
        named = named if most >= leaves.made_of else []
        said = f"of one release of {leaves.made_of} records of a person"
    else:
        named = _for_records([c for c in own if not c.given and c.per == "record"], leaves)
        said = f"of {leaves.records} records of a person and {leaves.releases} releases of each"
        if not several:
            said = "of one release of one record"
    if not named:
        return None, f"there is no certificate of it {said}"
    return max(named, key=lambda c: 2.0 if c.bound is None else c.bound), ""


def _for_records(certificates: Sequence[Certified], leaves: WhatLeaves) -> list[Certified]:
    """Those for so many releases, and for so many records of a person or fewer: a certificate for
    five records is about people who have five, and others have fewer."""
    enough = [
        c
        for c in certificates
        if c.records >= (leaves.records or 1) and c.releases >= leaves.releases
    ]
    if not enough:
        return []
    most = min(enough, key=lambda c: (c.records, c.releases))
    return [c for c in certificates if c.records <= most.records and c.releases == most.releases]


def highest_bound(one: Certified) -> float:
    """The bound; with something given, the highest of it and of every group's."""
    return max([one.bound or 0.0, *(g.bound for g in one.groups if g.bound is not None)])


def doubts_about(audit: Audit, one: Certified, new_people: bool = False) -> list[str]:
    """Why a certificate is not to be relied on, each as the end of a sentence.

    Parameters:
        audit: What attackers found of the same release.
        one: The certificate.
        new_people: Whether the user says that people of other data are new to the release.
    """
    doubts = []
    if "learned on other data" in one.note and not new_people:
        doubts.append("nobody checked that its people are new to the release, or say --new-people")
    if "were left out" in one.note:
        doubts.append("records that contradict each other were left out of it")
    readings = [r for r in audit.private if r.attribute == one.attribute and not r.is_number]
    seen = {"released", "rebuilt"} | ({"pooled"} if one.records > 1 else set())
    seen |= {"kept columns", "released and kept"} if one.given else set()
    beaten = [
        finding.score
        for reading in readings
        for finding in (*reading.released, *reading.others)
        if finding.source in seen
        and finding.records <= one.records
        and {*finding.columns} <= {*one.given}
        and measured(finding.score)
        and finding.score.low > highest_bound(one)
    ]
    if beaten:
        most = max(beaten, key=lambda score: score.low)
        doubts.append(say("gate_beaten", value=percent(most.value), between=between(most)))
    return doubts
