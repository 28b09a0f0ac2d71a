"""Who stands for what a campaign says about its release.

What the owner attached is the owner's claim, whatever it says of itself. It is *checked* only where
its whole content is signed by a key that the participant said to trust, and it names the graph, the
encoding and the noise that this campaign runs. `privet trust` keeps such keys; a name in a
signature says nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from privet.auditing.signatures import check_signature
from privet.core.errors import PrivetError
from privet.core.key_text import fingerprint
from privet.evidence.sentences import say
from privet.exchange.participant.private_files import write_private
from privet.exchange.protocol.manifest import Manifest
from privet.release.what_runs import runs_hash

FILE = "auditors.json"
OWNER = "the campaign's owner"

Kind = Literal["owner", "stranger", "unbound", "changed", "checked"]


@dataclass(frozen=True)
class Claim:
    """Who stands for an audit.

    Parameters:
        kind: The `owner` alone; a `stranger`, whose key is not trusted; somebody trusted who signed
            something `unbound` to this campaign's encoding and noise; a signature of something that
            was `changed`; or `checked` by somebody trusted.
        name: Of the trusted auditor as the participant keeps it; of others as the signature has it.
        key: Fingerprint of the key that signed.
    """

    kind: Kind = "owner"
    name: str = ""
    key: str = ""

    @property
    def is_checked(self) -> bool:
        return self.kind == "checked"

    @property
    def by(self) -> str:
        """Who says so, as the end of a sentence."""
        if self.kind == "checked":
            return say("checked", who=self.name, key=self.key)
        if self.kind == "changed":
            return say("changed")
        if self.kind == "owner":
            return say("claimed", who=OWNER)
        name = "signed_stranger" if self.kind == "stranger" else "signed_unbound"
        return say(name, who=OWNER, name=self.name, key=self.key)

    @property
    def before(self) -> str:
        """What goes before the figures; empty where they were checked."""
        return "" if self.is_checked else say("owner_claims", who="The campaign's owner")


def claim(
    document: Mapping[str, Any] | None,
    trusted: Mapping[str, str],
    manifest: Manifest | None = None,
    card: Mapping[str, Any] | None = None,
) -> Claim:
    """Who stands for an audit.

    Parameters:
        document: The audit as it was parsed; one that names a field twice must have been refused.
        trusted: Names of auditors by the fingerprints of their keys.
        manifest, card: Of the campaign; without them nothing counts as checked.
    """
    if document is None or document.get("signature") is None:
        return Claim()
    try:
        signature, is_right = check_signature(dict(document))
    except PrivetError:  # without PyNaCl no signature can be checked
        return Claim()
    if signature is None or not is_right:
        return Claim("changed")
    key = fingerprint(signature.key)
    if manifest is not None and signature.key == manifest.signing_key:
        return Claim()  # owners who sign their own audits claim them
    if key not in trusted:
        return Claim("stranger", signature.auditor, key)
    about = document.get("release")
    stated = about.get("runs") if isinstance(about, dict) else None
    if manifest is None or card is None or stated != _runs(manifest, card):
        return Claim("unbound", trusted[key], key)
    return Claim("checked", trusted[key], key)


def _runs(manifest: Manifest, card: Mapping[str, Any]) -> str:
    return runs_hash(manifest.release.graph, card.get("input"), card.get("noise"))


def trusted_auditors(home: Path) -> dict[str, str]:
    """Names by fingerprints, as `trust` kept them."""
    try:
        entries = json.loads((home / FILE).read_text(encoding="utf-8"))
        return {str(key): str(name) for key, name in entries.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError):
        raise PrivetError(f"{home / FILE} cannot be read: move it away to begin anew.") from None


def trust(key: str, name: str, home: Path) -> str:
    """Believe what is signed with the key of this fingerprint, under a name of one's own; without
    a name, no longer. Returns the fingerprint as it is printed."""
    plain = re.sub(r"[\s:]", "", key).lower()
    if not re.fullmatch(r"[0-9a-f]{32}", plain):
        raise PrivetError("A fingerprint has 32 digits and letters a to f, in groups of four.")
    groups = " ".join(plain[i : i + 4] for i in range(0, 32, 4))
    auditors = trusted_auditors(home)
    if name.strip():
        auditors[groups] = name.strip()
    elif auditors.pop(groups, None) is None:
        raise PrivetError(f"The key {groups} was not trusted.")
    text = json.dumps(auditors, indent=1, ensure_ascii=False) + "\n"
    write_private(home / FILE, text.encode())
    return groups
