"""Connections that say nothing, or too slowly, cost nobody else theirs.

uvicorn waits for a request's headers as long as a client likes. Here a connection has so many
seconds for its headers, and for its answer to be read; where there are too many connections, the
one that has been silent longest makes room.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections import OrderedDict
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

# Files that a server needs beside its connections: database, blobs, pages.
OTHER_FILES = 256
# Most bytes of headers.
HEADER_BYTES = 32 * 1024
# Seconds for a TLS handshake.
HANDSHAKE_SECONDS = 10.0


class Connections:
    """All connections of a server, and those that wait for a request, the longest silent first.

    Parameters:
        most: How many there may be.
        header_seconds: Within which the headers of a request must have come.
        idle_seconds: For which a connection may be silent between requests.
    """

    def __init__(self, most: int, header_seconds: float = 10.0, idle_seconds: float = 30.0) -> None:
        self.most, self.header_seconds, self.idle_seconds = most, header_seconds, idle_seconds
        self.all: set[Any] = set()
        self.waiting: OrderedDict[Any, None] = OrderedDict()
        self.dropped = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, connection: Any) -> None:
        if len(self.all) >= self.most:
            oldest = next(iter(self.waiting), connection)
            self.drop(oldest)
            if oldest is connection:
                return
        self.all.add(connection)
        self.wait(connection)
        if self._timer is None:
            self._timer = connection.loop.call_later(1.0, self._look, connection.loop)

    def wait(self, connection: Any) -> None:
        """It is silent from now on."""
        connection.silent_since, connection.header_since, connection.header_bytes = _now(), None, 0
        self.waiting[connection] = None

    def forget(self, connection: Any) -> None:
        self.all.discard(connection)
        self.waiting.pop(connection, None)

    def drop(self, connection: Any) -> None:
        self.forget(connection)
        self.dropped += 1
        connection.transport.abort()

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        at = _now()
        for connection in [one for one in self.all if self._is_overdue(one, at)]:
            self.drop(connection)
        self._timer = loop.call_later(1.0, self._look, loop) if self.all else None

    def _is_overdue(self, connection: Any, at: float) -> bool:
        if connection.transport.is_closing():  # whoever does not read what is left to send
            connection.closing_since = connection.closing_since or at
            return bool(at - connection.closing_since > self.idle_seconds)
        if connection not in self.waiting:
            return False
        if connection.header_since is not None:
            return bool(at - connection.header_since > self.header_seconds)
        return bool(at - connection.silent_since > self.idle_seconds)


def protocol_for(connections: Connections) -> type[asyncio.Protocol]:
    """uvicorn's protocol, with every connection in `connections`."""

    class Protocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        silent_since = 0.0
        header_since: float | None = None
        header_bytes = 0
        closing_since: float | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            connections.add(self)

        def connection_lost(self, exc: Exception | None) -> None:
            connections.forget(self)
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self in connections.waiting:
                self.header_since = self.header_since or _now()
                self.header_bytes += len(data)
            super().data_received(data)
            if self in connections.waiting:
                if self.cycle is not None and not self.cycle.response_complete:
                    del connections.waiting[self]
                elif self.header_bytes > HEADER_BYTES:
                    connections.drop(self)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self in connections.all and (self.cycle is None or self.cycle.response_complete):
                connections.wait(self)

    return Protocol


def room_for_connections(wanted: int) -> int:
    """How many connections the system lets this process have, after asking it for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    aim = wanted + OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        aim = min(aim, hard)
    if soft != resource.RLIM_INFINITY and soft < aim:
        resource.setrlimit(resource.RLIMIT_NOFILE, (aim, hard))
        soft = aim
    room = wanted if soft == resource.RLIM_INFINITY else soft - OTHER_FILES
    return max(min(wanted, room), 16)


class Loop(asyncio.SelectorEventLoop):
    """An event loop that does not wait a minute for a TLS handshake."""

    async def create_server(self, *words: Any, **options: Any) -> Any:
        if options.get("ssl") is not None:
            options.setdefault("ssl_handshake_timeout", HANDSHAKE_SECONDS)
        return await super().create_server(*words, **options)


def _now() -> float:
    return time.monotonic()
