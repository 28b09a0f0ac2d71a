"""Who did what: rows of deeds, of people who sign in elsewhere, of erased campaigns, and of counts
that were given out."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from privet.exchange.collector.blobs import Blobs
from privet.exchange.collector.database import CHUNK, Database
from privet.exchange.collector.retention import remove
from privet.exchange.collector.tables import campaigns, counts, deeds, subjects, submissions, tokens
from privet.exchange.collector.tokens import now
from privet.exchange.protocol.deeds import START, Deed, deed_hash

# Of servers that write to one chain at the same time, each tries so often.
TRIES = 20


class Governance:
    """Deeds, roles and counts of one collector.

    Parameters:
        database: Where the rows are.
    """

    def __init__(self, database: Database) -> None:
        self.engine = database.engine

    # Deeds

    def write(self, campaign: str, who: str, what: str, **about: Any) -> Deed:
        """Add an entry to a campaign's chain; it is durable when this returns."""
        for attempt in range(TRIES):
            try:
                with self.engine.begin() as connection:
                    return self._append(connection, campaign, who, what, about)
            except IntegrityError:
                # Another thread or server was faster with this place.
                if attempt == TRIES - 1:
                    raise
        raise AssertionError("not reached")

    def _append(
        self, connection: sa.Connection, campaign: str, who: str, what: str, about: dict[str, Any]
    ) -> Deed:
        last = sa.select(deeds.c.place, deeds.c.hash).where(deeds.c.campaign == campaign)
        row = connection.execute(last.order_by(deeds.c.place.desc()).limit(1)).first()
        place, previous = (row.place + 1, row.hash) if row else (1, START)
        deed = Deed(place=place, at=now(), who=who, what=what, about=about, hash="")
        deed.hash = deed_hash(campaign, deed, previous)
        values = {**deed.model_dump(), "campaign": campaign, "about": json.dumps(about)}
        connection.execute(sa.insert(deeds).values(values))
        return deed

    def deeds(self, campaign: str, after: int = 0, most: int = 1000) -> list[Deed]:
        """Entries in order."""
        chosen = sa.select(deeds).where(deeds.c.campaign == campaign, deeds.c.place > after)
        with self.engine.connect() as connection:
            rows = connection.execute(chosen.order_by(deeds.c.place).limit(most)).all()
        return [Deed(**{**row._mapping, "about": json.loads(row.about)}) for row in rows]

    # Roles

    def allow(self, campaign: str, subject: str, scope: str) -> None:
        """Let somebody who signs in elsewhere act for a campaign."""
        row = {"campaign": campaign, "subject": subject}
        with self.engine.begin() as connection:
            connection.execute(sa.delete(subjects).filter_by(**row))
            connection.execute(sa.insert(subjects).values(**row, scope=scope, created=now()))

    def disallow(self, campaign: str, subject: str) -> bool:
        """Whether there was such a person."""
        with self.engine.begin() as connection:
            chosen = sa.delete(subjects).filter_by(campaign=campaign, subject=subject)
            return bool(connection.execute(chosen).rowcount)

    def roles(self, subject: str) -> dict[str, str]:
        """What somebody may do, by campaign."""
        with self.engine.connect() as connection:
            rows = connection.execute(sa.select(subjects).where(subjects.c.subject == subject))
            return {row.campaign: row.scope for row in rows}

    def add_hashed_token(self, campaign: str, name: str, hashed: str, holder: str) -> bool:
        """A token of the owner's whose text was made elsewhere and never came here; False where a
        token of this name is known."""
        row = {"id": name, "scope": "owner", "campaign": campaign, "hash": hashed}
        try:
            with self.engine.begin() as connection:
                connection.execute(
                    sa.insert(tokens).values(**row, created=now(), expires=None, holder=holder)
                )
        except IntegrityError:
            return False
        return True

    def revoke_others(self, campaign: str, scope: str, keep: str) -> int:
        """End every token of this scope but one; how many were ended."""
        with self.engine.begin() as connection:
            others = sa.update(tokens).where(
                tokens.c.campaign == campaign,
                tokens.c.scope == scope,
                tokens.c.id != keep,
                tokens.c.revoked.is_(None),
            )
            return int(connection.execute(others.values(revoked=now())).rowcount)

    # Erasure

    def mark_erased(self, campaign: str) -> None:
        """From now on the campaign is gone for everybody, and what is left of it is deleted, now
        or, after a crash, at the next start."""
        with self.engine.begin() as connection:
            chosen = sa.update(campaigns).where(campaigns.c.id == campaign)
            connection.execute(chosen.values(erased=now(), closed=now()))
            mine = sa.update(tokens).where(
                tokens.c.campaign == campaign,
                tokens.c.scope == "invite",
                tokens.c.revoked.is_(None),
            )
            connection.execute(mine.values(revoked=now()))

    def erased(self) -> list[str]:
        """Campaigns of which something may be left."""
        left = (
            sa.select(submissions.c.campaign)
            .distinct()
            .join(campaigns, campaigns.c.id == submissions.c.campaign)
        )
        with self.engine.connect() as connection:
            return [
                row[0] for row in connection.execute(left.where(campaigns.c.erased.is_not(None)))
            ]

    # Counts

    def people(self, campaign: str) -> int:
        """How many people's records are stored."""
        chosen = sa.select(sa.func.count(submissions.c.person.distinct()))
        with self.engine.connect() as connection:
            return int(connection.scalar(chosen.where(submissions.c.campaign == campaign)) or 0)

    def first_records(self, campaign: str) -> list[str]:
        """Blobs of everybody's first record."""
        first = (
            sa.select(sa.func.min(submissions.c.number))
            .where(submissions.c.campaign == campaign)
            .group_by(submissions.c.person)
        )
        with self.engine.connect() as connection:
            rows = connection.execute(
                sa.select(submissions.c.blob).where(submissions.c.number.in_(first))
            )
            return [row.blob for row in rows]

    def spend(self, campaign: str, label: str, epsilon: float, most: float) -> int | None:
        """The place of a new row of counts; None where the campaign's epsilon does not allow it.

        It is spent before anything is counted: a crash costs epsilon, never privacy."""
        for attempt in range(TRIES):
            try:
                with self.engine.begin() as connection:
                    mine = counts.c.campaign == campaign
                    chosen = sa.select(
                        sa.func.coalesce(sa.func.sum(counts.c.epsilon), 0.0), sa.func.count()
                    )
                    spent, many = connection.execute(chosen.where(mine)).one()
                    if spent + epsilon > most * (1 + 1e-9):
                        return None
                    row = {"campaign": campaign, "place": many + 1, "label": label, "at": now()}
                    connection.execute(sa.insert(counts).values(**row, epsilon=epsilon))
                    return int(many) + 1
            except IntegrityError:
                if attempt == TRIES - 1:
                    raise
        raise AssertionError("not reached")

    def keep_counts(self, campaign: str, place: int, answer: dict[str, int]) -> None:
        """Write down what was answered: asked for again, it costs nothing."""
        chosen = sa.update(counts).where(counts.c.campaign == campaign, counts.c.place == place)
        with self.engine.begin() as connection:
            connection.execute(chosen.values(answer=json.dumps(answer)))

    def given_counts(self, campaign: str) -> list[dict[str, Any]]:
        """What was answered so far, and what it spent."""
        chosen = sa.select(counts).where(counts.c.campaign == campaign).order_by(counts.c.place)
        with self.engine.connect() as connection:
            rows = connection.execute(chosen).all()
        return [
            {
                "label": row.label,
                "epsilon": row.epsilon,
                "at": row.at,
                "counts": json.loads(row.answer) if row.answer else None,
            }
            for row in rows
        ]


def erase(database: Database, blobs: Blobs, campaign: str) -> int:
    """Delete what is left of an erased campaign's records; how many there were."""
    deleted = 0
    while rows := database.submissions(campaign, 0, CHUNK):
        remove(database, blobs, campaign, [row.id for row in rows], "erased")
        deleted += len(rows)
    return deleted
