"""What is said about governing a campaign: as JSON, checked on both sides."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from privet.exchange.protocol.manifest import SHA256

# The count of those who gave no answer.
NO_ANSWER = "no answer"

SubjectName = Annotated[str, StringConstraints(min_length=1, max_length=255)]
Epsilon = Annotated[float, Field(ge=0.01, le=100)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Reissue(_Strict):
    """A new token of the owner's, by its name and SHA-256, signed with the campaign's key. All
    other tokens of the owner's end."""

    name: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
    hash: Annotated[str, StringConstraints(pattern=SHA256)]
    signature: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{86}$")] = "A" * 86

    def signed_text(self, campaign: str) -> str:
        """What the signature is of."""
        return f"privet owner token 1\n{campaign}\n{self.name}\n{self.hash}\n"


class Erase(_Strict):
    """The title of the campaign that shall be erased."""

    title: Annotated[str, StringConstraints(max_length=120)]


class Subject(_Strict):
    """Somebody who signs in elsewhere, by the name that the issuer gives them."""

    subject: SubjectName
    scope: Literal["owner", "auditor"] = "owner"


class NewCounts(_Strict):
    """A question to count answers to, and how much of the campaign's epsilon to spend on it."""

    label: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    epsilon: Epsilon


class CountsAnswer(BaseModel):
    """How many people gave each answer, with noise.

    Parameters:
        label: The question.
        epsilon: What this spent.
        counts: By answer; noise can take them below 0.
        half_width: How far each count is off at most, with 95 % confidence.
    """

    label: str
    epsilon: float
    counts: dict[str, int]
    half_width: int


class GivenCounts(BaseModel):
    """Counts that were given before; none where the collector stopped before it had counted."""

    label: str
    epsilon: float
    at: int
    counts: dict[str, int] | None
