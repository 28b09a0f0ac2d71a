"""Requests to a collector. Links are read here, and what can go wrong becomes a sentence."""

from __future__ import annotations

import ipaddress
import re
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import TypeAdapter, ValidationError

from privet.core.errors import PrivetError, first_line
from privet.core.terminal import escaped

Answer = TypeVar("Answer")

TIMEOUT_SECONDS = 60.0
# How long one answer may take in all, however slowly it comes.
ANSWER_SECONDS = 1800.0
# Most bytes of an answer, unpacked: of a message, and of a part of a release or a
# page of records.
MESSAGE_BYTES = 64 << 20
PART_BYTES = 256 << 20
# How often a request is sent where a collector asks to slow down.
ATTEMPTS = 5
# The same request may succeed later.
LATER = (408, 429, 500, 502, 503, 504, 507)


class Offline(PrivetError):
    """The collector cannot be reached or cannot answer now: the same request may succeed later."""


class Rejected(PrivetError):
    """The collector understood and refused.

    Parameters:
        status: Of HTTP.
        sentence: Why.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(f"The collector refused: {sentence}")
        self.status = status


@dataclass(frozen=True)
class Link:
    """Where a campaign is: `https://HOST/c/CAMPAIGN`, with `#invite=TOKEN` for those who were
    invited.

    Parameters:
        server: The collector's address.
        campaign: The campaign's name.
        invite: The token of an invitation. A browser never sends the part of a link after #, so it
            does not end up in anybody's log.
    """

    server: str
    campaign: str
    invite: str | None = None

    @staticmethod
    def parse(text: str) -> Link:
        """
        >>> Link.parse("https://example.org/c/00112233445566778899aabbccddeeff#invite=pvt_1_2")
        ... # doctest: +NORMALIZE_WHITESPACE
        Link(server='https://example.org', campaign='00112233445566778899aabbccddeeff',
             invite='pvt_1_2')
        """
        parts = urlsplit(text.strip())
        path = re.fullmatch(r"(.*)/c/([0-9a-f]{32})/?", parts.path)
        if parts.scheme not in ("http", "https") or not parts.hostname or path is None:
            raise PrivetError(
                "A campaign's link looks like  https://HOST/c/0123...  with 32 characters at the "
                "end."
            )
        key, _, invite = parts.fragment.partition("=")
        server = server_address(f"{parts.scheme}://{parts.netloc}{path[1]}")
        return Link(server, path[2], invite if key == "invite" else None)

    @property
    def text(self) -> str:
        """Without the invitation."""
        return f"{self.server}/c/{self.campaign}"


def server_address(url: str) -> str:
    """A collector's address, if it is one that may be used: without TLS only on this machine."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise PrivetError(f"'{url}' is not the address of a collector: it begins with https://.")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise PrivetError(
            "Without TLS anybody on the way could change what is shown and sent: use an address "
            "with https://."
        )
    return url.rstrip("/")


class Client:
    """A connection to one collector.

    Parameters:
        url: The collector's address.
        token: Of an operator or owner, sent with every request.
        transport: Instead of the network, for tests.
    """

    def __init__(
        self, url: str, token: str | None = None, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._http = httpx.Client(
            base_url=server_address(url),
            timeout=TIMEOUT_SECONDS,
            follow_redirects=False,
            transport=transport,
            headers={
                "accept-encoding": "gzip",
                **({"authorization": f"Bearer {token}"} if token else {}),
            },
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def request(
        self, method: str, path: str, most: int = PART_BYTES, **options: Any
    ) -> httpx.Response:
        """The answer, if it is a success; else Rejected with the collector's sentence, or Offline
        where trying later may help.

        Parameters:
            method, path: Of HTTP.
            most: Most bytes that the answer may have, unpacked: no more are read.
            options: As of `httpx.Client.request`: content, json, headers, params.
        """
        for attempt in range(ATTEMPTS):
            try:
                with self._http.stream(method, path, **options) as stream:
                    answer = _bounded(stream, most)
            except httpx.HTTPError as error:
                raise Offline(
                    f"The collector {self._http.base_url} cannot be reached ({first_line(error)})."
                ) from None
            if answer.status_code != 429 or attempt == ATTEMPTS - 1:
                break
            time.sleep(min(float(answer.headers.get("retry-after", "1")), 10.0))
        if answer.status_code in LATER:
            raise Offline(f"The collector cannot answer now: {_sentence(answer)}")
        if not answer.is_success:
            raise Rejected(answer.status_code, _sentence(answer))
        return answer

    def ask(self, kind: type[Answer], method: str, path: str, **options: Any) -> Answer:
        """The same with the answer read as a `kind`: one of the messages, or a list of them."""
        answer = self.request(method, path, MESSAGE_BYTES, **options)
        try:
            return TypeAdapter(kind).validate_json(answer.content)
        except ValidationError:
            raise PrivetError(
                f"The collector {self._http.base_url} does not answer as a collector does."
            ) from None


def _bounded(stream: httpx.Response, most: int) -> httpx.Response:
    """An answer whose content is at most so long; PrivetError where there is more of it. A few
    bytes can be packed so that they unpack to any number, so unpacking stops there too."""
    long = PrivetError(f"The collector's answer is longer than {most >> 20} MB: it is not read.")
    packed = stream.headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("identity", "gzip", ""):
        raise PrivetError("The collector's answer is packed in a way that was not asked for.")
    unpack = zlib.decompressobj(wbits=31) if packed == "gzip" else None
    end, content = time.monotonic() + ANSWER_SECONDS, bytearray()
    for chunk in stream.iter_raw() if not stream.is_closed else [stream.content]:
        if unpack is None:
            content += chunk
        else:
            try:
                content += unpack.decompress(chunk, most + 1 - len(content))
            except zlib.error:
                raise PrivetError("The collector's answer cannot be unpacked.") from None
        if len(content) > most:
            raise long
        if time.monotonic() > end:
            raise Offline("The collector's answer takes too long.")
    gone = ("content-encoding", "content-length", "transfer-encoding")
    headers = [(name, value) for name, value in stream.headers.multi_items() if name not in gone]
    return httpx.Response(
        stream.status_code, headers=headers, content=bytes(content), request=stream.request
    )


# From an address and a token to a client; tests give their own.
Connect = Callable[[str, str | None], Client]


def _sentence(answer: httpx.Response) -> str:
    try:
        return escaped(str(answer.json()["error"])[:300])
    except (ValueError, KeyError, TypeError):
        return f"status {answer.status_code}."


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
