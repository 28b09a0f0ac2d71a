"""Acknowledged means durable, many at a time.

A submission's blob is written and synced at once, by one of a few threads: a journalling file
system joins what is synced at the same time into one commit. Then one thread takes whatever
submissions wait, syncs their folder, decides on all of them, and commits their rows in one
transaction; only then is each of them answered. While one batch is committed the next one gathers,
so a disk that syncs a few hundred times a second takes thousands of records, and a lone record
waits for nobody.

If a commit fails, it is not known whether it happened: its blobs are left for the sweep, and the
participants, who were told nothing, try again with the same key.
"""

from __future__ import annotations

import asyncio
import errno
import math
import queue
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError, IntegrityError

from privet.exchange.collector.blobs import Blob, Blobs, Full
from privet.exchange.collector.database import Database
from privet.exchange.collector.monitor import Monitor
from privet.exchange.collector.tables import campaigns, gone, submissions, tokens
from privet.exchange.collector.tokens import is_valid, today

# Most submissions in a batch.
MAX_BATCH = 128
# Submissions that may be on their way to the disk; more are asked to come back.
MAX_WAITING = 4096
# Blobs written at once.
THREADS = 16
# Seconds after which a campaign that seems full is counted again.
RECOUNT_SECONDS = 10.0


@dataclass(eq=False)
class Refused(Exception):
    """A request that is not taken.

    Parameters:
        status: Of HTTP.
        sentence: Why.
    """

    status: int
    sentence: str


@dataclass(frozen=True)
class Stored:
    """A submission that is durable.

    Parameters:
        received: The day on which it came, in milliseconds since 1970.
        new: Whether it was stored just now, or had been before.
    """

    received: int
    new: bool


@dataclass(frozen=True, eq=False)
class Offer:
    """A submission that has passed every check that needs no database.

    Parameters:
        campaign, id: Names of the campaign, and of the submission in it.
        person: The same for all records of a person in this campaign.
        sha256: Of the content.
        blob: The name under which the content is stored.
        withdraw: SHA-256 of the secret that withdraws it.
        limit: Most records of one person.
        content: The bytes that were sent.
        token: Name and text of an invitation, where one is needed.
    """

    campaign: str
    id: str
    person: str
    sha256: str
    blob: str
    withdraw: str
    limit: int
    content: bytes
    token: tuple[str, str] | None = None

    @property
    def place(self) -> Blob:
        return Blob(self.campaign, self.blob)


Answer = Stored | Refused


@dataclass(eq=False)
class Quota:
    """Most records and bytes of one campaign. They are counted in memory, as one server writes, and
    anew where a limit seems to be reached: what was withdrawn makes room.

    Parameters:
        records, bytes: The limits; 0 for none.
    """

    records: int = 0
    bytes: int = 0
    _taken: dict[str, tuple[int, int]] = field(default_factory=dict)
    _counted: dict[str, float] = field(default_factory=dict)

    def refuse(self, database: Database, offers: Sequence[Offer]) -> set[str]:
        """Campaigns that have no room for these."""
        new: Counter[str] = Counter(offer.campaign for offer in offers)
        sizes: Counter[str] = Counter()
        for offer in offers:
            sizes[offer.campaign] += len(offer.content)
        return {name for name in new if self._is_over(database, name, new[name], sizes[name])}

    def _is_over(self, database: Database, campaign: str, records: int, size: int) -> bool:
        if not self.records and not self.bytes:
            return False
        over = True
        at = time.monotonic()
        if campaign in self._taken:
            over = self._exceeds(campaign, records, size)
        if over and at - self._counted.get(campaign, -math.inf) > RECOUNT_SECONDS:
            self._taken[campaign] = database.size(campaign)
            self._counted[campaign] = at
            over = self._exceeds(campaign, records, size)
        return over

    def _exceeds(self, campaign: str, records: int, size: int) -> bool:
        taken, taken_size = self._taken[campaign]
        return (0 < self.records < taken + records) or (0 < self.bytes < taken_size + size)

    def count(self, offers: Sequence[Offer]) -> None:
        for offer in offers:
            records, size = self._taken.get(offer.campaign, (0, 0))
            self._taken[offer.campaign] = records + 1, size + len(offer.content)


@dataclass(eq=False)
class _Waiting:
    offer: Offer
    future: asyncio.Future[Stored]
    loop: asyncio.AbstractEventLoop


@dataclass(eq=False)
class Commits:
    """The threads that store submissions.

    Parameters:
        database, blobs: Where rows and contents are stored.
        monitor: Counts batches and failures.
        quota: Most of one campaign.
    """

    database: Database
    blobs: Blobs
    monitor: Monitor = field(default_factory=Monitor)
    quota: Quota = field(default_factory=Quota)
    _queue: queue.SimpleQueue[_Waiting | None] = field(default_factory=queue.SimpleQueue)
    _pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(THREADS, thread_name_prefix="blob")
    )
    _thread: threading.Thread | None = None
    _under_way: int = 0

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="commits")
        self._thread.start()

    def stop(self) -> None:
        """Finish what waits, then end."""
        if self._thread is not None:
            self._pool.shutdown()
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    async def submit(self, offer: Offer) -> Stored:
        """Returns once the record is durable; Refused where it is not taken."""
        if self._under_way >= MAX_WAITING:
            raise Refused(503, "The collector has more to do than it can: try again in a moment.")
        loop = asyncio.get_running_loop()
        waiting = _Waiting(offer, loop.create_future(), loop)
        self._under_way += 1
        try:
            self._pool.submit(self._write, waiting)
            return await asyncio.shield(waiting.future)
        finally:
            self._under_way -= 1

    def _write(self, waiting: _Waiting) -> None:
        try:
            self.blobs.write(waiting.offer.place, waiting.offer.content)
        except Exception as error:  # whatever a disk or a store elsewhere may raise
            self.monitor.failed("blob", error)
            waiting.loop.call_soon_threadsafe(_answer, [waiting], [_failure(error)])
        else:
            self._queue.put(waiting)

    def _run(self) -> None:
        ended = False
        while not ended:
            batch = [self._queue.get()]
            while batch[-1] is not None and len(batch) < MAX_BATCH and not self._queue.empty():
                batch.append(self._queue.get())
            ended = batch[-1] is None
            waiting = [one for one in batch if one is not None]
            if waiting:
                answers = self.decide_and_store([one.offer for one in waiting])
                waiting[0].loop.call_soon_threadsafe(_answer, waiting, answers)

    def decide_and_store(self, offers: Sequence[Offer]) -> list[Answer]:
        """An answer for each, in order; their blobs are written, and every `Stored` is a record
        that is synced and committed."""
        try:
            self.monitor.batch.observe(len(offers))
            return self._batch(offers)
        except Exception as error:  # a thread that dies would leave everybody waiting for ever
            self.monitor.failed("failed", error, offers=len(offers))
            return [_failure(error) for _ in offers]

    def _batch(self, offers: Sequence[Offer]) -> list[Answer]:
        new = Stored(today(), new=True)
        answers = self._decide(offers, new)
        fresh = [offer for offer, answer in zip(offers, answers, strict=True) if answer is new]
        if full := self.quota.refuse(self.database, fresh):
            if len(offers) > 1:  # one by one it is plain which of them still has room
                return [self._batch([offer])[0] for offer in offers]
            answers = [_no_room() if offer.campaign in full else new for offer in offers]
            fresh = []
        if fresh:
            self.blobs.sync([offer.place for offer in fresh])
            try:
                self._insert(fresh, new.received)
            except IntegrityError:
                # Another server on the same database was faster with one of the keys: one by one it
                # is plain with which.
                if len(offers) > 1:
                    return [self._batch([offer])[0] for offer in offers]
                answers = [_other_content()]
            else:
                self.quota.count(fresh)
        unused = [o.place for o, answer in zip(offers, answers, strict=True) if answer is not new]
        if unused:
            self.blobs.delete(unused)
        return answers

    def _decide(self, offers: Sequence[Offer], new: Stored) -> list[Answer]:
        """The answers; `new` for those to store now."""
        with self.database.engine.connect() as connection:
            state = _State(connection, offers)
        return [state.answer(offer, new) for offer in offers]

    def _insert(self, offers: Sequence[Offer], received: int) -> None:
        rows = [
            {
                "campaign": offer.campaign,
                "id": offer.id,
                "person": offer.person,
                "sha256": offer.sha256,
                "blob": offer.blob,
                "size": len(offer.content),
                "withdraw": offer.withdraw,
                "received": received,
            }
            for offer in offers
        ]
        with self.database.engine.begin() as connection:
            self.database.writer.check(connection)
            connection.execute(sa.insert(submissions), rows)


def _among(parameter: str, *columns: Any) -> Any:
    where = sa.tuple_(*columns) if len(columns) > 1 else columns[0]
    return where.in_(sa.bindparam(parameter, expanding=True))


_KEY = (submissions.c.campaign, submissions.c.id)
_CONTENT = (submissions.c.campaign, submissions.c.sha256)
_PERSON = (submissions.c.campaign, submissions.c.person)
# Built once: building a statement takes longer than running it.
_CAMPAIGNS = sa.select(campaigns.c.id, campaigns.c.closed).where(
    _among("campaigns", campaigns.c.id)
)
_SUBMISSIONS = sa.union(
    sa.select(*_KEY, submissions.c.sha256, submissions.c.received).where(_among("keys", *_KEY)),
    sa.select(*_KEY, submissions.c.sha256, submissions.c.received).where(
        _among("contents", *_CONTENT)
    ),
)
_GONE = sa.select(gone.c.campaign, gone.c.id).where(_among("keys", gone.c.campaign, gone.c.id))
_COUNTS = sa.select(*_PERSON, sa.func.count()).where(_among("people", *_PERSON)).group_by(*_PERSON)
_TOKENS = sa.select(tokens).where(_among("tokens", tokens.c.id))


class _State:
    """What is stored that matters for the submissions of one batch."""

    def __init__(self, connection: sa.Connection, offers: Sequence[Offer]) -> None:
        def rows(statement: Any, **parameters: Any) -> Sequence[Any]:
            return connection.execute(statement, parameters).all()

        keys = [(offer.campaign, offer.id) for offer in offers]
        contents = [(offer.campaign, offer.sha256) for offer in offers]
        people = sorted({(offer.campaign, offer.person) for offer in offers})
        names = sorted({offer.token[0] for offer in offers if offer.token})
        stored = rows(_SUBMISSIONS, keys=keys, contents=contents)
        self.closed = {
            row.id: row.closed
            for row in rows(_CAMPAIGNS, campaigns=sorted({offer.campaign for offer in offers}))
        }
        self.stored = {(row.campaign, row.id): (row.sha256, row.received) for row in stored}
        self.contents = {(row.campaign, row.sha256) for row in stored}
        self.gone = {tuple(row) for row in rows(_GONE, keys=keys)}
        self.counts = Counter({tuple(row[:2]): row[2] for row in rows(_COUNTS, people=people)})
        self.tokens = {row.id: row for row in rows(_TOKENS, tokens=names)} if names else {}

    def answer(self, offer: Offer, new: Stored) -> Answer:
        """`new` if it is to be stored now; then it counts for those that follow."""
        key, content = (offer.campaign, offer.id), (offer.campaign, offer.sha256)
        person = (offer.campaign, offer.person)
        if key in self.stored:
            sha256, received = self.stored[key]
            return Stored(received, new=False) if sha256 == offer.sha256 else _other_content()
        if key in self.gone:
            return Refused(410, "This record was withdrawn; it is not taken again.")
        if content in self.contents:
            return Refused(409, "These very bytes were sent before, under another key.")
        if offer.campaign not in self.closed:
            return Refused(404, "There is no such campaign.")
        if self.closed[offer.campaign] is not None:
            return Refused(403, "The campaign is closed.")
        if offer.token is not None and not self._is_invited(offer.campaign, *offer.token):
            return not_invited()
        if self.counts[person] >= offer.limit:
            return Refused(
                403, f"The campaign takes at most {offer.limit} records from one person."
            )
        self.counts[person] += 1
        self.contents.add(content)
        self.stored[key] = offer.sha256, new.received
        return new

    def _is_invited(self, campaign: str, name: str, text: str) -> bool:
        row = self.tokens.get(name)
        return (
            row is not None
            and row.scope == "invite"
            and row.campaign == campaign
            and is_valid(row, text)
        )


def _answer(batch: Sequence[_Waiting], answers: Sequence[Answer]) -> None:
    for waiting, answer in zip(batch, answers, strict=True):
        if waiting.future.done():
            continue
        if isinstance(answer, Stored):
            waiting.future.set_result(answer)
        else:
            waiting.future.set_exception(Refused(answer.status, answer.sentence))


def not_invited() -> Refused:
    return Refused(
        401, "The invitation is not valid: it is for another campaign, was revoked, or has expired."
    )


def _no_room() -> Refused:
    return Refused(403, "The campaign has as many records as this collector takes of one.")


def _other_content() -> Refused:
    return Refused(409, "Something else was stored under this key.")


def _failure(error: Exception) -> Refused:
    """The answer where something could not be stored."""
    full = (
        isinstance(error, Full)
        or (isinstance(error, OSError) and error.errno == errno.ENOSPC)
        or (isinstance(error, DatabaseError) and "full" in str(error.orig).lower())
    )
    if full:
        return Refused(507, "The collector has no room left: try again later.")
    return Refused(503, "The collector cannot store anything now: try again later.")
