"""Limits that every request meets before anything else does: size, rate, time, origin, encoding.

Written against ASGI itself: it costs microseconds, and a body is counted as it comes, whatever its
header promises.
"""

from __future__ import annotations

import asyncio
import json
import time
import traceback
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from privet.exchange.collector.answer_headers import with_headers
from privet.exchange.collector.monitor import Monitor

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")


@dataclass(frozen=True)
class Limits:
    """What a collector takes.

    Parameters:
        body: Most bytes of any request.
        json: Most bytes of a request in JSON.
        part: Most bytes of a part of a release, which only an operator may send.
        seconds: Within which a body must have come.
        rate: Requests a second from one address, or with one token, in the long run; 0 for no
            limit.
        burst: How many may come at once after a pause.
        reserve: Bytes of the disk that are left free.
    """

    body: int = 16 * 2**20
    json: int = 256 * 2**10
    part: int = 128 * 2**20
    seconds: float = 30.0
    rate: float = 50.0
    burst: float = 200.0
    reserve: int = 64 * 2**20


@dataclass
class Buckets:
    """Token buckets, one per key: a request takes a token.

    Parameters:
        rate: Tokens that flow in a second.
        burst: Most tokens in a bucket.
        most: Keys remembered; the one that was idle longest is forgotten first, which is as good
            as full.
    """

    rate: float
    burst: float
    most: int = 100_000
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


@dataclass(eq=False)
class Stopped(Exception):
    """A request that is not read to its end.

    Parameters:
        status: Of HTTP.
        sentence: Why.
        wait: Seconds after which it could be sent again.
    """

    status: int
    sentence: str
    wait: float = 0.0


def too_long(longest: int) -> Stopped:
    return Stopped(413, f"The request is longer than {longest} bytes.")


class Guard:
    """Middleware that refuses requests beyond the limits, adds headers to every answer, and counts
    all of them.

    Parameters:
        app: What answers the requests that are let through.
        limits: What is let through.
        monitor: Counts and logs.
    """

    def __init__(self, app: App, limits: Limits, monitor: Monitor) -> None:
        self.app, self.limits, self.monitor = app, limits, monitor
        self.buckets = Buckets(limits.rate, limits.burst)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        if scope["type"] != "http":
            return
        request = _Request(scope, receive, send, time.perf_counter() + self.limits.seconds)
        try:
            request.longest = self._admit(scope, dict(scope["headers"]))
            await self.app(scope, request.receive, request.send)
        except Stopped as stopped:
            await request.refuse(stopped)
        except Exception as error:
            self.monitor.log("error", error=type(error).__name__, where=_where(error))
            await request.refuse(Stopped(500, "Something went wrong in the collector."))
        finally:
            route = getattr(scope.get("route"), "path", None) or "other"
            method = scope["method"] if scope["method"] in METHODS else "other"
            seconds = time.perf_counter() - (request.deadline - self.limits.seconds)
            self.monitor.request(method, route, request.status, seconds, request.size)

    def _admit(self, scope: Message, headers: dict[bytes, bytes]) -> int:
        """How long the body may be; Stopped where the request is refused before it is read."""
        senders = [f"address {(scope.get('client') or ('',))[0]}"]
        if authorization := headers.get(b"authorization"):
            # 'Bearer pvt_' and the token's name, not its secret.
            senders.append(f"token {authorization[:27].decode('latin-1')}")
        if wait := max(self.buckets.take(key) for key in senders):
            raise Stopped(429, "Too many requests: slow down.", wait)
        if headers.get(b"content-encoding", b"identity").strip().lower() not in (b"identity", b""):
            raise Stopped(415, "Compressed bodies are not taken.")
        safe = scope["method"] in ("GET", "HEAD") or b"origin" not in headers
        if not safe and not _same_host(headers[b"origin"], headers.get(b"host", b"")):
            raise Stopped(403, "Requests from other origins are not taken.")
        longest = self.limits.body
        if scope["method"] == "PUT" and scope["path"].startswith("/v1/parts/"):
            longest = self.limits.part
        elif headers.get(b"content-type", b"").lower().startswith(b"application/json"):
            longest = self.limits.json
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > longest:
            raise too_long(longest)
        return longest


@dataclass(eq=False)
class _Request:
    """Counts the body of one request as it comes, and remembers how it was answered."""

    scope: Message
    _receive: Receive
    _send: Send
    deadline: float
    longest: int = 0
    size: int = 0
    status: int = 0
    whole: bool = False

    async def receive(self) -> Message:
        if self.whole:
            return await self._receive()
        try:
            async with asyncio.timeout(max(self.deadline - time.perf_counter(), 0.001)):
                message = await self._receive()
        except TimeoutError:
            raise Stopped(408, "The request did not come in time.") from None
        if message["type"] == "http.request":
            self.size += len(message.get("body", b""))
            self.whole = not message.get("more_body", False)
            if self.size > self.longest:
                raise too_long(self.longest)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = with_headers(message.get("headers", []), self.scope["path"])
        await self._send(message)

    async def refuse(self, stopped: Stopped) -> None:
        """Answer with a sentence, unless an answer has begun."""
        if self.status:
            return
        body = json.dumps({"error": stopped.sentence}).encode()
        headers = {"content-type": "application/json", "content-length": str(len(body))}
        headers |= {"connection": "close"}
        if stopped.wait:
            headers["retry-after"] = str(int(stopped.wait) + 1)
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self.send(
            {"type": "http.response.start", "status": stopped.status, "headers": encoded}
        )
        await self.send({"type": "http.response.body", "body": body})


def _same_host(origin: bytes, host: bytes) -> bool:
    try:
        return urlsplit(origin.decode("ascii")).netloc.lower() == host.decode("ascii").lower() != ""
    except ValueError:
        return False


def _where(error: BaseException) -> str:
    """File and line of an unexpected error; its text may quote what was sent, and is not written
    down."""
    *_, last = traceback.extract_tb(error.__traceback__)
    return f"{Path(last.filename).name}:{last.lineno}"
