"""What owners ask of the collector: to open a campaign with its release, to invite, to look, to
fetch, to close."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.security import HTTPBearer
from starlette.concurrency import run_in_threadpool

from privet.core.errors import PrivetError
from privet.exchange.collector.blobs import PARTS, Blob, Missing
from privet.exchange.collector.collector import Collector, ThisCollector
from privet.exchange.collector.commits import Refused
from privet.exchange.collector.database import DAY_MS
from privet.exchange.collector.openapi import BINARY_ANSWER, BYTES, binary_body, problems
from privet.exchange.collector.tokens import now
from privet.exchange.protocol.manifest import campaign_id, check_card, read_manifest
from privet.exchange.protocol.messages import (
    CampaignID,
    Created,
    Figures,
    FrameHeader,
    GoneAnswer,
    NewCampaign,
    NewToken,
    NewTokens,
    PartAnswer,
    Secret,
    Summary,
    TokenAnswer,
    frame,
)

# A page of records ends after so many.
PAGE_BYTES = 8 * 2**20

Number = Annotated[int, Query(ge=0, le=2**62)]
Most = Annotated[int, Query(ge=1, le=1000)]
TokenID = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]

routes = APIRouter(dependencies=[Depends(HTTPBearer(auto_error=False))])


def _for(*scopes: str) -> Any:
    def row(request: Request, collector: ThisCollector, campaign: CampaignID) -> Any:
        """The campaign's row, for whoever may see it; first the token, so that nobody learns which
        campaigns there are."""
        request.state.who = collector.name(collector.bearer(request, *scopes, campaign=campaign))
        return collector.campaign(campaign)

    return Depends(row)


OWNER = _for("owner")
OWNER_OR_AUDITOR = _for("owner", "auditor")
OPERATOR_OR_OWNER = _for("operator", "owner")
ANY_ROLE = _for("operator", "owner", "auditor")


@routes.put(
    "/parts/{sha256}",
    status_code=201,
    response_model=PartAnswer,
    responses=problems(401, 507),
    openapi_extra=binary_body(BYTES),
)
async def put_part(request: Request, collector: ThisCollector, sha256: Secret) -> PartAnswer:
    """A part of a release, before the campaign that names it. Operator's token."""
    await run_in_threadpool(collector.bearer, request, "operator")
    content = await request.body()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise Refused(422, "The bytes are not those that the address names.")
    try:
        await run_in_threadpool(collector.blobs.put, Blob(PARTS, sha256), content)
    except OSError:
        raise Refused(503, "The part cannot be stored now: try again later.") from None
    await run_in_threadpool(collector.database.add_part, sha256, len(content))
    return PartAnswer(sha256=sha256, size=len(content))


@routes.post("/campaigns", status_code=201, response_model=Created, responses=problems(401, 409))
def create(request: Request, collector: ThisCollector, new: NewCampaign) -> Created:
    """Open a campaign. Operator's token; the answer holds the owner's, which is shown once."""
    operator = collector.bearer(request, "operator")
    manifest = read_manifest(new.manifest, new.signature)
    hashes = set(manifest.release.hashes().values())
    if absent := hashes - collector.database.has_parts(hashes):
        raise Refused(422, f"The part {min(absent)} of the release is not here: send it first.")
    check_card(manifest, _card(collector.blobs.get(Blob(PARTS, manifest.release.card))))
    name = campaign_id(new.manifest)
    holder = operator.holder or operator.id
    token = collector.database.add_campaign(name, new.manifest, new.signature, holder)
    if token is None:
        raise Refused(409, "This campaign is here already.")
    collector.governance.write(name, collector.name(operator), "opened")
    return Created(campaign=name, owner_token=token)


@routes.get("/campaigns", response_model=list[Summary], responses=problems(401))
def campaigns(request: Request, collector: ThisCollector) -> list[Summary]:
    """Those that the operator opened; the one, for its owner or auditor."""
    bearer = collector.bearer(request, "operator", "owner", "auditor")
    return [
        Summary(**_summary(row))
        for row in collector.database.campaigns(bearer.campaign)
        if row.erased is None
        and (bearer.scope != "operator" or row.opened_by in (None, bearer.holder or bearer.id))
    ]


@routes.get("/campaigns/{campaign}/figures", response_model=Figures, responses=problems(401, 404))
def figures(
    collector: ThisCollector, campaign: CampaignID, row: Annotated[Any, ANY_ROLE]
) -> Figures:
    """How many records came, of how many people, on which day; unless the campaign promised to tell
    less."""
    try:
        collector.withhold(collector.manifest(campaign), campaign)
        _gives_records(collector, campaign)
    except Refused as refused:
        return Figures(**_summary(row), withheld=refused.sentence)
    lost = collector.tidied.lost.get(campaign, 0)
    return Figures(**_summary(row), **collector.database.figures(campaign), lost=lost)


@routes.post(
    "/campaigns/{campaign}/close",
    status_code=204,
    response_class=Response,
    responses=problems(401, 404),
    dependencies=[OPERATOR_OR_OWNER],
)
def close(request: Request, collector: ThisCollector, campaign: CampaignID) -> Response:
    """Take no more records. What is there stays until it is withdrawn or its time is over."""
    collector.governance.write(campaign, request.state.who, "closed")
    collector.database.close(campaign)
    return Response(status_code=204)


@routes.post(
    "/campaigns/{campaign}/tokens",
    status_code=201,
    response_model=list[NewToken],
    responses=problems(401, 404),
    dependencies=[OWNER],
)
def new_tokens(
    request: Request, collector: ThisCollector, campaign: CampaignID, wanted: NewTokens
) -> list[NewToken]:
    """Invitations, or another token for the owner or an auditor. Shown once."""
    about = {"scope": wanted.scope, "count": wanted.count, "days": wanted.days}
    collector.governance.write(campaign, request.state.who, "tokens made", **about)
    expires = None if wanted.days is None else now() + wanted.days * DAY_MS
    new = collector.database.new_tokens(wanted.count, wanted.scope, campaign, expires)
    return [NewToken(id=name, token=text) for name, text in new]


@routes.get(
    "/campaigns/{campaign}/tokens",
    response_model=list[TokenAnswer],
    responses=problems(401, 404),
    dependencies=[OWNER],
)
def tokens(collector: ThisCollector, campaign: CampaignID) -> list[TokenAnswer]:
    """Names of tokens, and until when they are valid; not the tokens."""
    return [TokenAnswer(**row._mapping) for row in collector.database.tokens(campaign)]


@routes.delete(
    "/campaigns/{campaign}/tokens/{token}",
    status_code=204,
    response_class=Response,
    responses=problems(401, 404),
    dependencies=[OWNER],
)
def revoke(
    request: Request, collector: ThisCollector, campaign: CampaignID, token: TokenID
) -> Response:
    """End a token now."""
    collector.governance.write(campaign, request.state.who, "token revoked", token=token)
    if not collector.database.revoke(campaign, token):
        raise Refused(404, "There is no such token, or it was revoked before.")
    return Response(status_code=204)


@routes.get(
    "/campaigns/{campaign}/records",
    response_class=Response,
    responses={**BINARY_ANSWER, **problems(401, 404)},
    dependencies=[OWNER],
)
def records(
    request: Request,
    collector: ThisCollector,
    campaign: CampaignID,
    after: Number = 0,
    most: Most = 500,
) -> Response:
    """A page of records as they were sent: each the length of a header (4 bytes, little
    endian), the header in JSON, the bytes.

    `Privet-Next` in the answer is where the next page starts; it is absent on the last one.
    """
    _gives_records(collector, campaign)
    collector.withhold(collector.manifest(campaign), campaign)
    rows = collector.database.submissions(campaign, after, most)
    if rows:
        about = {"first": rows[0].number, "last": rows[-1].number, "records": len(rows)}
        collector.governance.write(campaign, request.state.who, "records fetched", **about)
    frames: list[bytes] = []
    size, last = 0, None
    for row in rows:
        frames.append(_frame(collector, row))
        size, last = size + len(frames[-1]), row.number
        if size > PAGE_BYTES:
            break
    more = last is not None and (last != rows[-1].number or len(rows) == most)
    headers = {"privet-next": str(last)} if more else {}
    return Response(b"".join(frames), media_type=BYTES, headers=headers)


@routes.get(
    "/campaigns/{campaign}/gone",
    response_model=list[GoneAnswer],
    responses=problems(401, 404),
    dependencies=[OWNER_OR_AUDITOR],
)
def gone(
    collector: ThisCollector, campaign: CampaignID, after: Number = 0, most: Most = 1000
) -> list[GoneAnswer]:
    """Names of records that were withdrawn or grew too old, in order: delete them from what was
    exported before."""
    return [GoneAnswer(**row._mapping) for row in collector.database.gone(campaign, after, most)]


def _gives_records(collector: Collector, campaign: str) -> None:
    if collector.manifest(campaign).counts_epsilon is not None:
        raise Refused(403, "The campaign promised to give counts with noise, and no records.")


def _frame(collector: Collector, row: Any) -> bytes:
    """Empty where the record was withdrawn meanwhile; damaged, without a byte, where it is lost."""
    try:
        content = collector.blobs.get(Blob(row.campaign, row.blob))
    except Missing:
        if not collector.database.rows_of(row.campaign, [row.blob]):
            return b""
        content = b""
    damaged = hashlib.sha256(content).hexdigest() != row.sha256
    if damaged:
        collector.monitor.log("damaged", submission=row.number)
    about = {**row._mapping, "size": len(content), "damaged": damaged}
    return frame(FrameHeader(**about), content)


def _summary(row: Any) -> dict[str, Any]:
    manifest = json.loads(row.manifest)
    return {
        **{key: manifest[key] for key in ("title", "mode", "access")},
        **{"campaign": row.id, "created": row.created, "closed": row.closed},
    }


def _card(content: bytes) -> dict[str, Any]:
    try:
        card = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        card = None
    if not isinstance(card, dict):
        raise PrivetError("The card of the release is not JSON.")
    return card
