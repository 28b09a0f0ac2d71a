"""What a participant reads before, at and after taking part."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from privet.exchange.participant.outbox import Receipt
from privet.exchange.participant.share import Campaign, Record, Sent

SHOWN = 5
"""Records described one by one."""


def about(campaign: Campaign, known: bool) -> str:
    manifest = campaign.manifest
    asked = ", ".join(
        f"{label.name} ({' or '.join(label.values) or 'a number'})" for label in manifest.labels
    )
    owner = "seen before" if known else "not seen before: compare it with what the owner tells you"
    return "\n".join(
        [
            _safe(manifest.title),
            f"  what for   {_safe(manifest.purpose)}",
            f"  who        {_safe(manifest.who)}",
            f"  key        {campaign.fingerprint} ({owner})",
            f"  hides      {', '.join(map(_safe, manifest.private))}, by {_safe(manifest.method)}",
            f"  asks       {asked or 'nothing beside the record'}",
            f"  keeps it   {manifest.retention_days} days, or until you withdraw",
            f"  can read   {_readers(campaign)}",
            "  checked    signature, manifest and release are the ones that the link names",
        ]
    )


def leaves(campaign: Campaign, records: Sequence[Record]) -> str:
    lines = []
    for record in records[:SHOWN]:
        lines.append(record.source)
        if record.stays:
            lines.append(
                f"  does not leave  the picture, its name, and: {'; '.join(f'{k}: {v}' for k, v in record.stays.items())}"
            )
        else:
            lines.append("  does not leave  the record itself")
        values = record.z.ravel()
        numbers = " ".join(f"{value:.3f}" for value in values[:6]) + (
            " ..." if values.size > 6 else ""
        )
        answers = "".join(
            f"; {name}: {value}" for name, value in record.labels.items() if value is not None
        )
        lines.append(f"  leaves          {values.size} numbers ({numbers}){answers}")
        lines.append(
            f"                  {len(record.content)} bytes, {'sealed' if campaign.manifest.mode == 'sealed' else 'not sealed'}"
        )
    if len(records) > SHOWN:
        lines.append(f"... and {len(records) - SHOWN} more like these")
    total = sum(len(record.content) for record in records)
    return "\n".join(
        [
            *lines,
            f"In all {len(records)} record{'s' if len(records) > 1 else ''}, {total} bytes, to {campaign.link.server}.",
        ]
    )


def sent(result: Sent, home: Path) -> str:
    lines = list(result.refused)
    if result.receipts:
        lines.append(
            f"Sent {len(result.receipts)}. Receipts are in {home / 'receipts'}; take it back with  privet withdraw."
        )
    if result.waiting:
        lines.append(
            f"{result.waiting} wait here, because: {result.why} Send them later with  privet share --retry."
        )
    return "\n".join(lines) or "Nothing waits to be sent."


def receipt(one: Receipt) -> str:
    at = time.strftime("%Y-%m-%d %H:%M", time.localtime((one.received or 0) / 1000))
    return f"{one.submission[:12]}  {at}  {_safe(one.title)}  {one.source}"


def _readers(campaign: Campaign) -> str:
    return (
        "whoever has the owner's key"
        if campaign.manifest.mode == "sealed"
        else "the collector's server and its owner"
    )


def _safe(text: str) -> str:
    """Text from elsewhere, without what would move a terminal's cursor."""
    return "".join(c if c.isprintable() else " " for c in text)
