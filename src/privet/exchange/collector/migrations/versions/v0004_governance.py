"""Who opened a campaign and who holds a token; deeds that cannot be changed; people who sign in
elsewhere; counts with noise; days instead of milliseconds."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

DAY_MS = 86_400_000
REFUSE = "deeds are written once"


def upgrade() -> None:
    for table, column in (
        ("campaigns", sa.Column("opened_by", sa.String(64))),
        ("campaigns", sa.Column("erased", sa.BigInteger())),
        ("tokens", sa.Column("holder", sa.String(64))),
    ):
        op.add_column(table, column)
    op.create_table(
        "deeds",
        sa.Column("campaign", sa.String(32), primary_key=True),
        sa.Column("place", sa.Integer(), primary_key=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("who", sa.String(128), nullable=False),
        sa.Column("what", sa.String(32), nullable=False),
        sa.Column("about", sa.Text(), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    op.create_table(
        "subjects",
        sa.Column("campaign", sa.String(32), sa.ForeignKey("campaigns.id"), primary_key=True),
        sa.Column("subject", sa.String(255), primary_key=True),
        sa.Column("scope", sa.String(16), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "counts",
        sa.Column("campaign", sa.String(32), sa.ForeignKey("campaigns.id"), primary_key=True),
        sa.Column("place", sa.Integer(), primary_key=True),
        sa.Column("label", sa.String(64), nullable=False),
        sa.Column("epsilon", sa.Float(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("answer", sa.Text()),
    )
    # The time of a record beside the name of a person: the day is enough for retention.
    op.execute(f"UPDATE submissions SET received = received - received % {DAY_MS}")
    op.execute(f"UPDATE gone SET at = at - at % {DAY_MS}")
    if op.get_bind().dialect.name == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER deeds_no_{verb.lower()} BEFORE {verb} ON deeds"
                f" BEGIN SELECT RAISE(ABORT, '{REFUSE}'); END"
            )
    else:
        op.execute(
            "CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN RAISE EXCEPTION '{REFUSE}'; END $$"
        )
        op.execute(
            "CREATE TRIGGER deeds_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON deeds"
            " EXECUTE FUNCTION refuse_change()"
        )


def downgrade() -> None:
    for table in ("counts", "subjects", "deeds"):
        op.drop_table(table)
    if op.get_bind().dialect.name != "sqlite":
        op.execute("DROP FUNCTION refuse_change()")
    for table, column in (
        ("tokens", "holder"),
        ("campaigns", "erased"),
        ("campaigns", "opened_by"),
    ):
        op.drop_column(table, column)
