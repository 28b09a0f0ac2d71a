"""What a server remembers between starts, and blobs that are to be deleted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "state",
        sa.Column("name", sa.String(32), primary_key=True),
        sa.Column("value", sa.String(64), nullable=False),
    )
    op.create_table(
        "deletions",
        sa.Column("campaign", sa.String(32), primary_key=True),
        sa.Column("blob", sa.String(64), primary_key=True),
    )


def downgrade() -> None:
    op.drop_table("deletions")
    op.drop_table("state")
