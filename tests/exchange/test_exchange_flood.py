"""Abuse of a server: bodies of strangers, silent sockets, forged addresses, full campaigns."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from test_exchange_faults import prepared, send
from world import KEYS, Server, bearer, headers, world

from conftest import Running, Start
from privet.core.errors import PrivetError
from privet.exchange.collector import connections as connection_limits
from privet.exchange.collector.connections import Connections
from privet.exchange.collector.limits import Limits
from privet.exchange.collector.serve import Address


class Caller:
    """One request straight to the application; counts how much of its body was asked for."""

    def __init__(self, running: Running, client: str = "192.0.2.1") -> None:
        self.running, self.client = running, client
        self.read = 0
        self.sent: list[dict[str, Any]] = []

    async def ask(
        self, method: str, path: str, head: dict[str, str], size: int, wait: float = 0.0
    ) -> int:
        async def receive() -> dict[str, Any]:
            await asyncio.sleep(wait)
            self.read += size
            return {"type": "http.request", "body": b"x" * size, "more_body": False}

        async def keep(message: Any) -> None:
            self.sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "headers": [(k.encode(), v.encode()) for k, v in head.items()],
            "query_string": b"",
            "client": (self.client, 1),
            "server": ("127.0.0.1", 80),
            "scheme": "http",
            "http_version": "1.1",
            "root_path": "",
        }
        await self.running.http.app(scope, receive, keep)
        return int(self.sent[0]["status"])


@pytest.mark.parametrize(
    "length", [{"content-length": "15000000"}, {"transfer-encoding": "chunked"}]
)
def test_nothing_of_a_body_is_read_before_the_token_is_checked(
    collector: Running, length: dict[str, str]
) -> None:
    made = world(access="invited")
    owner = collector.settle(made)
    forged = owner[:-3] + "xxx"
    asked = [
        ("POST", "/v1/campaigns", "text/plain"),
        ("POST", "/v1/campaigns", "application/json"),
        ("PUT", f"/v1/parts/{'0' * 64}", "application/octet-stream"),
        ("POST", f"/v1/campaigns/{made.id}/tokens", "text/plain"),
        ("POST", f"/v1/campaigns/{made.id}/close", "text/plain"),
        ("DELETE", f"/v1/campaigns/{made.id}/submissions/{KEYS[0]}", "text/plain"),
        ("GET", "/healthz", "text/plain"),
    ]
    for method, path, kind in asked:
        for token in ({}, bearer(forged)):
            caller = Caller(collector)
            status = asyncio.run(
                caller.ask(method, path, {"content-type": kind, **length, **token}, 15_000_000)
            )
            assert status in (401, 413) and caller.read == 0, (method, path, status)
    # A submission by invitation, with no token, a forged one, and the owner's.
    for token in ({}, bearer(forged), bearer(owner)):
        caller = Caller(collector)
        head = {**headers(made, KEYS[0], "00" * 32), **length, **token}
        head["content-length"] = "1000"
        path = f"/v1/campaigns/{made.id}/submissions"
        assert asyncio.run(caller.ask("POST", path, head, 1000)) == 401 and caller.read == 0


def test_a_body_longer_than_the_campaigns_records_is_not_read(collector: Running) -> None:
    made = world()
    collector.settle(made)
    caller = Caller(collector)
    head = {**headers(made, KEYS[0], "00" * 32), "content-length": "15000000"}
    path = f"/v1/campaigns/{made.id}/submissions"
    assert asyncio.run(caller.ask("POST", path, head, 15_000_000)) == 413 and caller.read == 0


def test_bodies_of_all_together_fit_in_memory(start: Start) -> None:
    running = start(limits=Limits(rate=0, memory=400_000))
    made = world(size=20_000)
    running.settle(made)
    path = f"/v1/campaigns/{made.id}/submissions"

    async def flood(addresses: int) -> list[int]:
        callers = [Caller(running, f"192.0.2.{k % addresses}") for k in range(20)]
        head = {**headers(made, KEYS[0], "00" * 32), "content-length": "80000"}
        return await asyncio.gather(
            *(caller.ask("POST", path, head, 80_000, wait=0.05) for caller in callers)
        )

    for addresses in (1, 20):
        statuses = asyncio.run(flood(addresses))
        assert 503 in statuses and set(statuses) <= {409, 422, 503, 201}, statuses
    assert asyncio.run(flood(20)).count(503) < 20, "what is over is held no longer"
    guard = running.http.app.middleware_stack.app  # type: ignore[attr-defined]
    while not hasattr(guard, "held"):
        guard = guard.app
    assert not guard.held


def test_only_the_right_most_proxies_are_believed(start: Start) -> None:
    for proxies, last in ((0, ()), (1, ("198.51.100.7",)), (2, ("198.51.100.7", "203.0.113.1"))):
        running = start(limits=Limits(rate=0.001, burst=3, proxies=proxies))
        statuses = [
            running.http.get(
                "/healthz", headers={"x-forwarded-for": ", ".join((f"10.0.0.{k}", *last))}
            ).status_code
            for k in range(5)
        ]
        assert statuses == [200, 200, 200, 429, 429], "whatever the client itself has written"
    other = {"x-forwarded-for": "203.0.113.9, 203.0.113.1"}
    assert running.http.get("/healthz", headers=other).status_code == 200, "two hops, another one"


def test_a_campaign_takes_so_many_records_and_bytes(start: Start) -> None:
    running = start(limits=Limits(rate=0, campaign_records=3))
    made, other = world(), world()
    running.settle(made)
    running.settle(other)
    statuses = [running.submit(made, key).status_code for key in KEYS[:5]]
    assert statuses == [201, 201, 201, 403, 403] and running.stored(made) == (3, 3)
    assert running.submit(other, KEYS[0]).status_code == 201
    assert running.submit(made, KEYS[0]).status_code in (200, 409)
    small = start(limits=Limits(rate=0, campaign_bytes=2000))
    small.settle(made)
    statuses = [small.submit(made, key).status_code for key in KEYS[:5]]
    assert statuses == [201, 201, 201, 403, 403]


def test_an_address_sends_so_many_bytes_an_hour(start: Start) -> None:
    running = start(limits=Limits(rate=0, address_bytes=5000))
    made = world(size=2)
    # The parts of the release count too.
    with pytest.raises(AssertionError):
        for _ in range(50):
            running.settle(world())
            running.submit(made, KEYS[0])
    assert running.http.get("/healthz").status_code == 200, "what has no body is still answered"


class Fake:
    """A connection without a network."""

    def __init__(self, loop: Any) -> None:
        self.loop, self.transport, self.aborted = loop, self, False
        self.closing_since: float | None = None

    def abort(self) -> None:
        self.aborted = True

    def is_closing(self) -> bool:
        return False


def test_the_longest_silent_connection_makes_room_and_slow_headers_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = asyncio.new_event_loop()
    clock = [0.0]
    monkeypatch.setattr(connection_limits, "_now", lambda: clock[0])
    connections = Connections(3, header_seconds=10, idle_seconds=30)
    made = [Fake(loop) for _ in range(5)]
    for one in made[:3]:
        connections.add(one)
    del connections.waiting[made[0]]  # its request is being answered
    connections.add(made[3])
    assert [one.aborted for one in made[:4]] == [False, True, False, False]
    made[2].header_since = 0.0  # type: ignore[attr-defined]
    clock[0] = 11.0
    connections._look(loop)
    assert [one.aborted for one in made[:4]] == [False, True, True, False]
    clock[0] = 31.0
    connections._look(loop)
    assert [one.aborted for one in made[:4]] == [False, True, True, True]
    connections.most = 1
    connections.add(made[4])
    assert made[4].aborted, "where all are busy, a new one is not taken"
    loop.close()


def test_a_public_address_needs_tls_or_a_word(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(PrivetError, match="--insecure-public"):
            Address(host)
        Address(host, behind_proxy=1)
        Address(host, insecure_public=True)
    for host in ("127.0.0.1", "::1", "localhost"):
        Address(host)


@pytest.mark.system
def test_silent_and_slow_sockets_do_not_end_the_service(tmp_path: Path) -> None:
    """2,100 sockets that say nothing, and 100 with half a header, while others are served; with
    room for fewer connections, the oldest silent ones go."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 6000:
        pytest.skip("this machine does not allow enough open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 6000), hard))
    made, _ = prepared(tmp_path)
    for words in ((), ("--connections", "500")):
        server = Server(tmp_path, words=words).start()
        sockets = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2200)]
        for one in sockets[:100]:
            try:
                one.sendall(b"POST /v1/campaigns HTTP/1.1\r\nhost: x\r\nx-slow: ")
            except OSError:
                assert words, "only where there is no room for all"
        for k in range(3):
            with urllib.request.urlopen(f"{server.url}/healthz", timeout=300) as answer:
                assert answer.status == 200 and all(json.load(answer).values())
            key = f"{len(words)}{k}".rjust(32, "0")
            assert send(server, made, key)[0] == 201
        if not words:
            end = time.monotonic() + 600
            sockets[0].settimeout(600)
            assert sockets[0].recv(1) == b"" and time.monotonic() < end, "half a header is dropped"
        for one in sockets:
            one.close()
        assert server.stop() == 0
    said = (tmp_path / "log").read_text()
    assert "listens to this machine only" in said
