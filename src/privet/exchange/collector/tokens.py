"""Tokens of operators, owners and invited participants: `pvt_NAME_SECRET`. The database has their
names and the SHA-256 of the whole, so that a stolen database opens nothing."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from typing import Any

DAY_MS = 86_400_000


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def today() -> int:
    """The beginning of this day, UTC: what is written beside the name of a person."""
    return now() // DAY_MS * DAY_MS


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def new_token() -> tuple[str, str]:
    """Name and text. The text is not stored: this is the only time it is seen."""
    name = secrets.token_hex(8)
    return name, f"pvt_{name}_{secrets.token_urlsafe(32)}"


def bearer_token(authorization: str) -> tuple[str, str] | None:
    """Name and text of the token in a header; None where there is none."""
    kind, _, text = authorization.partition(" ")
    match = re.match(r"pvt_([0-9A-Za-z]{16})_", text.strip())
    return (match[1], text.strip()) if match and kind.lower() == "bearer" else None


def is_valid(row: Any, text: str) -> bool:
    """Whether a row of the table of tokens is of this token, which neither ended nor was
    revoked."""
    same = hmac.compare_digest(str(row.hash), digest(text))
    return same and row.revoked is None and (row.expires is None or row.expires > now())
