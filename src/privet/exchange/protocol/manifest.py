"""The manifest: what a campaign asks, of whom, with which release and for how long, signed by its
owner.

The signed text travels as it was signed, so that nobody has to write JSON the same way to check it.
A campaign's name is the beginning of the text's SHA-256: whoever has the link has the manifest
pinned, and the manifest pins every part of the release and the owner's key. A server can show
another manifest only under another link.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from privet.core.errors import PrivetError
from privet.exchange.protocol.seal import signed

ID = r"^[0-9a-f]{32}$"
SHA256 = r"^[0-9a-f]{64}$"
LARGEST = 64 * 1024
"""Bytes of a manifest."""
NUMBERS = 4_000_000
"""Most numbers in one released record."""

Hash = Annotated[str, StringConstraints(pattern=SHA256)]
Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43}$")]
Name = Annotated[str, StringConstraints(pattern=r"^[\w][\w .:+-]{0,63}$")]
Value = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Mode = Literal["sealed", "open"]
Access = Literal["anyone", "invited"]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Label(Part):
    """Something participants are asked to say about a record. Without values it is a number."""

    name: Name
    question: Annotated[str, StringConstraints(max_length=300)] = ""
    values: Annotated[list[Value], Field(max_length=100)] = []
    required: bool = False


class Parts(Part):
    """The release, by SHA-256: card.json, release.onnx, and what a page may show beside them."""

    card: Hash
    graph: Hash
    decoder: Hash | None = None
    audit: Hash | None = None
    report: Hash | None = None

    def all(self) -> dict[str, str]:
        return {name: value for name, value in self if value is not None}


class Expect(Part):
    """What a released record looks like from outside: what an open campaign checks, and by how much
    a sealed one can be long."""

    shape: Annotated[list[Annotated[int, Field(ge=1)] | None], Field(min_length=1, max_length=4)]
    longest: Annotated[int, Field(ge=1, le=65536)] = 1
    """Of the free axis, where there is one."""
    low: float | None = None
    high: float | None = None
    """Range of the records before noise, if noise is added, else of the records."""
    law: Literal["gaussian", "laplace"] | None = None
    """Law of noise that is simply added; None where none is, or where it enters otherwise."""
    scale: Annotated[float, Field(gt=0)] | None = None
    step: Annotated[float, Field(gt=0)] | None = None
    """All values are multiples of this, where noise is added on a grid."""

    @property
    def most(self) -> int:
        """Numbers of the longest record."""
        total = 1
        for size in self.shape:
            total *= self.longest if size is None else size
        return total

    @model_validator(mode="after")
    def _fits(self) -> Expect:
        if self.most > NUMBERS:
            raise ValueError("a released record has too many numbers")
        if sum(size is None for size in self.shape) > 1:
            raise ValueError("a released record has more than one free axis")
        if (self.law is None) != (self.scale is None):
            raise ValueError("a law of noise needs a scale, and a scale a law")
        return self


class Manifest(Part):
    kind: Literal["privet campaign"] = "privet campaign"
    version: Literal[1] = 1
    title: Annotated[str, StringConstraints(min_length=1, max_length=120)]
    purpose: Annotated[str, StringConstraints(min_length=1, max_length=4000)]
    """In plain words."""
    who: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    """Who runs it, and how to reach them."""
    mode: Mode
    access: Access
    labels: Annotated[list[Label], Field(max_length=32)] = []
    private: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=128)]],
        Field(min_length=1, max_length=64),
    ]
    """What the release hides, from its card."""
    modality: Literal["image", "table", "text", "signal"]
    method: Annotated[str, StringConstraints(max_length=64)]
    retention_days: Annotated[int, Field(ge=1, le=3650)]
    records_per_person: Annotated[int, Field(ge=1, le=1_000_000)]
    release: Parts
    expect: Expect
    sealing_key: Key | None
    signing_key: Key
    created: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
    nonce: Annotated[str, StringConstraints(pattern=ID)]
    """Makes two campaigns that ask the same different."""

    @field_validator("title", "purpose", "who")
    @classmethod
    def _printable(cls, text: str) -> str:
        if any(unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\n\u200d" for c in text):
            raise ValueError("holds characters that cannot be shown")
        return text

    @model_validator(mode="after")
    def _consistent(self) -> Manifest:
        if (self.mode == "sealed") != (self.sealing_key is not None):
            raise ValueError("a sealed campaign has a sealing key, an open one has none")
        names = [label.name for label in self.labels]
        if len({plain(name) for name in names}) < len(names):
            raise ValueError("two labels have the same name")
        if asked := private_among(names, self.private):
            raise ValueError(f"'{asked}' is what the release hides, and must not be asked for")
        if {"z", "person", "submission", "received"} & set(names):
            raise ValueError("a label must not be called z, person, submission or received")
        return self

    def text(self) -> str:
        """What is signed."""
        return json.dumps(
            self.model_dump(mode="json"), ensure_ascii=False, sort_keys=True, separators=(",", ":")
        )


def private_among(names: Any, private: Any) -> str | None:
    """The first of `names` that is a private attribute, whatever its case and marks.

    >>> private_among(["smiling", "Has-Beard"], ["has beard"])
    'Has-Beard'
    """
    hidden = {plain(name) for name in private}
    return next((name for name in names if plain(name) in hidden), None)


def plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", str(name)).casefold())


def campaign_id(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def read(text: str, signature: str, campaign: str | None = None) -> Manifest:
    """The manifest, after checking that it is whole, signed by the key in it and, with `campaign`,
    the one that the link names."""
    if len(text.encode(errors="replace")) > LARGEST:
        raise PrivetError(f"The manifest is longer than {LARGEST // 1024} kB.")
    if campaign is not None and campaign_id(text) != campaign:
        raise PrivetError(
            "The manifest is not the one that the link names: it was changed. Do not take part."
        )
    try:
        manifest = Manifest.model_validate(json.loads(text, parse_constant=_refuse))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        raise PrivetError(
            f"The manifest cannot be used: {where}{': ' if where else ''}{first['msg']}."
        ) from None
    except (ValueError, RecursionError):
        raise PrivetError("The manifest is not JSON.") from None
    if not signed(text.encode(), signature, manifest.signing_key):
        raise PrivetError("The manifest's signature is wrong: it was changed. Do not take part.")
    return manifest


def _refuse(word: str) -> None:
    raise ValueError(word)


def check_card(manifest: Manifest, card: dict[str, Any]) -> None:
    """The card of the release says the same as the manifest."""
    try:
        same = (
            card["sha256"]["graph"] == manifest.release.graph
            and list(card["private"]) == manifest.private
            and list(card["output"]["shape"]) == manifest.expect.shape
            and card["input"]["modality"] == manifest.modality
        )
    except (KeyError, TypeError):
        same = False
    if not same:
        raise PrivetError("The manifest and the card of the release contradict each other.")
