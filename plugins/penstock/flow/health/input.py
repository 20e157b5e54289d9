"""What a health check knows before it judges: what the source shows, what the ledger has on record, what Airflow says. Pure.

`HealthInput` needs no source, so that one that does not answer hides nothing else; `SlotInput` has it, and what follows from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from penstock.conditions import LEVELS, Level
from penstock.config.model import Pipeline
from penstock.config.policy import Health
from penstock.flow.check import seconds_between
from penstock.flow.health.airflow_state import DagState
from penstock.flow.health.limits import Limits, growth, limits, sample
from penstock.ledger.health import AlarmRecord, LateWork, OpenCopy, SlotSample
from penstock.ledger.page import PipelineStatus
from penstock.ledger.records import PipelineRecord
from penstock.ledger.table_records import TableRecord
from penstock.ledger.verifications import VerifiedTable
from penstock.ledger.windows import WindowPace
from penstock.ledger.work import TaskOutcome
from penstock.source.health import SourceHealth
from penstock.source.slot import SlotFacts
from penstock.units import size, span


@dataclass(frozen=True, slots=True)
class Disk:
    """Say how much room a place has, in bytes; None where that cannot be known, as of an object store."""

    what: str
    place: str
    free: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class ClockReading:
    """Hold a server's time, and the worker's before and after it was asked for: a slow answer is no wrong clock."""

    at: datetime
    before: datetime
    after: datetime

    @property
    def ahead(self) -> tuple[float, float]:
        """Return by how many seconds it is ahead of the worker's clock, at least and at most."""
        return (self.at - self.after).total_seconds(), (self.at - self.before).total_seconds()


@dataclass(frozen=True, kw_only=True)
class HealthInput:
    """Hold what is judged without the source, as of a time; `airflow` says by verb how the pipeline's DAGs stand.

    `lake` is None for a pipeline that the ledger does not know; `still` are tables that are paused, or not copied yet.
    """

    pipeline: Pipeline
    at: datetime
    airflow: Mapping[str, DagState] = field(default_factory=dict)
    disks: Sequence[Disk] = ()
    lake: PipelineStatus | None = None
    late: LateWork = field(default_factory=LateWork)
    still: Sequence[TableRecord] = ()
    copies: Sequence[OpenCopy] = ()
    verified: Sequence[VerifiedTable] = ()
    outcomes: Sequence[TaskOutcome] = ()
    alarms: Sequence[AlarmRecord] = ()
    clock: ClockReading | None = None

    @property
    def name(self) -> str:
        """Name the pipeline."""
        return self.pipeline.name

    @property
    def policy(self) -> Health:
        """Return what the operator wants."""
        return self.pipeline.health

    def dag(self, verb: str) -> DagState:
        """Return how a DAG of the pipeline stands."""
        return self.airflow.get(verb, DagState())

    def failing(self, verb: str) -> tuple[str, dict[str, Any], datetime] | None:
        """Say that a DAG fails, where the newest end of a task was a failure that no later success has ended.

        Beside the text stand what leads to the failed run and its log, and since when it fails.
        """
        ours = [each for each in self.outcomes if each.dag == verb and each.failing_since is not None]
        if not ours:
            return None
        failed, dag = max(ours, key=lambda each: each.ended_at), f"{self.name}.{verb}"
        since = failed.failing_since or failed.ended_at
        where = f" at its task {failed.task}" if failed.task else ""
        error = f" with {failed.slug}" if failed.slug else ""
        run = {"dag": dag, "run_id": failed.run_id, "task": failed.task or None, "error": failed.slug}
        return f"{dag} has failed for {span(self.age(since))}{where}{error}", run, since

    def level(self, slug: str, subject: str, value: float, warn: float, critical: float | None = None) -> Level | None:
        """Return the level that a number has reached; that of an open alarm ends only below its limit by the policy's hysteresis."""
        ours = (alarm for alarm in self.alarms if (alarm.slug, alarm.subject) == (slug, subject))
        held = next((LEVELS.index(alarm.level) for alarm in ours if alarm.closed_at is None), -1)
        limits = {"warn": warn, "critical": critical}
        for level in reversed(LEVELS):
            limit, kept = limits[level], 1 - self.policy.hysteresis if held >= LEVELS.index(level) else 1
            if limit is not None and value >= limit * kept:
                return level
        return None

    def age(self, since: datetime | None) -> float:
        """Return the seconds since a time."""
        return 0.0 if since is None else (self.at - since).total_seconds()


@dataclass(frozen=True, kw_only=True)
class SlotInput(HealthInput):
    """Hold the source as well, as of its own time: `source_clock` says what that was on this worker's clock.

    `record` is None for a pipeline that the ledger does not know; `others` are the slots of other living pipelines. `last` is the newest
    sample of each slot, `history` those of the own one, newest first. `tables` counts the tables that are not dropped, `known_tables`
    these and the others.
    """

    source: SourceHealth
    source_clock: ClockReading | None = None
    record: PipelineRecord | None = None
    tables: int = 0
    known_tables: int = 0
    others: frozenset[str] = frozenset()
    last: Mapping[str, SlotSample] = field(default_factory=dict)
    history: Sequence[SlotSample] = ()
    rates: Sequence[WindowPace] = ()

    @property
    def pause(self) -> int | None:
        """Return the time between two captures, in seconds; None without a schedule."""
        return seconds_between(self.pipeline.capture.schedule)

    @property
    def own_slot(self) -> SlotFacts | None:
        """Return the pipeline's slot, if the server has it; a pipeline that is torn down has none."""
        return next((slot for slot in self.source.slots if slot.name == self._own_name), None)

    @property
    def foreign(self) -> list[SlotFacts]:
        """Return the slots of others; temporary ones end with their session and don't count."""
        return [slot for slot in self.source.slots if slot.name != self._own_name and not slot.temporary]

    @property
    def own(self) -> SlotSample | None:
        """Return what is remembered of the pipeline's slot."""
        return None if self._own_name is None else self.samples.get(self._own_name)

    @cached_property
    def samples(self) -> dict[str, SlotSample]:
        """Return what is remembered of every slot that stays, by name."""
        kept = (slot for slot in self.source.slots if not slot.temporary)
        return {
            slot.name: sample(self.source, slot, slot.name == self._own_name, self.last.get(slot.name)) for slot in kept
        }

    @cached_property
    def limits(self) -> Limits:
        """Return how much WAL the slot may keep."""
        return limits(self.policy, self.source)

    def until(self, now: int, limit: int | None, what: str) -> str | None:
        """Say when what the slot keeps comes to a limit if it continues to grow like that, or None."""
        rate = growth(self.history, self.own)
        if limit is None or rate <= 0 or now >= limit:
            return None
        return f"at {size(rate)}/s {what} ({size(limit)}) in {span((limit - now) / rate)}"

    @property
    def _own_name(self) -> str | None:
        return None if self.record is not None and self.record.state == "torn_down" else self.pipeline.slot
