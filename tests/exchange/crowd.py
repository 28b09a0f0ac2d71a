"""A crowd of participants against a collector in another process: one socket each, as little HTTP
as can be."""

from __future__ import annotations

import asyncio
import json
import random
import secrets
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

from world import Server, World, headers, settle, world

from privet.exchange.collector.blobs import Blob, Blobs, open_blobs
from privet.exchange.collector.database import Database
from privet.exchange.collector.retention import confirm

# Numbers of a record: sealed, 4,144 bytes.
SIZE = 896


class Connection:
    """HTTP/1.1 over one socket, as little as can be: the client must not be what is measured."""

    def __init__(self, at: int) -> None:
        self.port = at
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        length = next(
            (
                int(line[15:])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length:")
            ),
            0,
        )
        body = await reader.readexactly(length) if length else b""
        if b"connection: close" in head.lower():
            self.close()
        return status, body

    def close(self) -> None:
        if self.streams is not None:
            self.streams[1].close()
        self.streams = None


def request(path: str, content: bytes, extra: dict[str, str]) -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        "host: 127.0.0.1",
        f"content-length: {len(content)}",
        *(f"{k}: {v}" for k, v in extra.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + content


def requests_for(made: World, many: int, path: str | None = None) -> list[tuple[str, bytes]]:
    found = []
    z = made.record()
    for _ in range(many):
        name = secrets.token_hex(16)
        extra = headers(made, name, "00" * 32, secrets.token_hex(32))
        found.append(
            (
                name,
                request(path or f"/v1/campaigns/{made.id}/submissions", made.body(name, z), extra),
            )
        )
    return found


def killed(
    folder: Path,
    db: str | None,
    times: int,
    records: int,
    connections: int,
    seed: int = 0,
    blobs: str | None = None,
) -> dict[str, Any]:
    """Kill the server so many times while the records come in; then look at what is there.

    Participants behave as `privet share` does: no answer means again, with the same key and the
    same bytes.
    """
    made = world(size=SIZE)
    place = folder / "collector"
    place.mkdir()
    store = Database(db or f"sqlite:///{place / 'collector.db'}")
    store.upgrade()
    settle(made, store, blobs or place / "blobs")
    server = Server(place, db, ("--blobs", blobs) if blobs else ()).start()
    todo = requests_for(made, records)
    acknowledged: dict[str, int] = {}
    withdrawn: set[str] = set()
    again, kills = 0, 0
    dice = random.Random(seed)

    async def participants() -> None:
        queue = iter(todo)

        async def one() -> None:
            nonlocal again
            connection = Connection(server.port)
            for name, content in queue:
                while name not in acknowledged:
                    try:
                        status, body = await asyncio.wait_for(connection.ask(content), 60)
                        if status in (200, 201):
                            assert json.loads(body)["submission"] == name
                            acknowledged[name] = status
                        else:
                            raise OSError(status)
                    except (OSError, EOFError, TimeoutError):
                        again += 1
                        connection.close()
                        await asyncio.sleep(0.1)
                if int(name, 16) % 10 == 0:  # one in ten changes their mind
                    await _withdraw(connection, made.id, name)
                    withdrawn.add(name)
            connection.close()

        async def killer() -> None:
            nonlocal kills
            for k in range(times):
                # Spread over the submissions: each kill comes somewhere within its own share of
                # them.
                aim = int(records * (k + dice.random()) / (times + 1))
                while len(acknowledged) < aim:
                    await asyncio.sleep(0.002)
                if len(acknowledged) >= records:
                    break
                await asyncio.sleep(dice.random() * 0.05)
                server.stop(signal.SIGKILL)
                kills += 1
                await asyncio.to_thread(server.start)

        task = asyncio.create_task(killer())
        await asyncio.gather(*(one() for _ in range(connections)))
        await task

    started = time.perf_counter()
    asyncio.run(participants())
    # The last stop is a kill too: what the next start finds is what the sweep has to settle.
    server.stop(signal.SIGKILL)
    # Of few records a crash leaves many orphans, in per cent: without a word they would be held.
    confirm(store)
    server.start()
    server.stop()
    kept = _kept(open_blobs(blobs or str(place / "blobs")), store, made.id, todo)
    store.engine.dispose()
    rows = kept.pop("rows")
    log = (place / "log").read_text().splitlines()
    events = [json.loads(line) for line in log if line.startswith("{")]
    return {
        "kills": kills + 1,
        "acknowledged": len(acknowledged),
        "sent_again": again,
        "answered_as_known": sum(status == 200 for status in acknowledged.values()),
        "withdrawn": len(withdrawn),
        "lost": len(set(acknowledged) - withdrawn - set(rows)),
        "resurrected": len(withdrawn & set(rows)),
        "doubled": sum(many - 1 for many in rows.values()),
        "swept": sum(event["orphans"] for event in events if event["event"] == "swept"),
        **kept,
        "seconds": round(time.perf_counter() - started, 1),
    }


async def _withdraw(connection: Connection, campaign: str, name: str) -> None:
    """Until the server says that it is gone."""
    path = f"/v1/campaigns/{campaign}/submissions/{name}"
    head = f"DELETE {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nprivet-withdraw: {'00' * 32}\r\n\r\n"
    status = 0
    while status not in (204, 410):
        try:
            status, _ = await asyncio.wait_for(connection.ask(head.encode()), 60)
            assert status in (204, 410, 503), status
        except (OSError, EOFError, TimeoutError):
            connection.close()
            await asyncio.sleep(0.1)


def _kept(
    blobs: Blobs, store: Database, campaign: str, requests: list[tuple[str, bytes]]
) -> dict[str, Any]:
    """Rows by name, and how they and the blobs fit together."""
    stored = store.submissions(campaign, 0, 10 * len(requests))
    named, there = {row.blob for row in stored}, {name for name, _ in blobs.names(campaign)}
    sent = {name: content.partition(b"\r\n\r\n")[2] for name, content in requests}
    contents = [
        (row.id, blobs.get(Blob(campaign, row.blob))) for row in stored if row.blob in there
    ]
    blobs.close()
    return {
        "rows": Counter(row.id for row in stored),
        "orphans": len(there - named),
        "without_blob": len(named - there),
        "damaged": sum(content != sent[name] for name, content in contents),
    }
