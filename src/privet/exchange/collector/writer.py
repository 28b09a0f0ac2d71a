"""One writer per database: a second server on the same database is refused.

SQLite: a lock on a file beside the database, which the system gives back when a process ends.
PostgreSQL: an advisory lock of a connection that does nothing else. Such a connection may be lost
while the server lives; so each writer also takes a number, one higher than the last, and every
transaction that stores or removes records looks whether its number is still the highest.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from privet.core.errors import PrivetError
from privet.exchange.collector.tables import state

# The advisory lock of PostgreSQL, which counts within one database.
LOCK = 0x5072697665
# Seconds for which a writer that was killed may keep PostgreSQL's lock.
WAIT_SECONDS = 10.0
NUMBER = "writer"


class Superseded(Exception):
    """Another server has become the writer."""


class WriterLock:
    """The right to write to one database.

    Parameters:
        engine: Of the database.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self.number: int | None = None
        self._file: int | None = None
        self._connection: sa.Connection | None = None

    def take(self, wait: float = WAIT_SECONDS) -> None:
        """PrivetError where another server has it."""
        if self._file is not None or self._connection is not None:
            return
        if self.engine.dialect.name == "sqlite":
            self._take_file()
            return
        end = time.monotonic() + wait
        while not self._take_connection():
            if time.monotonic() > end:
                raise self._taken()
            time.sleep(0.2)

    def count(self) -> None:
        """Become the latest writer, once the tables are there."""
        mine = state.c.name == NUMBER
        with self.engine.begin() as connection:
            last = connection.scalar(sa.select(state.c.value).where(mine).with_for_update())
            self.number = int(last or 0) + 1
            if last is None:
                connection.execute(sa.insert(state).values(name=NUMBER, value=str(self.number)))
            else:
                connection.execute(sa.update(state).where(mine).values(value=str(self.number)))

    def check(self, connection: sa.Connection) -> None:
        """Superseded where another writer came later. Without a number, of a tool that reads,
        nothing is checked."""
        if self.number is not None and connection.scalar(_NUMBER) != str(self.number):
            raise Superseded

    def keep(self) -> bool:
        """Whether the lock is still held; one that was lost with its connection is taken again."""
        if self._connection is None:
            return self._file is not None
        try:
            self._connection.execute(sa.select(1))
            return True
        except SQLAlchemyError:
            self._close()
        try:
            return self._take_connection()
        except PrivetError:
            return False

    def give_back(self) -> None:
        if self._file is not None:
            os.close(self._file)
        self._close()
        self._file = self.number = None

    def _close(self) -> None:
        if self._connection is not None:
            # Closed for good, and not handed back to the pool, which would keep the lock.
            self._connection.invalidate()
            self._connection.close()
            self._connection = None

    def _take_file(self) -> None:
        path = Path(f"{self.engine.url.database}.lock")
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise PrivetError(f"Cannot write {path}: {error.strerror}.") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            self._file = None
            raise self._taken() from None

    def _take_connection(self) -> bool:
        try:
            connection = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            taken = bool(connection.scalar(sa.select(sa.func.pg_try_advisory_lock(LOCK))))
        except SQLAlchemyError as error:
            raise PrivetError(
                f"The database {_address(self.engine)} cannot be used "
                f"({str(getattr(error, 'orig', error)).splitlines()[0]})."
            ) from None
        if taken:
            self._connection = connection
        else:
            connection.close()
        return taken

    def _taken(self) -> PrivetError:
        return PrivetError(
            f"Another server uses the database {_address(self.engine)}: stop it first, or give "
            "this one a database of its own."
        )


_NUMBER: Any = sa.select(state.c.value).where(state.c.name == NUMBER).with_for_update(read=True)


def _address(engine: sa.Engine) -> str:
    return engine.url.render_as_string(hide_password=True)
