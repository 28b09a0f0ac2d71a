"""`privet serve`: one process that takes records until it is told to stop, and then finishes what
it has begun."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import uvicorn

from privet.core.errors import PrivetError
from privet.exchange.collector.app import create_app
from privet.exchange.collector.blobs import open_blobs
from privet.exchange.collector.collector import PAGES, Collector
from privet.exchange.collector.limits import Limits
from privet.exchange.collector.retention import pair
from privet.exchange.collector.store import Store
from privet.exchange.collector.watch import Watch
from privet.exchange.protocol.seal import write_secret

SWITCH = 1e-3
"""Seconds after which a thread that waits may go on; Python's own 5 ms would be longer than the
disk takes."""


def serve(
    folder: Path,
    host: str = "127.0.0.1",
    port: int = 8300,
    *,
    db: str | None = None,
    blobs: str | None = None,
    limits: Limits | None = None,
    reserve: int = 64 * 2**20,
    certificate: Path | None = None,
    key: Path | None = None,
    behind_proxy: bool = False,
    open_metrics: bool = False,
    new_token: bool = False,
    quiet: bool = False,
    pages: Path = PAGES,
) -> None:
    """Run the collector whose rows and records lie in `folder`, or where `db` and `blobs` say."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PrivetError(f"Cannot make {folder}: {error.strerror}.") from None
    if (certificate is None) != (key is None):
        raise PrivetError("TLS takes both --certificate and --key.")
    for file in (certificate, key):
        if file is not None and not file.is_file():
            raise PrivetError(f"There is no file {file}.")
    where = open_blobs(blobs or str(folder / "blobs"), reserve)
    store = Store(db or f"sqlite:///{folder.resolve() / 'collector.db'}")
    try:
        pair(store, where)
    except PrivetError:
        where.close()
        raise
    _operator(store, folder, new_token)
    collector = Collector(store, where, Watch(quiet=quiet), limits or Limits(), open_metrics, pages)
    scheme = "https" if certificate else "http"
    collector.watch.say("listening", address=f"{scheme}://{host}:{port}")
    config = uvicorn.Config(
        create_app(collector),
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=30,
        limit_concurrency=2000,
        backlog=2048,
        proxy_headers=behind_proxy,
        forwarded_allow_ips="*" if behind_proxy else None,
        h11_max_incomplete_event_size=32 * 1024,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    # After it has finished what was begun, uvicorn raises the signal that stopped it once more:
    # that is no failure.
    signal.signal(signal.SIGTERM, lambda *_: None)
    # The thread that commits waits for the disk many times a second, and after each wait for the
    # event loop to let it go on.
    sys.setswitchinterval(SWITCH)
    try:
        uvicorn.Server(config).run()
    except KeyboardInterrupt:
        pass
    except SystemExit:
        raise PrivetError(f"Cannot listen on {host}:{port}: is another program using it?") from None


def _operator(store: Store, folder: Path, again: bool) -> None:
    """Who may create campaigns: a token that is made at the first start, and written to a file that
    only its owner may read."""
    token = store.first_operator(again)
    if token is None:
        return
    file = folder / "operator.token"
    file.unlink(missing_ok=True)
    write_secret(file, token + "\n")
    sys.stderr.write(
        f"The operator's token, which may create campaigns, is in {file}. Keep it elsewhere and delete the file.\n"
    )
