"""Figures of raw records from an earlier audit: they do not depend on the release, and need not be
found again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from privet.core.errors import PrivetError
from privet.data.dataset import Dataset
from privet.evidence.figures import Audit, Finding, People
from privet.release.release import Release


def given_inputs(release: Release) -> str:
    """Names what the release takes of a record: raw figures of another choice of columns are other
    figures."""
    return hashlib.sha256(
        json.dumps(release.schema.plain.to_json(), sort_keys=True).encode()
    ).hexdigest()


def known_raw(
    earlier: Audit | None, data: Dataset, battery: str, inputs: str, roles: dict[str, str]
) -> dict[str, list[Finding]]:
    """Raw findings of an earlier audit, if it was of the same data and inputs, with the same
    battery, and knows all these attributes."""
    if earlier is None:
        return {}
    same = (earlier.data.get("fingerprint"), earlier.data.get("input"), earlier.battery) == (
        data.fingerprint,
        inputs,
        battery,
    )
    if not same:
        raise PrivetError(
            "The audit to take raw figures from was of other data or inputs, or with another battery."
        )
    known = {
        reading.attribute: list(reading.raw)
        for reading in earlier.readings
        if reading.role == roles.get(reading.attribute)
    }
    absent = [name for name in roles if not known.get(name)]
    if absent:
        raise PrivetError(
            f"The audit to take raw figures from says nothing of '{absent[0]}' as {roles[absent[0]]} on raw records."
        )
    return known


def with_raw(found: People | str, earlier: Audit | None) -> People | str:
    """What was found of people, with what an earlier audit found of them in raw records."""
    if isinstance(found, str) or earlier is None:
        return found
    old = next((p for p in earlier.people if p.attack == found.attack), None)
    return replace(found, raw=old.raw) if old else found
