"""`privet serve`: one process that takes records until it is told to stop, and then finishes what
it has begun."""

from __future__ import annotations

import ipaddress
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import uvicorn

from privet.core.errors import PrivetError
from privet.core.secret_files import write_secret
from privet.exchange.collector.app import create_app
from privet.exchange.collector.blobs import open_blobs
from privet.exchange.collector.collector import PAGES, Collector
from privet.exchange.collector.connections import (
    HEADER_BYTES,
    Connections,
    protocol_for,
    room_for_connections,
)
from privet.exchange.collector.database import BACKUP, Database
from privet.exchange.collector.limits import Limits
from privet.exchange.collector.monitor import Monitor
from privet.exchange.collector.sign_in import SignIn

# Seconds after which a thread that waits may go on; Python's own 5 ms would be longer than the disk
# takes.
SWITCH_SECONDS = 1e-3


@dataclass(frozen=True)
class Address:
    """Where a collector listens.

    Parameters:
        host, port: Any machine may reach a host such as 0.0.0.0.
        certificate, key: Files for TLS (PEM).
        behind_proxy: How many proxies are in front; the addresses that they name are believed.
        insecure_public: Listen to other machines without TLS and without a proxy.
    """

    host: str = "127.0.0.1"
    port: int = 8300
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: int = 0
    insecure_public: bool = False

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise PrivetError("TLS takes both --certificate and --key.")
        for file in (self.certificate, self.key):
            if file is not None and not file.is_file():
                raise PrivetError(f"There is no file {file}.")
        told = self.certificate is not None or self.behind_proxy or self.insecure_public
        if not self.is_loopback and not told:
            raise PrivetError(
                f"Without TLS anybody on the way to {self.host} could read and change what is "
                "sent: give --certificate and --key, or --behind-proxy 1 where a proxy in front "
                "has TLS, or --insecure-public."
            )

    @property
    def is_loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

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
    sign_in: SignIn | None = None,
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
        sign_in: Whose word is taken for who an owner is, beside tokens.
    """
    address, limits = address or Address(), limits or Limits()
    limits = replace(limits, proxies=address.behind_proxy)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PrivetError(f"Cannot make {folder}: {error.strerror}.") from None
    place = open_blobs(blobs or str(folder / "blobs"), limits.reserve)
    try:
        database = Database(db or f"sqlite:///{folder.resolve() / 'collector.db'}")
        collector = Collector(database, place, Monitor(quiet=quiet), limits, open_metrics, pages)
        collector.sign_in = sign_in
        collector.open()
    except PrivetError:
        place.close()
        raise
    connections = Connections(room_for_connections(limits.connections), limits.header_seconds)
    for sentence in _missing(collector, address, folder, connections.most):
        sys.stderr.write(f"{sentence}\n")
    _write_operator_token(database, folder, new_token)
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
        backlog=2048,
        http=protocol_for(connections),
        ws="none",
        loop="privet.exchange.collector.connections:Loop" if address.certificate else "auto",
        proxy_headers=False,
        h11_max_incomplete_event_size=HEADER_BYTES,
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


def _missing(collector: Collector, address: Address, folder: Path, connections: int) -> list[str]:
    """What an operator should know before others use the collector."""
    wanted = collector.limits.connections
    said = {
        "Nobody else can reach it: it listens to this machine only.": address.is_loopback
        and not address.behind_proxy,
        "There is no TLS: what is sent can be read and changed on the way.": address.certificate
        is None
        and not address.is_loopback
        and not address.behind_proxy,
        "There are no pages for browsers: build them with  make web.": not (
            collector.pages / "participant.html"
        ).is_file(),
        f"{folder / 'operator.token'} is still here: keep it elsewhere and delete the file.": (
            folder / "operator.token"
        ).exists(),
        "There is no backup yet: make one with  privet collector backup.": (
            collector.database.state(BACKUP) is None and collector.database.has_records()
        ),
        f"The system allows {connections} connections of {wanted}: raise the limit of open files "
        "(ulimit -n).": connections < wanted,
    }
    return [sentence for sentence, is_so in said.items() if is_so]


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
