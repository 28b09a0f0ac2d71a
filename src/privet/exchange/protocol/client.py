"""How owners and participants speak with a collector: one place that knows links, and turns what
can go wrong into a sentence."""

from __future__ import annotations

import ipaddress
import re
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx

from privet.core.errors import PrivetError

SECONDS = 60.0
PATIENCE = 5
"""Times to come back when a collector asks to slow down."""


class Offline(PrivetError):
    """The collector cannot be reached or cannot answer now: the same request may succeed later."""


@dataclass(frozen=True)
class Link:
    """Where a campaign is: `https://HOST/c/CAMPAIGN`, with `#invite=TOKEN` for those who were
    invited."""

    server: str
    campaign: str
    invite: str | None = None

    @staticmethod
    def parse(text: str) -> Link:
        """The part after # is never sent by a browser, so an invitation does not end up in
        anybody's log.

        >>> Link.parse("https://example.org/c/00112233445566778899aabbccddeeff#invite=pvt_1_2")
        Link(server='https://example.org', campaign='00112233445566778899aabbccddeeff', invite='pvt_1_2')
        """
        parts = urlsplit(text.strip())
        found = re.fullmatch(r"(.*)/c/([0-9a-f]{32})/?", parts.path)
        if parts.scheme not in ("http", "https") or not parts.hostname or found is None:
            raise PrivetError(
                "A campaign's link looks like  https://HOST/c/0123...  with 32 characters at the end."
            )
        invite = (
            parts.fragment.removeprefix("invite=") if parts.fragment.startswith("invite=") else None
        )
        return Link(server(f"{parts.scheme}://{parts.netloc}{found[1]}"), found[2], invite)

    @property
    def text(self) -> str:
        """Without the invitation."""
        return f"{self.server}/c/{self.campaign}"


def server(url: str) -> str:
    """A collector's address, if it is one that may be used: without TLS only on this machine."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise PrivetError(f"'{url}' is not the address of a collector: it begins with https://.")
    if parts.scheme == "http" and not _here(parts.hostname):
        raise PrivetError(
            "Without TLS anybody on the way could change what is shown and sent: use an address with https://."
        )
    return url.rstrip("/")


class Client:
    def __init__(
        self, url: str, token: str | None = None, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._http = httpx.Client(
            base_url=server(url), timeout=SECONDS, follow_redirects=False, transport=transport
        )
        self._token = token

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def ask(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        json: Any = None,
        headers: dict[str, str] | None = None,
        **query: Any,
    ) -> httpx.Response:
        """The answer, if it is a success; else PrivetError with the collector's sentence, Offline
        where trying later may help."""
        given = {
            **({"authorization": f"Bearer {self._token}"} if self._token else {}),
            **(headers or {}),
        }
        for attempt in range(PATIENCE):
            try:
                answer = self._http.request(
                    method, path, content=content, json=json, headers=given, params=query
                )
            except httpx.HTTPError as error:
                raise Offline(
                    f"The collector {self._http.base_url} cannot be reached ({_line(error)})."
                ) from None
            if answer.status_code != 429 or attempt == PATIENCE - 1:
                break
            time.sleep(min(float(answer.headers.get("retry-after", "1")), 10.0))
        if answer.status_code in (408, 429, 500, 502, 503, 504, 507):
            raise Offline(f"The collector cannot answer now: {_sentence(answer)}")
        if not answer.is_success:
            raise Rejected(answer.status_code, _sentence(answer))
        return answer


class Rejected(PrivetError):
    """The collector understood and refused."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(f"The collector refused: {sentence}")
        self.status = status


def _sentence(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"])[:300]
    except (ValueError, KeyError, TypeError):
        return f"status {answer.status_code}."


def _here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
