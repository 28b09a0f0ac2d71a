"""Keys and sealed boxes."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from privet.core.errors import PrivetError
from privet.core.secret_files import write_secret
from privet.exchange.protocol import seal


def test_only_the_private_key_opens_what_was_sealed() -> None:
    private, public = seal.sealing_keys()
    sealed = seal.seal(b"a record", public)
    assert seal.unseal(sealed, private) == b"a record"
    assert len(sealed) == len(b"a record") + seal.OVERHEAD
    assert b"record" not in sealed
    with pytest.raises(PrivetError, match="not sealed with this campaign's key"):
        seal.unseal(sealed, seal.sealing_keys()[0])


def test_the_same_record_is_sealed_differently_every_time() -> None:
    _, public = seal.sealing_keys()
    assert seal.seal(b"a record", public) != seal.seal(b"a record", public)


def test_a_changed_byte_is_noticed_wherever_it_is() -> None:
    private, public = seal.sealing_keys()
    sealed = seal.seal(b"x" * 40, public)
    for k in range(len(sealed)):
        changed = bytearray(sealed)
        changed[k] ^= 1
        with pytest.raises(PrivetError):
            seal.unseal(bytes(changed), private)


def test_a_signature_is_of_one_text_and_one_key() -> None:
    key, other = seal.signing_key(), seal.signing_key()
    signature = seal.sign(b"text", key)
    assert seal.is_signed(b"text", signature, seal.verify_key(key))
    assert not seal.is_signed(b"text.", signature, seal.verify_key(key))
    assert not seal.is_signed(b"text", signature, seal.verify_key(other))
    assert not seal.is_signed(b"text", "nonsense!", seal.verify_key(key))
    assert not seal.is_signed(b"text", signature, "short")


def test_a_secret_file_is_its_owners_alone_and_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "new" / "key"
    write_secret(path, "secret")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert seal.read_secret(path) == "secret"
    with pytest.raises(PrivetError, match="not overwritten"):
        write_secret(path, "other")
    path.chmod(0o640)
    with pytest.raises(PrivetError, match="chmod 600"):
        seal.read_secret(path)
