"""The state that every answer of a collector needs: database, blobs, commits, log and limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from fastapi import Request

from privet.core.version import __version__
from privet.exchange.collector.blobs import Blobs
from privet.exchange.collector.commits import Commits, Refused
from privet.exchange.collector.limits import Limits
from privet.exchange.collector.retention import pair, sweep
from privet.exchange.collector.store import Bearer, Store
from privet.exchange.collector.watch import Watch
from privet.exchange.protocol import manifest as manifests
from privet.exchange.protocol.manifest import Manifest

PAGES = Path(__file__).parent.parent / "pages"


@dataclass
class Collector:
    """What every answer needs."""

    store: Store
    blobs: Blobs
    watch: Watch = field(default_factory=Watch)
    limits: Limits = field(default_factory=Limits)
    open_metrics: bool = False
    """Whether /metrics needs no operator's token."""
    pages: Path = PAGES
    _manifests: dict[str, Manifest] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.commits = Commits(self.store, self.blobs, self.watch.heard())

    def start(self) -> None:
        """Only one server uses the blobs on a disk, so what has no row now will never have one."""
        pair(self.store, self.blobs)
        swept = sweep(self.store, self.blobs, self.watch, self.blobs.young)
        self.commits.start()
        self.watch.say("started", version=__version__, swept=swept)

    def stop(self) -> None:
        self.commits.stop()
        self.blobs.close()
        self.store.engine.dispose()
        self.watch.say("stopped")

    def manifest(self, campaign: str) -> Manifest | None:
        """A manifest never changes, so it is read once."""
        if campaign not in self._manifests:
            row = self.store.campaign(campaign)
            if row is None:
                return None
            if len(self._manifests) > 1000:
                self._manifests.clear()
            self._manifests[campaign] = manifests.read(row.manifest, row.signature)
        return self._manifests[campaign]

    def bearer(self, request: Request, *scopes: str, campaign: str | None = None) -> Bearer:
        """Whoever asks, if the token is of one of these scopes and, unless it is the operator's,
        for this campaign."""
        kind, _, text = request.headers.get("authorization", "").partition(" ")
        found = self.store.bearer(text.strip()) if kind.lower() == "bearer" else None
        if found is None:
            raise Refused(401, "A valid token is needed.")
        if found.scope not in scopes or (
            found.scope != "operator" and campaign is not None and found.campaign != campaign
        ):
            raise Refused(403, "This token is not for that.")
        return found
