"""Figures of raw records from an earlier audit: they do not depend on the release, and need not be
computed again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace

from privet.core.errors import PrivetError
from privet.data.dataset import Dataset
from privet.evidence.figures import Audit, Finding, People
from privet.release.release import Release


def input_fingerprint(release: Release) -> str:
    """Names what the release takes of a record: raw figures of another choice of columns are other
    figures."""
    schema = json.dumps(release.schema.plain.to_json(), sort_keys=True)
    return hashlib.sha256(schema.encode()).hexdigest()


def raw_findings(
    earlier: Audit | None, data: Dataset, battery: str, inputs: str, roles: Mapping[str, str]
) -> dict[str, list[Finding]]:
    """Raw findings of an earlier audit, if it was of the same data and inputs, with the same
    battery, and knows all these attributes."""
    if earlier is None:
        return {}
    about = (earlier.data.get("fingerprint"), earlier.data.get("input"), earlier.battery)
    if about != (data.fingerprint, inputs, battery):
        raise PrivetError(
            "The audit to take raw figures from was of other data or inputs, or with another "
            "battery."
        )
    findings = {
        reading.attribute: list(reading.raw)
        for reading in earlier.readings
        if reading.role == roles.get(reading.attribute)
    }
    for name, role in roles.items():
        if not findings.get(name):
            raise PrivetError(
                f"The audit to take raw figures from says nothing of '{name}' as {role} on raw "
                "records."
            )
    return findings


def with_raw_figures(found: People | str, earlier: Audit | None) -> People | str:
    """What was found of people, with what an earlier audit found of them in raw records."""
    if isinstance(found, str) or earlier is None:
        return found
    same = [people for people in earlier.people if people.attack == found.attack]
    return replace(found, raw=same[0].raw) if same else found
