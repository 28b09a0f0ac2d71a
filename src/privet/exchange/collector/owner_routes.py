"""What owners ask of the collector: to open a campaign with its release, to invite, to look, to
fetch, to close."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.security import HTTPBearer
from starlette.concurrency import run_in_threadpool

from privet.core.errors import PrivetError
from privet.exchange.collector.answers import (
    BINARY,
    BYTES,
    CampaignID,
    Created,
    Figures,
    GoneAnswer,
    NewCampaign,
    NewToken,
    NewTokens,
    PartAnswer,
    Secret,
    Summary,
    TokenAnswer,
    problems,
)
from privet.exchange.collector.blobs import Blob, Missing
from privet.exchange.collector.collector import Collector
from privet.exchange.collector.commits import Refused
from privet.exchange.collector.store import DAY, PARTS, now
from privet.exchange.protocol import manifest as manifests

PAGE_BYTES = 32 * 2**20
"""A page of records ends after so many."""

Number = Annotated[int, Query(ge=0, le=2**62)]
Most = Annotated[int, Query(ge=1, le=1000)]


def router(collector: Collector) -> APIRouter:
    routes = APIRouter(dependencies=[Depends(HTTPBearer(auto_error=False))])
    store = collector.store

    @routes.put(
        "/parts/{sha256}",
        status_code=201,
        response_model=PartAnswer,
        responses=problems(401, 507),
        openapi_extra={"requestBody": {"required": True, "content": {BYTES: BINARY}}},
    )
    async def put_part(request: Request, sha256: Secret) -> PartAnswer:
        """A part of a release, before the campaign that names it. Operator's token."""
        await run_in_threadpool(collector.bearer, request, "operator")
        content = await request.body()
        if hashlib.sha256(content).hexdigest() != sha256:
            raise Refused(422, "The bytes are not those that the address names.")

        def keep() -> None:
            try:
                collector.blobs.put(Blob(PARTS, sha256), content)
            except OSError:
                raise Refused(503, "The part cannot be stored now: try again later.") from None
            store.add_part(sha256, len(content))

        await run_in_threadpool(keep)
        return PartAnswer(sha256=sha256, size=len(content))

    @routes.post(
        "/campaigns", status_code=201, response_model=Created, responses=problems(401, 409)
    )
    def create(request: Request, new: NewCampaign) -> Created:
        """Open a campaign. Operator's token; the answer holds the owner's, which is shown once."""
        collector.bearer(request, "operator")
        manifest = manifests.read(new.manifest, new.signature)
        absent = set(manifest.release.all().values()) - store.has_parts(
            manifest.release.all().values()
        )
        if absent:
            raise Refused(422, f"The part {min(absent)} of the release is not here: send it first.")
        manifests.check_card(
            manifest, _card(collector.blobs.get(Blob(PARTS, manifest.release.card)))
        )
        name = manifests.campaign_id(new.manifest)
        token = store.add_campaign(name, new.manifest, new.signature)
        if token is None:
            raise Refused(409, "This campaign is here already.")
        return Created(campaign=name, owner_token=token)

    @routes.get("/campaigns", response_model=list[Summary], responses=problems(401))
    def campaigns(request: Request) -> list[Summary]:
        """All campaigns, for the operator; the one, for its owner."""
        who = collector.bearer(request, "operator", "owner")
        return [Summary(**_summary(row)) for row in store.campaigns(who.campaign)]

    @routes.get(
        "/campaigns/{campaign}/figures", response_model=Figures, responses=problems(401, 404)
    )
    def figures(request: Request, campaign: CampaignID) -> Figures:
        """How many records came, of how many people, on which day."""
        row = _owned(request, campaign, "operator", "owner")
        return Figures(**_summary(row), **store.figures(campaign))

    @routes.post(
        "/campaigns/{campaign}/close",
        status_code=204,
        response_class=Response,
        responses=problems(401, 404),
    )
    def close(request: Request, campaign: CampaignID) -> Response:
        """Take no more records. What is there stays until it is withdrawn or its time is over."""
        _owned(request, campaign, "operator", "owner")
        store.close(campaign)
        return Response(status_code=204)

    @routes.post(
        "/campaigns/{campaign}/tokens",
        status_code=201,
        response_model=list[NewToken],
        responses=problems(401, 404),
    )
    def new_tokens(request: Request, campaign: CampaignID, wanted: NewTokens) -> list[NewToken]:
        """Invitations, or another token for the owner. Shown once."""
        _owned(request, campaign, "owner")
        expires = None if wanted.days is None else now() + wanted.days * DAY
        return [
            NewToken(id=name, token=text)
            for name, text in store.new_tokens(wanted.count, wanted.scope, campaign, expires)
        ]

    @routes.get(
        "/campaigns/{campaign}/tokens",
        response_model=list[TokenAnswer],
        responses=problems(401, 404),
    )
    def tokens(request: Request, campaign: CampaignID) -> list[TokenAnswer]:
        """Names of tokens, and until when they are valid; not the tokens."""
        _owned(request, campaign, "owner")
        return [TokenAnswer(**row) for row in store.tokens(campaign)]

    @routes.delete(
        "/campaigns/{campaign}/tokens/{token}",
        status_code=204,
        response_class=Response,
        responses=problems(401, 404),
    )
    def revoke(
        request: Request,
        campaign: CampaignID,
        token: Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")],
    ) -> Response:
        """End a token now."""
        _owned(request, campaign, "owner")
        if not store.revoke(campaign, token):
            raise Refused(404, "There is no such token, or it was revoked before.")
        return Response(status_code=204)

    @routes.get(
        "/campaigns/{campaign}/records",
        response_class=Response,
        responses={200: {"content": {BYTES: BINARY}}, **problems(401, 404)},
    )
    def records(
        request: Request, campaign: CampaignID, after: Number = 0, most: Most = 500
    ) -> Response:
        """A page of records as they were sent: each the length of a header (4 bytes, little
        endian), the header in JSON, the bytes.

        `Privet-Next` in the answer is where the next page starts; it is absent on the last one.
        """
        _owned(request, campaign, "owner")
        rows = store.rows(campaign, after, most)
        parts: list[bytes] = []
        size, last = 0, None
        for row in rows:
            parts.extend(frame := list(_frame(collector, campaign, row)))
            size, last = size + sum(map(len, frame)), row.number
            if size > PAGE_BYTES:
                break
        more = last is not None and (last != rows[-1].number or len(rows) == most)
        headers = {"privet-next": str(last)} if more else {}
        return Response(b"".join(parts), media_type=BYTES, headers=headers)

    @routes.get(
        "/campaigns/{campaign}/gone", response_model=list[GoneAnswer], responses=problems(401, 404)
    )
    def gone(
        request: Request, campaign: CampaignID, after: Number = 0, most: Most = 1000
    ) -> list[GoneAnswer]:
        """Names of records that were withdrawn or grew too old, in order: delete them from what was
        exported before."""
        _owned(request, campaign, "owner")
        return [GoneAnswer(**row) for row in store.gone(campaign, after, most)]

    def _owned(request: Request, campaign: str, *scopes: str) -> Any:
        """The campaign's row, for whoever may see it; first the token, so that nobody learns which
        campaigns there are."""
        collector.bearer(request, *scopes, campaign=campaign)
        row = store.campaign(campaign)
        if row is None:
            raise Refused(404, "There is no such campaign.")
        return row

    return routes


def _frame(collector: Collector, campaign: str, row: Any) -> Iterator[bytes]:
    """Nothing where the record was withdrawn meanwhile."""
    try:
        content = collector.blobs.get(Blob(campaign, row.blob))
    except Missing:
        return
    damaged = hashlib.sha256(content).hexdigest() != row.sha256
    if damaged:
        collector.watch.say("damaged", submission=row.number)
    about = {key: getattr(row, key) for key in ("number", "id", "person", "sha256", "received")}
    header = json.dumps({**about, "size": len(content), "damaged": damaged}).encode()
    yield len(header).to_bytes(4, "little") + header
    yield content


def _summary(row: Any) -> dict[str, Any]:
    manifest = json.loads(row.manifest)
    return {key: manifest[key] for key in ("title", "mode", "access")} | {
        "campaign": row.id,
        "created": row.created,
        "closed": row.closed,
    }


def _card(content: bytes) -> dict[str, Any]:
    try:
        card = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        card = None
    if not isinstance(card, dict):
        raise PrivetError("The card of the release is not JSON.")
    return card
