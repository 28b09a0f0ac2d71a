"""The collector's rows: campaigns, tokens, submissions. SQLite by default, PostgreSQL by its
address.

SQLite runs with a write-ahead log that is synced at every commit (`synchronous=FULL`), so a commit
that has returned survives a power cut, and overwrites what it deletes (`secure_delete`).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from privet.core.errors import PrivetError, first_line
from privet.exchange.collector.blobs import PARTS, Blob
from privet.exchange.collector.tables import (
    campaigns,
    deletions,
    gone,
    identity,
    parts,
    state,
    submissions,
    tokens,
)
from privet.exchange.collector.tokens import DAY_MS as DAY_MS
from privet.exchange.collector.tokens import digest, is_valid, new_token, now, today
from privet.exchange.collector.writer import Superseded, WriterLock

# The state that says when the last backup was made.
BACKUP = "backup"
# Rows deleted or compared at once.
CHUNK = 500


class Database:
    """The rows of one collector.

    Parameters:
        url: `sqlite:///FILE` or `postgresql+psycopg://USER:PASSWORD@HOST/NAME`.
    """

    def __init__(self, url: str) -> None:
        self.engine = make_engine(url)
        self.writer = WriterLock(self.engine)

    def upgrade(self) -> None:
        """Bring the tables to the present layout."""
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        try:
            self._make_private()
            with self.engine.begin() as connection:
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
        except (SQLAlchemyError, OSError) as error:
            reason = first_line(getattr(error, "orig", None) or error)
            raise PrivetError(f"The database {self.address} cannot be used ({reason}).") from None

    def _make_private(self) -> None:
        """A file of SQLite's is its owner's alone; its log takes the same rights."""
        if self.engine.dialect.name != "sqlite":
            return
        path = Path(str(self.engine.url.database))
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        for file in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
            if file.exists() and file.stat().st_mode & 0o077:
                file.chmod(0o600)

    @property
    def address(self) -> str:
        """The database's address without its password."""
        return self.engine.url.render_as_string(hide_password=True)

    @property
    def is_absent(self) -> bool:
        """Whether it is a file that is not there; opening it would make it."""
        name = self.engine.url.database
        return self.engine.dialect.name == "sqlite" and name is not None and not Path(name).exists()

    def identity(self) -> str:
        """What the blobs that belong to this database are marked with."""
        [row] = self._select(sa.select(identity))
        return str(row.id)

    def is_alive(self) -> bool:
        """Whether it can be written to, by this server."""
        try:
            with self.engine.begin() as connection:
                self.writer.check(connection)
                _put_state(connection, "probe", str(now()))
        except (SQLAlchemyError, Superseded):
            return False
        return True

    # What a server remembers between starts

    def state(self, name: str) -> str | None:
        rows = self._select(sa.select(state.c.value).where(state.c.name == name))
        return str(rows[0].value) if rows else None

    def set_state(self, name: str, value: str | None) -> None:
        """None forgets it."""
        with self.engine.begin() as connection:
            _put_state(connection, name, value)

    def _select(self, statement: Any) -> list[Any]:
        with self.engine.connect() as connection:
            return list(connection.execute(statement))

    def _execute(self, statement: Any) -> int:
        """How many rows were changed."""
        with self.engine.begin() as connection:
            return int(connection.execute(statement).rowcount)

    # Tokens

    def new_tokens(
        self, count: int, scope: str, campaign: str, expires: int | None = None
    ) -> list[tuple[str, str]]:
        """Names and texts of new tokens."""
        with self.engine.begin() as connection:
            return _add_tokens(connection, count, scope, campaign, expires)

    def operator_token(self, replace: bool = False, holder: str = "operator") -> str | None:
        """A new token of an operator's, if there is none yet, or if it shall be replaced."""
        same = sa.func.coalesce(tokens.c.holder, "operator") == holder
        valid = sa.and_(tokens.c.scope == "operator", tokens.c.revoked.is_(None), same)
        with self.engine.begin() as connection:
            if connection.scalar(sa.select(tokens.c.id).where(valid).limit(1)) and not replace:
                return None
            connection.execute(sa.update(tokens).where(valid).values(revoked=now()))
            return _add_tokens(connection, 1, "operator", holder=holder)[0][1]

    def bearer(self, token: tuple[str, str]) -> Any:
        """The row of a token, by its name and text; None where it is unknown, revoked or
        expired."""
        rows = self._select(sa.select(tokens).where(tokens.c.id == token[0]))
        return next((row for row in rows if is_valid(row, token[1])), None)

    def tokens(self, campaign: str) -> list[Any]:
        chosen = sa.select(tokens).where(tokens.c.campaign == campaign)
        return self._select(chosen.order_by(tokens.c.created, tokens.c.id))

    def revoke(self, campaign: str, token: str) -> bool:
        valid = sa.update(tokens).where(
            tokens.c.campaign == campaign, tokens.c.id == token, tokens.c.revoked.is_(None)
        )
        return bool(self._execute(valid.values(revoked=now())))

    # Campaigns and the parts of their releases

    def add_part(self, sha256: str, size: int) -> None:
        if not self.has_parts([sha256]):
            self._execute(sa.insert(parts).values(sha256=sha256, size=size, created=now()))

    def has_parts(self, hashes: Iterable[str]) -> set[str]:
        """Those of them that are stored."""
        chosen = sa.select(parts.c.sha256).where(parts.c.sha256.in_(list(hashes)))
        return {row.sha256 for row in self._select(chosen)}

    def add_campaign(
        self, name: str, manifest: str, signature: str, opened_by: str | None = None
    ) -> str | None:
        """The new campaign's owner token; None where the campaign is there already."""
        row = {"id": name, "manifest": manifest, "signature": signature, "created": now()}
        row["opened_by"] = opened_by
        with self.engine.begin() as connection:
            if connection.scalar(sa.select(campaigns.c.id).where(campaigns.c.id == name)):
                return None
            connection.execute(sa.insert(campaigns).values(row))
            return _add_tokens(connection, 1, "owner", name)[0][1]

    def campaigns(self, only: str | None = None) -> list[Any]:
        """Rows with id, manifest, signature, created, closed."""
        chosen = sa.select(campaigns).order_by(campaigns.c.created)
        return self._select(chosen if only is None else chosen.where(campaigns.c.id == only))

    def campaign(self, name: str) -> Any:
        """None where there is none."""
        return next(iter(self.campaigns(name)), None)

    def close(self, name: str) -> None:
        is_open = sa.and_(campaigns.c.id == name, campaigns.c.closed.is_(None))
        self._execute(sa.update(campaigns).where(is_open).values(closed=now()))

    # Submissions

    def submission(self, campaign: str, name: str) -> Any:
        """A row; 'gone' where only its name is left; None where nothing is known of it."""
        rows, left = (
            self._select(sa.select(table).where(table.c.campaign == campaign, table.c.id == name))
            for table in (submissions, gone)
        )
        return rows[0] if rows else "gone" if left else None

    def remove(self, campaign: str, names: Sequence[str], reason: str) -> list[Blob]:
        """Delete rows and leave their names; returns the blobs to delete, now that nothing points
        at them. They are listed as deletions until `deleted` is told that they are gone."""
        chosen = sa.and_(submissions.c.campaign == campaign, submissions.c.id.in_(names))
        deleted = sa.delete(submissions).where(chosen)
        with self.engine.begin() as connection:
            self.writer.check(connection)
            rows = list(connection.execute(deleted.returning(submissions.c.id, submissions.c.blob)))
            left = [
                {"campaign": campaign, "id": row.id, "reason": reason, "at": today()}
                for row in rows
            ]
            if left:
                connection.execute(sa.insert(gone), left)
                blobs = [{"campaign": campaign, "blob": row.blob} for row in rows]
                connection.execute(sa.insert(deletions), blobs)
        return [Blob(campaign, row.blob) for row in rows]

    def deletions(self) -> list[Blob]:
        """Some of the blobs whose rows were removed, and which may still be there."""
        return [Blob(*row) for row in self._select(sa.select(deletions).limit(CHUNK))]

    def deleted(self, blobs: Sequence[Blob]) -> None:
        """These blobs are gone."""
        for start in range(0, len(blobs), CHUNK):
            names = [blob.name for blob in blobs[start : start + CHUNK]]
            self._execute(sa.delete(deletions).where(deletions.c.blob.in_(names)))

    def count_expired(self, campaign: str, before: int) -> int:
        old = sa.and_(submissions.c.campaign == campaign, submissions.c.received < before)
        return int(self._select(sa.select(sa.func.count()).where(old))[0][0])

    def count(self) -> int:
        """Records of all campaigns."""
        return int(self._select(sa.select(sa.func.count()).select_from(submissions))[0][0])

    def size(self, campaign: str) -> tuple[int, int]:
        """Records and bytes of a campaign."""
        size = sa.func.coalesce(sa.func.sum(submissions.c.size), 0)
        mine = submissions.c.campaign == campaign
        [row] = self._select(sa.select(sa.func.count(), size).where(mine))
        return int(row[0]), int(row[1])

    def has_records(self) -> bool:
        return bool(self._select(sa.select(submissions.c.number).limit(1)))

    def expired(self, campaign: str, before: int) -> list[str]:
        """Names of some of the submissions that came before that time."""
        old = sa.and_(submissions.c.campaign == campaign, submissions.c.received < before)
        return [row.id for row in self._select(sa.select(submissions.c.id).where(old).limit(CHUNK))]

    def submissions(self, campaign: str, after: int, most: int) -> list[Any]:
        """Rows in the order of their numbers."""
        return self._page(submissions, campaign, after, most)

    def gone(self, campaign: str, after: int, most: int) -> list[Any]:
        """Rows of what was withdrawn or grew too old, in the order of their numbers."""
        return self._page(gone, campaign, after, most)

    def _page(self, table: sa.Table, campaign: str, after: int, most: int) -> list[Any]:
        chosen = sa.select(table).where(table.c.campaign == campaign, table.c.number > after)
        return self._select(chosen.order_by(table.c.number).limit(most))

    def figures(self, campaign: str) -> dict[str, Any]:
        """How many records of how many people, how large, on which day, and how many are gone."""
        mine, count = submissions.c.campaign == campaign, sa.func.count()
        day = (submissions.c.received - submissions.c.received % DAY_MS).label("day")
        people = sa.func.count(submissions.c.person.distinct())
        size = sa.func.coalesce(sa.func.sum(submissions.c.size), 0)
        [total] = self._select(sa.select(count, people, size).where(mine))
        by_day = sa.select(day, count).where(mine).group_by("day").order_by("day")
        by_reason = sa.select(gone.c.reason, count).where(gone.c.campaign == campaign)
        return {
            **dict(zip(("records", "people", "bytes"), map(int, total), strict=True)),
            "by_day": {
                time.strftime("%Y-%m-%d", time.gmtime(int(start) / 1000)): int(many)
                for start, many in self._select(by_day)
            },
            "gone": dict(map(tuple, self._select(by_reason.group_by(gone.c.reason)))),
        }

    def blob_names(self, campaign: str) -> set[str]:
        """Names of the blobs that rows point at."""
        mine = sa.select(submissions.c.blob).where(submissions.c.campaign == campaign)
        rows = self._select(sa.select(parts.c.sha256) if campaign == PARTS else mine)
        return {row[0] for row in rows}

    def stream_blobs(self, campaign: str) -> Iterator[str]:
        """The same one by one: a million of them take no memory."""
        mine = sa.select(submissions.c.blob).where(submissions.c.campaign == campaign)
        names = sa.select(parts.c.sha256) if campaign == PARTS else mine
        with self.engine.connect() as connection:
            options = {"yield_per": 10_000}
            yield from connection.execute(names, execution_options=options).scalars()

    def rows_of(self, campaign: str, blobs: Sequence[str]) -> list[Any]:
        """The rows that point at these blobs."""
        mine = sa.and_(submissions.c.campaign == campaign, submissions.c.blob.in_(blobs))
        part = sa.select(parts).where(parts.c.sha256.in_(blobs))
        return self._select(part if campaign == PARTS else sa.select(submissions).where(mine))

    def unused_parts(self, before: int) -> list[str]:
        """Parts that were sent before that time, and that no campaign names."""
        old = self._select(sa.select(parts.c.sha256).where(parts.c.created < before))
        campaigns = [row for row in self.campaigns() if row.erased is None]
        named = [json.loads(row.manifest)["release"].values() for row in campaigns]
        return sorted({row.sha256 for row in old}.difference(*named))

    def remove_parts(self, names: Sequence[str]) -> None:
        self._execute(sa.delete(parts).where(parts.c.sha256.in_(names)))


def _put_state(connection: sa.Connection, name: str, value: str | None) -> None:
    mine = state.c.name == name
    if value is None:
        connection.execute(sa.delete(state).where(mine))
    elif not connection.execute(sa.update(state).where(mine).values(value=value)).rowcount:
        connection.execute(sa.insert(state).values(name=name, value=value))


def _add_tokens(
    connection: sa.Connection,
    count: int,
    scope: str,
    campaign: str | None = None,
    expires: int | None = None,
    holder: str | None = None,
) -> list[tuple[str, str]]:
    new = [new_token() for _ in range(count)]
    same = {"scope": scope, "campaign": campaign, "created": now(), "expires": expires}
    same["holder"] = holder
    connection.execute(
        sa.insert(tokens), [{"id": name, "hash": digest(text), **same} for name, text in new]
    )
    return new


def make_engine(url: str) -> sa.Engine:
    """An engine whose commits are durable, and which gives up in bounded time."""
    try:
        address = sa.make_url(url)
        name = address.get_backend_name()
        if name == "postgresql":
            limits = "-c statement_timeout=15000 -c lock_timeout=10000"
            return sa.create_engine(
                address,
                pool_pre_ping=True,
                pool_timeout=10,
                connect_args={"connect_timeout": 5, "options": limits},
            )
        if name != "sqlite" or not address.database or address.database == ":memory:":
            raise PrivetError(
                "--db takes sqlite:///FILE or postgresql+psycopg://USER:PASSWORD@HOST/NAME."
            )
        engine = sa.create_engine(address, connect_args={"timeout": 10}, pool_timeout=10)
    except (ArgumentError, NoSuchModuleError, ImportError) as error:
        raise PrivetError(
            f"'{url.split('@')[-1]}' is not the address of a database ({first_line(error)})."
        ) from None
    sa.event.listen(engine, "connect", _durable)
    return engine


def _durable(connection: Any, _record: Any) -> None:
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}").close()
