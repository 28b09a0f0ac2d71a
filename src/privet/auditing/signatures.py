"""Audits and certificates signed by a named auditor's key.

Signed is the file's content as canonical JSON (keys sorted, no spaces), with the auditor's name,
public key and time in it and the signature itself left empty, so that no field can be changed
unnoticed. Ed25519, by PyNaCl.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from privet.core.errors import PrivetError
from privet.core.json_values import read
from privet.core.key_text import fingerprint, from_base64, key_bytes, to_base64
from privet.core.secret_files import read_secret, write_secret
from privet.evidence.certificate.values import Certification
from privet.evidence.figures import Audit
from privet.evidence.signature import Signature

Signed = TypeVar("Signed", Audit, Certification)


def make_key(path: str | Path) -> str:
    """Write a new secret key to a file that only its owner may read; returns its fingerprint, which
    the auditor makes known."""
    signing = _nacl().SigningKey.generate()
    write_secret(Path(path), to_base64(bytes(signing)) + "\n")
    return fingerprint(to_base64(bytes(signing.verify_key)))


class Signer(NamedTuple):
    """Who signs.

    Parameters:
        key: The file of a secret key, as `make_key` writes it.
        auditor: The name to sign with.
    """

    key: str | Path
    auditor: str

    def check(self) -> None:
        """PrivetError where nothing could be signed: to be asked before long work."""
        if not self.auditor.strip():
            raise PrivetError("Say who signs: --auditor NAME.")
        _nacl()
        _read_secret(Path(self.key))


def sign(what: Signed, signer: Signer) -> Signed:
    """The same audit or certificate, signed; a signature that it has is replaced."""
    signer.check()
    auditor = signer.auditor.strip()
    signing = _nacl().SigningKey(_read_secret(Path(signer.key)))
    public = to_base64(bytes(signing.verify_key))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    unsigned = replace(what, signature=Signature(auditor, public, now))
    value = signing.sign(_content(json.loads(unsigned.to_json()))).signature
    return replace(what, signature=Signature(auditor, public, now, to_base64(value)))


def read_document(path: str | Path) -> dict[str, Any]:
    """A JSON file as it is signed: one that names a field twice is refused, since another reader
    might take the other one."""
    try:
        document = parse_document(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise PrivetError(f"Cannot read {path}: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise PrivetError(f"{path} is not a file that Privet wrote: {error}.") from None
    return document


def parse_document(text: str) -> dict[str, Any]:
    """The same for its text; ValueError where it is no such document."""
    document = json.loads(text, object_pairs_hook=_without_repeats)
    if not isinstance(document, dict):
        raise ValueError("it is no audit and no certificate")
    return document


def check_signature(document: dict[str, Any]) -> tuple[Signature | None, bool]:
    """The signature of a document, None where it has none, and whether it is that of its content.

    Parameters:
        document: An audit or a certificate, as `read_document` gives it.
    """
    if document.get("signature") is None:
        return None, False
    try:
        signature: Signature = read(Signature, document["signature"], "signature")
        key = _nacl().VerifyKey(key_bytes(signature.key))
        value = from_base64(signature.value)
    except (TypeError, ValueError):
        return None, False
    try:
        key.verify(_content(document), value)
    except Exception:  # BadSignatureError, or a signature of another length
        return signature, False
    return signature, True


def _content(document: dict[str, Any]) -> bytes:
    """Everything that is signed."""
    unsigned = {**document, "signature": {**document["signature"], "value": ""}}
    text = json.dumps(unsigned, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    named = dict(pairs)
    if len(named) != len(pairs):
        raise ValueError("a field is named twice")
    return named


def _nacl() -> Any:
    try:
        from nacl import signing
    except ModuleNotFoundError:
        raise PrivetError(
            "Signing and checking signatures needs PyNaCl: pip install 'privet[participant]'."
        ) from None
    return signing


def _read_secret(path: Path) -> bytes:
    try:
        return key_bytes(read_secret(path, "a secret key").strip())
    except OSError as error:
        raise PrivetError(f"Cannot read the key {path}: {error.strerror}.") from None
    except ValueError:
        raise PrivetError(f"{path} is no key: make one with  privet auditor-key.") from None
