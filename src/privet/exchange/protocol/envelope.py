"""A released record on its way: what is sealed, or in an open campaign sent as it is.

    "PRIVET1\\n" | length of the header, 4 bytes | header | float32; all little endian

The header is JSON in UTF-8, filled with spaces to a multiple of 512 bytes. It names campaign,
release and submission, so that a record cannot be moved to another campaign or counted twice under
another name, and it holds the labels. Spaces keep the length from telling "yes" from "no"; of
texts, whose length is free, zeros follow to the next power of two.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from privet.core.errors import PrivetError
from privet.exchange.protocol.manifest import ExpectedRecord, first_problem, strict_json
from privet.exchange.protocol.seal import OVERHEAD

# Of a submission, by the campaign's mode.
MEDIA_TYPES = {"sealed": "application/vnd.privet.sealed", "open": "application/vnd.privet.record"}
MAGIC = b"PRIVET1\n"
HEADER_START = len(MAGIC) + 4
HEADER_STEP = 512
MAX_HEADER = 16 * HEADER_STEP

Array = npt.NDArray[Any]
_Between = Field(gt=-1e15, lt=1e15)
Answer = str | Annotated[int, _Between] | Annotated[float, _Between] | None
Labels = dict[str, Answer]


class _Header(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    campaign: str
    release: str
    submission: str
    shape: Annotated[list[Annotated[int, Field(ge=1, le=2**24)]], Field(min_length=1, max_length=4)]
    dtype: Literal["float32"]
    labels: Labels
    consent: str | None = None


@dataclass(frozen=True, eq=False)
class Envelope:
    """One released record with what it was made for.

    Parameters:
        campaign, submission: Names of the campaign and of this record in it.
        release: SHA-256 of the release's card.
        labels: The participant's answers; None for no answer.
        z: The released numbers.
        consent: SHA-256 of what the participant agreed to, where the campaign has a text of its
            own.
    """

    campaign: str
    release: str
    submission: str
    labels: Labels
    z: Array
    consent: str | None = None

    def pack(self, expect: ExpectedRecord) -> bytes:
        named = {
            "campaign": self.campaign,
            "release": self.release,
            "submission": self.submission,
            "shape": list(self.z.shape),
            "dtype": "float32",
            "labels": self.labels,
            **({} if self.consent is None else {"consent": self.consent}),
        }
        header = json.dumps(named, ensure_ascii=False, separators=(",", ":")).encode()
        header += b" " * (-(HEADER_START + len(header)) % HEADER_STEP)
        if len(header) > MAX_HEADER:
            raise PrivetError("The labels are too long to be sent.")
        numbers = np.ascontiguousarray(self.z, dtype="<f4").tobytes()
        content = MAGIC + len(header).to_bytes(4, "little") + header + numbers
        return content.ljust(padded(len(content)), b"\0") if None in expect.shape else content


def unpack(content: bytes) -> Envelope:
    """The inverse of `Envelope.pack`; PrivetError for anything else, whatever its bytes."""
    if not content.startswith(MAGIC):
        raise PrivetError("This is not a released record: it does not begin as one.")
    size = int.from_bytes(content[len(MAGIC) : HEADER_START], "little")
    start = HEADER_START + size
    if not 2 <= size <= MAX_HEADER or len(content) < start:
        raise PrivetError("This is not a released record: its header is cut off or too long.")
    try:
        header = _Header.model_validate(strict_json(content[HEADER_START:start].decode("utf-8")))
    except ValidationError as error:
        raise PrivetError(
            f"The header of a released record is wrong: {first_problem(error.errors())}"
        ) from None
    except (ValueError, RecursionError):
        raise PrivetError("This is not a released record: its header is not JSON.") from None
    end = start + 4 * math.prod(header.shape)
    if len(content) != end and (len(content) != padded(end) or any(content[end:])):
        raise PrivetError("The bytes of a released record do not fit its shape.")
    z = np.frombuffer(content[start:end], dtype="<f4").reshape(header.shape)
    return Envelope(
        header.campaign, header.release, header.submission, header.labels, z, header.consent
    )


def padded(size: int) -> int:
    """The next power of two: of texts up to 64 words, at most seven lengths can be told apart.

    >>> padded(1000), padded(1024)
    (1024, 1024)
    """
    return 1 << (size - 1).bit_length()


def max_bytes(expect: ExpectedRecord, sealed: bool) -> int:
    """The longest envelope of such a record."""
    content = HEADER_START + MAX_HEADER + 4 * expect.max_numbers
    return padded(content) + (OVERHEAD if sealed else 0)
