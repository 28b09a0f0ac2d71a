"""Who stands for an audit or a certificate: the value that is written into its file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Signature:
    """A signature over everything else in the file, the name and the key included.

    Parameters:
        auditor: The name that the signer gave; nobody has checked it.
        key: The signer's public key (Ed25519, base64url): its fingerprint is what people compare.
        signed: When, as an ISO date and time in UTC, by the signer's clock.
        value: The signature (base64url).
    """

    auditor: str
    key: str
    signed: str
    value: str = ""
