"""The first layout: campaigns, parts, tokens, submissions, and the names of what is gone."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "campaigns",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("manifest", sa.Text(), nullable=False),
        sa.Column("signature", sa.String(128), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("closed", sa.BigInteger()),
    )
    op.create_table(
        "parts",
        sa.Column("sha256", sa.String(64), primary_key=True),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("scope", sa.String(16), nullable=False),
        sa.Column("campaign", sa.String(32), sa.ForeignKey("campaigns.id")),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger()),
        sa.Column("revoked", sa.BigInteger()),
    )
    op.create_index("ix_tokens_campaign", "tokens", ["campaign"])
    op.create_table(
        "submissions",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("campaign", sa.String(32), sa.ForeignKey("campaigns.id"), nullable=False),
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("person", sa.String(64), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("blob", sa.String(64), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("withdraw", sa.String(64), nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.UniqueConstraint("campaign", "id", name="one_submission_per_key"),
        sa.UniqueConstraint("campaign", "sha256", name="no_bytes_twice"),
        sqlite_autoincrement=True,
    )
    op.create_index("submissions_of_a_person", "submissions", ["campaign", "person"])
    op.create_index("submissions_by_age", "submissions", ["campaign", "received"])
    op.create_table(
        "gone",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("campaign", sa.String(32), sa.ForeignKey("campaigns.id"), nullable=False),
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("reason", sa.String(16), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.UniqueConstraint("campaign", "id", name="gone_once"),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    for table in ("gone", "submissions", "tokens", "parts", "campaigns"):
        op.drop_table(table)
