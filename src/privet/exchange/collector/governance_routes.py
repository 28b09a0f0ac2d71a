"""What a campaign is governed by: its log, who may act for it, a new token for an owner who lost
theirs, its end, and counts with noise for owners who need no more."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.security import HTTPBearer

from privet.core.errors import PrivetError
from privet.evidence.private_counts import half_width, private_counts
from privet.exchange.collector.blobs import Blob
from privet.exchange.collector.collector import Collector, ThisCollector
from privet.exchange.collector.commits import Refused
from privet.exchange.collector.governance import erase as erase_records
from privet.exchange.collector.openapi import problems
from privet.exchange.protocol.deeds import Deed
from privet.exchange.protocol.envelope import unpack
from privet.exchange.protocol.governance import (
    NO_ANSWER,
    CountsAnswer,
    Erase,
    GivenCounts,
    NewCounts,
    Reissue,
    Subject,
    SubjectName,
)
from privet.exchange.protocol.messages import CampaignID
from privet.exchange.protocol.seal import is_signed

routes = APIRouter(dependencies=[Depends(HTTPBearer(auto_error=False))])

After = Annotated[int, Query(ge=0, le=2**31)]
Most = Annotated[int, Query(ge=1, le=1000)]


@routes.get("/campaigns/{campaign}/deeds", response_model=list[Deed], responses=problems(401, 404))
def deeds(
    request: Request,
    collector: ThisCollector,
    campaign: CampaignID,
    after: After = 0,
    most: Most = 1000,
) -> list[Deed]:
    """Who did what with the campaign, in a chain of hashes; also after it was erased. Owner's or
    auditor's token."""
    collector.bearer(request, "owner", "auditor", campaign=campaign)
    return collector.governance.deeds(campaign, after, most)


@routes.post(
    "/campaigns/{campaign}/reissue",
    status_code=204,
    response_class=Response,
    responses=problems(404, 409),
)
def reissue(collector: ThisCollector, campaign: CampaignID, wanted: Reissue) -> Response:
    """Another owner's token, for whoever has the key that signed the campaign. The token is made
    at its owner's and only its hash is sent: nobody gains by sending the request again."""
    manifest = collector.manifest(campaign)
    collector.campaign(campaign)
    if not is_signed(wanted.signed_text(campaign).encode(), wanted.signature, manifest.signing_key):
        raise Refused(403, "This is not signed with the key that signed the campaign.")
    if not collector.governance.add_hashed_token(campaign, wanted.name, wanted.hash, "owner"):
        raise Refused(409, "There is a token of this name already.")
    ended = collector.governance.revoke_others(campaign, "owner", wanted.name)
    who = f"owner {wanted.name}"
    collector.governance.write(campaign, who, "token reissued", ended=ended)
    return Response(status_code=204)


@routes.post(
    "/campaigns/{campaign}/erase", responses=problems(401, 404), response_model=dict[str, int]
)
def erase(
    request: Request, collector: ThisCollector, campaign: CampaignID, wanted: Erase
) -> dict[str, int]:
    """Delete every record of the campaign, end it for everybody, and leave its log. Owner's token,
    and the campaign's title, so that nobody erases another by mistake."""
    row = collector.bearer(request, "owner", campaign=campaign)
    if wanted.title != collector.manifest(campaign).title:
        raise Refused(422, "The title is another: nothing was erased.")
    collector.governance.write(campaign, collector.name(row), "erased")
    collector.governance.mark_erased(campaign)
    return {"erased": erase_records(collector.database, collector.blobs, campaign)}


@routes.post(
    "/campaigns/{campaign}/subjects",
    status_code=204,
    response_class=Response,
    responses=problems(401, 404),
)
def allow(
    request: Request, collector: ThisCollector, campaign: CampaignID, wanted: Subject
) -> Response:
    """Let somebody who signs in elsewhere act for the campaign. Owner's token."""
    row = collector.bearer(request, "owner", campaign=campaign)
    about = {"subject": wanted.subject, "scope": wanted.scope}
    collector.governance.write(campaign, collector.name(row), "allowed", **about)
    collector.governance.allow(campaign, **about)
    return Response(status_code=204)


@routes.delete(
    "/campaigns/{campaign}/subjects",
    status_code=204,
    response_class=Response,
    responses=problems(401, 404),
)
def disallow(
    request: Request,
    collector: ThisCollector,
    campaign: CampaignID,
    subject: Annotated[SubjectName, Query()],
) -> Response:
    """Take that back. Owner's token."""
    row = collector.bearer(request, "owner", campaign=campaign)
    collector.governance.write(campaign, collector.name(row), "no longer allowed", subject=subject)
    if not collector.governance.disallow(campaign, subject):
        raise Refused(404, "Nobody of this name may act for the campaign.")
    return Response(status_code=204)


@routes.post(
    "/campaigns/{campaign}/counts", response_model=CountsAnswer, responses=problems(401, 404)
)
def count(
    request: Request, collector: ThisCollector, campaign: CampaignID, wanted: NewCounts
) -> CountsAnswer:
    """How many people gave each answer to a question, with noise; spends part of the campaign's
    epsilon. Owner's token."""
    row = collector.bearer(request, "owner", campaign=campaign)
    collector.campaign(campaign)
    manifest = collector.manifest(campaign)
    label = next((one for one in manifest.labels if one.name == wanted.label), None)
    if manifest.counts_epsilon is None:
        raise Refused(403, "This campaign gives records, not counts: export it.")
    if label is None or not label.values:
        raise Refused(422, "Only answers that are chosen among values can be counted.")
    collector.withhold(manifest, campaign)
    name, epsilon = label.name, wanted.epsilon
    who = collector.name(row)
    collector.governance.write(campaign, who, "counted", label=name, epsilon=epsilon)
    place = collector.governance.spend(campaign, name, epsilon, manifest.counts_epsilon)
    if place is None:
        raise Refused(403, "That is more than what is left of the campaign's epsilon.")
    told = dict.fromkeys([*label.values, NO_ANSWER], 0)
    for answer in _first_answers(collector, campaign, name):
        told[answer] += 1
    given = private_counts(told, epsilon)
    collector.governance.keep_counts(campaign, place, given)
    return CountsAnswer(label=name, epsilon=epsilon, counts=given, half_width=half_width(epsilon))


@routes.get(
    "/campaigns/{campaign}/counts", response_model=list[GivenCounts], responses=problems(401, 404)
)
def counts(
    request: Request, collector: ThisCollector, campaign: CampaignID
) -> list[dict[str, Any]]:
    """What was counted so far, with the same noise: asking again spends nothing. Owner's or
    auditor's token."""
    collector.bearer(request, "owner", "auditor", campaign=campaign)
    return collector.governance.given_counts(campaign)


def _first_answers(collector: Collector, campaign: str, name: str) -> list[str]:
    """What everybody told with their first record."""
    answers = []
    for blob in collector.governance.first_records(campaign):
        try:
            answer = unpack(collector.blobs.get(Blob(campaign, blob))).labels.get(name)
        except PrivetError:
            answer = None
        answers.append(NO_ANSWER if answer is None else str(answer))
    return answers
