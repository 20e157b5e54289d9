"""Gather what a health check judges: ask ledger and source once, and measure the disks that are near.

Nothing is changed here, and nothing decided. A pipeline that the ledger does not know yet is observed all the same.
"""

import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

from penstock.errors import LakeError
from penstock.flow.check import unless_unknown
from penstock.flow.context import Context
from penstock.flow.health.airflow_state import DagState
from penstock.flow.health.input import ClockReading, Disk, HealthInput, SlotInput
from penstock.landing import layout
from penstock.ledger.health import OpenCopy
from penstock.source import health as source
from penstock.source import session

_HISTORY = timedelta(hours=1)
_RECENT = 20
"""So many windows say how fast capture reads."""


def without_source(ctx: Context, airflow: Mapping[str, DagState]) -> HealthInput:
    """Read how a pipeline stands; raises LedgerError when the ledger cannot be asked."""
    name, ledger, at = ctx.name, ctx.ledger, datetime.now(UTC)
    facts = HealthInput(pipeline=ctx.pipeline, at=at, airflow=airflow)
    with unless_unknown(), ledger.session():
        lake = ledger.page.status(name)
        if lake is None:
            return facts
        before = datetime.now(UTC)
        clock = ClockReading(ledger.health.clock(), before, datetime.now(UTC))
        late = ledger.health.late_work(name)
        facts = replace(
            facts,
            lake=lake,
            late=replace(late, sampled_at=at),  # this is the next look
            still=ledger.tables.all(name, states=("paused", "new")),
            copies=_measured(ctx, ledger.health.open_copies(name)),
            verified=ledger.verifications.tables(name),
            outcomes=ledger.outcomes.all(name),
            alarms=ledger.health.alarms(name),
            clock=clock,
            disks=disks(ctx.landing.uri(""), late.lake_file),
        )
    return facts  # noqa: RET504  # the block may end early


def with_source(ctx: Context, known: HealthInput) -> SlotInput:
    """Look at the source once; raises SourceError, LedgerError. What is known already is judged as of the source's time."""
    with session.connect(ctx.source, what=f"{ctx.name}:health", statement_timeout=30) as conn:
        before = datetime.now(UTC)
        seen = source.read_health(conn, publication=ctx.pipeline.publication, trigger=ctx.pipeline.source.ddl_trigger)
    at = seen.around.at
    facts = SlotInput(
        **{**vars(known), "at": at}, source=seen, source_clock=ClockReading(at, before, datetime.now(UTC))
    )
    with unless_unknown():
        facts = _with_slots(ctx, facts)
    return facts  # noqa: RET504  # as above


def _with_slots(ctx: Context, facts: SlotInput) -> SlotInput:
    """Return what is known with what the ledger remembers of the source's slots."""
    name, ledger = ctx.name, ctx.ledger
    records = {record.name: record for record in ledger.pipelines.all()}
    living = (each for each in records.values() if each.name != name and each.state != "torn_down")
    facts = replace(facts, others=frozenset(each.slot for each in living))
    if name not in records:
        return facts
    with ledger.session():
        tables, names = ledger.tables.all(name), [slot.name for slot in facts.source.slots]
        since = facts.at - _HISTORY - timedelta(seconds=facts.policy.drop.patience)
        return replace(
            facts,
            record=records[name],
            tables=sum(table.state != "dropped" for table in tables),
            known_tables=len(tables),
            last={each.slot: each for each in ledger.health.slot_samples(name, *names, limit=1)},
            history=ledger.health.slot_samples(name, ctx.pipeline.slot, since=since),
            rates=ledger.windows.recent(name, _RECENT),
        )


def _measured(ctx: Context, copies: Iterable[OpenCopy]) -> list[OpenCopy]:
    """Return the copies under way, each with the time of its newest file where that is later than what the ledger knows.

    Each range that Spark has read is a file in the landing zone, whoever runs the copy.
    """
    found = []
    for each in copies:
        landed = None
        if each.copy_id is not None:
            with suppress(LakeError):  # the copy cannot write either; then what the ledger knows counts
                landed = ctx.landing.newest(layout.copy_folder(ctx.name, each.copy_id))
        found.append(each if landed is None else replace(each, moved_at=max(each.moved_at, landed)))
    return found


def disks(landing: str, lake_file: str | None) -> list[Disk]:
    """Measure the room of the landing zone and of the lake, where they are folders that this process sees; one disk is named once."""
    measured = [_room("landing zone", landing), *([_room("lake", lake_file)] if lake_file else [])]
    devices = [device for device, _ in measured]
    if len(devices) > 1 and devices[0] is not None and devices[0] == devices[1]:
        return [replace(measured[0][1], what="landing zone and lake")]
    return [disk for _, disk in measured]


def _room(what: str, place: str) -> tuple[int | None, Disk]:
    """Return the device of a place and its room."""
    parts = urlsplit(place)
    try:
        if parts.scheme not in ("", "file"):
            return None, Disk(what, place)
        room = shutil.disk_usage(unquote(parts.path))
        return Path(unquote(parts.path)).stat().st_dev, Disk(what, place, room.free, room.total)
    except OSError:  # not there, or not mounted on this worker
        return None, Disk(what, place)
