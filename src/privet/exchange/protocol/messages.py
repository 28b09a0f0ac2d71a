"""What collector, owners and participants send each other as JSON: the shapes that the OpenAPI
document describes. Times are milliseconds since 1970, UTC.

Records travel to their owner in frames: the length of a header (4 bytes, little endian), the header
in JSON, the bytes that the participant sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from privet.core.errors import PrivetError
from privet.exchange.protocol.manifest import ID, MAX_BYTES, SHA256

CampaignID = Annotated[str, StringConstraints(pattern=ID)]
SubmissionID = Annotated[str, StringConstraints(pattern=ID)]
# Of the answer to a withdrawal: the SHA-256 of the bytes that are deleted.
WITHDRAWN_HEADER = "privet-withdrawn"

Secret = Annotated[str, StringConstraints(pattern=SHA256)]


class Problem(BaseModel):
    """Why a request was refused, in one sentence."""

    error: str


class Signed(BaseModel):
    """A manifest as it was signed, and whether the campaign still takes records."""

    campaign: str
    manifest: str
    signature: str
    open: bool


class NewCampaign(BaseModel):
    """A campaign to open: its manifest, and the owner's signature of that text."""

    model_config = ConfigDict(extra="forbid")

    manifest: Annotated[str, StringConstraints(min_length=2, max_length=MAX_BYTES)]
    signature: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{86}$")]


class Created(BaseModel):
    """The name of a new campaign, and its owner's token, which is shown once."""

    campaign: str
    owner_token: str


class Summary(BaseModel):
    """A campaign, and when it was opened and closed."""

    campaign: str
    title: str
    mode: str
    access: str
    created: int
    closed: int | None


class Figures(Summary):
    """A campaign with its counts: records, people and bytes that are stored, records by day,
    records that are gone by reason, and records that the collector has lost; or why they are
    withheld."""

    records: int = 0
    people: int = 0
    bytes: int = 0
    by_day: dict[str, int] = {}
    gone: dict[str, int] = {}
    lost: int = 0
    withheld: str = ""


class ReceiptAnswer(BaseModel):
    """A record that is stored, the SHA-256 of its bytes, and the day on which it came."""

    campaign: str
    submission: str
    sha256: str
    received: int
    stored: Literal[True] = True


class NewTokens(BaseModel):
    """Tokens to make: how many, for what, and after how many days they end."""

    model_config = ConfigDict(extra="forbid", strict=True)

    scope: Literal["owner", "auditor", "invite"]
    count: Annotated[int, Field(ge=1, le=1000)] = 1
    days: Annotated[int, Field(ge=1, le=3650)] | None = None


class NewToken(BaseModel):
    """The name of a new token, and the token, which is shown once."""

    id: str
    token: str


class TokenAnswer(BaseModel):
    """A token's name, what it is for, and when it was made, ends, and was revoked."""

    id: str
    scope: str
    created: int
    expires: int | None
    revoked: int | None


class GoneAnswer(BaseModel):
    """A record that was withdrawn or grew too old; `number` counts them."""

    number: int
    id: str
    reason: str
    at: int


class PartAnswer(BaseModel):
    """A part of a release that is stored, by its SHA-256, and its size in bytes."""

    sha256: str
    size: int


class FrameHeader(BaseModel):
    """What the collector knows of a record that it gives to its owner.

    Parameters:
        number: Counts the records of a collector.
        id: The submission's name.
        person: The same for all records of a person in this campaign.
        sha256: Of the bytes that were sent.
        received: The day on which they came.
        size: How many bytes follow.
        damaged: Whether the bytes that follow are not those that were sent.
    """

    number: int
    id: str
    person: str
    sha256: str
    received: int
    size: Annotated[int, Field(ge=0)]
    damaged: bool


def frame(header: FrameHeader, content: bytes) -> bytes:
    """A record as it travels to its owner."""
    text = header.model_dump_json().encode()
    return len(text).to_bytes(4, "little") + text + content


def read_frames(content: bytes) -> Iterator[tuple[FrameHeader, bytes]]:
    """The records in a row of frames; PrivetError where it is cut off."""
    end = 0
    try:
        while end < len(content):
            start = end + 4 + int.from_bytes(content[end : end + 4], "little")
            header = FrameHeader.model_validate_json(content[end + 4 : start])
            end = start + header.size
            if end > len(content):
                raise ValueError("cut off")
            yield header, content[start:end]
    except ValueError:
        raise PrivetError("What the collector sent is cut off: export again.") from None


# Most bytes of a frame's header: far more than any has.
MAX_FRAME_HEADER = 64 * 1024


def read_frame_file(file: IO[bytes]) -> Iterator[tuple[FrameHeader, bytes]]:
    """The same of a file, one frame at a time."""
    try:
        while start := file.read(4):
            length = int.from_bytes(start, "little")
            if len(start) < 4 or length > MAX_FRAME_HEADER:
                raise ValueError("no frame")
            header = FrameHeader.model_validate_json(file.read(length))
            content = file.read(header.size)
            if len(content) < header.size:
                raise ValueError("cut off")
            yield header, content
    except ValueError:
        raise PrivetError("The file of records is cut off, or is none: fetch it again.") from None
