"""What a health check knows before it judges: what the source shows, what the ledger remembers, what Airflow says.

Nothing is changed here, and nothing decided. A pipeline that the ledger does not know yet is observed all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from penstock.conditions import Level
from penstock.config.model import CHANGES
from penstock.errors import LedgerError
from penstock.flow.check import seconds_between
from penstock.flow.context import Context
from penstock.flow.health.input import UNKNOWN, DagState, Standing, held
from penstock.flow.health.readings import Reading
from penstock.ledger.health import SlotSample, WindowRate
from penstock.ledger.records import PipelineRecord
from penstock.ledger.verifications import VerifiedTable
from penstock.source import health as source
from penstock.source import session
from penstock.source.health import Seen
from penstock.source.slot import SlotFacts

_HISTORY = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Recorded:
    """Hold what the ledger knows: nothing, for a pipeline that it does not know.

    `last` is the newest sample of each slot, `history` those of the own slot, newest first. `others` are the slots
    of other living pipelines, `tables` counts the tables that are not dropped, `known_tables` these and the others.
    """

    record: PipelineRecord | None = None
    tables: int = 0
    known_tables: int = 0
    others: frozenset[str] = frozenset()
    last: Mapping[str, SlotSample] = field(default_factory=dict)
    history: Sequence[SlotSample] = ()
    rates: Sequence[WindowRate] = ()
    verified: Sequence[VerifiedTable] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """Hold all that one health check judges; `pause` is the time between two captures, in seconds.

    `publish` names the kinds of change that the publication is meant to publish. `now` is what is known without the source, `source_clock`
    the time of the source.
    """

    pipeline: str
    slot: str
    pause: int | None
    time_budget: int
    seen: Seen
    known: Recorded
    now: Standing
    source_clock: Reading | None = None
    publish: Sequence[str] = CHANGES

    @property
    def at(self) -> datetime:
        """Return the time of the check, by the source's clock."""
        return self.seen.around.at

    @property
    def own(self) -> SlotFacts | None:
        """Return the pipeline's slot, if the server has it; a pipeline that is torn down has none."""
        return next((slot for slot in self.seen.slots if self.is_own(slot)), None)

    @property
    def foreign(self) -> list[SlotFacts]:
        """Return the slots of others; temporary ones end with their session and don't count."""
        return [slot for slot in self.seen.slots if not self.is_own(slot) and not slot.temporary]

    def is_own(self, slot: SlotFacts) -> bool:
        """Return whether a slot has the name of a slot that the pipeline has, or is to have."""
        record = self.known.record
        return slot.name == self.slot and (record is None or record.state != "torn_down")

    def held(self, slug: str, subject: str) -> Level | None:
        """Return the level of an open alarm."""
        return held(self.now.alarms, slug, subject)

    @property
    def capture(self) -> DagState:
        """Return how the capture DAG stands."""
        return self.now.dag("capture")


def observe(ctx: Context, now: Standing) -> Observation:
    """Look at source and ledger once; raises SourceError, LedgerError. What is known already is judged as of the source's time."""
    with session.connect(ctx.source, what=f"{ctx.name}:health", statement_timeout=30) as conn:
        before = datetime.now(UTC)
        seen = source.look(conn, publication=ctx.pipeline.publication, trigger=ctx.pipeline.source.ddl_trigger)
    return Observation(
        pipeline=ctx.name,
        slot=ctx.pipeline.slot,
        pause=seconds_between(ctx.pipeline.capture.schedule),
        time_budget=ctx.pipeline.capture.time_budget,
        seen=seen,
        known=recorded(ctx, seen),
        now=replace(now, at=seen.around.at),
        source_clock=Reading(seen.around.at, before, datetime.now(UTC)),
        publish=ctx.pipeline.source.publish,
    )


def recorded(ctx: Context, seen: Seen) -> Recorded:
    """Read what the ledger knows that bears on the slots; raises LedgerError when it can't be asked."""
    name, ledger = ctx.name, ctx.ledger
    try:
        records = {record.name: record for record in ledger.pipelines.all()}
    except LedgerError as error:
        if error.slug in UNKNOWN:
            return Recorded()
        raise
    if name not in records:
        return Recorded(others=_others(records, name))
    with ledger.session():
        tables = ledger.tables.all(name)
        since = seen.around.at - _HISTORY - timedelta(seconds=ctx.pipeline.health.drop.patience)
        return Recorded(
            record=records[name],
            tables=sum(table.state != "dropped" for table in tables),
            known_tables=len(tables),
            others=_others(records, name),
            last=ledger.health.last_slot_samples(name, [slot.name for slot in seen.slots]),
            history=ledger.health.slot_samples(name, ctx.pipeline.slot, since=since),
            rates=ledger.health.window_rates(name),
            verified=ledger.verifications.tables(name),
        )


def _others(records: Mapping[str, PipelineRecord], name: str) -> frozenset[str]:
    return frozenset(each.slot for each in records.values() if each.name != name and each.state != "torn_down")
