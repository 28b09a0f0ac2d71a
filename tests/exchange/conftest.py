"""A collector in this process, and a PostgreSQL for those who need one."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the exchange needs  pip install 'privet[exchange]'")

import httpx
import numpy as np
import torch
from fastapi.testclient import TestClient
from PIL import Image
from world import Postgres, World, bearer, binaries, headers, postgres

from privet.exchange.collector.app import create_app
from privet.exchange.collector.blobs import open_blobs
from privet.exchange.collector.collector import PAGES, Collector
from privet.exchange.collector.database import Database
from privet.exchange.collector.limits import Limits
from privet.exchange.collector.monitor import Monitor
from privet.exchange.protocol.client import Client


class Bridge(httpx.BaseTransport):
    """Requests of our client as requests of the test's, which may be another library's (httpx2)."""

    def __init__(self, http: TestClient) -> None:
        self.http = http

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        given = {"headers": dict(request.headers), "content": request.read()}
        answer = self.http.request(
            request.method, str(request.url), follow_redirects=False, **given
        )
        # The content is no longer packed.
        plain = {k: v for k, v in answer.headers.items() if k != "content-encoding"}
        return httpx.Response(answer.status_code, headers=plain, content=answer.content)


@dataclass
class Running:
    """A collector with its parts in reach."""

    http: TestClient
    collector: Collector
    folder: Path
    log: io.StringIO
    operator: str

    def settle(self, made: World) -> str:
        """Open a campaign; its owner's token."""
        owner = bearer(self.operator)
        for name, content in made.manifest.release.hashes().items():
            assert (
                self.http.put(
                    f"/v1/parts/{content}", content=made.parts[name], headers=owner
                ).status_code
                == 201
            )
        answer = self.http.post(
            "/v1/campaigns",
            json={"manifest": made.text, "signature": made.signature},
            headers=owner,
        )
        assert answer.status_code == 201, answer.text
        return str(answer.json()["owner_token"])

    def submit(
        self,
        made: World,
        submission: str,
        content: bytes | None = None,
        secret: str = "ab" * 32,
        **changed: Any,
    ) -> Any:
        content = (
            made.body(submission, made.record(int(submission[:8], 16)))
            if content is None
            else content
        )
        given = {
            **headers(made, submission, secret),
            **{name.replace("_", "-"): value for name, value in changed.items()},
        }
        given = {name: value for name, value in given.items() if value is not None}
        return self.http.post(
            f"/v1/campaigns/{made.id}/submissions", content=content, headers=given
        )

    def stored(self, made: World) -> tuple[int, int]:
        """Rows and blobs of a campaign."""
        blobs = list((self.folder / "blobs" / made.id).glob("*"))
        return len(self.collector.database.submissions(made.id, 0, 100_000)), len(blobs)

    def client(self, url: str, token: str | None = None) -> Client:
        """What owners and participants use, connected to this collector without a network."""
        return Client(url, token, transport=Bridge(self.http))


Start = Callable[..., Running]


def begin(
    folder: Path,
    db: str | None = None,
    blobs: str | None = None,
    limits: Limits | None = None,
    pages: Path = PAGES,
) -> Running:
    folder.mkdir()
    store = Database(db or f"sqlite:///{folder / 'collector.db'}")
    store.upgrade()
    log = io.StringIO()
    collector = Collector(
        store,
        open_blobs(blobs or str(folder / "blobs")),
        Monitor(log),
        limits or Limits(rate=0),
        pages=pages,
    )
    operator = store.operator_token(replace=True)
    assert operator is not None
    http = TestClient(create_app(collector), base_url="http://127.0.0.1")
    http.__enter__()
    return Running(http, collector, folder, log, operator)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a collector of one's own: with other limits, another database, or to break it."""
    running: list[Running] = []

    def another(**words: Any) -> Running:
        running.append(begin(tmp_path / f"collector{len(running)}", **words))
        return running[-1]

    yield another
    for one in running:
        one.http.__exit__(None, None, None)


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A collector for all tests of a file, who have a campaign each."""
    running = begin(tmp_path_factory.mktemp("exchange") / "collector")
    yield running
    running.http.__exit__(None, None, None)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Postgres]:
    if binaries() is None:
        pytest.skip(
            "there is no PostgreSQL on this machine: on Debian, install the package postgresql"
        )
    with postgres() as running:
        yield running


@pytest.fixture
def database(cluster: Postgres) -> Postgres:
    """A database of one's own: it belongs to one place of blobs."""
    return cluster.fresh()


def untrained(schema: Any, folder: Path) -> Path:
    """A release that nothing was learned for: in form it is like any other."""
    from privet.nets import registry as nets
    from privet.release.noise import Noise
    from privet.release.release import Release

    torch.manual_seed(0)
    settings = {"dims": 4, "sigma": 0.4, "width": 0.0625}
    card = {"method": "hedge", "settings": settings, "private": ["beard"]}
    Release(
        schema,
        ("hedge", settings),
        nets.build("hedge", schema, settings),
        Noise("gaussian", (4,), 0.4),
        card,
    ).save(folder)
    return folder


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of small pictures."""
    from privet.data.schema import ImageSchema

    return untrained(ImageSchema(3, 16, 16), tmp_path_factory.mktemp("releases") / "pictures")


@pytest.fixture(scope="session")
def table_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of rows with two columns, a and b."""
    from privet.data.schema import Column, TableSchema

    return untrained(
        TableSchema((Column("a"), Column("b"))), tmp_path_factory.mktemp("releases") / "table"
    )


@pytest.fixture(scope="session")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A photo whose file says where, when, with what and by whom it was taken."""
    picture = Image.fromarray(
        np.random.default_rng(0).integers(0, 256, (32, 48, 3), dtype=np.uint8)
    )
    exif = picture.getexif()
    exif[0x010F], exif[0x0110], exif[0x0132], exif[0x013B] = (
        "Acme",
        "Phone 7",
        "2026:11:01 12:00:00",
        "Anna Example",
    )
    place = exif.get_ifd(0x8825)
    place[1], place[2], place[3], place[4] = "N", (52.0, 31.0, 12.0), "E", (13.0, 24.0, 18.0)
    path = tmp_path_factory.mktemp("photos") / "anna-at-home.jpg"
    picture.save(path, exif=exif, quality=95)
    return path
