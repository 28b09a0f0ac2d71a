"""What participants ask of the collector: what a campaign is, its release, to take a record, and to
give it back.

A submission's name is chosen by the participant at random and is its idempotency key: sent again,
it is answered as the first time. The secret that withdraws it is the participant's too, and the
collector only gets its hash: nobody else can withdraw, and the participant can even if the answer
was lost on the way.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Header, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from privet.exchange.collector.blobs import PARTS, Blob, blob_name
from privet.exchange.collector.collector import Collector, ThisCollector, collector_of
from privet.exchange.collector.commits import Offer, Refused, not_invited
from privet.exchange.collector.limits import too_long
from privet.exchange.collector.openapi import BINARY_ANSWER, BYTES, binary_body, problems
from privet.exchange.collector.retention import remove
from privet.exchange.collector.tokens import bearer_token, digest
from privet.exchange.collector.writer import Superseded
from privet.exchange.protocol.checks import check_open, check_sealed
from privet.exchange.protocol.envelope import MEDIA_TYPES, max_bytes
from privet.exchange.protocol.manifest import ID, SHA256, Manifest
from privet.exchange.protocol.messages import (
    WITHDRAWN_HEADER,
    CampaignID,
    ReceiptAnswer,
    Secret,
    Signed,
    SubmissionID,
)

# Bytes from which a record is checked outside the event loop.
LARGE_BYTES = 64 * 1024


class _Header(NamedTuple):
    """A header of a submission. Read here and not by FastAPI, which takes longer than all the
    rest."""

    name: str
    pattern: str
    required: bool
    description: str

    def read(self, request: Request) -> str:
        value = request.headers.get(self.name, "")
        if (value or self.required) and not re.fullmatch(self.pattern, value):
            raise Refused(422, f"header {self.name}: must be like {self.pattern}.")
        return value

    def documented(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "in": "header",
            "required": self.required,
            "description": self.description,
            "schema": {"type": "string", "pattern": self.pattern},
        }


HEADERS = (
    _Header("idempotency-key", ID, True, "128 random bits in hex: the submission's name"),
    _Header(
        "privet-release", SHA256, True, "SHA-256 of the card of the release that made the record"
    ),
    _Header(
        "privet-withdraw",
        SHA256,
        True,
        "SHA-256 of 32 secret bytes of the participant's, which withdraw it",
    ),
    _Header(
        "privet-person",
        SHA256,
        False,
        "256 random bits in hex, the same for all records of a person; not needed with an "
        "invitation",
    ),
)

routes = APIRouter()


@routes.get("/campaigns/{campaign}", response_model=Signed, responses=problems(404))
def show(collector: ThisCollector, campaign: CampaignID) -> Signed:
    """The signed manifest. `campaign` is the beginning of its SHA-256, and its signature is the
    owner's: check both."""
    row = collector.campaign(campaign)
    return Signed(
        campaign=row.id, manifest=row.manifest, signature=row.signature, open=row.closed is None
    )


@routes.get(
    "/parts/{sha256}", response_class=Response, responses={**BINARY_ANSWER, **problems(404)}
)
def part(collector: ThisCollector, sha256: Secret) -> Response:
    """A part of a release - card, graph, decoder or audit - by its SHA-256: check it."""
    if not collector.database.has_parts([sha256]):
        raise Refused(404, "There is no such part.")
    headers = {
        "cache-control": "public, max-age=31536000, immutable",
        "content-disposition": "attachment",
    }
    size, chunks = collector.blobs.stream(Blob(PARTS, sha256))
    return StreamingResponse(
        chunks, media_type=BYTES, headers={**headers, "content-length": str(size)}
    )


@routes.post(
    "/campaigns/{campaign}/submissions",
    status_code=201,
    response_model=ReceiptAnswer,
    responses={
        200: {"model": ReceiptAnswer, "description": "It was stored before"},
        **problems(401, 404, 409, 410, 507),
    },
    openapi_extra={
        **binary_body(*MEDIA_TYPES.values()),
        "parameters": [header.documented() for header in HEADERS],
        "security": [{"HTTPBearer": []}, {}],
    },
)
async def submit(request: Request, campaign: CampaignID) -> Response:
    """Take a record. The answer comes when it is on disk; the same request again gets the same
    answer."""
    collector = await collector_of(request)
    manifest = collector.manifests.get(campaign)
    if manifest is None:
        manifest = await run_in_threadpool(collector.manifest, campaign)
    name, release, withdraw_hash, person = (header.read(request) for header in HEADERS)
    if release != manifest.release.card:
        raise Refused(422, "The record was made by another release than the campaign's.")
    invitation = _invitation(request, manifest)
    if invitation is None and not person:
        raise Refused(422, "header privet-person: needed where there is no invitation.")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != MEDIA_TYPES[manifest.mode]:
        raise Refused(415, f"This campaign takes {MEDIA_TYPES[manifest.mode]}.")
    if invitation is not None:
        await run_in_threadpool(_check_invitation, collector, campaign, invitation)
    content = await _body(request, max_bytes(manifest.expect, manifest.mode == "sealed"))
    if len(content) > LARGE_BYTES:
        await run_in_threadpool(_check, manifest, campaign, name, content)
    else:
        _check(manifest, campaign, name, content)
    sender = f"person/{person}" if invitation is None else f"invite/{invitation[0]}"
    offer = Offer(
        campaign=campaign,
        id=name,
        person=digest(f"{campaign}/{sender}"),
        sha256=hashlib.sha256(content).hexdigest(),
        blob=blob_name(content),
        withdraw=withdraw_hash,
        limit=manifest.records_per_person,
        content=content,
        token=invitation,
    )
    stored = await collector.commits.submit(offer)
    if stored.new:
        collector.monitor.stored.inc()
        collector.monitor.bytes.inc(len(content))
    answer = ReceiptAnswer(
        campaign=campaign, submission=name, sha256=offer.sha256, received=stored.received
    )
    return JSONResponse(answer.model_dump(), 201 if stored.new else 200)


def _own(
    collector: ThisCollector,
    campaign: CampaignID,
    submission: SubmissionID,
    privet_withdraw: Annotated[Secret, Header()],
) -> Any:
    """The submission's row, for whoever has the secret that withdraws it."""
    row = collector.database.submission(campaign, submission)
    if row == "gone":
        raise Refused(410, "This record is gone: it was withdrawn, or kept as long as it may be.")
    hashed = hashlib.sha256(bytes.fromhex(privet_withdraw)).hexdigest()
    if not hmac.compare_digest(hashed, "" if row is None else row.withdraw):
        raise Refused(404, "There is no such record, or this is not its secret.")
    return row


@routes.get(
    "/campaigns/{campaign}/submissions/{submission}",
    response_model=ReceiptAnswer,
    responses=problems(404, 410),
)
def find(row: Annotated[Any, Depends(_own)]) -> ReceiptAnswer:
    """Whether a record is stored, for whoever has the secret that withdraws it."""
    return ReceiptAnswer(
        campaign=row.campaign, submission=row.id, sha256=row.sha256, received=row.received
    )


@routes.delete(
    "/campaigns/{campaign}/submissions/{submission}",
    status_code=204,
    response_class=Response,
    responses=problems(404, 410),
)
def withdraw(collector: ThisCollector, row: Annotated[Any, Depends(_own)]) -> Response:
    """Delete a record, row and bytes, for whoever has the secret that withdraws it. The answer has
    the SHA-256 of the bytes, which only who stored them knows."""
    try:
        remove(collector.database, collector.blobs, row.campaign, [row.id], "withdrawn")
    except (OSError, SQLAlchemyError, Superseded) as error:
        collector.monitor.failed("withdraw", error)
        raise Refused(503, "The record cannot be deleted now: try again later.") from None
    collector.monitor.gone.labels("withdrawn").inc()
    return Response(status_code=204, headers={WITHDRAWN_HEADER: row.sha256})


def _invitation(request: Request, manifest: Manifest) -> tuple[str, str] | None:
    """Name and text of the token that a campaign by invitation needs."""
    if manifest.access == "anyone":
        return None
    token = bearer_token(request.headers.get("authorization", ""))
    if token is None:
        raise Refused(401, "This campaign is by invitation: use the link that you were sent.")
    return token


def _check_invitation(collector: Collector, campaign: str, token: tuple[str, str]) -> None:
    """Before the body is read; whoever stores it looks again."""
    row = collector.database.bearer(token)
    if row is None or row.scope != "invite" or row.campaign != campaign:
        raise not_invited()


def _check(manifest: Manifest, campaign: str, submission: str, content: bytes) -> None:
    if manifest.mode == "sealed":
        check_sealed(manifest, content)
    else:
        check_open(manifest, campaign, submission, content)


async def _body(request: Request, longest: int) -> bytes:
    parts, size = [], 0
    if int(request.headers.get("content-length", "0")) > longest:
        raise too_long(longest)
    async for chunk in request.stream():
        parts.append(chunk)
        size += len(chunk)
        if size > longest:
            raise too_long(longest)
    return b"".join(parts)
