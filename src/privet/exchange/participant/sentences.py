"""What a participant reads before, at and after taking part."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from privet.evidence.figures import Audit
from privet.evidence.sentences import say
from privet.exchange.participant.campaign import Campaign
from privet.exchange.participant.outbox import Receipt, Sent
from privet.exchange.participant.records import Record
from privet.reporting import certificate, sentences
from privet.reporting.signers import said_by

# Records described one by one.
SHOWN = 5


def about(campaign: Campaign, is_known: bool) -> str:
    """A campaign, and what was checked of it."""
    manifest = campaign.manifest
    asked = ", ".join(
        f"{label.name} ({' or '.join(label.values) or 'a number'})" for label in manifest.labels
    )
    owner = (
        "seen before" if is_known else "not seen before: compare it with what the owner tells you"
    )
    readers = {
        "sealed": "whoever has the owner's key",
        "open": "the collector's server and its owner",
    }
    lines = {
        "what for": _safe(manifest.purpose),
        "who": _safe(manifest.who),
        "key": f"{campaign.fingerprint} ({owner})",
        "hides": f"{', '.join(map(_safe, manifest.private))}, by {_safe(manifest.method)}",
        **{_safe(name): _safe(_hidden(campaign, name)) for name in manifest.private},
        "how often": how_many(manifest.records_per_person, campaign.audit, manifest.private),
        "asks": asked or "nothing beside the record",
        "keeps it": f"{manifest.retention_days} days, or until you withdraw",
        "can read": readers[manifest.mode],
        "checked": "signature, manifest and release are the ones that the link names",
    }
    return "\n".join(
        [_safe(manifest.title), *(f"  {name:<9}  {text}" for name, text in lines.items())]
    )


def _hidden(campaign: Campaign, attribute: str) -> str:
    if campaign.audit is None and campaign.manifest.release.audit is not None:
        return say("unread_audit")
    return hidden(campaign.audit, attribute)


def hidden(audit: Audit | None, attribute: str) -> str:
    """What was found about a private attribute, and what is claimed for every attacker."""
    if audit is None:
        return say("no_audit")
    reading = next((r for r in audit.private if r.attribute == attribute), None)
    if reading is None or not reading.released:
        return say("unmeasured")
    one = certificate.by_attribute(audit.certificates).get(attribute, {}).get(1)
    proof = certificate.headline(audit, reading, said_by(audit, "the campaign's owner"))
    if one is None:
        proof = say("uncertified")
    elif one.bound is None:
        proof = say("not_certified", reason=one.reason or "no reason was kept")
    text = sentences.private_sentence(reading)
    return f"{text[0].upper()}{text[1:]} {proof}"


def how_many(most: int, audit: Audit | None, private: Sequence[str]) -> str:
    """How many records of a person are taken, and whether what is certified covers so many."""
    if most == 1:
        return say("records_once")
    covered = []
    for name in private:
        bounds = [
            c
            for c in (audit.certificates if audit else ())
            if c.attribute == name and c.bound is not None and c.releases == 1 and not c.given
        ]
        # One release made of several records is another thing than several releases.
        covered.append(max((c.records for c in bounds if c.per == "record"), default=0))
    fewest = min(covered, default=0)
    if fewest < most:
        return say("records_uncertified", most=f"{most:,}")
    return say("records_certified", most=f"{most:,}", records=f"{fewest:,}")


def leaves(campaign: Campaign, records: Sequence[Record]) -> str:
    """What would be sent of these records, and what would not."""
    lines = [line for record in records[:SHOWN] for line in _leaves(campaign, record)]
    if len(records) > SHOWN:
        lines.append(f"... and {len(records) - SHOWN} more like these")
    many = f"{len(records)} record{'s' if len(records) > 1 else ''}"
    size = sum(len(record.content) for record in records)
    return "\n".join([*lines, f"In all {many}, {size} bytes, to {campaign.link.server}."])


def _leaves(campaign: Campaign, record: Record) -> list[str]:
    stays = "; ".join(f"{name}: {text}" for name, text in record.stays.items())
    values = record.z.ravel()
    numbers = " ".join(f"{value:.3f}" for value in values[:6])
    answers = "".join(
        f"; {name}: {value}" for name, value in record.labels.items() if value is not None
    )
    sealed = "sealed" if campaign.manifest.mode == "sealed" else "not sealed"
    return [
        record.source,
        "  does not leave  "
        + (f"the picture, its name, and: {stays}" if stays else "the record itself"),
        f"  leaves          {values.size} numbers ({numbers}{' ...' if values.size > 6 else ''})"
        + answers,
        f"                  {len(record.content)} bytes, {sealed}",
    ]


def sent(result: Sent | None, home: Path) -> str:
    """What became of the records of a participant with this home; None says that nothing was
    sent."""
    if result is None:
        return "Nothing was sent."
    lines = list(result.refused)
    if result.receipts:
        lines.append(
            f"Sent {len(result.receipts)}. Receipts are in {home / 'receipts'}; take it back with  "
            "privet withdraw."
        )
    if result.waiting:
        lines.append(
            f"{result.waiting} wait here, because: {result.why} Send them later with  "
            "privet share --retry."
        )
    return "\n".join(lines) or "Nothing waits to be sent."


def receipt(one: Receipt) -> str:
    """One line about a record that was sent."""
    at = time.strftime("%Y-%m-%d %H:%M", time.localtime((one.received or 0) / 1000))
    return f"{one.submission[:12]}  {at}  {_safe(one.title)}  {one.source}"


def withdrawn(one: Receipt, deleted: bool) -> str:
    """One line about a record that was taken back."""
    state = "deleted" if deleted else "was gone already"
    return f"{one.submission[:12]}  {state}  {one.source}"


def _safe(text: str) -> str:
    """Text from elsewhere, without what would move a terminal's cursor."""
    return "".join(c if c.isprintable() else " " for c in text)
