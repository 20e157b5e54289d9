"""The state of a pipeline as plain data for other tools."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from penstock.flow.status import Status


def status(found: Status) -> dict[str, Any]:
    """Return what `penstock status` shows."""
    known, pipeline, source = found.ledger, found.ledger.pipeline, found.source
    halted = {"slug": pipeline.halted_slug, "reason": pipeline.halted_reason} if pipeline.halted_slug else None
    cut = known.last_cut
    return {
        "state": pipeline.state,
        "halted": halted,
        "alarms": [
            {"slug": each.slug, "subject": each.subject, "level": each.level, "message": each.message}
            | {"opened_at": _time(each.opened_at)}
            for each in found.alarms
        ],
        "freshness": {
            "as_of": _time(found.freshness.as_of),
            "seconds": found.freshness.seconds,
            "limit_reached_seconds": found.freshness.limit,
        },
        "work": [
            {"dag": each.dag, "task": each.task, "what": each.what, "share": each.share, "rows": each.rows}
            | {"rows_per_second": each.rows_per_second, "left_seconds": each.left_seconds}
            for each in found.work
        ],
        "era": pipeline.era,
        "landed_through": _text(pipeline.position),
        "source": None
        if source is None
        else {
            "unread_bytes": source.unread,
            "retained_bytes": source.retained,
            "wal_status": source.wal_status,
            "slot_active": source.active,
        },
        "source_problem": found.source_problem,
        "windows": dict(known.windows),
        "unmerged": {"windows": known.unmerged_windows, "changes": known.unmerged_rows},
        "tables": dict(known.tables),
        "paused": [
            {"table": each.qualified, "slug": each.paused_slug, "reason": each.paused_reason} for each in known.paused
        ],
        "waiting": [each.qualified for each in known.waiting],
        "rebuilds": [
            {
                "table": each.qualified,
                "kind": each.cause,
                "state": each.state,
                "rows": each.built_rows,
                "through": _text(each.through_lsn),
                "goal": _text(each.goal_lsn),
            }
            for each in known.rebuilds
        ],
        "last_cut": None if cut is None else {"lsn": str(cut.lsn), "published_at": _time(cut.published_at)},
        "verified": [
            {
                "table": f"{each.schema}.{each.name}",
                "through": _text(each.verified_through),
                "at": _time(each.verified_at),
                "differs": each.differs,
            }
            for each in found.verified
        ],
        "events": [
            {"at": _time(each.at), "slug": each.slug, "level": each.level, "message": each.message}
            for each in known.events
        ],
    }


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
