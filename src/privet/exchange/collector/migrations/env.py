"""What Alembic runs; the connection is the store's own."""

from __future__ import annotations

from alembic import context

from privet.exchange.collector.tables import metadata


def run() -> None:
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        render_as_batch=True,
    )
    with context.begin_transaction():
        context.run_migrations()


if __name__ == "env_py":  # the name under which Alembic loads it
    run()
