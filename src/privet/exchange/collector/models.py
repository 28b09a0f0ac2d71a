"""The collector's tables. Records themselves are blobs; a row says that a blob is there, and whose
withdrawal it obeys.

Times are milliseconds since 1970, UTC. Secrets are stored as SHA-256: each has 256 random bits, so
there is nothing to guess.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

Number = BigInteger().with_variant(Integer(), "sqlite")
"""SQLite counts up only in a column called INTEGER."""


class Base(DeclarativeBase):
    pass


class Campaign(Base):
    __tablename__ = "campaigns"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    manifest: Mapped[str] = mapped_column(Text)
    signature: Mapped[str] = mapped_column(String(128))
    created: Mapped[int] = mapped_column(BigInteger)
    closed: Mapped[int | None] = mapped_column(BigInteger)


class Part(Base):
    """A part of a release that some campaign may name: card, graph, decoder, audit."""

    __tablename__ = "parts"

    sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    size: Mapped[int] = mapped_column(BigInteger)
    created: Mapped[int] = mapped_column(BigInteger)


class Token(Base):
    __tablename__ = "tokens"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    scope: Mapped[str] = mapped_column(String(16))
    """operator: may create campaigns; owner: one campaign; invite: may take part in one
    campaign."""
    campaign: Mapped[str | None] = mapped_column(ForeignKey("campaigns.id"), index=True)
    hash: Mapped[str] = mapped_column(String(64))
    created: Mapped[int] = mapped_column(BigInteger)
    expires: Mapped[int | None] = mapped_column(BigInteger)
    revoked: Mapped[int | None] = mapped_column(BigInteger)


class Submission(Base):
    __tablename__ = "submissions"
    __table_args__ = (
        UniqueConstraint("campaign", "id", name="one_submission_per_key"),
        UniqueConstraint("campaign", "sha256", name="no_bytes_twice"),
        Index("submissions_of_a_person", "campaign", "person"),
        Index("submissions_by_age", "campaign", "received"),
        {"sqlite_autoincrement": True},
    )

    number: Mapped[int] = mapped_column(Number, primary_key=True, autoincrement=True)
    campaign: Mapped[str] = mapped_column(ForeignKey("campaigns.id"))
    id: Mapped[str] = mapped_column(String(32))
    """The participant's idempotency key."""
    person: Mapped[str] = mapped_column(String(64))
    sha256: Mapped[str] = mapped_column(String(64))
    """Of the bytes that were sent."""
    blob: Mapped[str] = mapped_column(String(64))
    size: Mapped[int] = mapped_column(Integer)
    withdraw: Mapped[str] = mapped_column(String(64))
    """SHA-256 of the secret that withdraws it."""
    received: Mapped[int] = mapped_column(BigInteger)


class Gone(Base):
    """What is left of a record that was withdrawn or grew too old: its name, for those who exported
    it before."""

    __tablename__ = "gone"
    __table_args__ = (
        UniqueConstraint("campaign", "id", name="gone_once"),
        {"sqlite_autoincrement": True},
    )

    number: Mapped[int] = mapped_column(Number, primary_key=True, autoincrement=True)
    campaign: Mapped[str] = mapped_column(ForeignKey("campaigns.id"))
    id: Mapped[str] = mapped_column(String(32))
    reason: Mapped[str] = mapped_column(String(16))
    """withdrawn or retention."""
    at: Mapped[int] = mapped_column(BigInteger)


class Identity(Base):
    """One row, made with the table: what the blobs that belong to this database are marked with."""

    __tablename__ = "identity"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
