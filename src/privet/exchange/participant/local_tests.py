"""What the participant's own machine finds out about a campaign's release, before any record is
looked at: its owner's word is not needed for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privet.core.errors import PrivetError
from privet.exchange.participant.campaign import Campaign
from privet.release.runtime import Runnable
from privet.release.self_test import self_test
from privet.release.strangers import release_session, what_is_missing

# A bound below this cannot hold for a release that gives the record itself.
HELD = 0.9


def open_release(campaign: Campaign, home: Path | None = None) -> Any:
    """A session of the campaign's release, in a process of its own unless it was made here, or a
    trusted key signed its audit."""
    return release_session(campaign.graph, home=home, vouched=campaign.claim.is_checked)


def local_tests(campaign: Campaign, run: Any) -> str:
    """What was found here, as lines to read; PrivetError where it contradicts what is claimed of
    the release.

    Parameters:
        campaign: Whose release is tested.
        run: A session of it.
    """
    findings = self_test(Runnable.from_card(campaign.card), run)
    bounds = [
        one.bound
        for one in (campaign.audit.certificates if campaign.audit else ())
        if one.bound is not None
    ]
    for finding in findings:
        if finding.code == "noise_unused":
            raise PrivetError(f"Do not take part: {_lower(finding.text)}")
        if finding.code == "rebuilt" and min(bounds, default=1.0) < HELD:
            raise PrivetError(
                f"Do not take part: {_lower(finding.text)} The certificate that the campaign shows "
                "cannot be true of it."
            )
    lines = [finding.text for finding in findings]
    if missing := what_is_missing(run):
        lines.append(missing)
    return "\n".join(["Tested on this device", *(f"  {line}" for line in lines)])


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]
