"""A campaign as a participant sees it.

Nothing is believed because a server says so: the link pins the manifest, the manifest its release
and its owner's key, and what does not fit is refused before a file is opened.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from privet.auditing.signatures import parse_document
from privet.core.errors import PrivetError
from privet.core.key_text import fingerprint
from privet.evidence.figures import Audit
from privet.exchange.participant.claims import Claim, claim
from privet.exchange.protocol.client import Client, Link, Offline
from privet.exchange.protocol.manifest import Manifest, check_card, read_manifest
from privet.exchange.protocol.messages import Signed
from privet.release.runtime import Runnable

# Most bytes of a manifest with its signature, as JSON.
SIGNED_BYTES = 1 << 20


@dataclass(frozen=True)
class Campaign:
    """A campaign whose manifest, release and owner's key fit together.

    Parameters:
        link: Where it is.
        manifest: What its owner signed.
        card, graph: Of its release.
        open: Whether it takes records.
        audit: Of its release, where the owner attached one that can be read here.
        claim: Who stands for that audit.
        signed: The manifest and its signature, as they came.
    """

    link: Link
    manifest: Manifest
    card: dict[str, Any]
    graph: bytes
    open: bool
    audit: Audit | None = None
    claim: Claim = field(default_factory=Claim)
    signed: Signed | None = None

    @property
    def fingerprint(self) -> str:
        """Of the owner's key."""
        return fingerprint(self.manifest.signing_key)


def fetch_campaign(
    link: Link,
    client: Client,
    cache: Path | None = None,
    pinned: str | None = None,
    trusted: Mapping[str, str] | None = None,
) -> Campaign:
    """The campaign at the end of a link, checked.

    Parameters:
        link: Where it is.
        client: Connected to its collector.
        cache: A folder for what is fetched, for when there is no network: the link says whether it
            is still the same.
        pinned: The fingerprint that its owner's key must have.
        trusted: Names of auditors that the participant trusts, by the fingerprints of their keys.
    """
    signed = _fetch_signed(link, client, cache)
    manifest = read_manifest(signed.manifest, signed.signature, link.campaign)
    owner = fingerprint(manifest.signing_key)
    if pinned is not None and re.sub(r"[\s:]", "", pinned).lower() != owner.replace(" ", ""):
        raise PrivetError(f"The owner's key is {owner}, not the one you expect. Do not take part.")
    parts = (manifest.release.card, manifest.release.graph)
    card_text, graph = (_fetch_part(sha256, client, cache) for sha256 in parts)
    try:
        card = json.loads(card_text)
        Runnable.from_card(card)
    except (ValueError, KeyError, TypeError):
        raise PrivetError("The card of the campaign's release cannot be read.") from None
    check_card(manifest, card)
    audit, who = None, Claim()
    if manifest.release.audit is not None:
        content = _fetch_part(manifest.release.audit, client, cache)
        audit, document = _read_audit(content, manifest)
        who = claim(document, trusted or {}, manifest, card)
    return Campaign(link, manifest, card, graph, signed.open, audit, who, signed)


def _read_audit(content: bytes, manifest: Manifest) -> tuple[Audit | None, dict[str, Any] | None]:
    """The audit that the owner attached, and as it was signed; None where this Privet cannot read
    it. One of another release promises what this one does not keep."""
    try:
        document = parse_document(content.decode("utf-8"))
        audit = Audit.from_json(content.decode("utf-8"))
    except (UnicodeDecodeError, PrivetError, ValueError, RecursionError):
        return None, None
    hashes = audit.release.get("sha256")
    if not isinstance(hashes, dict) or hashes.get("graph") != manifest.release.graph:
        raise PrivetError("The audit is of another release. Do not take part.")
    return audit, document


def _fetch_signed(link: Link, client: Client, cache: Path | None) -> Signed:
    cached = None if cache is None else cache / f"{link.campaign}.json"
    try:
        content = client.request("GET", f"/v1/campaigns/{link.campaign}", SIGNED_BYTES).content
    except Offline:
        if cached is None or not cached.is_file():
            raise
        content = cached.read_bytes()
    try:
        signed = Signed.model_validate_json(content)
    except ValidationError:
        raise PrivetError("The collector did not send a campaign.") from None
    if cached is not None:
        _write(cached, content)
    return signed


def _fetch_part(sha256: str, client: Client, cache: Path | None) -> bytes:
    """A part of a release, from the last time or from the collector, and in both cases the one that
    the manifest names."""
    cached = None if cache is None else cache / sha256
    if cached is not None and cached.is_file():
        content = cached.read_bytes()
        if hashlib.sha256(content).hexdigest() == sha256:
            return content
    content = client.request("GET", f"/v1/parts/{sha256}").content
    if hashlib.sha256(content).hexdigest() != sha256:
        raise PrivetError(
            "A part of the release is not the one that the campaign's owner signed. Do not take "
            "part."
        )
    if cached is not None:
        _write(cached, content)
    return content


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_bytes(content)
