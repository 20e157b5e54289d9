"""What happened: events, and of which of them nobody was told yet."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.ledger.records import Level, Row
from penstock.ledger.session import Part


@dataclass(frozen=True)
class EventRecord(Row):
    """Hold one thing that happened, under the name of its runbook, and to which table, as that is called now, if to one."""

    number: int
    at: datetime
    slug: str
    level: Level
    table_oid: int | None
    table_name: str | None
    message: str
    details: dict[str, Any]


class Events(Part):
    """Record what happens, and return it."""

    def add(
        self,
        name: str,
        *,
        slug: str,
        message: str,
        level: Level = "info",
        table_oid: int | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        """Note something that happened, under its runbook's name."""
        with self.transaction() as transaction:
            transaction.note(name, slug, message, level=level, oid=table_oid, details=details)

    def add_on_change(
        self,
        name: str,
        *,
        slug: str,
        message: str,
        level: Level = "info",
        table_oid: int | None = None,
        first: bool = True,
    ) -> bool:
        """Note how something stands unless that was the last thing noted under this slug and table; return whether it was new.

        Without `first` only what changes an earlier note is noted.
        """
        facts = {"slug": slug, "level": level, "table_oid": table_oid, "message": message, "first": first}
        return bool(self.change("events/add_event_on_change", name=name, **facts))

    def all(self, name: str, *, limit: int = 20) -> list[EventRecord]:
        """Return the newest events, newest first."""
        return self.records(EventRecord, "events/events", name=name, unannounced=None, limit=limit)

    def unannounced(self, name: str, slug: str) -> list[EventRecord]:
        """Return the events of a slug that nobody was told of, the oldest first."""
        return self.records(EventRecord, "events/events", name=name, unannounced=slug, limit=None)[::-1]

    def note_announced(self, name: str, numbers: Sequence[int]) -> None:
        """Note that those who asked for it were told of these events."""
        self.change("events/note_announced", name=name, numbers=numbers)


@dataclass(frozen=True)
class Work(Row):
    """Count what was done in a span of time; `equal` and `unequal` are tables or shares that were compared."""

    captured: int
    cuts: int
    equal: int
    unequal: int
    verified_tables: int


class Summaries(Part):
    """Claim summaries, and read what they tell."""

    def claim(self, name: str, *, due: datetime, at: datetime) -> bool:
        """Take on the summary of a time of its schedule; return whether it is ours to send."""
        return (True,) in self.rows("events/claim_summary", name=name, due=due, at=at)

    def end(self, name: str, *, due: datetime, sent_at: datetime | None) -> None:
        """Note that a summary was sent, or with None that the next run is to try again."""
        self.change("events/end_summary", name=name, due=due, sent_at=sent_at)

    def work(self, name: str, *, since: datetime) -> Work:
        """Return what was done since a time."""
        (found,) = self.records(Work, "events/work_since", name=name, since=since)
        return found
