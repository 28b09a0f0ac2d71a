"""The collector's rows: campaigns, tokens, submissions. SQLite by default, PostgreSQL by its
address.

SQLite runs with a write-ahead log that is synced at every commit (`synchronous=FULL`), so a commit
that has returned survives a power cut, and overwrites what it deletes (`secure_delete`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from privet.core.errors import PrivetError
from privet.exchange.collector.blobs import Blob
from privet.exchange.collector.models import Campaign, Gone, Identity, Part, Submission, Token

DAY = 86_400_000
"""Milliseconds."""
CHUNK = 500
"""Rows deleted or compared at once."""


class Bearer(NamedTuple):
    """Whoever holds a token that is valid now."""

    id: str
    scope: str
    campaign: str | None


class Row(NamedTuple):
    number: int
    id: str
    person: str
    sha256: str
    blob: str
    size: int
    received: int


def now() -> int:
    return time.time_ns() // 1_000_000


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


class Store:
    def __init__(self, url: str) -> None:
        self.engine = engine(url)

    def upgrade(self) -> None:
        """Bring the tables to the present layout."""
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        try:
            with self.engine.begin() as connection:
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
        except SQLAlchemyError as error:
            line = str(getattr(error, "orig", error)).strip().splitlines()[0]
            raise PrivetError(f"The database {self.where} cannot be used ({line}).") from None

    @property
    def where(self) -> str:
        """The database's address without its password."""
        return self.engine.url.render_as_string(hide_password=True)

    @property
    def is_absent(self) -> bool:
        """Whether it is a file that is not there; opening it would make it."""
        name = self.engine.url.database
        return self.engine.dialect.name == "sqlite" and name is not None and not Path(name).exists()

    def identity(self) -> str:
        """What the blobs that belong to this database are marked with."""
        with self.engine.connect() as connection:
            return str(connection.scalar(sa.select(Identity.id)))

    def alive(self) -> bool:
        try:
            with self.engine.connect() as connection:
                connection.execute(sa.select(sa.literal(1)))
        except SQLAlchemyError:
            return False
        return True

    # Tokens

    def new_tokens(
        self, count: int, scope: str, campaign: str, expires: int | None = None
    ) -> list[tuple[str, str]]:
        """Names and texts of new tokens. The texts are not kept: this is the only time they are
        seen."""
        with self.engine.begin() as connection:
            return _new_tokens(connection, count, scope, campaign, expires)

    def first_operator(self, again: bool = False) -> str | None:
        """The operator's token, if there is none yet, or if it shall be replaced."""
        with self.engine.begin() as connection:
            valid = sa.and_(Token.scope == "operator", Token.revoked.is_(None))
            there = connection.scalar(sa.select(sa.func.count()).select_from(Token).where(valid))
            if there and not again:
                return None
            connection.execute(sa.update(Token).where(valid).values(revoked=now()))
            return _new_tokens(connection, 1, "operator")[0][1]

    def bearer(self, text: str) -> Bearer | None:
        """Who holds this token; None where it is unknown, revoked or expired."""
        name = token_name(text)
        if name is None:
            return None
        with self.engine.connect() as connection:
            found = connection.execute(sa.select(*TOKEN).where(Token.id == name)).one_or_none()
        return (
            None
            if found is None or not valid_token(found, text)
            else Bearer(found.id, found.scope, found.campaign)
        )

    def tokens(self, campaign: str) -> list[dict[str, Any]]:
        columns = (Token.id, Token.scope, Token.created, Token.expires, Token.revoked)
        with self.engine.connect() as connection:
            rows = connection.execute(
                sa.select(*columns)
                .where(Token.campaign == campaign)
                .order_by(Token.created, Token.id)
            )
            return [dict(row._mapping) for row in rows]

    def revoke(self, campaign: str, token: str) -> bool:
        which = sa.and_(Token.campaign == campaign, Token.id == token, Token.revoked.is_(None))
        with self.engine.begin() as connection:
            return bool(
                connection.execute(sa.update(Token).where(which).values(revoked=now())).rowcount
            )

    # Campaigns and the parts of their releases

    def add_part(self, sha256: str, size: int) -> None:
        with self.engine.begin() as connection:
            if connection.scalar(sa.select(Part.sha256).where(Part.sha256 == sha256)) is None:
                connection.execute(sa.insert(Part).values(sha256=sha256, size=size, created=now()))

    def has_parts(self, hashes: Iterable[str]) -> set[str]:
        with self.engine.connect() as connection:
            return set(
                connection.scalars(sa.select(Part.sha256).where(Part.sha256.in_(list(hashes))))
            )

    def add_campaign(self, name: str, manifest: str, signature: str) -> str | None:
        """The new campaign's owner token; None where the campaign is there already."""
        with self.engine.begin() as connection:
            if connection.scalar(sa.select(Campaign.id).where(Campaign.id == name)) is not None:
                return None
            connection.execute(
                sa.insert(Campaign).values(
                    id=name, manifest=manifest, signature=signature, created=now()
                )
            )
            return _new_tokens(connection, 1, "owner", name)[0][1]

    def campaign(self, name: str) -> Any:
        """id, manifest, signature, created, closed; None where there is none."""
        with self.engine.connect() as connection:
            return connection.execute(
                sa.select(Campaign.__table__).where(Campaign.id == name)
            ).one_or_none()

    def campaigns(self, only: str | None = None) -> list[Any]:
        wanted = sa.select(Campaign.__table__).order_by(Campaign.created)
        with self.engine.connect() as connection:
            return list(
                connection.execute(wanted if only is None else wanted.where(Campaign.id == only))
            )

    def close(self, name: str) -> None:
        with self.engine.begin() as connection:
            connection.execute(
                sa.update(Campaign)
                .where(Campaign.id == name, Campaign.closed.is_(None))
                .values(closed=now())
            )

    # Submissions

    def submission(self, campaign: str, name: str) -> Any:
        """A row with the hash of its withdrawal secret; 'gone' where only its name is left; None
        where nothing is known of it."""
        with self.engine.connect() as connection:
            which = sa.and_(Submission.campaign == campaign, Submission.id == name)
            row = connection.execute(
                sa.select(*ROW, Submission.withdraw).where(which)
            ).one_or_none()
            if (
                row is None
                and connection.scalar(
                    sa.select(Gone.id).where(Gone.campaign == campaign, Gone.id == name)
                )
                is not None
            ):
                return "gone"
            return row

    def remove(self, campaign: str, names: Sequence[str], reason: str) -> list[Blob]:
        """Delete rows and leave their names; returns the blobs to delete, now that nothing points
        at them."""
        which = sa.and_(Submission.campaign == campaign, Submission.id.in_(names))
        with self.engine.begin() as connection:
            rows = list(
                connection.execute(
                    sa.delete(Submission).where(which).returning(Submission.id, Submission.blob)
                )
            )
            if rows:
                gone = [
                    {"campaign": campaign, "id": row.id, "reason": reason, "at": now()}
                    for row in rows
                ]
                connection.execute(sa.insert(Gone), gone)
        return [Blob(campaign, row.blob) for row in rows]

    def old(self, campaign: str, before: int) -> list[str]:
        which = sa.and_(Submission.campaign == campaign, Submission.received < before)
        with self.engine.connect() as connection:
            return list(connection.scalars(sa.select(Submission.id).where(which).limit(CHUNK)))

    def rows(self, campaign: str, after: int, most: int) -> list[Row]:
        which = sa.and_(Submission.campaign == campaign, Submission.number > after)
        with self.engine.connect() as connection:
            return [
                Row(*row)
                for row in connection.execute(
                    sa.select(*ROW).where(which).order_by(Submission.number).limit(most)
                )
            ]

    def gone(self, campaign: str, after: int, most: int) -> list[dict[str, Any]]:
        columns = (Gone.number, Gone.id, Gone.reason, Gone.at)
        which = sa.and_(Gone.campaign == campaign, Gone.number > after)
        with self.engine.connect() as connection:
            rows = connection.execute(
                sa.select(*columns).where(which).order_by(Gone.number).limit(most)
            )
            return [dict(row._mapping) for row in rows]

    def figures(self, campaign: str) -> dict[str, Any]:
        """How many records of how many people, how large, on which day, and how many are gone."""
        day = (Submission.received - Submission.received % DAY).label("day")
        of = Submission.campaign == campaign
        count = sa.func.count()
        with self.engine.connect() as connection:
            total, people, size = connection.execute(
                sa.select(
                    count,
                    sa.func.count(Submission.person.distinct()),
                    sa.func.coalesce(sa.func.sum(Submission.size), 0),
                ).where(of)
            ).one()
            days = connection.execute(
                sa.select(day, count).where(of).group_by("day").order_by("day")
            )
            by_day = {
                time.strftime("%Y-%m-%d", time.gmtime(int(row[0]) / 1000)): int(row[1])
                for row in days
            }
            gone = connection.execute(
                sa.select(Gone.reason, count).where(Gone.campaign == campaign).group_by(Gone.reason)
            )
            left = {str(reason): int(many) for reason, many in gone}
        return {
            "records": int(total),
            "people": int(people),
            "bytes": int(size),
            "by_day": by_day,
            "gone": left,
        }

    def blobs_of(self, campaign: str) -> set[str]:
        """Names of the blobs that rows point at."""
        rows = sa.select(Submission.blob).where(Submission.campaign == campaign)
        wanted = sa.select(Part.sha256) if campaign == PARTS else rows
        with self.engine.connect() as connection:
            return set(connection.scalars(wanted))

    def unused_parts(self, before: int) -> list[str]:
        """Parts that were sent before that time, and that no campaign names."""
        with self.engine.connect() as connection:
            old = set(connection.scalars(sa.select(Part.sha256).where(Part.created < before)))
            manifests = list(connection.scalars(sa.select(Campaign.manifest)))
            used = {
                name for text in manifests for name in json.loads(text)["release"].values() if name
            }
        return sorted(old - used)

    def remove_parts(self, names: Sequence[str]) -> None:
        with self.engine.begin() as connection:
            connection.execute(sa.delete(Part).where(Part.sha256.in_(names)))


PARTS = "parts"
"""Where the parts of releases lie among the blobs."""
ROW = (
    Submission.number,
    Submission.id,
    Submission.person,
    Submission.sha256,
    Submission.blob,
    Submission.size,
    Submission.received,
)
TOKEN = (Token.id, Token.scope, Token.campaign, Token.hash, Token.expires, Token.revoked)


def token_name(text: str) -> str | None:
    """The public half of a token: `pvt_NAME_SECRET`."""
    parts = text.split("_", 2)
    return (
        parts[1]
        if len(parts) == 3
        and parts[0] == "pvt"
        and len(parts[1]) == 16
        and parts[1].isascii()
        and parts[1].isalnum()
        else None
    )


def valid_token(row: Any, text: str) -> bool:
    same = hmac.compare_digest(str(row.hash), digest(text))
    return same and row.revoked is None and (row.expires is None or row.expires > now())


def _new_tokens(
    connection: sa.Connection,
    count: int,
    scope: str,
    campaign: str | None = None,
    expires: int | None = None,
) -> list[tuple[str, str]]:
    names = [secrets.token_hex(8) for _ in range(count)]
    made = [(name, f"pvt_{name}_{secrets.token_urlsafe(32)}") for name in names]
    same = {"scope": scope, "campaign": campaign, "created": now(), "expires": expires}
    connection.execute(
        sa.insert(Token), [{"id": name, "hash": digest(text), **same} for name, text in made]
    )
    return made


def engine(url: str) -> sa.Engine:
    try:
        made = sa.make_url(url)
        name = made.get_backend_name()
        if name == "postgresql":
            limits = "-c statement_timeout=15000 -c lock_timeout=10000"
            return sa.create_engine(
                made,
                pool_pre_ping=True,
                pool_timeout=10,
                connect_args={"connect_timeout": 5, "options": limits},
            )
        if name != "sqlite" or not made.database or made.database == ":memory:":
            raise PrivetError(
                "--db takes sqlite:///FILE or postgresql+psycopg://USER:PASSWORD@HOST/NAME."
            )
        found = sa.create_engine(made, connect_args={"timeout": 10}, pool_timeout=10)
    except (ArgumentError, NoSuchModuleError, ImportError) as error:
        raise PrivetError(
            f"'{url.split('@')[-1]}' is not the address of a database ({str(error).splitlines()[0]})."
        ) from None
    sa.event.listen(found, "connect", _durable)
    return found


def _durable(connection: Any, _record: Any) -> None:
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}").close()
