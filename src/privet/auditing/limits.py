"""What an audit does not show, in plain sentences."""

from __future__ import annotations

from collections.abc import Sequence

from privet.auditing.batteries import Battery
from privet.data.dataset import Dataset
from privet.release.release import Release


def limits(
    release: Release,
    data: Dataset,
    battery: Battery,
    adversaries: int,
    utility: Sequence[str],
    skipped: Sequence[str],
) -> tuple[str, ...]:
    undeclared = (
        "labelled ones that nobody declared were attacked with small attackers only."
        if battery.scouts
        else "nor undeclared ones."
    )
    said = [
        f"{adversaries} kinds of attacker were tried. A stronger one may read more: "
        "these figures bound the leak from below, not from above.",
        "The figures hold for people like those in the test part of this data set, not for anyone else.",
        f"Attributes that are not labelled in this data set were not looked for; {undeclared}",
    ]
    if not battery.people:
        said.append("Nobody tried to find people again, or to tell who was learned from.")
    columns = {column.name for column in getattr(release.schema.plain, "columns", ())}
    for name in utility:
        if name in columns:
            said.append(
                f"The task '{name}' is itself a column that the release takes: it is copied rather than predicted."
            )
    if not release.is_random:
        said.append(
            "The release is deterministic: it adds no noise, so no bound holds for every adversary."
        )
    elif not battery.averages:
        said.append("Releases of the same record were not averaged.")
    return (*said, *skipped)
