"""`privet serve`: one process that takes records until it is told to stop, and then finishes what
it has begun."""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from privet.core.errors import PrivetError
from privet.core.secret_files import write_secret
from privet.exchange.collector.app import create_app
from privet.exchange.collector.blobs import open_blobs
from privet.exchange.collector.collector import PAGES, Collector
from privet.exchange.collector.database import Database
from privet.exchange.collector.limits import Limits
from privet.exchange.collector.monitor import Monitor
from privet.exchange.collector.retention import pair

# Seconds after which a thread that waits may go on; Python's own 5 ms would be longer than the disk
# takes.
SWITCH_SECONDS = 1e-3


@dataclass(frozen=True)
class Address:
    """Where a collector listens.

    Parameters:
        host, port: 0.0.0.0 is for use with TLS.
        certificate, key: Files for TLS (PEM).
        behind_proxy: Believe the addresses that a proxy in front names.
    """

    host: str = "127.0.0.1"
    port: int = 8300
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise PrivetError("TLS takes both --certificate and --key.")
        for file in (self.certificate, self.key):
            if file is not None and not file.is_file():
                raise PrivetError(f"There is no file {file}.")

    def __str__(self) -> str:
        return f"{'https' if self.certificate else 'http'}://{self.host}:{self.port}"


def serve(
    folder: Path,
    address: Address | None = None,
    *,
    db: str | None = None,
    blobs: str | None = None,
    limits: Limits | None = None,
    open_metrics: bool = False,
    new_token: bool = False,
    quiet: bool = False,
    pages: Path = PAGES,
) -> None:
    """Run a collector until it is told to stop.

    Parameters:
        folder: For rows, records and the operator's token; made where it is not there.
        address: Where to listen.
        db: `postgresql+psycopg://USER:PASSWORD@HOST/NAME` instead of SQLite in the folder.
        blobs: Another folder or `s3://BUCKET/PREFIX` for records.
        limits: What it takes.
        open_metrics: Show /metrics to everybody, not to the operator alone.
        new_token: Revoke the operator's token and make another.
        quiet: No log line per request.
        pages: Folder of the pages for browsers.
    """
    address, limits = address or Address(), limits or Limits()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PrivetError(f"Cannot make {folder}: {error.strerror}.") from None
    place = open_blobs(blobs or str(folder / "blobs"), limits.reserve)
    try:
        database = Database(db or f"sqlite:///{folder.resolve() / 'collector.db'}")
        pair(database, place)
    except PrivetError:
        place.close()
        raise
    _write_operator_token(database, folder, new_token)
    collector = Collector(database, place, Monitor(quiet=quiet), limits, open_metrics, pages)
    collector.monitor.log("listening", address=str(address))
    config = uvicorn.Config(
        create_app(collector),
        host=address.host,
        port=address.port,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=30,
        limit_concurrency=2000,
        backlog=2048,
        proxy_headers=address.behind_proxy,
        forwarded_allow_ips="*" if address.behind_proxy else None,
        h11_max_incomplete_event_size=32 * 1024,
        ssl_certfile=address.certificate,
        ssl_keyfile=address.key,
    )
    # After it has finished what was begun, uvicorn raises the signal that stopped it once more:
    # that is no failure.
    signal.signal(signal.SIGTERM, lambda *_: None)
    # The thread that commits waits for the disk many times a second, and after each wait for the
    # event loop to let it go on.
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        uvicorn.Server(config).run()
    except KeyboardInterrupt:
        pass
    except SystemExit:
        raise PrivetError(
            f"Cannot listen on {address.host}:{address.port}: is another program using it?"
        ) from None


def _write_operator_token(database: Database, folder: Path, replace: bool) -> None:
    """Who may create campaigns: a token that is made at the first start, and written to a file that
    only its owner may read."""
    token = database.operator_token(replace)
    if token is None:
        return
    file = folder / "operator.token"
    file.unlink(missing_ok=True)
    write_secret(file, token + "\n")
    sys.stderr.write(
        f"The operator's token, which may create campaigns, is in {file}. Keep it elsewhere and "
        "delete the file.\n"
    )
