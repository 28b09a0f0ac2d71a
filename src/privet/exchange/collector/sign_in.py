"""Owners and auditors who sign in elsewhere: OpenID Connect (optional).

An owner lets somebody act for a campaign by the name (`sub`) that the issuer knows them by; their
ID token, as a bearer, is then as good as a token of ours. Checked are the signature by a key that
the issuer publishes, the issuer, that the token is for this collector (`aud`), and its times. Only
asymmetric signatures are taken.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from privet.core.errors import PrivetError, missing_extra
from privet.exchange.collector.commits import Refused

ALGORITHMS = ["RS256", "PS256", "ES256", "EdDSA"]
# Keys are fetched again after so many seconds, or for a key that is not known, but not more often
# than this.
FRESH_SECONDS, PAUSE_SECONDS = 600.0, 30.0
# Most bytes of what an issuer publishes, and of a token.
MOST_BYTES, MOST_TOKEN = 256 * 1024, 16 * 1024
LEEWAY_SECONDS = 60


@dataclass
class SignIn:
    """An issuer whose word is taken for who somebody is.

    Parameters:
        issuer: Its address, as in its tokens (https, or http on loopback).
        audience: Whom tokens must be for: the name that the issuer knows this collector by.
        transport: Of httpx, for tests.
    """

    issuer: str
    audience: str
    transport: httpx.BaseTransport | None = None
    _keys: Any = None
    _fetched: float = float("-inf")
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        try:
            import joserfc  # noqa: F401
        except ModuleNotFoundError:
            raise missing_extra("joserfc", "oidc", "Signing in elsewhere") from None
        _check_address(self.issuer)

    def subject(self, token: str) -> str:
        """Whose token this is; Refused where it cannot be believed."""
        from joserfc import jwt
        from joserfc.errors import JoseError

        if len(token) > MOST_TOKEN:
            raise Refused(401, "A valid token is needed.")
        for attempt in (0, 1):
            try:
                decoded = jwt.decode(token, self._key_set(bool(attempt)), algorithms=ALGORITHMS)
                break
            except (JoseError, ValueError, TypeError, KeyError):
                if attempt:
                    raise Refused(401, "A valid token is needed.") from None
        claims = jwt.JWTClaimsRegistry(
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": self.issuer},
            aud={"essential": True, "value": self.audience},
            exp={"essential": True},
            sub={"essential": True},
        )
        try:
            claims.validate(decoded.claims)
        except (JoseError, ValueError, TypeError):
            raise Refused(
                401, "The token is of another issuer, for another service, or has expired."
            ) from None
        subject = decoded.claims["sub"]
        if not isinstance(subject, str) or not 1 <= len(subject) <= 255:
            raise Refused(401, "A valid token is needed.")
        return subject

    def _key_set(self, again: bool) -> Any:
        from joserfc.jwk import KeySet

        with self._lock:
            age = time.monotonic() - self._fetched
            if self._keys is None or age > FRESH_SECONDS or (again and age > PAUSE_SECONDS):
                about = self._fetch(self.issuer.rstrip("/") + "/.well-known/openid-configuration")
                if about.get("issuer") != self.issuer:
                    raise Refused(503, "The issuer of tokens says it is another.")
                published: Any = self._fetch(str(about.get("jwks_uri", "")))
                self._keys = KeySet.import_key_set(published)
                self._fetched = time.monotonic()
            return self._keys

    def _fetch(self, url: str) -> dict[str, Any]:
        try:
            _check_address(url)
            with (
                httpx.Client(timeout=5.0, transport=self.transport, trust_env=False) as client,
                client.stream("GET", url) as answer,
            ):
                answer.raise_for_status()
                content = b""
                for chunk in answer.iter_bytes():
                    content += chunk
                    if len(content) > MOST_BYTES:
                        raise ValueError("too long")
            about = json.loads(content)
        except (httpx.HTTPError, ValueError, RecursionError, PrivetError):
            about = None
        if not isinstance(about, dict):
            raise Refused(503, "The issuer of tokens cannot be reached: try again later.")
        return about


def _check_address(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "https" and not (
        parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")
    ):
        raise PrivetError(f"The issuer's address begins with https://, and '{url[:80]}' does not.")
