"""The ledger as a participant reads it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from privet.core.key_text import fingerprint
from privet.core.terminal import escaped
from privet.evidence.formatting import percent
from privet.evidence.sentences import say
from privet.exchange.participant.ledger import Account, Entry
from privet.exchange.participant.sentences import count, moment

STATES = {
    "stored": "stored",
    "withdrawn": "withdrawn",
    "gone": "gone, without proof",
    "refused": "refused",
    "unsure": "perhaps stored: the last answer was lost",
}


def ledger(entries: Sequence[Entry]) -> str:
    """What was sent, owner by owner, and what is certified of it."""
    if not entries:
        return "Nothing was sent from here."
    lines: list[str] = []
    owners = [list(group) for _, group in groupby(entries, key=lambda entry: entry.account.owner)]
    for group in owners:
        lines += _owner(group)
    if len(owners) > 1:
        seen = count(sum(entry.seen for entry in entries))
        lines.append(say("sent_owners", count=seen, owners=f"{len(owners):,}"))
    return "\n".join(lines)


def _owner(entries: Sequence[Entry]) -> list[str]:
    account = entries[0].account
    key = fingerprint(account.owner) if account.who else "unknown"
    lines = [f"{escaped(account.who) or 'An owner that an earlier Privet sent to'}, key {key}"]
    for entry in entries:
        lines += _campaign(entry)
    if len(entries) > 1:
        seen = count(sum(entry.seen for entry in entries))
        lines.append("  " + say("sent_owner", count=seen, campaigns=f"{len(entries):,}"))
    return lines


def _campaign(entry: Entry) -> list[str]:
    account = entry.account
    where = f"{escaped(account.server)}/c/{account.campaign}"
    waits = f", {entry.waiting:,} of them waiting here" if entry.waiting else ""
    lines = [f"  {escaped(account.title)}  {where}", f"    {count(entry.seen)} sent{waits}"]
    lines += [f"    {escaped(known(account, name, entry.seen))}" for name in account.private]
    if not account.private:
        lines.append(f"    {say('sent_uncertified', what='Anything', count=count(entry.seen))}")
    for one in entry.receipts:
        lines.append(
            f"    {one.submission[:12]}  {moment(one)}  {STATES[one.state]}  {escaped(one.source)}"
        )
    return lines


def known(account: Account, attribute: str, records: int) -> str:
    """What is certified about an attribute at so many records, and who says so."""
    bound = account.covering(attribute, max(records, 1))
    if bound is None:
        return say("sent_uncertified", what=attribute, count=count(records))
    who = account.says
    one = bound.records == 1
    seen = say("seen_record") if one else say("seen_records", records=f"{bound.records:,}")
    text = say(
        "sent_bound",
        what=attribute,
        seen=seen + say("knows_nothing"),
        bound=percent(bound.bound, "up"),
        blind=percent(bound.blind),
        by=who.by,
    )
    return f"{who.before} {text}".lstrip()
