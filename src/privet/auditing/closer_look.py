"""What is read of a private attribute in other ways than by adversaries on one released record."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from privet.auditing.attribute_attack import AttackResult
from privet.auditing.learning_curve import Curve
from privet.evidence.figures import Finding, Reading


class CloserLook(NamedTuple):
    """More findings about one attribute.

    Parameters:
        rebuilt: From rebuilt records; they compete for the headline.
        others: From averages of releases, several records of a person, and kept columns.
        curve: What is read after learning from fewer people; None where that was not tried.
    """

    rebuilt: tuple[AttackResult, ...]
    others: tuple[Finding, ...]
    curve: Curve | None

    def added_to(self, reading: Reading) -> Reading:
        """The reading with the other findings and the curve."""
        evidence, points = dict(reading.evidence), reading.curve
        if self.curve is not None:
            points = self.curve.points
            if self.curve.gain is not None:
                evidence["gain_of_last_doubling"] = self.curve.gain
        return replace(
            reading, others=(*reading.others, *self.others), curve=points, evidence=evidence
        )
