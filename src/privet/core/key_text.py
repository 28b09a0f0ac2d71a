"""Keys and signatures as text that people can copy and compare."""

from __future__ import annotations

import base64
import binascii
import hashlib


def fingerprint(public: str) -> str:
    """What people compare: SHA-256 of a public key, the first half, in groups of four.

    >>> fingerprint(to_base64(bytes(32)))
    '6668 7aad f862 bd77 6c8f c18b 8e9f 8e20'
    """
    digest = hashlib.sha256(from_base64(public)).hexdigest()[:32]
    return " ".join(digest[i : i + 4] for i in range(0, 32, 4))


def to_base64(content: bytes) -> str:
    """Bytes as base64 for addresses, without padding."""
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def from_base64(text: str) -> bytes:
    """The inverse of `to_base64`; ValueError where it is no such text."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("not base64url") from None


def key_bytes(text: str) -> bytes:
    """The 32 bytes of a key; ValueError where it has others."""
    key = from_base64(text)
    if len(key) != 32:
        raise ValueError("a key has 32 bytes")
    return key
