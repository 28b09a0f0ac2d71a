"""The keys of noise: one per campaign, in files that only their owner may read.

A key is made when a campaign is first released to, and never overwritten. Whoever gets it can take
the noise off everything that was released with it, so it is kept like a private key; `forget`
destroys it when the campaign is over.
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from privet.core.errors import PrivetError
from privet.core.files import sync_folder
from privet.core.home import home_folder
from privet.core.secret_files import place_secret, read_secret
from privet.release.keyed_noise import KEY_BYTES

# Names of campaigns become names of files.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def noise_key(campaign: str, home: Path | None = None) -> bytes:
    """The key of a campaign; made where there is none."""
    path = key_path(campaign, home)
    try:
        if not path.exists():
            # Of two at the same time one wins, and both use its key.
            place_secret(path, secrets.token_hex(KEY_BYTES) + "\n")
        key = bytes.fromhex(read_secret(path, "the key of noise").strip())
    except OSError as error:
        raise PrivetError(
            f"The key of the campaign cannot be kept in {path}: {error.strerror}. Set PRIVET_HOME "
            "to another folder, or draw noise that nobody can repeat with --fresh."
        ) from None
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise PrivetError(f"{path} is not a key of noise; move it away, and another is made.")
    return key


def forget(campaign: str, *, home: str | Path | None = None) -> Path:
    """Destroy the key of a campaign's noise; returns where it was.

    From then on nobody, its owner included, can take the noise off what was released, or release a
    record again with the same noise: a record that is released once more gets other noise, and
    whoever sees both learns more. So forget a campaign when it is over.

    campaign: the campaign's name, as `apply` was given it, or its link.
    home: where keys are kept; `$PRIVET_HOME`, or `~/.local/share/privet`.
    """
    path = key_path(_name(campaign), None if home is None else Path(home))
    if not path.is_file():
        known = sorted(file.stem for file in path.parent.glob("*.key"))
        raise PrivetError(
            f"There is no key of a campaign '{_name(campaign)}' here"
            + (f"; there are: {', '.join(known)}." if known else ".")
        )
    try:
        with path.open("rb+") as file:
            file.write(bytes(path.stat().st_size))
            file.flush()
            os.fsync(file.fileno())
        path.unlink()
        sync_folder(path.parent)
    except OSError as error:
        raise PrivetError(f"Cannot destroy {path}: {error.strerror}.") from None
    return path


def key_path(campaign: str, home: Path | None = None) -> Path:
    """Where the key of a campaign is, or would be."""
    if not NAME.fullmatch(campaign):
        raise PrivetError(
            f"'{campaign[:60]}' cannot be the name of a campaign: use letters, digits, '.', '_' "
            "and '-'."
        )
    return (home or home_folder()) / "keys" / f"{campaign}.key"


def _name(campaign: str) -> str:
    """The name at the end of a link, or the name itself."""
    return campaign.partition("#")[0].rstrip("/").rpartition("/")[2]
