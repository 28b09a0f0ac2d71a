"""A small world to test the exchange in: a campaign without a learned release behind it, records,
servers, a database."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from privet.exchange.collector.blobs import PARTS, Blob, open_blobs
from privet.exchange.collector.database import Database
from privet.exchange.protocol import seal
from privet.exchange.protocol.envelope import Envelope, Labels
from privet.exchange.protocol.manifest import (
    ExpectedRecord,
    Label,
    Manifest,
    ReleaseParts,
    campaign_id,
)

SIGMA = 0.4
STEP = 2.0**-2 / 4096
# Idempotency keys of records.
KEYS = [f"{k:032x}" for k in range(50)]


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@dataclass(frozen=True)
class World:
    """A campaign with its keys, as its owner has them."""

    manifest: Manifest
    text: str
    signature: str
    private: str
    signing: str
    parts: dict[str, bytes]

    @property
    def id(self) -> str:
        return campaign_id(self.text)

    def record(self, seed: int = 0) -> np.ndarray:
        """What a release with gaussian noise gives: a code in [-1, 1], noise, the grid."""
        rng = np.random.default_rng(seed)
        shape = [size or 7 for size in self.manifest.expect.shape]
        z = np.tanh(rng.standard_normal(shape)) + SIGMA * rng.standard_normal(shape)
        return (np.round(z / STEP) * STEP).astype(np.float32)

    def plain(
        self, submission: str, z: np.ndarray, labels: Labels | None = None, /, **changed: str
    ) -> bytes:
        about = {
            "campaign": self.id,
            "release": self.manifest.release.card,
            "submission": submission,
            **changed,
        }
        return Envelope(
            about["campaign"], about["release"], about["submission"], labels or {}, z
        ).pack(self.manifest.expect)

    def body(self, submission: str, z: np.ndarray, labels: Labels | None = None) -> bytes:
        content = self.plain(submission, z, labels)
        return (
            content
            if self.manifest.sealing_key is None
            else seal.seal(content, self.manifest.sealing_key)
        )

    @property
    def kind(self) -> str:
        return "application/vnd.privet." + ("record" if self.manifest.mode == "open" else "sealed")


def world(
    mode: str = "sealed",
    access: str = "anyone",
    size: int = 16,
    per_person: int = 1_000_000,
    **other: Any,
) -> World:
    card = {
        "private": ["beard"],
        "sha256": {"graph": ""},
        "output": {"shape": [size], "dtype": "float32"},
        "input": {"modality": "table"},
        "noise": {"law": "gaussian", "scale": SIGMA, "shape": [size]},
        "method": "hedge",
    }
    graph = b"a graph that nobody runs here"
    card["sha256"] = {"graph": hashlib.sha256(graph).hexdigest()}
    parts = {"card": json.dumps(card).encode(), "graph": graph}
    private, public = seal.sealing_keys()
    signing = seal.signing_key()
    given: dict[str, Any] = {
        "title": "Smiles",
        "purpose": "To learn what a smile looks like.",
        "who": "Lab X, x@example.org",
        "mode": mode,
        "access": access,
        "labels": [Label(name="smiling", values=["yes", "no"]), Label(name="age")],
        "private": ["beard"],
        "modality": "table",
        "method": "hedge",
        "retention_days": 30,
        "records_per_person": per_person,
        "release": ReleaseParts(
            **{name: hashlib.sha256(content).hexdigest() for name, content in parts.items()}
        ),
        "expect": ExpectedRecord(
            shape=[size], low=-1.0, high=1.0, law="gaussian", scale=SIGMA, step=STEP
        ),
        "sealing_key": public if mode == "sealed" else None,
        "signing_key": seal.verify_key(signing),
        "created": "2026-11-01T12:00:00Z",
        "nonce": secrets.token_hex(16),
    }
    manifest = Manifest(**{**given, **other})
    text = manifest.text()
    return World(manifest, text, seal.sign(text.encode(), signing), private, signing, parts)


def settle(made: World, store: Database, folder: Path | str) -> str:
    """Put a campaign straight into a collector's database and blobs; returns its owner's token."""
    blobs = open_blobs(str(folder))
    for content in made.parts.values():
        name = hashlib.sha256(content).hexdigest()
        blobs.put(Blob(PARTS, name), content)
        store.add_part(name, len(content))
    blobs.close()
    token = store.add_campaign(made.id, made.text, made.signature)
    assert token is not None
    return token


def downgrade(store: Database, revision: str) -> None:
    """Bring a database back to an earlier layout."""
    from alembic import command
    from alembic.config import Config

    import privet.exchange.collector.database as module

    config = Config()
    folder = Path(str(module.__file__)).parent / "migrations"
    config.set_main_option("script_location", str(folder))
    with store.engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, revision)


def headers(
    made: World, submission: str, secret: str, person: str = "00" * 32, invite: str | None = None
) -> dict[str, str]:
    found = {
        "content-type": made.kind,
        "idempotency-key": submission,
        "privet-release": made.manifest.release.card,
        "privet-withdraw": hashlib.sha256(bytes.fromhex(secret)).hexdigest(),
        "privet-person": person,
    }
    return found if invite is None else {**found, **bearer(invite)}


def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@dataclass
class Server:
    """`privet serve` as a process of its own, which can be killed and started again."""

    folder: Path
    db: str | None = None
    words: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    """A program to run it with."""
    port: int = field(default_factory=port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, seconds: float = 180.0) -> Server:
        words = [
            *self.before,
            sys.executable,
            "-m",
            "privet",
            "serve",
            "--data",
            str(self.folder),
            "--port",
            str(self.port),
        ]
        words += ["--rate", "0", "--quiet", *(["--db", self.db] if self.db else []), *self.words]
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            with (
                contextlib.suppress(urllib.error.URLError, OSError),
                urllib.request.urlopen(f"{self.url}/healthz", timeout=60),
            ):
                return self
            time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text()[-2000:])

    def stop(self, how: int = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        return self.process.wait(600)


@dataclass
class Postgres:
    """A real PostgreSQL in a temporary folder on loopback, run by an unprivileged user."""

    binaries: Path
    folder: Path
    port: int = field(default_factory=port)
    name: str = "postgres"

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://privet:privet@127.0.0.1:{self.port}/{self.name}"

    def fresh(self) -> Postgres:
        """The same server with a new database in it."""
        name = f"t{secrets.token_hex(6)}"
        engine = sa.create_engine(self.url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(sa.text(f"CREATE DATABASE {name}"))
        engine.dispose()
        return replace(self, name=name)

    def start(self) -> None:
        words = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 "
            f"-c unix_socket_directories={self.folder} -c max_connections=60"
        )
        self._control("-l", str(self.folder / "log"), "-o", words, "start")

    def stop(self, how: str = "fast") -> None:
        self._control("-m", how, "stop")

    def _control(self, *words: str) -> None:
        _as_other([str(self.binaries / "pg_ctl"), "-D", str(self.folder / "data"), "-w", *words])


def binaries() -> Path | None:
    """Where Debian or the path has PostgreSQL's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).resolve().parent if on_path else None


@contextlib.contextmanager
def postgres() -> Iterator[Postgres]:
    programs = binaries()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="privet-postgres-"))
    if os.geteuid() == 0:
        shutil.chown(folder, *_other())
    database = Postgres(programs, folder)
    try:
        (folder / "password").write_text("privet")
        (folder / "password").chmod(0o644)
        _as_other(
            [
                str(programs / "initdb"),
                "-D",
                str(folder / "data"),
                "-U",
                "privet",
                "-A",
                "scram-sha-256",
                "-E",
                "UTF8",
                "--no-sync",
                "--pwfile",
                str(folder / "password"),
            ]
        )
        database.start()
        yield database
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            database.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


def _other() -> tuple[int, int]:
    """PostgreSQL refuses to run as root."""
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            return user.pw_uid, user.pw_gid
    raise AssertionError("no unprivileged user on this machine")


def _as_other(words: list[str]) -> None:
    who: dict[str, Any] = {}
    if os.geteuid() == 0:
        user, group = _other()
        who = {"user": user, "group": group, "extra_groups": []}
    subprocess.run(
        words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", **who
    )
