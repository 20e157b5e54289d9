"""What slot health saw and said: samples of every slot, and alarms that open once and close once.

A sample carries on since when its slot has been inactive and its confirmed position unchanged, so that the newest
one shows both, also on servers that do not know. An alarm sends an alert when it opens, and its end if that was sent.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from psycopg.types.json import Jsonb

from penstock.conditions import ALARMS, Level
from penstock.ledger.records import Row, TaskRef
from penstock.ledger.session import Part, recordset
from penstock.lsn import Lsn


@dataclass(frozen=True)
class SlotSample(Row):
    """Hold what one health check saw of one slot; sizes in bytes, `catalog_xmin_age` in transactions.

    `unread` is flushed minus confirmed, `retained` flushed minus restart. `details` of the own slot hold the limits that were in force.
    """

    at: datetime
    slot: str
    active: bool
    confirmed_lsn: Lsn | None
    restart_lsn: Lsn | None
    flushed_lsn: Lsn
    unread: int | None
    retained: int | None
    wal_status: str | None
    safe_wal_size: int | None
    invalidation: str | None
    inactive_since: datetime | None
    unchanged_since: datetime
    catalog_xmin_age: int | None
    spill_bytes: int | None
    total_bytes: int | None
    own: bool
    slot_type: str
    database: str | None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AlarmRecord(Row):
    """Hold one alarm; it is open while `closed_at` is None. `numbers` are those that justify it, `by_task` is who opened it.

    `cause` is the alarm that names this one, so that no alert is sent of it; `freed_at` is when that was over first.
    """

    number: int
    pipeline: str
    slug: str
    subject: str
    level: Level
    message: str
    numbers: dict[str, Any]
    opened_at: datetime
    seen_at: datetime
    last_notified_at: datetime | None = None
    last_notified_level: Level | None = None
    closed_at: datetime | None = None
    cause: str | None = None
    freed_at: datetime | None = None
    by_task: TaskRef | None = None

    @property
    def worsens(self) -> str:
        """Say how fast it gets worse, by the catalogue of conditions; empty for what is no alarm there."""
        return ALARMS[self.slug].worsens if self.slug in ALARMS else ""

    @property
    def dag(self) -> str | None:
        """Name the DAG that ends it or shows why it lasts."""
        verb = ALARMS[self.slug].dag if self.slug in ALARMS else None
        return f"{self.pipeline}.{verb}" if verb else None

    @property
    def failed(self) -> TaskRef | None:
        """Lead to the run that it tells of."""
        numbers = self.numbers
        if not numbers.get("run_id"):
            return None
        return TaskRef(dag=numbers["dag"], run_id=numbers["run_id"], task=numbers.get("task") or "")


@dataclass(frozen=True, slots=True)
class Finding:
    """Say that an alarm should be open: what, since when, the numbers, and what will happen next."""

    slug: str
    subject: str
    level: Level
    message: str
    next: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    since: datetime | None = None
    follows: tuple[str, ...] = ()
    """What follows from it, and is told with it."""
    cause: str | None = None
    """The alarm that names this one."""

    @property
    def title(self) -> str:
        """Name the alarm in one line."""
        return f"{self.slug} {self.subject}"

    def alarm(self, pipeline: str, at: datetime) -> AlarmRecord:
        """Return the alarm as it opens: what comes next is one of its numbers."""
        numbers = {**self.numbers, "next": self.next, "follows": list(self.follows)}
        numbers["since"] = f"{self.since:%F %T} UTC" if self.since else None
        known = {name: value for name, value in numbers.items() if value or name in self.numbers}
        return AlarmRecord(
            0, pipeline, self.slug, self.subject, self.level, self.message, known, at, at, cause=self.cause
        )


@dataclass(frozen=True)
class LateWork(Row):
    """Say until when work that has a schedule was done, None where it never was; `lake_file` is one that the lake holds."""

    maintained_at: datetime | None = None
    filled_upto: datetime | None = None
    verified_at: datetime | None = None
    sampled_at: datetime | None = None
    lake_file: str | None = None


@dataclass(frozen=True)
class OpenCopy(Row):
    """Hold a copy or a rebuild under way, and when it last got on; `tables` are those that are still to be copied.

    `copy_id` names the copy that is being made, None where a rebuild has its copy.
    """

    kind: str
    id: str
    tables: int
    moved_at: datetime
    copy_id: str | None = None


class SlotHealth(Part):
    """Record what slot health sees, and return it."""

    def clock(self) -> datetime:
        """Return the ledger's time."""
        ((at,),) = self.rows("health/clock")
        return cast(datetime, at)

    def record_slot_samples(self, name: str, samples: Iterable[SlotSample]) -> None:
        """Note what a health check saw of the slots."""
        self.change("health/add_slot_samples", name=name, samples=recordset(samples))

    def record_lake_sample(self, name: str, *, at: datetime, as_of: datetime | None) -> None:
        """Note how the lake stands: readers see the source as of `as_of`, and at the source it is `at`."""
        self.change("health/add_lake_sample", name=name, at=at, as_of=as_of)

    def slot_samples(
        self, name: str, *slots: str, since: datetime | None = None, limit: int = 1000
    ) -> list[SlotSample]:
        """Return the newest samples of each of these slots, newest first."""
        bounds = {"since": since, "limit": limit}
        return self.records(SlotSample, "health/slot_samples", name=name, slots=slots, **bounds)

    def alarms(self, name: str, *, open_only: bool = True, limit: int = 100) -> list[AlarmRecord]:
        """Return the open alarms and those whose end is still to be sent; or all, newest first."""
        return self.records(AlarmRecord, "health/alarms", name=name, open=open_only, limit=limit)

    def late_work(self, name: str) -> LateWork:
        """Return until when work that has a schedule was done."""
        (found,) = self.records(LateWork, "health/late_work", name=name)
        return found

    def open_copies(self, name: str) -> list[OpenCopy]:
        """Return the copies and rebuilds under way, the one that got on least lately first."""
        return self.records(OpenCopy, "health/open_copies", name=name)

    def reconcile_alarms(
        self,
        name: str,
        found: Sequence[Finding],
        *,
        judged: Collection[str],
        at: datetime,
        subjects: Collection[str] | None = None,
    ) -> int:
        """Open or keep the alarms of what was found, and close those of the slugs judged that were not; return how many it closed.

        Where `subjects` are given, no alarm of another subject is closed.
        """
        seen = {"slugs": [each.slug for each in found], "found": [each.subject for each in found]}
        with self.transaction() as transaction:
            for each in found:
                alarm = each.alarm(name, at)
                transaction.change(
                    "health/see_alarm", name=name, at=at, **{**vars(alarm), "numbers": Jsonb(alarm.numbers)}
                )
            return transaction.change("health/close_alarms", name=name, judged=judged, subjects=subjects, at=at, **seen)

    def note_alert_sent(self, number: int, *, at: datetime) -> None:
        """Note that an alarm, or its end, was delivered."""
        self.change("health/note_alert_sent", number=number, at=at)

    def trim(self, name: str, *, before: datetime) -> None:
        """Forget samples and closed alarms from before that time."""
        self.change("health/trim", name=name, before=before)
