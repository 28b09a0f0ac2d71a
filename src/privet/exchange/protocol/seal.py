"""Keys, and boxes that only a campaign's owner can open.

A record is sealed to the campaign's Curve25519 key (libsodium's sealed box: an ephemeral X25519
key, then XSalsa20-Poly1305), so the server stores what it cannot read. A manifest is signed with
the owner's Ed25519 key. Private keys are made where the owner sits and are never sent.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from pathlib import Path

from nacl.exceptions import BadSignatureError, CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox
from nacl.signing import SigningKey, VerifyKey

from privet.core.errors import PrivetError

# Bytes that sealing adds: an ephemeral key and an authenticator.
OVERHEAD = 48


def seal(content: bytes, public: str) -> bytes:
    return bytes(SealedBox(PublicKey(_key(public))).encrypt(content))


def unseal(content: bytes, private: str) -> bytes:
    try:
        return bytes(SealedBox(PrivateKey(_key(private))).decrypt(content))
    except (CryptoError, ValueError, TypeError):
        raise PrivetError(
            "A record was not sealed with this campaign's key, or was changed since."
        ) from None


def sealing_keys() -> tuple[str, str]:
    """A new pair: the private key, which stays with the owner, and the public one, which goes into
    the manifest."""
    private = PrivateKey.generate()
    return to_base64(bytes(private)), to_base64(bytes(private.public_key))


def signing_key() -> str:
    return to_base64(bytes(SigningKey.generate()))


def verify_key(private: str) -> str:
    return to_base64(bytes(SigningKey(_key(private)).verify_key))


def sign(content: bytes, private: str) -> str:
    return to_base64(SigningKey(_key(private)).sign(content).signature)


def is_signed(content: bytes, signature: str, public: str) -> bool:
    try:
        VerifyKey(_key(public)).verify(content, from_base64(signature))
    except (BadSignatureError, ValueError, TypeError):
        return False
    return True


def fingerprint(public: str) -> str:
    """What people compare: SHA-256 of a public key, the first half, in groups of four.

    >>> fingerprint(to_base64(bytes(32)))
    '6668 7aad f862 bd77 6c8f c18b 8e9f 8e20'
    """
    digest = hashlib.sha256(from_base64(public)).hexdigest()[:32]
    return " ".join(digest[i : i + 4] for i in range(0, 32, 4))


def to_base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("not base64url") from None


def write_secret(path: Path, text: str) -> None:
    """A file that only its owner may read, from the first byte on; what is there already is not
    overwritten."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise PrivetError(
            f"{path} is there already and holds a secret: it is not overwritten. Choose another "
            "place."
        ) from None
    except OSError as error:
        raise PrivetError(f"Cannot write {path}: {error.strerror}.") from None


def read_secret(path: Path) -> str:
    try:
        if path.stat().st_mode & 0o077:
            raise PrivetError(
                f"Others may read {path}, which holds a secret: make it yours alone with  "
                f"chmod 600 {path}."
            )
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise PrivetError(f"The file {path} with the owner's keys cannot be read.") from None


def _key(text: str) -> bytes:
    key = from_base64(text)
    if len(key) != 32:
        raise ValueError("a key has 32 bytes")
    return key
