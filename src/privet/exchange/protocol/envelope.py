"""A released record on its way: what is sealed, or in an open campaign sent as it is.

    "PRIVET1\\n" | length of the header, 4 bytes | header, JSON in UTF-8, spaces to a multiple of 512 | float32; little endian

The header names campaign, release and submission, so that a record cannot be moved to another
campaign or counted twice under another name, and it holds the labels. Spaces keep the length from
telling "yes" from "no"; of texts, whose length is free, zeros follow to the next power of two.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core.errors import PrivetError
from privet.exchange.protocol.manifest import Expect
from privet.exchange.protocol.seal import OVERHEAD

MEDIA_TYPES = {"sealed": "application/vnd.privet.sealed", "open": "application/vnd.privet.record"}
"""Of a submission, by the campaign's mode."""
MAGIC = b"PRIVET1\n"
STEP = 512
LONGEST_HEADER = 16 * STEP
KEYS = {"campaign", "release", "submission", "shape", "dtype", "labels"}

Array = npt.NDArray[Any]
Answer = str | float | None
Labels = dict[str, Answer]


@dataclass(frozen=True, eq=False)
class Envelope:
    campaign: str
    release: str
    """SHA-256 of the release's card."""
    submission: str
    labels: Labels
    z: Array

    def pack(self, expect: Expect) -> bytes:
        about = {
            "campaign": self.campaign,
            "release": self.release,
            "submission": self.submission,
            "shape": list(self.z.shape),
            "dtype": "float32",
            "labels": self.labels,
        }
        header = json.dumps(about, ensure_ascii=False, separators=(",", ":")).encode()
        start = len(MAGIC) + 4
        header = header.ljust(_up(len(header) + start, STEP) - start)
        if len(header) > LONGEST_HEADER:
            raise PrivetError("The labels are too long to be sent.")
        body = (
            MAGIC
            + len(header).to_bytes(4, "little")
            + header
            + np.ascontiguousarray(self.z, dtype="<f4").tobytes()
        )
        return body.ljust(padded(len(body)), b"\0") if None in expect.shape else body


def unpack(content: bytes) -> Envelope:
    """The inverse; PrivetError for anything else, whatever its bytes."""
    start = len(MAGIC) + 4
    if content[: len(MAGIC)] != MAGIC:
        raise PrivetError("This is not a released record: it does not begin as one.")
    size = int.from_bytes(content[len(MAGIC) : start], "little")
    if not 2 <= size <= LONGEST_HEADER or len(content) < start + size:
        raise PrivetError("This is not a released record: its header is cut off or too long.")
    try:
        about = json.loads(content[start : start + size].decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise PrivetError("This is not a released record: its header is not JSON.") from None
    if not isinstance(about, dict) or set(about) != KEYS:
        raise PrivetError(
            f"The header of a released record has just these keys: {', '.join(sorted(KEYS))}."
        )
    names = (about["campaign"], about["release"], about["submission"])
    shape, labels = about["shape"], about["labels"]
    if about["dtype"] != "float32":
        raise PrivetError(
            "A released record is float32; raw bytes and whole numbers are not taken."
        )
    if not (
        all(isinstance(name, str) for name in names)
        and isinstance(labels, dict)
        and all(map(_answer, labels.values()))
    ):
        raise PrivetError(
            "The header of a released record names campaign, release and submission, and has labels."
        )
    if not (
        isinstance(shape, list)
        and 1 <= len(shape) <= 4
        and all(type(s) is int and 1 <= s <= 2**24 for s in shape)
    ):
        raise PrivetError("The shape of a released record is a list of one to four whole numbers.")
    wanted, rest = 4 * math.prod(shape), content[start + size :]
    if len(rest) != wanted and (
        len(content) != padded(start + size + wanted) or any(rest[wanted:])
    ):
        raise PrivetError("The bytes of a released record do not fit its shape.")
    z = np.frombuffer(rest[:wanted], dtype="<f4").reshape(shape)
    return Envelope(*names, labels, z)


def padded(size: int) -> int:
    """The next power of two: of texts up to 64 words, at most seven lengths can be told apart.

    >>> padded(1000), padded(1024)
    (1024, 1024)
    """
    return 1 << (size - 1).bit_length()


def most_bytes(expect: Expect, sealed: bool) -> int:
    """The longest envelope of such a record."""
    return padded(len(MAGIC) + 4 + LONGEST_HEADER + 4 * expect.most) + (OVERHEAD if sealed else 0)


def _up(size: int, step: int) -> int:
    return -(-size // step) * step


def _answer(value: object) -> bool:
    return (
        value is None
        or isinstance(value, str)
        or (isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15)
    )


def _refuse(word: str) -> None:
    raise ValueError(word)
