"""What a check knows of a pipeline without its source: what the ledger has on record, what Airflow says, which disks are near.

So a source that does not answer hides nothing else.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

from penstock.conditions import Level
from penstock.config.model import Pipeline
from penstock.errors import LedgerError
from penstock.flow.context import Context
from penstock.flow.health import copy_progress
from penstock.flow.health.readings import Reading
from penstock.ledger.health import AlarmRecord, LateWork, OpenCopy, StillTable
from penstock.ledger.outcomes import TaskOutcome
from penstock.ledger.page_queries import PipelinePanel

UNKNOWN = ("ledger-not-migrated", "not-bootstrapped")


@dataclass(frozen=True, slots=True)
class DagState:
    """Say how a DAG stands, as far as whoever runs us can see; `paused` is None where it can't.

    `missing`: Airflow has no such DAG. `under_way`: a run of it is queued or running.
    """

    paused: bool | None = None
    missing: bool = False
    under_way: bool = False


@dataclass(frozen=True, slots=True)
class Disk:
    """Say how much room a place has, in bytes; None where that cannot be known, as of an object store."""

    what: str
    place: str
    free: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """Hold what is judged without the source; `lake` is None for a pipeline that the ledger does not know, whose time was read as `ledger_clock`."""

    pipeline: Pipeline
    at: datetime
    lake: PipelinePanel | None = None
    late: LateWork = field(default_factory=LateWork)
    still: Sequence[StillTable] = ()
    copies: Sequence[OpenCopy] = ()
    outcomes: Sequence[TaskOutcome] = ()
    alarms: Sequence[AlarmRecord] = ()
    dags: Mapping[str, DagState] = field(default_factory=dict)
    disks: Sequence[Disk] = ()
    ledger_clock: Reading | None = None

    def dag(self, verb: str) -> DagState:
        """Return how a DAG of the pipeline stands."""
        return self.dags.get(verb, DagState())

    def failing(self, verb: str) -> TaskOutcome | None:
        """Return the newest end of a task of this DAG, if that was a failure that no later success has ended."""
        return failing(self.outcomes, verb)

    def held(self, slug: str, subject: str) -> Level | None:
        """Return the level of an open alarm."""
        return held(self.alarms, slug, subject)

    def age(self, since: datetime) -> float:
        """Return the seconds since a time."""
        return (self.at - since).total_seconds()


def failing(outcomes: Sequence[TaskOutcome], verb: str) -> TaskOutcome | None:
    """Return the newest failure of a DAG's tasks that no later success has ended."""
    ours = (each for each in outcomes if each.dag == verb and each.failing_since is not None)
    return max(ours, key=lambda each: each.ended_at, default=None)


def held(alarms: Sequence[AlarmRecord], slug: str, subject: str) -> Level | None:
    """Return the level of an open alarm."""
    found = (alarm for alarm in alarms if (alarm.slug, alarm.subject) == (slug, subject))
    return next((alarm.level for alarm in found if alarm.closed_at is None), None)


def stand(ctx: Context, dags: Mapping[str, DagState], at: datetime) -> Standing:
    """Read how a pipeline stands; raises LedgerError when the ledger cannot be asked."""
    name, ledger = ctx.name, ctx.ledger
    try:
        with ledger.session():
            with ledger.page.panels() as panel:
                lake = next(iter(panel.pipelines(name)), None)
            if lake is None:
                return Standing(ctx.pipeline, at, dags=dags)
            before = datetime.now(UTC)
            clock = Reading(ledger.health.clock(), before, datetime.now(UTC))
            late = ledger.health.late_work(name)
            return Standing(
                pipeline=ctx.pipeline,
                at=at,
                lake=lake,
                late=replace(late, sampled_at=at),  # this is the next look
                still=ledger.health.still_tables(name),
                copies=copy_progress.seen(ctx, ledger.health.open_copies(name)),
                outcomes=ledger.outcomes.all(name),
                alarms=ledger.health.alarms(name),
                dags=dags,
                disks=disks(ctx.landing.uri(""), late.lake_file),
                ledger_clock=clock,
            )
    except LedgerError as error:
        if error.slug in UNKNOWN:
            return Standing(ctx.pipeline, at, dags=dags)
        raise


def disks(landing: str, lake_file: str | None) -> list[Disk]:
    """Measure the room of the landing zone and of the lake, where they are folders that this process sees; one disk is named once."""
    measured = [_measured("landing zone", landing), *([_measured("lake", lake_file)] if lake_file else [])]
    devices = [device for device, _ in measured]
    if len(devices) > 1 and devices[0] is not None and devices[0] == devices[1]:
        return [replace(measured[0][1], what="landing zone and lake")]
    return [disk for _, disk in measured]


def _measured(what: str, place: str) -> tuple[int | None, Disk]:
    """Return the device of a place and its room."""
    parts = urlsplit(place)
    try:
        if parts.scheme not in ("", "file"):
            return None, Disk(what, place)
        room = shutil.disk_usage(unquote(parts.path))
        return Path(unquote(parts.path)).stat().st_dev, Disk(what, place, room.free, room.total)
    except OSError:  # not there, or not mounted on this worker
        return None, Disk(what, place)
