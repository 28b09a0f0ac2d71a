"""What a participant reads before, at and after taking part.

Everything that others wrote is escaped here, field by field, so that it can neither move the cursor
nor begin a line.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

from privet.core.terminal import escaped
from privet.evidence.certified_sentences import bound_sentence
from privet.evidence.figures import Audit, Certified
from privet.evidence.formatting import percent
from privet.evidence.sentences import say
from privet.exchange.participant.campaign import Campaign
from privet.exchange.participant.claims import Claim, claim
from privet.exchange.participant.ledger import bounds, covered
from privet.exchange.participant.outbox import Sent
from privet.exchange.participant.owners import Standing
from privet.exchange.participant.receipts import Receipt
from privet.exchange.participant.records import Record
from privet.exchange.protocol.asking import overlaps
from privet.exchange.protocol.manifest import Label, Manifest
from privet.reporting import certificate, sentences

# Records described one by one.
SHOWN = 5
READERS = {
    "sealed": "whoever has the owner's key",
    "open": "the collector's server and its owner",
}
WITHDRAWN = {
    "stored": "NOT deleted: the collector knows no such record under this secret; receipt kept",
    "withdrawn": "deleted",
    "gone": "gone, says the server, without proof that it had the record; receipt kept",
    "refused": "was never stored",
    "unsure": "NOT deleted: the collector knows no such record under this secret; receipt kept",
}


def about(campaign: Campaign, known: Standing) -> str:
    """A campaign, and what was checked of it."""
    manifest = campaign.manifest
    lines = {
        "what for": manifest.purpose,
        "who": manifest.who,
        "key": f"{campaign.fingerprint} ({owner(known)})",
        "hides": f"{', '.join(manifest.private)}, by {manifest.method}",
        **{name: _hidden(campaign, name) for name in manifest.private},
        "how often": how_many(
            manifest.records_per_person, campaign.audit, manifest.private, campaign.claim
        ),
        "asks": "; ".join(map(_asked, manifest.labels)) or "nothing beside the record",
        "keeps it": f"{manifest.retention_days} days, or until you withdraw",
        "can read": READERS[manifest.mode],
        **_governed(manifest),
        "checked": "signature, manifest and release are the ones that the link names",
    }
    return "\n".join(
        [
            escaped(manifest.title),
            *(f"  {escaped(name):<9}  {escaped(text)}" for name, text in lines.items()),
            *warnings(campaign, known),
        ]
    )


def owner(known: Standing) -> str:
    """What is known of an owner's key."""
    if known.kind == "used":
        return f"you sent to it before, as {known.who}"
    if known.kind == "other":
        return "NOT the key that you used before under this name"
    return "you never sent to it: compare it with what the owner tells you"


def warnings(campaign: Campaign, known: Standing) -> list[str]:
    """What a participant must not overlook: one line each."""
    manifest, lines = campaign.manifest, []
    if known.kind == "other":
        lines.append(
            f"WARNING: '{escaped(known.who)}' had the key {known.key} when you sent to it. This is "
            "another key: somebody may pretend to be them. Ask them before you go on."
        )
    elif known.kind == "used" and known.who != manifest.who:
        lines.append(f"WARNING: when you sent to this key it was called '{escaped(known.who)}'.")
    for near in overlaps(manifest.labels, manifest.private, _values(campaign.audit)):
        lines.append(
            f"WARNING: the question '{escaped(near.label)}' is near '{escaped(near.attribute)}', "
            f"which the release hides: both have '{escaped(near.word)}'. Your answer leaves as "
            "you give it."
        )
    return lines


def _values(audit: Audit | None) -> dict[str, tuple[str, ...]]:
    return {} if audit is None else {one.attribute: one.values for one in audit.private}


def _asked(label: Label) -> str:
    answers = " or ".join(label.values) or "a number"
    return f"{label.name} ({answers})" + (f": {label.question}" if label.question else "")


def _governed(manifest: Manifest) -> dict[str, str]:
    """What the campaign binds itself to, beside keeping records for so long."""
    lines = {}
    if manifest.counts_epsilon is not None:
        lines["owner gets"] = f"counts of people with noise (epsilon {manifest.counts_epsilon:g})"
    if manifest.least_people > 1:
        lines["not before"] = f"{manifest.least_people:,} people have taken part"
    if changed := [label.name for label in manifest.labels if label.epsilon is not None]:
        lines["changed"] = f"answers to {', '.join(changed)}, at random, before they leave"
    if manifest.consent:
        version = f" (version {manifest.consent_version})" * bool(manifest.consent_version)
        lines["you agree"] = f"{manifest.consent}{version}"
    return lines


def _hidden(campaign: Campaign, attribute: str) -> str:
    if campaign.audit is None and campaign.manifest.release.audit is not None:
        return say("unread_audit")
    return hidden(campaign.audit, attribute, campaign.claim)


def hidden(audit: Audit | None, attribute: str, who: Claim | None = None) -> str:
    """What was found about a private attribute, and what is claimed for every attacker.

    Parameters:
        audit: What the owner attached.
        attribute: The private attribute.
        who: Who stands for it; by itself an audit is checked by nobody whom a participant trusts.
    """
    if audit is None:
        return say("no_audit")
    who = who or claim(_document(audit), {})
    reading = next((r for r in audit.private if r.attribute == attribute), None)
    if reading is None or not reading.released:
        return say("unmeasured")
    one = certificate.by_attribute(audit.certificates).get(attribute, {}).get(1)
    if one is None:
        proof = say("uncertified")
    elif one.bound is None:
        proof = say("not_certified", reason=one.reason or "no reason was kept")
    elif certificate.is_beaten(one, reading):
        proof = certificate.beaten_sentence(one.bound)
    else:
        proof = f"{_worst_group(audit, one, who)} {bound_sentence(one, who.by)}".lstrip()
    text = sentences.private_sentence(reading)
    return f"{who.before} {text[0].upper()}{text[1:]} {proof}".lstrip()


def _worst_group(audit: Audit, one: Certified, who: Claim) -> str:
    """The highest bound of a group; it is called certified only where somebody trusted checked."""
    variants = [one, *certificate.variants(audit.certificates, one.attribute)]
    if who.is_checked:
        return certificate.worst_group_sentence(variants)
    groups = [group for c in variants for group in c.groups if group.bound is not None]
    if not groups:
        return ""
    worst = max(groups, key=lambda group: group.bound or 0.0)
    bound = percent(worst.bound or 1.0, "up")
    return say("claimed_group", by=worst.by, value=worst.value, what=one.attribute, bound=bound)


def _document(audit: Audit) -> dict[str, object]:
    return dict(json.loads(audit.to_json()))


def how_many(
    most: int, audit: Audit | None, private: Sequence[str], who: Claim | None = None
) -> str:
    """How many records of a person are taken, and whether a bound covers so many."""
    if most == 1:
        return say("records_once")
    fewest = covered(bounds(audit, private), private)
    if fewest < most:
        return say("records_uncertified", most=f"{most:,}")
    checked = who is not None and who.is_checked
    name = "records_certified" if checked else "records_claimed"
    return say(name, most=f"{most:,}", records=f"{fewest:,}")


def leaves(campaign: Campaign, records: Sequence[Record]) -> str:
    """What would be sent of these records, and what would not."""
    lines = [line for record in records[:SHOWN] for line in _leaves(campaign, record)]
    if len(records) > SHOWN:
        lines.append(f"... and {len(records) - SHOWN} more like these")
    size = sum(len(record.content) for record in records)
    server = escaped(campaign.link.server)
    return "\n".join([*lines, f"In all {count(len(records))}, {size} bytes, to {server}."])


def count(records: int) -> str:
    """
    >>> count(1), count(2000)
    ('1 record', '2,000 records')
    """
    return f"{records:,} record{'' if records == 1 else 's'}"


def _leaves(campaign: Campaign, record: Record) -> list[str]:
    stays = "; ".join(f"{name}: {text}" for name, text in record.stays.items())
    values = record.z.ravel()
    numbers = " ".join(f"{value:.3f}" for value in values[:6])
    answers = "".join(
        f"; {name}: {value}" for name, value in record.labels.items() if value is not None
    )
    sealed = "sealed" if campaign.manifest.mode == "sealed" else "not sealed"
    return [
        escaped(record.source),
        "  does not leave  "
        + (f"the picture, its name, and: {escaped(stays)}" if stays else "the record itself"),
        f"  leaves          {values.size} numbers ({numbers}{' ...' if values.size > 6 else ''})"
        + escaped(answers),
        f"                  {len(record.content)} bytes, {sealed}",
    ]


def beyond(records: int, certified: int, seen: int) -> str:
    """That more records would be known of a person than any bound covers."""
    covers = f"a bound covers {certified:,}" if certified else "no bound covers any"
    return (
        f"With {count(records)} more the campaign has {seen:,} different ones of you that belong "
        f"together, and {covers}. Several can tell much more than one."
    )


def sent(result: Sent | None, home: Path) -> str:
    """What became of the records of a participant with this home; None says that nothing was
    sent."""
    if result is None:
        return "Nothing was sent."
    lines = list(map(escaped, result.refused))
    if result.receipts:
        lines.append(
            f"Sent {len(result.receipts)}. Receipts are in {home / 'receipts'}; take it back with  "
            "privet withdraw, see what you sent with  privet ledger."
        )
    if result.waiting:
        lines.append(
            f"{result.waiting} wait here, because: {result.why} Send them later with  "
            "privet share --retry."
        )
    return "\n".join(lines) or "Nothing waits to be sent."


def receipt(one: Receipt) -> str:
    """One line about a record that was sent."""
    return f"{one.submission[:12]}  {moment(one)}  {escaped(one.title)}  {escaped(one.source)}"


def moment(one: Receipt) -> str:
    """The day on which a record was stored: collectors keep no hour."""
    if one.received is None:
        return "not stored"
    return time.strftime("%Y-%m-%d", time.gmtime(one.received / 1000))


def withdrawn(one: Receipt) -> str:
    """One line about a record that was asked back."""
    return f"{one.submission[:12]}  {WITHDRAWN[one.state]}  {escaped(one.source)}"
