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
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from privet.exchange.collector.answers import (
    BINARY,
    BYTES,
    CampaignID,
    ReceiptAnswer,
    Secret,
    Signed,
    SubmissionID,
    problems,
)
from privet.exchange.collector.blobs import Blob, blob_name
from privet.exchange.collector.collector import Collector
from privet.exchange.collector.commits import Offer, Refused
from privet.exchange.collector.limits import TooLong
from privet.exchange.collector.store import PARTS, digest, token_name
from privet.exchange.protocol.checks import check_open, check_sealed
from privet.exchange.protocol.envelope import MEDIA_TYPES, most_bytes
from privet.exchange.protocol.manifest import ID, SHA256, Manifest

LARGE = 64 * 1024
"""Bytes from which a record is checked outside the event loop."""

HEADERS = (
    ("idempotency-key", re.compile(ID), True, "128 random bits in hex: the submission's name"),
    (
        "privet-release",
        re.compile(SHA256),
        True,
        "SHA-256 of the card of the release that made the record",
    ),
    (
        "privet-withdraw",
        re.compile(SHA256),
        True,
        "SHA-256 of 32 secret bytes of the participant's, which withdraw it",
    ),
    (
        "privet-person",
        re.compile(SHA256),
        False,
        "256 random bits in hex, the same for all records of a person; not needed with an invitation",
    ),
)
"""Of a submission: name, pattern, whether it is needed, what it is. Read here and not by FastAPI,
which takes longer than all the rest."""

DOCUMENTED = [
    {
        "name": name,
        "in": "header",
        "required": needed,
        "description": what,
        "schema": {"type": "string", "pattern": pattern.pattern},
    }
    for name, pattern, needed, what in HEADERS
]


def router(collector: Collector) -> APIRouter:
    routes = APIRouter()

    @routes.get("/campaigns/{campaign}", response_model=Signed, responses=problems(404))
    def show(campaign: CampaignID) -> Signed:
        """The signed manifest. `campaign` is the beginning of its SHA-256, and its signature is the
        owner's: check both."""
        row = collector.store.campaign(campaign)
        if row is None:
            raise Refused(404, "There is no such campaign.")
        return Signed(
            campaign=row.id, manifest=row.manifest, signature=row.signature, open=row.closed is None
        )

    @routes.get(
        "/parts/{sha256}",
        response_class=Response,
        responses={200: {"content": {BYTES: BINARY}}, **problems(404)},
    )
    def part(sha256: Secret) -> Response:
        """A part of a release - card, graph, decoder or audit - by its SHA-256: check it."""
        if not collector.store.has_parts([sha256]):
            raise Refused(404, "There is no such part.")
        content = collector.blobs.get(Blob(PARTS, sha256))
        headers = {
            "cache-control": "public, max-age=31536000, immutable",
            "content-disposition": "attachment",
        }
        return Response(content, media_type=BYTES, headers=headers)

    @routes.post(
        "/campaigns/{campaign}/submissions",
        status_code=201,
        response_model=ReceiptAnswer,
        responses={
            200: {"model": ReceiptAnswer, "description": "It was stored before"},
            **problems(401, 404, 409, 410, 507),
        },
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": dict.fromkeys(MEDIA_TYPES.values(), BINARY),
            },
            "parameters": DOCUMENTED,
            "security": [{"HTTPBearer": []}, {}],
        },
    )
    async def submit(request: Request, campaign: CampaignID) -> Response:
        """Take a record. The answer comes when it is on disk; the same request again gets the same
        answer."""
        manifest = collector._manifests.get(campaign) or await run_in_threadpool(
            collector.manifest, campaign
        )
        if manifest is None:
            raise Refused(404, "There is no such campaign.")
        name, release, withdraw, person = (_header(request, *wanted) for wanted in HEADERS)
        if release != manifest.release.card:
            raise Refused(422, "The record was made by another release than the campaign's.")
        token = _invitation(request, manifest)
        if token is None and not person:
            raise Refused(422, "header privet-person: needed where there is no invitation.")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != MEDIA_TYPES[manifest.mode]:
            raise Refused(415, f"This campaign takes {MEDIA_TYPES[manifest.mode]}.")
        content = await _body(request, most_bytes(manifest.expect, manifest.mode == "sealed"))
        if len(content) > LARGE:
            await run_in_threadpool(_check, manifest, campaign, name, content)
        else:
            _check(manifest, campaign, name, content)
        whose = f"{campaign}/person/{person}" if token is None else f"{campaign}/invite/{token[0]}"
        offer = Offer(
            campaign,
            name,
            digest(whose),
            hashlib.sha256(content).hexdigest(),
            blob_name(content),
            withdraw,
            manifest.records_per_person,
            content,
            token,
        )
        receipt = await collector.commits.submit(offer)
        if receipt.new:
            collector.watch.stored.inc()
            collector.watch.bytes.inc(len(content))
        about = {
            key: getattr(receipt, key) for key in ("campaign", "submission", "sha256", "received")
        }
        return JSONResponse({**about, "stored": True}, 201 if receipt.new else 200)

    @routes.get(
        "/campaigns/{campaign}/submissions/{submission}",
        response_model=ReceiptAnswer,
        responses=problems(404, 410),
    )
    def find(
        campaign: CampaignID, submission: SubmissionID, privet_withdraw: Annotated[Secret, Header()]
    ) -> ReceiptAnswer:
        """Whether a record is stored, for whoever has the secret that withdraws it."""
        row = _owned(collector, campaign, submission, privet_withdraw)
        return ReceiptAnswer(
            campaign=campaign, submission=submission, sha256=row.sha256, received=row.received
        )

    @routes.delete(
        "/campaigns/{campaign}/submissions/{submission}",
        status_code=204,
        response_class=Response,
        responses=problems(404, 410),
    )
    def withdraw(
        campaign: CampaignID, submission: SubmissionID, privet_withdraw: Annotated[Secret, Header()]
    ) -> Response:
        """Delete a record, row and bytes, for whoever has the secret that withdraws it."""
        _owned(collector, campaign, submission, privet_withdraw)
        collector.blobs.delete(collector.store.remove(campaign, [submission], "withdrawn"))
        collector.watch.gone.labels("withdrawn").inc()
        return Response(status_code=204)

    return routes


def _owned(collector: Collector, campaign: str, submission: str, secret: str) -> Any:
    row = collector.store.submission(campaign, submission)
    if row == "gone":
        raise Refused(410, "This record is gone: it was withdrawn, or kept as long as it may be.")
    hashed = hashlib.sha256(bytes.fromhex(secret)).hexdigest()
    if not hmac.compare_digest(hashed, "" if row is None else row.withdraw) or row is None:
        raise Refused(404, "There is no such record, or this is not its secret.")
    return row


def _invitation(request: Request, manifest: Manifest) -> tuple[str, str] | None:
    if manifest.access == "anyone":
        return None
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    name = token_name(text.strip()) if kind.lower() == "bearer" else None
    if name is None:
        raise Refused(401, "This campaign is by invitation: use the link that you were sent.")
    return name, text.strip()


def _header(request: Request, name: str, pattern: re.Pattern[str], needed: bool, _what: str) -> str:
    value = request.headers.get(name, "")
    if (value or needed) and not pattern.fullmatch(value):
        raise Refused(422, f"header {name}: must be like {pattern.pattern}.")
    return value


def _check(manifest: Manifest, campaign: str, submission: str, content: bytes) -> None:
    if manifest.mode == "sealed":
        check_sealed(manifest, content)
    else:
        check_open(manifest, campaign, submission, content)


async def _body(request: Request, longest: int) -> bytes:
    parts, size = [], 0
    async for chunk in request.stream():
        parts.append(chunk)
        size += len(chunk)
        if size > longest:
            raise TooLong
    return b"".join(parts)
