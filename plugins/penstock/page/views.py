"""From the ledger's rows to what the page shows of them: panels in, view models out, no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from penstock.conditions import ALARMS
from penstock.jobs.merge_plan import CONFLICTS
from penstock.ledger.page import (
    AlarmPanel,
    CutPanel,
    EventPanel,
    PipelinePanel,
    RebuildPanel,
    SchemaChangePanel,
    SlotPanel,
    WindowPanel,
)
from penstock.ledger.table_page import TableStanding
from penstock.lsn import Lsn
from penstock.page.models import (
    Alarm,
    Cut,
    Event,
    Grade,
    Lack,
    Pipeline,
    Rebuild,
    SchemaChange,
    Slot,
    Table,
    TaskRef,
    Window,
)

_GONE = frozenset({"slot-missing", "slot-dropped"})
"""What says that the source has no slot of the pipeline's: what was seen of it last is not so any more."""


def pipeline(
    row: PipelinePanel,
    now: datetime,
    *,
    has_file: bool = True,
    slot: Slot | None = None,
    alarms: Sequence[Alarm] = (),
    lacks: tuple[Lack, ...] = (),
) -> Pipeline:
    """Show a pipeline that the ledger knows."""
    gone = row.state == "torn_down" or not _GONE.isdisjoint({row.halted_slug, *(each.slug for each in alarms)})
    return Pipeline(
        name=row.name,
        grade=_grade(row, slot, [*alarms, *lacks], has_file=has_file),
        state=row.state,
        halted_slug=row.halted_slug,
        halted_reason=row.halted_reason,
        database=row.database,
        slot_name=row.slot,
        publication=row.publication,
        has_file=has_file,
        position=_text(row.position),
        cut_lsn=_text(row.cut_lsn),
        cut_at=row.cut_at,
        captured_at=row.captured_at,
        as_of=row.as_of,
        freshness_seconds=_seconds(row.as_of, now),
        unmerged_windows=row.unmerged_windows,
        unmerged_changes=row.unmerged_changes,
        unmerged_bytes=row.unmerged_bytes,
        tables=row.tables,
        tables_ready=row.ready,
        tables_paused=row.paused,
        slot=None if gone else slot,
        slot_is_gone=gone,
        alarms=tuple(alarms),
        spark_until=row.spark_until,
        spark_cuts=row.spark_cuts,
        lacks=lacks,
        halted_by=task(row.halted_by),
    )


def unknown(name: str, slot: str, publication: str, *, starts: bool = False) -> Pipeline:
    """Show a pipeline that has a file and was never bootstrapped; `starts`: a run of its bootstrap is under way."""
    return Pipeline(
        name, "idle", "starting" if starts else "not bootstrapped", None, None, None, slot, publication,
        True, None, None, None, None, None, None, 0, 0, 0, 0, 0, 0, None, (),
    )  # fmt: skip


def slot(row: SlotPanel) -> Slot:
    """Show the own slot."""
    return Slot(
        seen_at=row.at,
        unread_bytes=row.unread,
        retained_bytes=row.retained,
        warn_bytes=_limit(row, "warn"),
        critical_bytes=_limit(row, "critical"),
        drop_bytes=_limit(row, "drop"),
        wal_status=row.wal_status,
        invalidation=row.invalidation,
        safe_wal_bytes=row.safe_wal_size,
        active=row.active,
        inactive_since=row.inactive_since,
        unchanged_since=row.unchanged_since,
        catalog_xmin_age=row.catalog_xmin_age,
        spill_share=row.spill_bytes / row.total_bytes if row.spill_bytes is not None and row.total_bytes else None,
        confirmed_lsn=_text(row.confirmed_lsn),
        restart_lsn=_text(row.restart_lsn),
        flushed_lsn=str(row.flushed_lsn),
    )


def alarm(row: AlarmPanel, now: datetime) -> Alarm:
    """Show an open alarm."""
    known = ALARMS.get(row.slug)
    worsens = known.worsens if known else "unknown"
    seconds = max((now - row.opened_at).total_seconds(), 0.0)
    dag = f"{row.pipeline}.{known.dag}" if known and known.dag else None
    failed = task(row.numbers) if row.numbers.get("run_id") else None
    return Alarm(
        row.slug, row.level, row.subject, row.message, worsens, row.opened_at, seconds, dag, failed, task(row.by_task)
    )


def window(row: WindowPanel) -> Window:
    """Show a window."""
    return Window(
        from_lsn=str(row.from_lsn),
        upto_lsn=str(row.upto_lsn),
        wal_bytes=row.upto_lsn - row.from_lsn,
        state=row.state,
        changes=row.changes,
        bytes=row.bytes,
        transactions=row.transactions,
        seconds=row.seconds,
        changes_per_second=_rate(row.changes, row.seconds),
        planned_at=row.planned_at,
        source_time=row.source_time,
        task=task(row.by_task),
    )


def cut(row: CutPanel) -> Cut:
    """Show a cut."""
    began = _began(row.attempt)
    seconds = None if began is None else max((row.published_at - began).total_seconds(), 0.0)
    delay = None if row.source_time is None else max((row.published_at - row.source_time).total_seconds(), 0.0)
    rate = _rate(row.changes, seconds)
    oldest = None if row.oldest_commit is None else max((row.published_at - row.oldest_commit).total_seconds(), 0.0)
    return Cut(str(row.lsn), row.published_at, row.changes, row.tables, seconds, rate, delay, oldest, task(row.by_task))


def table(row: TableStanding, changes: int | None = None, changed_at: datetime | None = None) -> Table:
    """Show a table, with what the newest windows hold of it."""
    return Table(
        oid=row.oid,
        name=f"{row.schema}.{row.name}",
        target=".".join(row.target),
        state="waiting" if row.waits else "leaving" if row.leaves else row.state,
        complete_through=_text(row.complete_through),
        changed_at=changed_at,
        changes=changes,
        rows=row.rows,
        bytes=row.bytes,
        paused_slug=row.paused_slug,
        paused_reason=row.paused_reason,
        verified_through=_text(row.verified_through),
        verified_at=row.verified_at,
        differs=row.differs,
        conflicts={name: getattr(row, name) for name in CONFLICTS if getattr(row, name)},
        misfits=row.misfits,
        suspected=row.suspected,
        paused_by=task(row.paused_by),
    )


def rebuild(row: RebuildPanel) -> Rebuild:
    """Show an open rebuild."""
    return Rebuild(
        id=row.id,
        oid=row.oid,
        table=f"{row.schema}.{row.name}",
        kind=row.kind,
        state=row.state,
        place=".".join(row.place),
        through_lsn=_text(row.through_lsn),
        end_lsn=_text(row.end_lsn),
        rows=row.rows,
        copied_rows=row.copied_rows,
        started_at=row.started_at,
        changed_at=row.changed_at,
    )


def event(row: EventPanel) -> Event:
    """Show an event."""
    return Event(row.at, row.level, row.slug, row.message, row.oid, row.table_name, task(row.by_task))


def schema_change(row: SchemaChangePanel) -> SchemaChange:
    """Show a change of a table's shape."""
    cost = {str(name): int(row.details[name]) for name in ("rows", "bytes") if name in row.details}
    return SchemaChange(row.at, row.oid, row.table_name, row.details["rule"], row.message, row.details.get("xid"), cost)


def task(found: Mapping[str, Any] | None) -> TaskRef | None:
    """Lead to the run of a task that has signed a row, if one has."""
    return TaskRef(found["dag"], found["run_id"], found.get("task") or "") if found else None


def _limit(row: SlotPanel, level: str) -> int | None:
    found = (row.details.get("limits") or {}).get(level)
    return int(found) if isinstance(found, int | float) else None


def _grade(row: PipelinePanel, slot: Slot | None, wrong: Sequence[Alarm | Lack], *, has_file: bool) -> Grade:
    lost = slot is not None and slot.wal_status == "lost"
    if row.state == "halted" or lost or any(isinstance(each, Alarm) and each.level == "critical" for each in wrong):
        return "critical"
    if row.paused or wrong or not has_file:
        return "warn"
    return "ok" if row.state == "running" else "idle"


def _began(attempt: str) -> datetime | None:
    """Read when a merge was planned from its attempt's name (`penstock.ledger.attempt`)."""
    try:
        return datetime.strptime(attempt.partition("_")[0] + "000", "%Y%m%dt%H%M%S%f").replace(tzinfo=UTC)
    except ValueError:
        return None


def _rate(changes: int, seconds: float | None) -> float | None:
    return changes / seconds if changes and seconds else None


def _seconds(since: datetime | None, now: datetime) -> float | None:
    return None if since is None else max((now - since).total_seconds(), 0.0)


def _text(lsn: Lsn | None) -> str | None:
    return None if lsn is None else str(lsn)
