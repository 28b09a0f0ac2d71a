"""What the collector answers, as JSON: the shapes that the OpenAPI document describes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from privet.exchange.protocol.manifest import ID, LARGEST, SHA256


class Problem(BaseModel):
    error: str
    """One sentence."""


class Signed(BaseModel):
    """A manifest as it was signed."""

    campaign: str
    manifest: str
    signature: str
    open: bool


class NewCampaign(BaseModel):
    model_config = ConfigDict(extra="forbid")

    manifest: Annotated[str, StringConstraints(min_length=2, max_length=LARGEST)]
    signature: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{86}$")]


class Created(BaseModel):
    campaign: str
    owner_token: str
    """Shown once."""


class Summary(BaseModel):
    campaign: str
    title: str
    mode: str
    access: str
    created: int
    closed: int | None


class Figures(Summary):
    records: int
    people: int
    bytes: int
    by_day: dict[str, int]
    gone: dict[str, int]


class ReceiptAnswer(BaseModel):
    campaign: str
    submission: str
    sha256: str
    received: int
    stored: Literal[True] = True


class NewTokens(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    scope: Literal["owner", "invite"]
    count: Annotated[int, Field(ge=1, le=1000)] = 1
    days: Annotated[int, Field(ge=1, le=3650)] | None = None
    """After how many days they end."""


class NewToken(BaseModel):
    id: str
    token: str
    """Shown once."""


class TokenAnswer(BaseModel):
    id: str
    scope: str
    created: int
    expires: int | None
    revoked: int | None


class GoneAnswer(BaseModel):
    number: int
    id: str
    reason: str
    at: int


class PartAnswer(BaseModel):
    sha256: str
    size: int


CampaignID = Annotated[str, StringConstraints(pattern=ID)]
SubmissionID = Annotated[str, StringConstraints(pattern=ID)]
Secret = Annotated[str, StringConstraints(pattern=SHA256)]

BYTES = "application/octet-stream"
BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Problem} for status in (*statuses, 403, 408, 413, 415, 422, 429, 503)}
