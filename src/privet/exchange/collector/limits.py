"""Limits that every request meets before anything else does: size, rate, time, origin, encoding.

Written against ASGI itself: it costs microseconds, and a body is counted as it comes, whatever its
header promises.
"""

from __future__ import annotations

import asyncio
import json
import time
import traceback
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool

from privet.exchange.collector.answer_headers import with_headers
from privet.exchange.collector.monitor import Monitor

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

# Bytes of a body that are read of somebody without a token.
UNKNOWN_BYTES = 4096
# The key of what is held for all addresses together.
ALL = ""
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
        memory: Most bytes of bodies that are held at a time, of one address a quarter of it.
        address_bytes: Most bytes an hour from one address; 0 for no limit.
        campaign_records, campaign_bytes: Most of one campaign; 0 for no limit.
        connections: Most at a time; then the one that is silent longest is closed.
        header_seconds: Within which the headers of a request must have come.
        proxies: How many proxies are in front; each adds an address to X-Forwarded-For, so only
            the right-most ones are believed.
    """

    body: int = 16 * 2**20
    json: int = 256 * 2**10
    part: int = 128 * 2**20
    seconds: float = 30.0
    rate: float = 50.0
    burst: float = 200.0
    reserve: int = 64 * 2**20
    memory: int = 256 * 2**20
    address_bytes: int = 4 * 2**30
    campaign_records: int = 10_000_000
    campaign_bytes: int = 2**40
    connections: int = 12_000
    header_seconds: float = 10.0
    proxies: int = 0


@dataclass
class Buckets:
    """Token buckets, one per key: a request takes a token, or as many as its bytes.

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

    def take(self, key: str, at: float | None = None, many: float = 1.0) -> float:
        """0 if the request may go on, else after how many seconds it could."""
        if self.rate <= 0:
            return 0.0
        at = time.monotonic() if at is None else at
        level, last = self._levels.pop(key, (self.burst, at))
        level = min(self.burst, level + (at - last) * self.rate)
        wait = 0.0 if level >= min(many, self.burst) else (many - level) / self.rate
        self._levels[key] = (level if wait else level - many, at)
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
        is_known: Whether the token in a header Authorization is anybody's. Without one, nothing
            but a submission and a few bytes is read.
    """

    def __init__(
        self,
        app: App,
        limits: Limits,
        monitor: Monitor,
        is_known: Callable[[str], bool] = lambda _authorization: True,
    ) -> None:
        self.app, self.limits, self.monitor, self.is_known = app, limits, monitor, is_known
        self.buckets = Buckets(limits.rate, limits.burst)
        hourly = float(limits.address_bytes)
        self.bytes = Buckets(hourly / 3600, hourly)
        self.held: Counter[str] = Counter()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        if scope["type"] != "http":
            return
        if self.limits.proxies:
            _believe(scope, self.limits.proxies)
        address = (scope.get("client") or ("",))[0]
        request = _Request(self, address, scope, receive, send)
        try:
            request.longest = await self._admit(address, scope, dict(scope["headers"]))
            await self.app(scope, request.receive, request.send)
        except Stopped as stopped:
            await request.refuse(stopped)
        except Exception as error:
            self.monitor.log("error", error=type(error).__name__, where=_where(error))
            await request.refuse(Stopped(500, "Something went wrong in the collector."))
        finally:
            self.hold(address, -request.held)
            route = getattr(scope.get("route"), "path", None) or "other"
            method = scope["method"] if scope["method"] in METHODS else "other"
            seconds = time.perf_counter() - request.started
            self.monitor.request(method, route, request.status, seconds, request.size)

    def hold(self, address: str, size: int, share: int = 0) -> None:
        """So many bytes more are in memory; Stopped where that is too many for all, or more than
        the share of one address."""
        for key in (ALL, address):
            self.held[key] += size
            if not self.held[key]:
                del self.held[key]
        if size > 0 and (self.held[ALL] > self.limits.memory or self.held[address] > share):
            raise Stopped(503, "The collector has more to do than it can.", 2.0)

    async def _admit(self, address: str, scope: Message, headers: dict[bytes, bytes]) -> int:
        """How long the body may be; Stopped where the request is refused before it is read."""
        senders = [f"address {address}"]
        authorization = headers.get(b"authorization", b"").decode("latin-1")
        if authorization:
            # 'Bearer pvt_' and the token's name, not its secret.
            senders.append(f"token {authorization[:27]}")
        if wait := max(self.buckets.take(key) for key in senders):
            raise Stopped(429, "Too many requests: slow down.", wait)
        if headers.get(b"content-encoding", b"identity").strip().lower() not in (b"identity", b""):
            raise Stopped(415, "Compressed bodies are not taken.")
        safe = scope["method"] in ("GET", "HEAD") or b"origin" not in headers
        if not safe and not _same_host(headers[b"origin"], headers.get(b"host", b"")):
            raise Stopped(403, "Requests from other origins are not taken.")
        longest = self._longest(scope["method"], scope["path"])
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > longest:
            raise too_long(longest)
        long = int(length) > UNKNOWN_BYTES or b"transfer-encoding" in headers
        if long and not _is_submission(scope["path"]) and not await self._knows(authorization):
            raise Stopped(401, "A valid token is needed.")
        self.ration(address, int(length))
        return longest

    async def _knows(self, authorization: str) -> bool:
        return bool(authorization) and await run_in_threadpool(self.is_known, authorization)

    def ration(self, address: str, size: int) -> None:
        """Stopped where an address has sent as many bytes as it may."""
        if size and (wait := self.bytes.take(address, many=float(size))):
            raise Stopped(429, "Too many bytes from this address: come back later.", wait)

    def _longest(self, method: str, path: str) -> int:
        if method == "PUT" and path.startswith("/v1/parts/"):
            return self.limits.part
        if method == "POST" and _is_submission(path):
            return self.limits.body
        return self.limits.json


def _is_submission(path: str) -> bool:
    return path.startswith("/v1/campaigns/") and path.endswith("/submissions")


def _believe(scope: Message, proxies: int) -> None:
    """The client's address as the outermost of so many proxies saw it: what is further to the left
    was written by the client itself."""
    headers = [(name, value.decode("latin-1")) for name, value in scope["headers"]]
    hops = [
        hop.strip()
        for name, value in headers
        if name == b"x-forwarded-for"
        for hop in value.split(",")
    ]
    if len(hops) >= proxies:
        scope["client"] = (hops[-proxies][:64], 0)
    schemes = [value for name, value in headers if name == b"x-forwarded-proto"]
    if schemes and schemes[-1].rpartition(",")[2].strip() in ("http", "https"):
        scope["scheme"] = schemes[-1].rpartition(",")[2].strip()


@dataclass(eq=False)
class _Request:
    """Counts the body of one request as it comes, and remembers how it was answered."""

    guard: Guard
    address: str
    scope: Message
    _receive: Receive
    _send: Send
    started: float = field(default_factory=time.perf_counter)
    longest: int = 0
    size: int = 0
    held: int = 0
    status: int = 0
    whole: bool = False

    @property
    def is_declared(self) -> bool:
        """Whether its length was known, and counted, before it came."""
        return any(name == b"content-length" for name, _ in self.scope["headers"])

    async def receive(self) -> Message:
        if self.whole:
            return await self._receive()
        left = self.started + self.guard.limits.seconds - time.perf_counter()
        try:
            async with asyncio.timeout(max(left, 0.001)):
                message = await self._receive()
        except TimeoutError:
            raise Stopped(408, "The request did not come in time.") from None
        if message["type"] == "http.request":
            size = len(message.get("body", b""))
            self.size += size
            self.whole = not message.get("more_body", False)
            if self.size > self.longest:
                raise too_long(self.longest)
            if size:
                self.held += size
                # A quarter for one address, but never less than one body.
                share = max(self.guard.limits.memory // 4, self.longest)
                self.guard.hold(self.address, size, share)
                if not self.is_declared:
                    self.guard.ration(self.address, size)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = with_headers(message.get("headers", []), self.scope["path"])
        # Whoever does not read the answer does not keep it in memory.
        async with asyncio.timeout(self.guard.limits.seconds):
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
