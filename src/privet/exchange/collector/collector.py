"""The state that every answer of a collector needs: database, blobs, commits, log and limits."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Request

from privet.core.version import __version__
from privet.exchange.collector.blobs import Blobs
from privet.exchange.collector.commits import Commits, Quota, Refused
from privet.exchange.collector.database import Database
from privet.exchange.collector.governance import Governance, erase
from privet.exchange.collector.limits import Limits
from privet.exchange.collector.monitor import Monitor
from privet.exchange.collector.orphans import ORPHAN_SECONDS
from privet.exchange.collector.pairing import pair
from privet.exchange.collector.retention import Tidied, tidy
from privet.exchange.collector.sign_in import SignIn
from privet.exchange.collector.tokens import bearer_token
from privet.exchange.protocol.manifest import Manifest, read_manifest

PAGES = Path(__file__).parent.parent / "pages"
MANIFESTS_REMEMBERED = 1000
HEALTH_SECONDS = 1.0


class Bearer(NamedTuple):
    """Somebody who signed in elsewhere, like a row of the table of tokens."""

    scope: str
    campaign: str | None
    holder: str
    id: str


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
        sign_in: Whose word is taken for who an owner is, beside tokens.
    """

    database: Database
    blobs: Blobs
    monitor: Monitor = field(default_factory=Monitor)
    limits: Limits = field(default_factory=Limits)
    open_metrics: bool = False
    pages: Path = PAGES
    manifests: dict[str, Manifest] = field(default_factory=dict)
    sign_in: SignIn | None = None

    def __post_init__(self) -> None:
        quota = Quota(self.limits.campaign_records, self.limits.campaign_bytes)
        self.commits = Commits(self.database, self.blobs, self.monitor, quota)
        self.governance = Governance(self.database)
        self.tidied = Tidied(0, [], {})
        self._looking = threading.Lock()
        self._health: tuple[float, dict[str, bool]] = (-math.inf, {})

    def open(self) -> None:
        """Become the one writer of database and blobs; PrivetError where that cannot be."""
        if self.database.writer.number is None:
            pair(self.database, self.blobs)

    def start(self) -> None:
        """Only one server uses them, so a blob that has no row now will never have one."""
        self.open()
        self.tidy(older=0.0)
        for campaign in self.governance.erased():
            erase(self.database, self.blobs, campaign)
        self.commits.start()
        self.monitor.log("started", version=__version__)

    def tidy(self, older: float = ORPHAN_SECONDS) -> Tidied:
        self.tidied = tidy(self.database, self.blobs, self.monitor, older)
        return self.tidied

    def stop(self) -> None:
        self.commits.stop()
        self.blobs.close()
        self.database.writer.give_back()
        self.database.engine.dispose()
        self.monitor.log("stopped")

    def health(self) -> dict[str, bool]:
        """Whether records can be stored now, and whether those that are stored are there. Looked at
        once a second, however often it is asked, and after every failure."""
        with self._looking:
            looked = self._health[0]
            if time.monotonic() - looked > HEALTH_SECONDS or self.monitor.failed_at > looked:
                state = {
                    "database": self.database.is_alive(),
                    "blobs": self.blobs.is_ready(),
                    "records": not self.tidied.lost,
                }
                self._health = time.monotonic(), state
            return self._health[1]

    def campaign(self, name: str) -> Any:
        """A campaign's row; Refused where there is none."""
        row = self.database.campaign(name)
        if row is None:
            raise Refused(404, "There is no such campaign.")
        if row.erased is not None:
            raise Refused(410, "This campaign was erased, with all that was sent to it.")
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
        """Whoever asks, if the token is of one of these scopes and for this campaign: an operator's
        is for those that its holder opened."""
        authorization = request.headers.get("authorization", "")
        token = bearer_token(authorization)
        row = self.database.bearer(token) if token else self._signed_in(authorization, campaign)
        if row is None:
            raise Refused(401, "A valid token is needed.")
        if row.scope not in scopes or not (campaign is None or self._is_of(row, campaign)):
            raise Refused(403, "This token is not for that.")
        return row

    def is_known(self, authorization: str) -> bool:
        """Whether it is anybody's token, whatever it is for."""
        token = bearer_token(authorization)
        if token is not None:
            return self.database.bearer(token) is not None
        try:
            return self._subject(authorization) is not None
        except Refused:
            return False

    def _subject(self, authorization: str) -> str | None:
        """Who has signed in elsewhere."""
        kind, _, text = authorization.partition(" ")
        if self.sign_in is None or kind.lower() != "bearer" or text.count(".") != 2:
            return None
        return self.sign_in.subject(text.strip())

    def _is_of(self, bearer: Any, campaign: str) -> bool:
        if bearer.scope != "operator":
            return bool(bearer.campaign == campaign)
        row = self.database.campaign(campaign)
        return row is None or row.opened_by in (None, bearer.holder)

    def _signed_in(self, authorization: str, campaign: str | None) -> Bearer | None:
        """Somebody with an ID token of the issuer's, in what they may do for this campaign."""
        subject = self._subject(authorization)
        if subject is None:
            return None
        roles = self.governance.roles(subject)
        if campaign is None and len(roles) == 1:
            [campaign] = roles
        scope = roles.get(campaign or "")
        return None if scope is None else Bearer(scope, campaign, subject, subject)

    def name(self, bearer: Any) -> str:
        """Who somebody is, for the log of deeds."""
        return f"{bearer.scope} {bearer.holder or bearer.id}"[:128]

    def withhold(self, manifest: Manifest, campaign: str) -> None:
        """Refused as long as fewer people have taken part than the campaign promised."""
        if manifest.least_people > 1 and self.governance.people(campaign) < manifest.least_people:
            raise Refused(
                403,
                f"The campaign promised to give nothing before {manifest.least_people} people have "
                "taken part, and they are fewer.",
            )


async def collector_of(request: Request) -> Collector:
    """The collector that a route belongs to."""
    collector: Collector = request.app.state.collector
    return collector


ThisCollector = Annotated[Collector, Depends(collector_of)]
