"""A campaign as a participant sees it.

Nothing is believed because a server says so: the link pins the manifest, the manifest its release
and its owner's key, and what does not fit is refused before a file is opened.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from privet.core.errors import PrivetError
from privet.core.files import write_text
from privet.core.key_text import fingerprint
from privet.evidence.figures import Audit
from privet.exchange.protocol.client import Client, Link, Offline
from privet.exchange.protocol.manifest import Manifest, check_card, read_manifest
from privet.exchange.protocol.messages import Signed
from privet.release.runtime import Runnable


@dataclass(frozen=True)
class Campaign:
    """A campaign whose manifest, release and owner's key fit together.

    Parameters:
        link: Where it is.
        manifest: What its owner signed.
        card, graph: Of its release.
        open: Whether it takes records.
        audit: Of its release, where the owner attached one that can be read here.
    """

    link: Link
    manifest: Manifest
    card: dict[str, Any]
    graph: bytes
    open: bool
    audit: Audit | None = None

    @property
    def fingerprint(self) -> str:
        """Of the owner's key."""
        return fingerprint(self.manifest.signing_key)


def fetch_campaign(
    link: Link, client: Client, cache: Path | None = None, pinned: str | None = None
) -> Campaign:
    """The campaign at the end of a link, checked.

    Parameters:
        link: Where it is.
        client: Connected to its collector.
        cache: A folder for what is fetched, for when there is no network: the link says whether it
            is still the same.
        pinned: The fingerprint that its owner's key must have.
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
    audit = None
    if manifest.release.audit is not None:
        audit = _read_audit(_fetch_part(manifest.release.audit, client, cache), manifest)
    return Campaign(link, manifest, card, graph, signed.open, audit)


def _read_audit(content: bytes, manifest: Manifest) -> Audit | None:
    """The audit that the owner attached, or None where this Privet cannot read it; one of another
    release promises what this one does not keep."""
    try:
        audit = Audit.from_json(content.decode("utf-8"))
    except (UnicodeDecodeError, PrivetError):
        return None
    hashes = audit.release.get("sha256")
    if not isinstance(hashes, dict) or hashes.get("graph") != manifest.release.graph:
        raise PrivetError("The audit is of another release. Do not take part.")
    return audit


def is_known_owner(campaign: Campaign, home: Path) -> bool:
    """Whether this owner's key was seen before; from now on it was."""
    path = home / "owners.json"
    try:
        owners = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        owners = {}
    key = campaign.manifest.signing_key
    if key in owners:
        return True
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    owners[key] = campaign.manifest.who
    write_text(path, json.dumps(owners, indent=1, ensure_ascii=False) + "\n")
    return False


def _fetch_signed(link: Link, client: Client, cache: Path | None) -> Signed:
    cached = None if cache is None else cache / f"{link.campaign}.json"
    try:
        content = client.request("GET", f"/v1/campaigns/{link.campaign}").content
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
