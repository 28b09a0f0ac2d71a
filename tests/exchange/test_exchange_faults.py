"""What was acknowledged is there, whatever is killed, full or away. `benchmarks/exchange.py kills`
does the same at full size."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from crowd import killed
from world import Postgres, Server, World, headers, settle, world

from privet.exchange.collector.blobs import Blob, Disk, blob_name
from privet.exchange.collector.commits import Commits, Offer, Refused, Stored
from privet.exchange.collector.database import Database

pytestmark = pytest.mark.system


def prepared(folder: Path, db: str | None = None, size: int = 16) -> tuple[World, Database]:
    folder.mkdir(exist_ok=True)
    store = Database(db or f"sqlite:///{folder / 'collector.db'}")
    store.upgrade()
    made = world(size=size)
    settle(made, store, folder / "blobs")
    return made, store


def send(server: Server, made: World, key: str, content: bytes | None = None) -> tuple[int, Any]:
    content = made.body(key, made.record(int(key, 16) % 1000)) if content is None else content
    request = urllib.request.Request(
        f"{server.url}/v1/campaigns/{made.id}/submissions",
        data=content,
        headers=headers(made, key, "00" * 32),
        method="POST",
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_killing_the_server_loses_and_doubles_nothing(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    db = None if kind == "sqlite" else request.getfixturevalue("database").url
    found = killed(tmp_path, db, times=2, records=120, connections=16)
    assert found["kills"] >= 2 and found["acknowledged"] == 120
    assert (
        found["lost"]
        == found["resurrected"]
        == found["doubled"]
        == found["orphans"]
        == found["without_blob"]
        == found["damaged"]
        == 0
    )


def test_orphans_of_a_crash_are_swept_at_the_next_start(tmp_path: Path) -> None:
    made, store = prepared(tmp_path)
    server = Server(tmp_path).start()
    assert send(server, made, "0" * 32)[0] == 201
    server.stop(signal.SIGKILL)
    place = tmp_path / "blobs" / made.id
    (place / ("f" * 64)).write_bytes(b"written before its row")
    (place / ("." + "e" * 64)).write_bytes(b"half writ")
    server.start()
    assert [path.name for path in place.iterdir()] == [
        row.blob for row in store.submissions(made.id, 0, 10)
    ]
    assert server.stop() == 0


def test_told_to_stop_it_finishes_what_it_has_begun(tmp_path: Path) -> None:
    made, store = prepared(tmp_path)
    server = Server(tmp_path).start()
    answers: list[int] = []
    lock = threading.Lock()

    def one(k: int) -> None:
        try:
            status = send(server, made, f"{k:032x}")[0]
        except OSError:
            return
        with lock:
            answers.append(status)

    threads = [threading.Thread(target=one, args=(k,)) for k in range(40)]
    for thread in threads[:20]:
        thread.start()
    for thread in threads[:20]:
        thread.join()
    for thread in threads[20:]:
        thread.start()
    assert server.stop() == 0
    for thread in threads:
        thread.join()
    assert answers.count(201) >= 20
    assert len(store.submissions(made.id, 0, 100)) == answers.count(201), (
        "no answer, no row; no row, no answer"
    )


def test_a_full_disk_refuses_and_recovers(tmp_path: Path) -> None:
    """A file system of two megabytes, which fills up; PrivetError's sentence, nothing half-written,
    and room again helps."""
    disk = tmp_path / "disk"
    disk.mkdir()
    inside = f'mount -t tmpfs -o size=2m none {disk} && exec "$@"'
    words = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", inside, "sh")
    if (
        shutil.which("unshare") is None
        or subprocess.run([*words, "true"], capture_output=True).returncode
    ):
        pytest.skip("this machine does not let its users mount a small file system")
    # The tables stay on the larger disk: what fills up is the place of the records.
    made, store = prepared(tmp_path / "data", size=2000)
    shutil.rmtree(tmp_path / "data" / "blobs")
    server = Server(
        tmp_path / "data", words=("--blobs", str(disk / "blobs"), "--reserve", "0"), before=words
    ).start()
    statuses = []
    for k in range(300):
        statuses.append(send(server, made, f"{k:032x}")[0])
        if statuses[-1] != 201:
            break
    assert statuses[-1] == 507 and set(statuses[:-1]) == {201}
    stored = len(store.submissions(made.id, 0, 1000))
    assert stored == len(statuses) - 1
    secret = urllib.request.Request(
        f"{server.url}/v1/campaigns/{made.id}/submissions/{'0' * 32}",
        headers={"privet-withdraw": "00" * 32},
        method="DELETE",
    )
    with urllib.request.urlopen(secret) as answer:
        assert answer.status == 204
    assert send(server, made, "f" * 32)[0] == 201, "withdrawing has made room"
    assert server.stop() == 0


def test_a_full_database_refuses_and_does_not_acknowledge(tmp_path: Path) -> None:
    made, store = prepared(tmp_path)
    collector = Database(f"sqlite:///{tmp_path / 'collector.db'}")
    with collector.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
    sa.event.listen(
        collector.engine,
        "connect",
        lambda raw, _: raw.execute(f"PRAGMA max_page_count={pages + 2}").close(),
    )
    collector.engine.dispose()
    commits = Commits(collector, Disk(tmp_path / "blobs"))
    answers = []
    for k in range(200):
        content = made.body(f"{k:032x}", made.record(k))
        name = f"{k:032x}"
        offer = Offer(
            made.id,
            name,
            "p",
            hashlib.sha256(content).hexdigest(),
            blob_name(content),
            "0" * 64,
            10**6,
            content,
        )
        commits.blobs.write(Blob(made.id, offer.blob), content)
        answers += commits.decide_and_store([offer])
        if isinstance(answers[-1], Refused):
            break
    assert isinstance(answers[-1], Refused) and answers[-1].status == 507
    assert len(store.submissions(made.id, 0, 1000)) == sum(
        isinstance(answer, Stored) for answer in answers
    )


def test_a_database_that_goes_away_and_comes_back(tmp_path: Path, database: Postgres) -> None:
    made, store = prepared(tmp_path, database.url)
    server = Server(tmp_path, database.url).start()
    content = made.body("1" * 32, made.record())
    try:
        assert send(server, made, "0" * 32)[0] == 201
        database.stop("immediate")
        status, answer = send(server, made, "1" * 32, content)
        assert status == 503 and "error" in answer
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{server.url}/healthz")
        assert caught.value.code == 503
    finally:
        database.start()
    assert send(server, made, "1" * 32, content)[0] == 201
    assert {row.id for row in store.submissions(made.id, 0, 10)} == {"0" * 32, "1" * 32}
    assert server.stop() == 0
    store.engine.dispose()


def test_a_port_in_use_gets_a_sentence(tmp_path: Path) -> None:
    server = Server(tmp_path / "one").start()
    words = [
        sys.executable,
        "-m",
        "privet",
        "serve",
        "--data",
        str(tmp_path / "two"),
        "--port",
        str(server.port),
    ]
    again = subprocess.run(
        words, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}
    )
    assert (
        again.returncode == 2
        and "is another program using it?" in again.stderr
        and "Traceback" not in again.stderr
    )
    server.stop()
