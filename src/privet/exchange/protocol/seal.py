"""Keys, and boxes that only a campaign's owner can open.

A record is sealed to the campaign's Curve25519 key (libsodium's sealed box: an ephemeral X25519
key, then XSalsa20-Poly1305), so the server stores what it cannot read. A manifest is signed with
the owner's Ed25519 key. Private keys are made where the owner sits and are never sent.
"""

from __future__ import annotations

from pathlib import Path

from nacl.exceptions import BadSignatureError, CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox
from nacl.signing import SigningKey, VerifyKey

from privet.core import secret_files
from privet.core.errors import PrivetError
from privet.core.key_text import from_base64, key_bytes, to_base64

# Bytes that sealing adds: an ephemeral key and an authenticator.
OVERHEAD = 48


def seal(content: bytes, public: str) -> bytes:
    return bytes(SealedBox(PublicKey(key_bytes(public))).encrypt(content))


def unseal(content: bytes, private: str) -> bytes:
    try:
        return bytes(SealedBox(PrivateKey(key_bytes(private))).decrypt(content))
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
    return to_base64(bytes(SigningKey(key_bytes(private)).verify_key))


def sign(content: bytes, private: str) -> str:
    return to_base64(SigningKey(key_bytes(private)).sign(content).signature)


def is_signed(content: bytes, signature: str, public: str) -> bool:
    try:
        VerifyKey(key_bytes(public)).verify(content, from_base64(signature))
    except (BadSignatureError, ValueError, TypeError):
        return False
    return True


def read_secret(path: Path) -> str:
    """A secret of the owner of a campaign."""
    try:
        return secret_files.read_secret(path)
    except (OSError, UnicodeDecodeError):
        raise PrivetError(f"The file {path} with the owner's keys cannot be read.") from None
