"""What happened: events, and of which of them nobody was told yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.ledger.records import EventRecord, Level, UnannouncedRecord
from penstock.ledger.session import Part


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
        return bool(self.change("events/add_event_on_change", name=name, details="{}", **facts))

    def all(self, name: str, *, limit: int = 20) -> list[EventRecord]:
        """Return the newest events, newest first."""
        return self.records(EventRecord, "events/events", name=name, limit=limit)

    def unannounced(self, name: str, slug: str) -> list[UnannouncedRecord]:
        """Return the events of a slug that nobody was told of, the oldest first."""
        return self.records(UnannouncedRecord, "events/unannounced", name=name, slug=slug)

    def note_announced(self, name: str, numbers: Sequence[int]) -> None:
        """Note that those who asked for it were told of these events."""
        self.change("events/note_announced", name=name, numbers=list(numbers))
