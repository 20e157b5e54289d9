"""Which slots the policy drops, and why; and the drop of one, if it is still as it was judged.

`drops` is pure. The pipeline's own slot is dropped only under its lock, so that no capture is at work.

Never an active slot, never a temporary or a synchronised one, never another living pipeline's. As the own one only what
`penstock.flow.guards` calls ours; of others only what a rule of the policy names, with its type and database.
"""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import takewhile
from typing import Any

from penstock.config.policy import ForeignRule
from penstock.errors import PenstockError, SourceError
from penstock.flow.context import Context
from penstock.flow.guards import slot_work, why_not_ours
from penstock.flow.health.input import SlotInput
from penstock.flow.health.rules_slot import needless
from penstock.source import health as source
from penstock.source import server_info, session
from penstock.source.slot import SlotFacts, drop_statement
from penstock.units import size, span

_CHANGED = "it was taken, moved or replaced between the decision and the drop"


@dataclass(frozen=True, slots=True)
class Drop:
    """Say which slot may go, as it was judged, with the numbers that justify it; `alarm` is the slug it answers."""

    slot: SlotFacts
    own: bool
    alarm: str
    reason: str
    numbers: Mapping[str, Any]

    @property
    def statement(self) -> str:
        """Return the statement that a person would run."""
        return drop_statement(self.slot.name)


def drops(facts: SlotInput) -> list[Drop]:
    """Return the slots that may be dropped now."""
    return [*_own(facts), *_foreign(facts)]


def _droppable(slot: SlotFacts) -> bool:
    return not (slot.active or slot.temporary or slot.synced)


def _own(facts: SlotInput) -> Iterator[Drop]:
    slot, sample, record, limit = facts.own_slot, facts.own, facts.record, facts.limits.drop
    if slot is None or sample is None or record is None or not facts.policy.drop.own or not _droppable(slot):
        return
    if why_not_ours(record, slot, facts.source.server) is not None:
        return
    reason = needless(facts)
    numbers = {"retained": sample.retained, "unread": sample.unread, "drop": limit}
    if sample.invalidation:
        yield Drop(slot, True, "slot-lost", f"it was invalidated ({sample.invalidation})", numbers)
    elif reason:
        yield Drop(slot, True, "slot-orphaned", reason, numbers)
    elif (sample.retained or 0) >= limit:
        since = (each.at for each in takewhile(lambda each: (each.retained or 0) >= limit, facts.history))
        beyond = (sample.at - min(since, default=facts.at)).total_seconds()
        if beyond >= facts.policy.drop.patience:
            said = f"it keeps {size(sample.retained)}, the limit for dropping is {size(limit)}"
            said += f", and it has been beyond that for {span(beyond)}"
            yield Drop(slot, True, "slot-retained", said, {**numbers, "seconds_beyond": round(beyond)})


def _foreign(facts: SlotInput) -> Iterator[Drop]:
    for slot in facts.foreign:
        if not _droppable(slot) or slot.name in facts.others:
            continue
        for rule in facts.policy.drop.foreign:
            sample = facts.samples[slot.name]
            idle, kept = facts.age(sample.inactive_since), sample.retained or 0
            if _named(rule, slot, facts.source.server.database) and idle > rule.inactive and kept > rule.retained:
                said = f"rule {rule.name!r}: inactive for {span(idle)} (more than {span(rule.inactive)}), "
                said += f"and it keeps {size(kept)} (more than {size(rule.retained)})"
                numbers = {"retained": kept, "inactive": round(idle), "rule": rule.model_dump(mode="json")}
                yield Drop(slot, False, "slot-abandoned", said, numbers)
                break


def _named(rule: ForeignRule, slot: SlotFacts, database: str) -> bool:
    if slot.slot_type != rule.type or not fnmatchcase(slot.name, rule.name):
        return False
    return rule.type == "physical" or slot.database == (rule.database or database)


def drop(ctx: Context, each: Drop) -> None:
    """Drop a slot that the policy names, unless it only asks for a dry run; what was done is an event with its numbers."""
    if ctx.pipeline.health.dry_run:
        ctx.progress(f"dry run, would run: {each.statement} because {each.reason}")
        return
    why_not = _drop(ctx, each)
    dropped = f"dropped slot {each.slot.name}, because {each.reason}; ran: {each.statement}"
    message = f"did not drop slot {each.slot.name}: {why_not}" if why_not else dropped
    ctx.progress(message)
    ctx.ledger.events.add(
        ctx.name,
        slug="slot-dropped" if each.own else each.alarm,
        level="warning" if why_not else "error",
        message=message,
        details={**each.numbers, "slot": each.slot.name, "statement": each.statement},
    )


def _drop(ctx: Context, each: Drop) -> str | None:
    """Drop a slot if it is still as it was judged; return why it was not. The pipeline of an own one is halted."""
    try:
        with (
            session.connect(ctx.source, what=f"{ctx.name}:health", statement_timeout=30) as conn,
            slot_work(ctx) if each.own else nullcontext(),
        ):
            if each.own:  # a teardown may have ended since it was judged
                record = ctx.ledger.pipelines.get(ctx.name)
                if why_not_ours(record, each.slot, server_info.read_server(conn)) is not None:
                    return _CHANGED
            if not source.drop_unmoved(conn, each.slot):
                return _CHANGED
            if each.own:
                reason = (
                    f"slot health dropped slot {each.slot.name} at {each.slot.confirmed}, because {each.reason}; "
                    f"changes since then are lost to the stream: trigger {ctx.name}.recover"
                )
                ctx.ledger.pipelines.halt(ctx.name, slug="slot-dropped", reason=reason)
    except PenstockError as error:  # the alarm stays open and is sent; the other slots are still to be looked after
        if isinstance(error, SourceError) or error.slug == "work-under-way":
            return error.message
        raise
    return None
