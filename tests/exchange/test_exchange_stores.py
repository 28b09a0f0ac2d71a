"""Other databases and other places for records: migrations, PostgreSQL, S3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from crowd import killed
from world import Postgres, bearer, world

from conftest import Start
from privet.core.errors import PrivetError
from privet.exchange.collector.blobs import Blob, Blobs, Missing
from privet.exchange.collector.database import Database
from privet.exchange.collector.orphans import sweep
from privet.exchange.collector.tables import metadata

pytestmark = pytest.mark.system


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_migrations_end_in_the_tables_of_the_models(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    store = Database(
        f"sqlite:///{tmp_path / 'a.db'}"
        if kind == "sqlite"
        else request.getfixturevalue("database").url
    )
    store.upgrade()
    store.upgrade()
    with store.engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)
    assert differences == []
    store.engine.dispose()


def test_all_of_it_on_postgresql(start: Start, database: Postgres) -> None:
    running = start(db=database.url)
    made = world(per_person=2)
    owner = running.settle(made)
    content = made.body("0" * 32, made.record())
    assert [running.submit(made, "0" * 32, content).status_code for _ in range(2)] == [201, 200]
    assert running.submit(made, "1" * 32, content).status_code == 409
    assert running.submit(made, "1" * 32).status_code == 201
    assert running.submit(made, "2" * 32).status_code == 403
    path = f"/v1/campaigns/{made.id}"
    assert (
        running.http.delete(
            f"{path}/submissions/{'0' * 32}", headers={"privet-withdraw": "ab" * 32}
        ).status_code
        == 204
    )
    found = running.http.get(f"{path}/figures", headers=bearer(owner)).json()
    assert (found["records"], found["people"], found["gone"], sum(found["by_day"].values())) == (
        1,
        1,
        {"withdrawn": 1},
        1,
    )
    assert running.stored(made) == (1, 1)


@pytest.mark.parametrize(
    "url", ["nonsense", "sqlite://", "mysql://x/y", "postgresql+psycopg://nobody:x@127.0.0.1:1/x"]
)
def test_a_database_that_cannot_be_used_gets_a_sentence_without_its_password(url: str) -> None:
    with pytest.raises(PrivetError) as caught:
        Database(url).upgrade()
    assert ":x@" not in str(caught.value)


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(
        ip_address="127.0.0.1", port=0, verbose=False
    )
    import boto3

    server.start()
    host, port = server.get_host_and_port()
    patch = pytest.MonkeyPatch()
    given = {
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
    }
    for name, value in given.items():
        patch.setenv(name, value)
    boto3.client("s3").create_bucket(Bucket="records")
    yield "s3://records/privet"
    patch.undo()
    server.stop()


def test_records_in_s3(start: Start, bucket: str) -> None:
    running = start(blobs=bucket)
    made = world()
    owner = running.settle(made)
    content = made.body("0" * 32, made.record())
    assert [running.submit(made, "0" * 32, content).status_code for _ in range(2)] == [201, 200]
    assert running.submit(made, "1" * 32).status_code == 201
    page = running.http.get(f"/v1/campaigns/{made.id}/records", headers=bearer(owner)).content
    assert content in page
    blobs = running.collector.blobs
    assert isinstance(blobs, Blobs)
    blobs.put(Blob(made.id, "f" * 64), b"nobody's")
    mark = blobs.mark()
    assert mark is not None and mark.database == running.collector.database.identity()
    assert sweep(running.collector.database, blobs, running.collector.monitor, older=0).moved == 1
    [first, _] = running.collector.database.submissions(made.id, 0, 10)
    path = f"/v1/campaigns/{made.id}/submissions/{'0' * 32}"
    assert running.http.delete(path, headers={"privet-withdraw": "ab" * 32}).status_code == 204
    with pytest.raises(Missing):
        blobs.get(Blob(made.id, first.blob))
    assert running.http.get("/healthz").status_code == 200


def test_killing_a_server_with_records_in_s3_loses_nothing(tmp_path: Path, bucket: str) -> None:
    found = killed(tmp_path, None, 2, records=60, connections=8, blobs=f"{bucket}-killed")
    assert found["kills"] >= 2 and found["acknowledged"] == 60
    wrong = ("lost", "resurrected", "doubled", "damaged", "without_blob", "orphans")
    assert not any(found[what] for what in wrong), found


def test_two_databases_do_not_share_a_bucket(start: Start, bucket: str) -> None:
    address = f"{bucket}-shared"
    start(blobs=address).settle(world())
    with pytest.raises(PrivetError, match="do not belong to the database"):
        start(blobs=address)


def test_a_store_that_nobody_knows_gets_a_sentence() -> None:
    with pytest.raises(PrivetError):
        Blobs("nonsense://x/y")
