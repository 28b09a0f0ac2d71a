"""Limits that every request meets before anything else does: size, rate, time, origin, encoding.
And the headers of every answer.

Written against ASGI itself: it costs microseconds, and a body is counted as it comes, whatever its
header promises.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from privet.exchange.collector.watch import Watch

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = {
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
}
"""Of every answer, unless it says otherwise."""
PAGE_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; "
    "connect-src 'self'; worker-src 'self'; frame-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox"
"""Of an audit's report, which an owner wrote: it is shown, and can do nothing - no script, no
request, no origin."""

PAGES = {
    "content-security-policy": PAGE_POLICY,
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "permissions-policy": "camera=(self), microphone=(), geolocation=()",
}
STATIC = {"cache-control": "no-cache"}
API, PAGE, FILE = (
    [(name.encode(), value.encode()) for name, value in headers.items()]
    for headers in (HEADERS, {**HEADERS, **PAGES}, {**HEADERS, **PAGES, **STATIC})
)


@dataclass(frozen=True)
class Limits:
    body: int = 16 * 2**20
    """Most bytes of any request."""
    json: int = 256 * 2**10
    """Most bytes of a request in JSON."""
    part: int = 128 * 2**20
    """Most bytes of a part of a release, which only an operator may send."""
    seconds: float = 30.0
    """Within which a body must have come."""
    rate: float = 50.0
    """Requests a second from one address, or with one token, in the long run; 0 for no limit."""
    burst: float = 200.0
    """How many may come at once after a pause."""


@dataclass
class Buckets:
    """Token buckets, one per key: `rate` tokens flow in a second, up to `burst`; a request takes
    one."""

    rate: float
    burst: float
    most: int = 100_000
    """Keys remembered; the one that was idle longest is forgotten first, which is as good as
    full."""
    _levels: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def take(self, key: str, at: float | None = None) -> float:
        """0 if the request may go on, else after how many seconds it could."""
        if self.rate <= 0:
            return 0.0
        at = time.monotonic() if at is None else at
        level, last = self._levels.pop(key, (self.burst, at))
        level = min(self.burst, level + (at - last) * self.rate)
        wait = 0.0 if level >= 1 else (1 - level) / self.rate
        self._levels[key] = (level if wait else level - 1, at)
        if len(self._levels) > self.most:
            self._levels.popitem(last=False)
        return wait


class TooLong(Exception):
    """A body is longer than its limit."""


class TooSlow(Exception):
    """A body did not come in time."""


class Guard:
    def __init__(self, app: App, limits: Limits, watch: Watch) -> None:
        self.app, self.limits, self.watch = app, limits, watch
        self.buckets = Buckets(limits.rate, limits.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = dict(scope["headers"])
        status, size, begun = 0, 0, False

        async def answer(message: MutableMapping[str, Any]) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                message["headers"] = _with_headers(message.get("headers", []), scope["path"])
            await send(message)

        refused = self._refusal(scope, headers)
        longest = self._longest(scope, headers)
        deadline = started + self.limits.seconds
        whole = False

        async def take() -> MutableMapping[str, Any]:
            nonlocal size, whole
            if whole:
                return await receive()
            try:
                async with asyncio.timeout(max(deadline - time.perf_counter(), 0.001)):
                    message = await receive()
            except TimeoutError:
                raise TooSlow from None
            if message["type"] == "http.request":
                size += len(message.get("body", b""))
                whole = not message.get("more_body", False)
                if size > longest:
                    raise TooLong
            return message

        try:
            if refused is not None:
                await _say(answer, *refused)
            else:
                await self.app(scope, take, answer)
        except TooLong:
            if not begun:
                await _say(answer, 413, f"The request is longer than {longest} bytes.")
        except TooSlow:
            if not begun:
                await _say(answer, 408, "The request did not come in time.")
        except Exception as error:
            self.watch.say("error", error=type(error).__name__, where=_where(error))
            if not begun:
                await _say(answer, 500, "Something went wrong in the collector.")
        finally:
            route = getattr(scope.get("route"), "path", None) or "other"
            method = scope["method"] if scope["method"] in METHODS else "other"
            self.watch.request(method, route, status, time.perf_counter() - started, size)

    def _refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, str, float] | None:
        who = [f"address {(scope.get('client') or ('',))[0]}"]
        if authorization := headers.get(b"authorization"):
            who.append(
                f"token {authorization[:27].decode('latin-1')}"
            )  # 'Bearer pvt_' and its name, not its secret
        if wait := max(self.buckets.take(key) for key in who):
            return 429, "Too many requests: slow down.", wait
        if headers.get(b"content-encoding", b"identity").strip().lower() not in (b"identity", b""):
            return 415, "Compressed bodies are not taken.", 0.0
        origin = headers.get(b"origin")
        if (
            origin is not None
            and scope["method"] not in ("GET", "HEAD")
            and not _same(origin, headers.get(b"host", b""))
        ):
            return 403, "Requests from other origins are not taken.", 0.0
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._longest(scope, headers):
            return 413, f"The request is longer than {self._longest(scope, headers)} bytes.", 0.0
        return None

    def _longest(self, scope: Scope, headers: dict[bytes, bytes]) -> int:
        if scope["method"] == "PUT" and scope["path"].startswith("/v1/parts/"):
            return self.limits.part
        return (
            self.limits.json
            if headers.get(b"content-type", b"").lower().startswith(b"application/json")
            else self.limits.body
        )


METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")


def _with_headers(given: list[tuple[bytes, bytes]], path: str) -> list[tuple[bytes, bytes]]:
    there = {name.lower() for name, _ in given}
    own = API if path.startswith("/v1/") else FILE if path.startswith("/static/") else PAGE
    return [*given, *(pair for pair in own if pair[0] not in there)]


def _same(origin: bytes, host: bytes) -> bool:
    try:
        return urlsplit(origin.decode("ascii")).netloc.lower() == host.decode("ascii").lower() != ""
    except ValueError:
        return False


async def _say(send: Send, status: int, sentence: str, wait: float = 0.0) -> None:
    body = json.dumps({"error": sentence}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    if wait:
        headers.append((b"retry-after", str(int(wait) + 1).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _where(error: BaseException) -> str:
    """File and line of an unexpected error; its text may quote what was sent, and is not written
    down."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return (
        ""
        if trace is None
        else f"{trace.tb_frame.f_code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno}"
    )
