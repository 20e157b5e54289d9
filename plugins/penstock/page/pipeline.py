"""One pipeline at a glance: what the ledger's record shows of it, and what follows for its colour. Pure.

The same values are the page's HTML and its JSON; times are UTC, every number says its unit in its name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from penstock.config import model
from penstock.flow.health.airflow_state import AirflowState
from penstock.ledger.health import AlarmRecord, Finding
from penstock.ledger.page import PipelineStatus, SlotPanel

Grade = Literal["ok", "warn", "critical", "idle"]
"""How a pipeline is doing, for its colour; `idle` is one that is not meant to move."""

_GONE = frozenset({"slot-missing", "slot-dropped"})
"""What says that the source has no slot of the pipeline's: what was seen of it last is not so any more."""


@dataclass(frozen=True, kw_only=True)
class Pipeline(PipelineStatus):
    """Show one pipeline: its record, and what was seen of its slot.

    `freshness_seconds` is the age of `as_of`. A pipeline that runs is healthy where `lacks` is empty. Where the source has no slot of
    its name any more `slot_is_gone`, and there is no `slot`, whatever the last look at it showed.
    """

    grade: Grade
    has_file: bool = True
    freshness_seconds: float | None = None
    slot: SlotPanel | None = None
    slot_is_gone: bool = False
    alarms: tuple[AlarmRecord, ...] = ()
    lacks: tuple[Finding, ...] = ()


def known_pipeline(
    row: PipelineStatus,
    now: datetime,
    *,
    has_file: bool,
    slot: SlotPanel | None,
    alarms: Sequence[AlarmRecord],
    lacks: Sequence[Finding],
) -> Pipeline:
    """Show a pipeline that the ledger knows."""
    gone = row.state == "torn_down" or not _GONE.isdisjoint({row.halted_slug, *(each.slug for each in alarms)})
    return Pipeline(
        **vars(row),
        grade=_grade(row, slot, alarms, is_whole=has_file and not lacks),
        has_file=has_file,
        freshness_seconds=seconds_since(row.as_of, now),
        slot=None if gone else slot,
        slot_is_gone=gone,
        alarms=tuple(alarms),
        lacks=tuple(lacks),
    )


def unknown_pipeline(file: model.Pipeline, airflow: AirflowState | None) -> Pipeline:
    """Show a pipeline that has a file and is not known to its ledger, or not yet: a run of its bootstrap may be under way."""
    starts = airflow is not None and airflow.dag(f"{file.name}.bootstrap").under_way
    state = "starting" if starts else "not bootstrapped"
    return Pipeline(name=file.name, state=state, slot_name=file.slot, publication=file.publication, grade="idle")


def seconds_since(since: datetime | None, now: datetime) -> float | None:
    """Return the age of what is of this time, None for what is of none."""
    return None if since is None else max((now - since).total_seconds(), 0.0)


def _grade(row: PipelineStatus, slot: SlotPanel | None, alarms: Sequence[AlarmRecord], *, is_whole: bool) -> Grade:
    lost = slot is not None and slot.wal_status == "lost"
    if row.state == "halted" or lost or any(each.level == "critical" for each in alarms):
        return "critical"
    if row.tables_paused or alarms or not is_whole:
        return "warn"
    return "ok" if row.state == "running" else "idle"
