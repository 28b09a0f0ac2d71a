"""The state that every answer of a collector needs: database, blobs, commits, log and limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request

from privet.core.version import __version__
from privet.exchange.collector.blobs import Blobs
from privet.exchange.collector.commits import Commits, Refused
from privet.exchange.collector.database import Database
from privet.exchange.collector.limits import Limits
from privet.exchange.collector.monitor import Monitor
from privet.exchange.collector.retention import pair, sweep
from privet.exchange.collector.tokens import bearer_token
from privet.exchange.protocol.manifest import Manifest, read_manifest

PAGES = Path(__file__).parent.parent / "pages"
MANIFESTS_REMEMBERED = 1000


@dataclass
class Collector:
    """One server with its parts.

    Parameters:
        database, blobs: Where rows and records are stored.
        monitor: Its log and counters.
        limits: What it takes.
        open_metrics: Whether /metrics needs no operator's token.
        pages: Folder of the pages for browsers.
        manifests: Those that were read, by their campaigns.
    """

    database: Database
    blobs: Blobs
    monitor: Monitor = field(default_factory=Monitor)
    limits: Limits = field(default_factory=Limits)
    open_metrics: bool = False
    pages: Path = PAGES
    manifests: dict[str, Manifest] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.commits = Commits(self.database, self.blobs, self.monitor)

    def start(self) -> None:
        """Only one server uses the blobs on a disk, so what has no row now will never have one."""
        pair(self.database, self.blobs)
        swept = sweep(self.database, self.blobs, self.monitor, self.blobs.grace)
        self.commits.start()
        self.monitor.log("started", version=__version__, swept=swept)

    def stop(self) -> None:
        self.commits.stop()
        self.blobs.close()
        self.database.engine.dispose()
        self.monitor.log("stopped")

    def campaign(self, name: str) -> Any:
        """A campaign's row; Refused where there is none."""
        row = self.database.campaign(name)
        if row is None:
            raise Refused(404, "There is no such campaign.")
        return row

    def manifest(self, campaign: str) -> Manifest:
        """A manifest never changes, so it is read once."""
        if campaign not in self.manifests:
            row = self.campaign(campaign)
            if len(self.manifests) >= MANIFESTS_REMEMBERED:
                self.manifests.clear()
            self.manifests[campaign] = read_manifest(row.manifest, row.signature)
        return self.manifests[campaign]

    def bearer(self, request: Request, *scopes: str, campaign: str | None = None) -> Any:
        """Whoever asks, if the token is of one of these scopes and, unless it is the operator's,
        for this campaign."""
        token = bearer_token(request.headers.get("authorization", ""))
        row = None if token is None else self.database.bearer(token)
        if row is None:
            raise Refused(401, "A valid token is needed.")
        if row.scope not in scopes or (
            row.scope != "operator" and campaign is not None and row.campaign != campaign
        ):
            raise Refused(403, "This token is not for that.")
        return row


async def collector_of(request: Request) -> Collector:
    """The collector that a route belongs to."""
    collector: Collector = request.app.state.collector
    return collector


ThisCollector = Annotated[Collector, Depends(collector_of)]
