"""The collector under load, under `kill -9` and under rubbish.

    python benchmarks/exchange.py load     submissions a second, next to a bare handler that commits
                                           one row
    python benchmarks/exchange.py kills    50 kills during 2,500 submissions, on SQLite, on
                                           PostgreSQL, and with records in S3 (moto)
    python benchmarks/exchange.py sockets  2,100 silent and 10,000 idle connections
    python benchmarks/exchange.py export   a million records, and the memory of server and owner
    python benchmarks/exchange.py fuzz     60,000 malformed bodies

`load` sends sealed records of 4 kB over 64 connections to `privet serve`, and to a FastAPI handler
that reads the same body and commits one row to the same kind of database with the same settings;
they take turns, and change who begins. The goal is a ratio of 0.6. The exit code is 1 where it is
missed, where an acknowledged record is lost, doubled or comes back after it was withdrawn, where an
orphan is left, where rubbish gets another answer than 4xx, where a health check is not answered, or
where an export takes 300 MB or more.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import sqlalchemy as sa
import uvicorn
from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool

sys.path.append(str(Path(__file__).parents[1] / "tests" / "exchange"))

from crowd import SIZE, Connection, killed, request, requests_for
from memory import machine
from rubbish import malformed
from world import Server, binaries, port, postgres, settle, world

from privet.core.progress import console
from privet.exchange.collector.database import Database, make_engine

GOAL = 0.6


async def drive(
    at: int, requests: list[tuple[str, bytes]], connections: int
) -> tuple[float, list[float]]:
    """Seconds for all of them, and of each."""
    queue = iter(requests)
    times: list[float] = []

    async def one() -> None:
        connection = Connection(at)
        for _, content in queue:
            started = time.perf_counter()
            status, body = await connection.ask(content)
            if status not in (200, 201):
                raise RuntimeError(f"{status} {body!r}")
            times.append(time.perf_counter() - started)
        connection.close()

    started = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(connections)))
    return time.perf_counter() - started, times


@contextlib.contextmanager
def databases(words: list[str]) -> Iterator[Iterator[tuple[str, str | None]]]:
    with contextlib.ExitStack() as stack:

        def each() -> Iterator[tuple[str, str | None]]:
            if "sqlite" in words:
                yield "sqlite", None
            if "postgresql" in words and binaries() is not None:
                yield "postgresql", stack.enter_context(postgres()).url

        yield each()


def answers(at: int, seconds: float = 60.0) -> None:
    """Wait until somebody listens there."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", at), 1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"nobody listens on port {at}")


def load(options: argparse.Namespace) -> bool:
    found: dict[str, Any] = {
        "machine": machine(),
        "connections": options.connections,
        "bytes": 0,
        "databases": {},
    }
    good = True
    with databases(options.databases) as each:
        for name, db in each:
            with tempfile.TemporaryDirectory(prefix="privet-load-") as place:
                result = _load(Path(place), db, options)
            found["bytes"] = result.pop("bytes")
            found["databases"][name] = result
            good &= result["ratio"] >= GOAL
    for name, result in found["databases"].items():
        _say(
            f"{name}: {found['bytes']} bytes, {len(result['ratios'])} rounds of "
            f"{options.records} over {options.connections} connections"
        )
        for who in ("privet", "bare"):
            one = result[who]
            low, high = min(one["per_second"]), max(one["per_second"])
            rates = f"{statistics.median(one['per_second']):.0f}/s ({low:.0f} to {high:.0f})"
            _say(
                f"  {who:<7} {rates}, p50 {one['p50_ms']} ms, p99 {one['p99_ms']} ms, processor "
                f"{one['processor_ms']} ms a record"
            )
        _say(
            f"  ratio   {result['ratio']} ({min(result['ratios'])} to {max(result['ratios'])}); "
            f"goal {GOAL}"
        )
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return good


def _say(line: str) -> None:
    console.print(line, highlight=False, markup=False, soft_wrap=True)


def _load(folder: Path, db: str | None, options: argparse.Namespace) -> dict[str, Any]:
    made = world(size=SIZE)
    store = Database(db or f"sqlite:///{folder / 'ours' / 'collector.db'}")
    (folder / "ours").mkdir()
    store.upgrade()
    settle(made, store, folder / "ours" / "blobs")
    store.engine.dispose()
    server = Server(folder / "ours", db).start()
    bare_port = port()
    bare_db = db or f"sqlite:///{folder / 'bare.db'}"
    bare = subprocess.Popen(
        [sys.executable, __file__, "bare", "--db", bare_db, "--port", str(bare_port)]
    )
    rates: dict[str, list[float]] = {"privet": [], "bare": []}
    times: dict[str, list[float]] = {"privet": [], "bare": []}
    work = {"privet": 0.0, "bare": 0.0}
    assert server.process is not None
    try:
        answers(bare_port)
        size = len(requests_for(made, 1)[0][1].partition(b"\r\n\r\n")[2])
        for turn in range(options.turns + 1):
            both = [
                ("privet", server.port, None, server.process.pid),
                ("bare", bare_port, "/bare", bare.pid),
            ]
            for who, at, path, pid in both if turn % 2 else both[::-1]:
                batch = requests_for(made, options.records if turn else 200, path)
                before = worked(pid)
                seconds, each = asyncio.run(drive(at, batch, options.connections))
                if turn:  # the first is for warming up
                    rates[who].append(len(batch) / seconds)
                    times[who] += each
                    work[who] += worked(pid) - before
                    kind = (db or "sqlite").partition(":")[0].partition("+")[0]
                    _say(f"{kind} {who}: {rates[who][-1]:.0f}/s")
    finally:
        server.stop()
        bare.terminate()
        bare.wait()
    result: dict[str, Any] = {"bytes": size}
    for who in rates:
        ordered = sorted(times[who])
        result[who] = {
            "per_second": [round(rate, 1) for rate in rates[who]],
            "p50_ms": round(1000 * statistics.median(ordered), 2),
            "p99_ms": round(1000 * ordered[int(0.99 * len(ordered))], 2),
            "processor_ms": round(1000 * work[who] / len(ordered), 3),
        }
    ratios = [a / b for a, b in zip(rates["privet"], rates["bare"], strict=True)]
    return {
        **result,
        "ratios": [round(r, 3) for r in ratios],
        "ratio": round(statistics.median(ratios), 3),
    }


def worked(pid: int) -> float:
    """Seconds of processor time that a process has had: of use where others want the processor
    too."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bare(options: argparse.Namespace) -> bool:
    """The reference: reads the body, commits one row."""
    rows = sa.Table(
        "bare",
        sa.MetaData(),
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("size", sa.Integer),
    )
    where = make_engine(options.db)
    rows.metadata.create_all(where)
    app = FastAPI()

    def commit(name: str, size: int) -> None:
        with where.begin() as connection:
            connection.execute(sa.insert(rows).values(id=name, size=size))

    @app.post("/bare", status_code=201)
    async def handle(request: Request) -> dict[str, int]:
        content = await request.body()
        await run_in_threadpool(commit, request.headers["idempotency-key"], len(content))
        return {"size": len(content)}

    uvicorn.run(app, host="127.0.0.1", port=options.port, log_config=None, access_log=False)
    return True


@contextlib.contextmanager
def bucket() -> Iterator[str]:
    """S3 in a process of its own."""
    at = port()
    words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(at)]
    moto = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.environ.update(
        AWS_ACCESS_KEY_ID="x",
        AWS_SECRET_ACCESS_KEY="x",
        AWS_DEFAULT_REGION="us-east-1",
        AWS_ENDPOINT_URL=f"http://127.0.0.1:{at}",
    )
    try:
        answers(at)
        import boto3

        boto3.client("s3").create_bucket(Bucket="records")
        yield "s3://records/privet"
    finally:
        moto.terminate()
        moto.wait()


def kills(options: argparse.Namespace) -> bool:
    found: dict[str, Any] = {"machine": machine(), "databases": {}}
    with contextlib.ExitStack() as stack, databases(options.databases) as each:
        stores = [(name, db, None) for name, db in each]
        if "s3" in options.databases:
            stores.append(("s3", None, stack.enter_context(bucket())))
        for name, db, blobs in stores:
            with tempfile.TemporaryDirectory(prefix="privet-kills-") as place:
                found["databases"][name] = killed(
                    Path(place),
                    db,
                    options.kills,
                    options.records,
                    options.connections,
                    blobs=blobs,
                )
            console.print(f"{name}: {found['databases'][name]}", highlight=False)
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    nothing = ("lost", "resurrected", "doubled", "damaged", "without_blob", "orphans")
    return not any(result[what] for result in found["databases"].values() for what in nothing)


def sockets(options: argparse.Namespace) -> bool:
    """Connections that say nothing and connections that are idle, while others are served."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    found: dict[str, Any] = {"machine": machine(), "open_files": limit}
    good = True
    with tempfile.TemporaryDirectory(prefix="privet-sockets-") as place:
        folder = Path(place) / "collector"
        folder.mkdir()
        store = Database(f"sqlite:///{folder / 'collector.db'}")
        store.upgrade()
        made = world()
        settle(made, store, folder / "blobs")
        server = Server(folder).start()
        for kind, many in (("silent", 2100), ("idle", 10_000)):
            found[kind] = asyncio.run(_sockets(server.port, kind, many, made))
            good &= found[kind]["healthz"] == found[kind]["asked"] and found[kind]["stored"] == 20
            _say(f"{kind}: {found[kind]}")
        good &= server.stop() == 0
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return good


async def _sockets(at: int, kind: str, many: int, made: Any) -> dict[str, Any]:
    health = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    connections = [Connection(at) for _ in range(many)]
    for start in range(0, many, 100):
        group = connections[start : start + 100]
        for one in group:
            one.streams = await asyncio.open_connection("127.0.0.1", at)
        if kind == "idle":  # each has had an answer before it falls silent
            await asyncio.gather(*(one.ask(health) for one in group))
    asked = healthy = stored = 0
    slowest = 0.0
    for _, content in requests_for(made, 20):
        started = time.perf_counter()
        asked += 1
        new = Connection(at)
        healthy += (await new.ask(health))[0] == 200
        stored += (await new.ask(content))[0] == 201
        slowest = max(slowest, time.perf_counter() - started)
        new.close()
    for one in connections:
        one.close()
    return {
        "connections": many,
        "asked": asked,
        "healthz": healthy,
        "stored": stored,
        "slowest_s": round(slowest, 2),
    }


def export(options: argparse.Namespace) -> bool:
    """An owner's export of synthetic records that come page by page; the memory of the process that
    makes and exports them."""
    from privet.exchange.owner.campaigns import CampaignFolder
    from privet.exchange.owner.export import export as run
    from privet.exchange.protocol.client import Link
    from privet.exchange.protocol.messages import Figures, GoneAnswer

    made = world("open", size=4)
    plain = made.plain("f" * 32, made.record())
    before, _, after = plain.partition(b"f" * 32)

    class Pages:
        """Answers as a collector does."""

        def __init__(self, *_: Any) -> None:
            return

        def __enter__(self) -> Pages:
            return self

        def __exit__(self, *_: object) -> None:
            return

        def ask(self, kind: Any, _method: str, path: str, params: Any = None) -> Any:
            if path.endswith("figures"):
                about = {"campaign": made.id, "title": "", "mode": "", "access": ""}
                counts = {"records": options.records, "people": 1, "bytes": 0}
                return Figures(**about, **counts, created=0, closed=None, by_day={}, gone={})
            if path.endswith("deeds"):
                return []
            first = params["after"]
            return [
                GoneAnswer(number=k + 1, id=f"{k:032x}", reason="withdrawn", at=0)
                for k in range(first, min(first + 1000, options.records // 10))
            ]

        def request(self, _method: str, _path: str, params: Any) -> Any:
            first = int(params["after"])
            names = [f"{k:032x}" for k in range(first, min(first + 500, options.records))]
            frames = []
            for k, name in enumerate(names, first):
                about = (
                    f'{{"number":{k + 1},"id":"{name}","person":"{name}{name}","sha256":"",'
                    f'"received":0,"size":{len(plain)},"damaged":false}}'
                ).encode()
                head = len(about).to_bytes(4, "little") + about
                frames.append(b"".join((head, before, name.encode(), after)))
            last = first + len(names)
            headers = {"privet-next": str(last)} if last < options.records else {}
            return SimpleNamespace(content=b"".join(frames), headers=headers)

    with tempfile.TemporaryDirectory(prefix="privet-export-") as place:
        link = Link("http://127.0.0.1", made.id)
        folder = CampaignFolder(Path(place), link, made.manifest, made.text, made.signature)
        (Path(place) / "owner.token").touch(0o600)
        started = time.perf_counter()
        exported = run(folder, Path(place) / "out", connect=Pages)  # type: ignore[arg-type]
        seconds = time.perf_counter() - started
        size = exported.table.stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = {
        "machine": machine(),
        "records": exported.records,
        "withdrawn": exported.gone,
        "peak_mb": round(peak, 1),
        "table_mb": round(size / 2**20, 1),
        "seconds": round(seconds, 1),
    }
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return exported.records == options.records and peak < 300


def fuzz(options: argparse.Namespace) -> bool:
    """Malformed submissions over real sockets, to an open and to a sealed campaign: only refusals,
    nothing stored, still up."""
    statuses: Counter[int] = Counter()
    stored = 0
    with tempfile.TemporaryDirectory(prefix="privet-fuzz-") as place:
        folder = Path(place) / "collector"
        folder.mkdir()
        store = Database(f"sqlite:///{folder / 'collector.db'}")
        store.upgrade()
        campaigns = [world("open"), world("sealed")]
        for made in campaigns:
            settle(made, store, folder / "blobs")
        server = Server(folder).start()

        async def crowd() -> None:
            todo = (
                request(f"/v1/campaigns/{made.id}/submissions", body, extra)
                for made in campaigns
                for body, extra in malformed(made, options.records // 2)
            )

            async def one() -> None:
                connection = Connection(server.port)
                for content in todo:
                    statuses[(await connection.ask(content))[0]] += 1
                connection.close()

            await asyncio.gather(*(one() for _ in range(options.connections)))

        started = time.perf_counter()
        asyncio.run(crowd())
        seconds = time.perf_counter() - started
        stored = sum(len(store.submissions(made.id, 0, 10)) for made in campaigns)
        blobs = sum(path.parent.name != "parts" for path in (folder / "blobs").glob("*/*"))
        ended = server.stop()
    found = {
        "statuses": dict(statuses),
        "rows": stored,
        "blobs": blobs,
        "exit_code": ended,
        "seconds": round(seconds, 1),
    }
    sys.stdout.write(json.dumps({"machine": machine(), **found}, indent=1) + "\n")
    return (
        all(400 <= status < 500 for status in statuses) and not stored and not blobs and ended == 0
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    records = {
        "load": 3000,
        "kills": 2500,
        "fuzz": 60_000,
        "sockets": 20,
        "export": 1_000_000,
    }
    for name in records:
        verb = verbs.add_parser(name)
        verb.add_argument("--databases", nargs="+", default=["sqlite", "postgresql", "s3"])
        verb.add_argument("--connections", type=int, default=64)
        verb.add_argument("--records", type=int, default=records[name])
        verb.add_argument("--turns", type=int, default=5)
        verb.add_argument("--kills", type=int, default=50)
    reference = verbs.add_parser("bare")
    reference.add_argument("--db", required=True)
    reference.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    doing = {
        "load": load,
        "kills": kills,
        "fuzz": fuzz,
        "sockets": sockets,
        "export": export,
        "bare": bare,
    }
    sys.exit(0 if doing[options.verb](options) else 1)


if __name__ == "__main__":
    main()
