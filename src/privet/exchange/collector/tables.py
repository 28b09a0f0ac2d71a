"""The collector's tables. Records themselves are blobs; a row says that a blob is there, and whose
withdrawal it obeys.

Times are milliseconds since 1970, UTC. Secrets are stored as SHA-256: each has 256 random bits, so
there is nothing to guess.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
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
    # Whose operator token opened it; nothing for campaigns from before this was written down.
    Column("opened_by", String(64)),
    # From then on everything of the campaign is deleted, and stays deleted.
    Column("erased", BigInteger),
)

# Parts of releases that some campaign may name: cards, graphs, decoders, audits, reports.
parts = Table(
    "parts",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("created", BigInteger, nullable=False),
)

# The scope `operator` may create campaigns and sees those of its holder, `owner` has one campaign,
# `auditor` may look at one, `invite` may take part in one.
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
    # Who has it, in the operator's words; a token that replaces another has the same holder.
    Column("holder", String(64)),
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

# What a server remembers between starts: the place of its blobs, the time it last saw, how often
# the writer has changed, what an operator has confirmed.
state = Table(
    "state",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("value", String(64), nullable=False),
)

# Blobs whose rows were removed on purpose, until they are deleted too: a crash in between leaves
# their names here, and not an orphan that would be kept for a while.
deletions = Table(
    "deletions",
    metadata,
    Column("campaign", String(32), primary_key=True),
    Column("blob", String(64), primary_key=True),
)

# What owners, auditors and operators did, in one chain of hashes per campaign; triggers refuse
# every change of a row. The campaign "" is the collector itself.
deeds = Table(
    "deeds",
    metadata,
    Column("campaign", String(32), primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("who", String(128), nullable=False),
    Column("what", String(32), nullable=False),
    Column("about", Text, nullable=False),
    Column("hash", String(64), nullable=False),
)

# People who sign in elsewhere (OpenID Connect), and what they may do here: `owner` or `auditor`.
subjects = Table(
    "subjects",
    metadata,
    Column("campaign", ForeignKey("campaigns.id"), primary_key=True),
    Column("subject", String(255), primary_key=True),
    Column("scope", String(16), nullable=False),
    Column("created", BigInteger, nullable=False),
)

# Counts with noise that were given out, and what each spent of the campaign's epsilon.
counts = Table(
    "counts",
    metadata,
    Column("campaign", ForeignKey("campaigns.id"), primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("label", String(64), nullable=False),
    Column("epsilon", Float, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("answer", Text),
)
