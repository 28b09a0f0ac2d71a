"""The collector's tables. Records themselves are blobs; a row says that a blob is there, and whose
withdrawal it obeys.

Times are milliseconds since 1970, UTC. Secrets are stored as SHA-256: each has 256 random bits, so
there is nothing to guess.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

# SQLite counts up only in a column called INTEGER.
NUMBER = BigInteger().with_variant(Integer(), "sqlite")

metadata = MetaData()

campaigns = Table(
    "campaigns",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("manifest", Text, nullable=False),
    Column("signature", String(128), nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("closed", BigInteger),
)

# Parts of releases that some campaign may name: cards, graphs, decoders, audits, reports.
parts = Table(
    "parts",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("created", BigInteger, nullable=False),
)

# The scope `operator` may create campaigns, `owner` has one campaign, `invite` may take part in
# one.
tokens = Table(
    "tokens",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("scope", String(16), nullable=False),
    Column("campaign", ForeignKey("campaigns.id"), index=True),
    Column("hash", String(64), nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger),
    Column("revoked", BigInteger),
)

# `id` is the participant's idempotency key, `sha256` of the bytes that were sent, `withdraw` the
# SHA-256 of the secret that withdraws them.
submissions = Table(
    "submissions",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("campaign", ForeignKey("campaigns.id"), nullable=False),
    Column("id", String(32), nullable=False),
    Column("person", String(64), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("blob", String(64), nullable=False),
    Column("size", Integer, nullable=False),
    Column("withdraw", String(64), nullable=False),
    Column("received", BigInteger, nullable=False),
    UniqueConstraint("campaign", "id", name="one_submission_per_key"),
    UniqueConstraint("campaign", "sha256", name="no_bytes_twice"),
    Index("submissions_of_a_person", "campaign", "person"),
    Index("submissions_by_age", "campaign", "received"),
    sqlite_autoincrement=True,
)

# What is left of a record that was withdrawn or grew too old: its name, for those who exported it
# before. The reason is `withdrawn` or `retention`.
gone = Table(
    "gone",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("campaign", ForeignKey("campaigns.id"), nullable=False),
    Column("id", String(32), nullable=False),
    Column("reason", String(16), nullable=False),
    Column("at", BigInteger, nullable=False),
    UniqueConstraint("campaign", "id", name="gone_once"),
    sqlite_autoincrement=True,
)

# One row, made with the table: what the blobs that belong to this database are marked with.
identity = Table("identity", metadata, Column("id", String(32), primary_key=True))
