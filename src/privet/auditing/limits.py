"""What an audit does not show, in plain sentences."""

from __future__ import annotations

from collections.abc import Sequence

from privet.auditing.batteries import Battery
from privet.release.release import Release


def limitations(
    release: Release,
    battery: Battery,
    adversaries: int,
    skipped: Sequence[str],
) -> tuple[str, ...]:
    """Sentences for the end of an audit.

    Parameters:
        release: What was audited.
        battery: With which attackers.
        adversaries: How many kinds of them were tried.
        skipped: Why some attacks were not tried.
    """
    undeclared = (
        "labelled ones that nobody declared were attacked with small attackers only."
        if battery.scouts
        else "nor undeclared ones."
    )
    sentences = [
        (
            f"{adversaries} kinds of attacker were tried. A stronger one may read more: "
            "these figures bound the leak from below, not from above."
        ),
        (
            "The figures hold for people like those in the test part of this data set, not for"
            " anyone else."
        ),
        f"Attributes that are not labelled in this data set were not looked for; {undeclared}",
    ]
    if not battery.people:
        sentences.append("Nobody tried to find people again, or to tell who was learned from.")
    if not release.is_random:
        sentences.append(
            "The release is deterministic: it adds no noise, so no bound holds for every adversary."
        )
    elif not battery.averages:
        sentences.append("Releases of the same record were not averaged.")
    return (*sentences, *skipped)
