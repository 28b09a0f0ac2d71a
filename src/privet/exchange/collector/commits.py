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
import queue
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError, IntegrityError, SQLAlchemyError

from privet.exchange.collector.blobs import Blob, Blobs, Full
from privet.exchange.collector.models import Campaign, Gone, Submission, Token
from privet.exchange.collector.store import TOKEN, Store, now, valid_token

MOST = 128
"""Submissions in a batch."""
WAITING = 4096
"""Submissions that may be on their way to the disk; more are asked to come back."""
THREADS = 16
"""Blobs written at once."""


@dataclass(eq=False)
class Refused(Exception):
    """Not taken: an HTTP status and a sentence."""

    status: int
    sentence: str


@dataclass(frozen=True)
class Receipt:
    campaign: str
    submission: str
    sha256: str
    received: int
    new: bool
    """Whether it was stored just now, or had been before."""


@dataclass(frozen=True, eq=False)
class Offer:
    """A submission that has passed every check that needs no database."""

    campaign: str
    id: str
    person: str
    sha256: str
    blob: str
    withdraw: str
    limit: int
    """Records per person."""
    content: bytes
    token: tuple[str, str] | None = None
    """Name and text of an invitation, where one is needed."""


Answer = Receipt | Refused


@dataclass(eq=False)
class _Waiting:
    offer: Offer
    future: asyncio.Future[Receipt]
    loop: asyncio.AbstractEventLoop


@dataclass(eq=False)
class Commits:
    store: Store
    blobs: Blobs
    heard: Callable[[str, dict[str, Any]], None] = lambda event, about: None
    """Hears what goes wrong, and how large batches are."""
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

    async def submit(self, offer: Offer) -> Receipt:
        """The receipt, once the record is durable; Refused where it is not taken."""
        if self._under_way >= WAITING:
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
            self.blobs.write(
                Blob(waiting.offer.campaign, waiting.offer.blob), waiting.offer.content
            )
        except Exception as error:  # whatever a disk or a store elsewhere may raise
            self.heard("blob", {"error": type(error).__name__, "detail": _first_line(error)})
            refused = _no_room() if isinstance(error, Full) else _not_now()
            waiting.loop.call_soon_threadsafe(_answer, [waiting], [refused])
        else:
            self._queue.put(waiting)

    def _run(self) -> None:
        last = False
        while not last:
            first = self._queue.get()
            if first is None:
                return
            batch = [first]
            while len(batch) < MOST:
                try:
                    more = self._queue.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    last = True
                    break
                batch.append(more)
            answers = self.decide_and_store([waiting.offer for waiting in batch])
            batch[0].loop.call_soon_threadsafe(_answer, batch, answers)

    def decide_and_store(self, offers: Sequence[Offer]) -> list[Answer]:
        """An answer for each, in order; their blobs are written, and every receipt is for a record
        that is synced and committed."""
        try:
            self.heard("batch", {"size": len(offers)})
            answers = self._batch(offers)
        except Exception as error:  # a thread that dies would leave everybody waiting for ever
            self.heard(
                "failed",
                {
                    "error": type(error).__name__,
                    "detail": _first_line(error),
                    "offers": len(offers),
                },
            )
            refused = _no_room() if _is_full(error) else _not_now()
            answers = [refused for _ in offers]
        return answers

    def _batch(self, offers: Sequence[Offer]) -> list[Answer]:
        answers: list[Answer | None] = self._known_answers(offers)
        fresh = [k for k, answer in enumerate(answers) if answer is None]
        if fresh:
            self.blobs.sync([Blob(offers[k].campaign, offers[k].blob) for k in fresh])
            try:
                receipts = self._insert([offers[k] for k in fresh])
            except IntegrityError:
                # Another server on the same database was faster with one of the keys: one by one it
                # is plain with which.
                if len(offers) > 1:
                    return [self._batch([offer])[0] for offer in offers]
                receipts = [_other()]
            for k, receipt in zip(fresh, receipts, strict=True):
                answers[k] = receipt
        final = _doubles(offers, answers)
        taken = [isinstance(answer, Receipt) and answer.new for answer in final]
        unused = [
            Blob(offer.campaign, offer.blob)
            for offer, used in zip(offers, taken, strict=True)
            if not used
        ]
        if unused:
            self.blobs.delete(unused)
        return final

    def _known_answers(self, offers: Sequence[Offer]) -> list[Answer | None]:
        """What is decided by what is stored already; None for those to store now."""
        keys = [(offer.campaign, offer.id) for offer in offers]
        people = sorted({(offer.campaign, offer.person) for offer in offers})
        names = sorted({offer.token[0] for offer in offers if offer.token})
        with self.store.engine.connect() as connection:
            states = {
                row.id: row.closed
                for row in connection.execute(
                    STATES, {"campaigns": sorted({o.campaign for o in offers})}
                )
            }
            rows = connection.execute(
                STORED,
                {"keys": keys, "bytes": [(offer.campaign, offer.sha256) for offer in offers]},
            ).all()
            gone = {(row.campaign, row.id) for row in connection.execute(LEFT, {"keys": keys})}
            counts = Counter(
                {(row[0], row[1]): row[2] for row in connection.execute(COUNTS, {"people": people})}
            )
            tokens = (
                {row.id: row for row in connection.execute(TOKENS, {"names": names})}
                if names
                else {}
            )
        stored = {(row.campaign, row.id): row for row in rows}
        bytes_of = {(row.campaign, row.sha256) for row in rows}
        answers: list[Answer | None] = []
        taken: dict[tuple[str, str], Offer] = {}
        for offer, key in zip(offers, keys, strict=True):
            answer: Answer | None = None
            if key in stored:
                row = stored[key]
                answer = (
                    Receipt(*key, row.sha256, row.received, False)
                    if row.sha256 == offer.sha256
                    else _other()
                )
            elif key in gone:
                answer = Refused(410, "This record was withdrawn; it is not taken again.")
            elif key in taken:
                answer = DOUBLE if taken[key].sha256 == offer.sha256 else _other()
            elif (offer.campaign, offer.sha256) in bytes_of:
                answer = Refused(409, "These very bytes were sent before, under another key.")
            elif offer.campaign not in states:
                answer = Refused(404, "There is no such campaign.")
            elif states[offer.campaign] is not None:
                answer = Refused(403, "The campaign is closed.")
            elif offer.token is not None and not _invited(tokens.get(offer.token[0]), offer):
                answer = Refused(
                    401,
                    "The invitation is not valid: it is for another campaign, was revoked, or has expired.",
                )
            elif counts[offer.campaign, offer.person] >= offer.limit:
                answer = Refused(
                    403, f"The campaign takes at most {offer.limit} records from one person."
                )
            else:
                counts[offer.campaign, offer.person] += 1
                taken[key] = offer
                bytes_of.add((offer.campaign, offer.sha256))
            answers.append(answer)
        return answers

    def _insert(self, offers: Sequence[Offer]) -> list[Answer]:
        at = now()
        rows = [
            {
                "campaign": o.campaign,
                "id": o.id,
                "person": o.person,
                "sha256": o.sha256,
                "blob": o.blob,
                "size": len(o.content),
                "withdraw": o.withdraw,
                "received": at,
            }
            for o in offers
        ]
        with self.store.engine.begin() as connection:
            connection.execute(sa.insert(Submission), rows)
        return [Receipt(o.campaign, o.id, o.sha256, at, True) for o in offers]


def _among(parameter: str, *columns: Any) -> Any:
    where = sa.tuple_(*columns) if len(columns) > 1 else columns[0]
    return where.in_(sa.bindparam(parameter, expanding=True))


_ROW = (Submission.campaign, Submission.id, Submission.sha256, Submission.received)
_WHOSE = (Submission.campaign, Submission.person)
# Built once: building a statement takes longer than running it.
STATES = sa.select(Campaign.id, Campaign.closed).where(_among("campaigns", Campaign.id))
STORED = sa.union(
    sa.select(*_ROW).where(_among("keys", Submission.campaign, Submission.id)),
    sa.select(*_ROW).where(_among("bytes", Submission.campaign, Submission.sha256)),
)
LEFT = sa.select(Gone.campaign, Gone.id).where(_among("keys", Gone.campaign, Gone.id))
COUNTS = sa.select(*_WHOSE, sa.func.count()).where(_among("people", *_WHOSE)).group_by(*_WHOSE)
TOKENS = sa.select(*TOKEN).where(_among("names", Token.id))

DOUBLE = Refused(0, "the same submission twice in one batch")


def _doubles(offers: Sequence[Offer], answers: Sequence[Answer | None]) -> list[Answer]:
    """The second of two equal submissions in a batch is answered as the first one was."""
    first: dict[tuple[str, str], Answer] = {}
    result: list[Answer] = []
    for offer, answer in zip(offers, answers, strict=True):
        key = (offer.campaign, offer.id)
        if answer is DOUBLE:
            answer = first[key]
            if isinstance(answer, Receipt):
                answer = Receipt(
                    answer.campaign, answer.submission, answer.sha256, answer.received, False
                )
        assert answer is not None
        first.setdefault(key, answer)
        result.append(answer)
    return result


def _answer(batch: Sequence[_Waiting], answers: Sequence[Answer]) -> None:
    for waiting, answer in zip(batch, answers, strict=True):
        if waiting.future.done():
            continue
        if isinstance(answer, Receipt):
            waiting.future.set_result(answer)
        else:
            waiting.future.set_exception(Refused(answer.status, answer.sentence))


def _invited(token: Any, offer: Offer) -> bool:
    assert offer.token is not None
    return (
        token is not None
        and token.scope == "invite"
        and token.campaign == offer.campaign
        and valid_token(token, offer.token[1])
    )


def _other() -> Refused:
    return Refused(409, "Something else was stored under this key.")


def _not_now() -> Refused:
    return Refused(503, "The collector cannot store anything now: try again later.")


def _no_room() -> Refused:
    return Refused(507, "The collector has no room left: try again later.")


def _is_full(error: Exception) -> bool:
    return (isinstance(error, OSError) and error.errno == 28) or (
        isinstance(error, DatabaseError) and "full" in str(error.orig).lower()
    )


def _first_line(error: BaseException) -> str:
    """Of what the database itself says, which never quotes a statement's values."""
    inner = error.orig if isinstance(error, SQLAlchemyError) and hasattr(error, "orig") else error
    return (str(inner).strip().splitlines() or [""])[0][:200]
