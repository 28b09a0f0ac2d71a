"""An identity of the database, with which the blobs that belong to it are marked."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    table = op.create_table("identity", sa.Column("id", sa.String(32), primary_key=True))
    op.bulk_insert(table, [{"id": secrets.token_hex(16)}])


def downgrade() -> None:
    op.drop_table("identity")
