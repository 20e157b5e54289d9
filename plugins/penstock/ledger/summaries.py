"""What a daily summary tells, and which one was sent: each is sent once, however many runs are late or come at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from penstock.ledger.records import Row
from penstock.ledger.session import Part


@dataclass(frozen=True)
class Work(Row):
    """Count what was done in a span of time; `equal` and `unequal` are tables or shares that were compared."""

    captured: int
    cuts: int
    equal: int
    unequal: int
    verified_tables: int


@dataclass(frozen=True)
class TableWork(Row):
    """Count what the cuts of a span of time did to a table, and the seconds that its merges took."""

    schema: str
    name: str
    inserts: int
    updates: int
    deletes: int
    seconds: float


class Summaries(Part):
    """Claim summaries, and read what they tell."""

    def claim(self, name: str, *, due: datetime, at: datetime) -> bool:
        """Take on the summary of a time of its schedule; return whether it is ours to send."""
        return (True,) in self.rows("summaries/claim_summary", name=name, due=due, at=at)

    def end(self, name: str, *, due: datetime, sent_at: datetime | None) -> None:
        """Note that a summary was sent, or with None that the next run is to try again."""
        self.change("summaries/end_summary", name=name, due=due, sent_at=sent_at)

    def work(self, name: str, *, since: datetime) -> Work:
        """Return what was done since a time."""
        (found,) = self.records(Work, "summaries/work_since", name=name, since=since)
        return found

    def tables(self, name: str, *, since: datetime) -> list[TableWork]:
        """Return what cuts did to tables since a time, the slowest first."""
        return self.records(TableWork, "summaries/tables_since", name=name, since=since)
