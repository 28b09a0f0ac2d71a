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
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
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
from privet.evidence.what_leaves import WhatLeaves
from privet.exchange.protocol.asking import asked_for
from privet.exchange.protocol.seal import is_signed

ID = r"^[0-9a-f]{32}$"
SHA256 = r"^[0-9a-f]{64}$"
# Most bytes of a manifest, and most numbers in one released record.
MAX_BYTES = 64 * 1024
MAX_NUMBERS = 4_000_000

Hash = Annotated[str, StringConstraints(pattern=SHA256)]
Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43}$")]
Name = Annotated[str, StringConstraints(pattern=r"^[\w][\w .:+-]{0,63}$")]
Value = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Mode = Literal["sealed", "open"]
Access = Literal["anyone", "invited"]


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Label(_Frozen):
    """Something participants are asked to say about a record.

    Parameters:
        name: What it is called in the export.
        question: How it is asked, in plain words.
        values: The answers to choose from; none for a number.
        required: Whether a record without an answer is refused.
        epsilon: The participant's machine changes the answer at random before it leaves, so that
            it is private to this degree (evidence/randomised_answers.py); None to send it as it is.
    """

    name: Name
    question: Annotated[str, StringConstraints(max_length=300)] = ""
    values: Annotated[list[Value], Field(max_length=100)] = []
    required: bool = False
    epsilon: Annotated[float, Field(ge=0.1, le=10)] | None = None

    @model_validator(mode="after")
    def _can_be_changed(self) -> Label:
        if self.epsilon is not None and len(self.values) < 2:
            raise ValueError("only an answer that is chosen among values can be changed at random")
        return self


class ReleaseParts(_Frozen):
    """The files of a release by their SHA-256.

    Parameters:
        card, graph: `card.json` and `release.onnx`.
        decoder, audit, report: What a page may show beside them.
    """

    card: Hash
    graph: Hash
    decoder: Hash | None = None
    audit: Hash | None = None
    report: Hash | None = None

    def hashes(self) -> dict[str, str]:
        return {name: value for name, value in self if value is not None}


class ExpectedRecord(_Frozen):
    """What a released record looks like from outside: what an open campaign checks, and how long a
    sealed record can be.

    Parameters:
        shape: Of one record; None for the free axis of a text.
        longest: Most positions on the free axis.
        low, high: Range of the records, or where noise is added, of the records before it.
        law: Law of noise that is simply added; None where none is, or where it enters otherwise.
        scale: Scale of that noise.
        step: All values are multiples of this, where noise is added on a grid.
    """

    shape: Annotated[list[Annotated[int, Field(ge=1)] | None], Field(min_length=1, max_length=4)]
    longest: Annotated[int, Field(ge=1, le=65536)] = 1
    low: float | None = None
    high: float | None = None
    law: Literal["gaussian", "laplace"] | None = None
    scale: Annotated[float, Field(gt=0)] | None = None
    step: Annotated[float, Field(gt=0)] | None = None

    @property
    def max_numbers(self) -> int:
        """How many numbers the longest record has."""
        return math.prod(self.longest if size is None else size for size in self.shape)

    @model_validator(mode="after")
    def _fits(self) -> ExpectedRecord:
        if self.max_numbers > MAX_NUMBERS:
            raise ValueError("a released record has too many numbers")
        if self.shape.count(None) > 1:
            raise ValueError("a released record has more than one free axis")
        if (self.law is None) != (self.scale is None):
            raise ValueError("a law of noise needs a scale, and a scale a law")
        return self


class Manifest(_Frozen):
    """What a campaign's owner signs. Every field is in the JSON text that the signature is of.

    Parameters:
        title, purpose: What participants read first, in plain words.
        who: Who runs the campaign, and how to reach them.
        mode: `sealed` to the owner's key, or `open` to the collector's server.
        access: For `anyone` with the link, or those who were `invited`.
        labels: What participants are asked to say about a record.
        private, modality, method: From the card of the release.
        retention_days: After so many days a record is deleted.
        records_per_person: Most records that are taken from one person.
        consent, consent_version: What participants agree to, and its version; every record names
            the text by its SHA-256.
        least_people: The owner gets nothing before so many people have taken part.
        counts_epsilon: The owner gets no records at all, only counts of people with noise, as
            private as this in all (evidence/private_counts.py); None for records.
        release: The files of the release.
        expect: What the release's records look like.
        sealing_key, signing_key: The owner's public keys.
        created: When it was made, UTC.
        nonce: Makes two campaigns that ask the same different.
    """

    kind: Literal["privet campaign"] = "privet campaign"
    version: Literal[1] = 1
    title: Annotated[str, StringConstraints(min_length=1, max_length=120)]
    purpose: Annotated[str, StringConstraints(min_length=1, max_length=4000)]
    who: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    mode: Mode
    access: Access
    labels: Annotated[list[Label], Field(max_length=32)] = []
    private: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=128)]],
        Field(min_length=1, max_length=64),
    ]
    modality: Literal["image", "table", "text", "signal"]
    method: Annotated[str, StringConstraints(max_length=64)]
    retention_days: Annotated[int, Field(ge=1, le=3650)]
    records_per_person: Annotated[int, Field(ge=1, le=1_000_000)]
    consent: Annotated[str, StringConstraints(max_length=8000)] = ""
    consent_version: Annotated[str, StringConstraints(max_length=32)] = ""
    least_people: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    counts_epsilon: Annotated[float, Field(ge=0.01, le=100)] | None = None
    release: ReleaseParts
    expect: ExpectedRecord
    sealing_key: Key | None
    signing_key: Key
    created: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
    nonce: Annotated[str, StringConstraints(pattern=ID)]

    @field_validator("title", "purpose", "who", "consent", "consent_version")
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
        if len(set(map(normalised, names))) < len(names):
            raise ValueError("two labels have the same name")
        if asked := private_among(names, self.private):
            raise ValueError(f"'{asked}' is what the release hides, and must not be asked for")
        if near := asked_for(self.labels, self.private):
            raise ValueError(
                f"'{near.label}' asks for '{near.attribute}', which the release hides and which "
                "must not be asked for"
            )
        if {"z", "person", "submission", "received", "consent"} & set(names):
            raise ValueError(
                "a label must not be called z, person, submission, received or consent"
            )
        if self.counts_epsilon is not None and self.mode != "open":
            raise ValueError("a server can only count records that it can read: an open campaign")
        return self

    @property
    def consent_hash(self) -> str | None:
        """What a record names the consent by; None where the campaign has no text of its own."""
        return hashlib.sha256(self.consent.encode()).hexdigest() if self.consent else None

    @property
    def leaves(self) -> WhatLeaves:
        """What leaves with a record: the labels asked for, and that it is of the same person as
        others in this campaign. Noise is a function of the participant's key and the record, so
        that sharing it again shows nothing new."""
        return WhatLeaves(
            asked=tuple(label.name for label in self.labels),
            records=self.records_per_person,
            linked_by=("person",) if self.records_per_person > 1 else (),
        )

    def text(self) -> str:
        """What is signed."""
        return json.dumps(
            self.model_dump(mode="json"), ensure_ascii=False, sort_keys=True, separators=(",", ":")
        )


def private_among(names: Iterable[str], private: Iterable[str]) -> str | None:
    """The first of `names` that is a private attribute, whatever its case and marks.

    >>> private_among(["smiling", "Has-Beard"], ["has beard"])
    'Has-Beard'
    """
    hidden = set(map(normalised, private))
    return next((name for name in names if normalised(name) in hidden), None)


def normalised(name: str) -> str:
    """A name without case, blanks and marks."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", str(name)).casefold())


def campaign_id(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def read_manifest(text: str, signature: str, campaign: str | None = None) -> Manifest:
    """The manifest, after checking that it is whole, signed by the key in it and, with `campaign`,
    the one that the link names."""
    if len(text.encode(errors="replace")) > MAX_BYTES:
        raise PrivetError(f"The manifest is longer than {MAX_BYTES // 1024} kB.")
    if campaign is not None and campaign_id(text) != campaign:
        raise PrivetError(
            "The manifest is not the one that the link names: it was changed. Do not take part."
        )
    try:
        manifest = Manifest.model_validate(strict_json(text))
    except ValidationError as error:
        raise PrivetError(f"The manifest cannot be used: {first_problem(error.errors())}") from None
    except (ValueError, RecursionError):
        raise PrivetError("The manifest is not JSON.") from None
    if not is_signed(text.encode(), signature, manifest.signing_key):
        raise PrivetError("The manifest's signature is wrong: it was changed. Do not take part.")
    return manifest


def strict_json(text: str | bytes) -> Any:
    """JSON without the NaN and Infinity that Python adds to it; ValueError for anything else."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    return json.loads(text, parse_constant=refuse)


def first_problem(problems: Sequence[Any]) -> str:
    """A sentence with the first of the problems that pydantic found. It does not repeat the value:
    an answer is not a place for somebody's data."""
    place = ".".join(str(step)[:64] for step in problems[0]["loc"])
    return f"{place}: {problems[0]['msg']}.".removeprefix(": ")[:300]


def check_card(manifest: Manifest, card: dict[str, Any]) -> None:
    """The card of the release says the same as the manifest."""
    try:
        agree = (
            card["sha256"]["graph"] == manifest.release.graph
            and list(card["private"]) == manifest.private
            and list(card["output"]["shape"]) == manifest.expect.shape
            and card["input"]["modality"] == manifest.modality
        )
    except (KeyError, TypeError):
        agree = False
    if not agree:
        raise PrivetError("The manifest and the card of the release contradict each other.")
