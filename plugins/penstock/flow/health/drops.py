"""Which slots the policy drops, and why. Pure: it decides, and changes nothing.

Never an active slot, never a temporary or a synchronised one, never another living pipeline's. As the own one only what
`penstock.flow.slot_ownership` calls ours; of others only what a rule of the policy names, with its type and database.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from penstock.config.policy import ForeignRule
from penstock.flow.health.findings import Case
from penstock.flow.health.rules_slot import orphaned
from penstock.flow.slot_ownership import why_not_ours
from penstock.source.slot import SlotFacts, drop_statement
from penstock.units import size, span


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


def drops(case: Case) -> list[Drop]:
    """Return the slots that may be dropped now."""
    return [*_own(case), *_foreign(case)]


def _droppable(slot: SlotFacts) -> bool:
    return not (slot.active or slot.temporary or slot.synced)


def _own(case: Case) -> Iterator[Drop]:
    slot, sample, record = case.seen.own, case.own, case.seen.known.record
    if slot is None or sample is None or record is None or not case.policy.drop.own or not _droppable(slot):
        return
    if why_not_ours(record, slot, case.seen.seen.server) is not None:
        return
    reason = orphaned(case)
    numbers = {"retained": sample.retained, "unread": sample.unread, "drop": case.limits.drop}
    if sample.invalidation:
        yield Drop(slot, True, "slot-lost", f"it was invalidated ({sample.invalidation})", numbers)
    elif reason:
        yield Drop(slot, True, "slot-orphaned", reason, numbers)
    elif (sample.retained or 0) >= case.limits.drop:
        beyond = (sample.at - _beyond_since(case)).total_seconds()
        if beyond >= case.policy.drop.patience:
            said = f"it keeps {size(sample.retained)}, the limit for dropping is {size(case.limits.drop)}"
            said += f", and it has been beyond that for {span(beyond)}"
            yield Drop(slot, True, "slot-retained", said, {**numbers, "seconds_beyond": round(beyond)})


def _beyond_since(case: Case) -> datetime:
    """Return the time of the first of the newest samples that are all beyond the limit for dropping."""
    since = case.seen.at
    for each in case.seen.known.history:
        if (each.retained or 0) < case.limits.drop:
            break
        since = each.at
    return since


def _foreign(case: Case) -> Iterator[Drop]:
    for slot in case.seen.foreign:
        if not _droppable(slot) or slot.name in case.seen.known.others:
            continue
        for rule in case.policy.drop.foreign:
            sample = case.samples[slot.name]
            idle, kept = case.age(sample.inactive_since), sample.retained or 0
            if _named(rule, slot, case.seen.seen.server.database) and idle > rule.inactive and kept > rule.retained:
                said = f"rule {rule.name!r}: inactive for {span(idle)} (more than {span(rule.inactive)}), "
                said += f"and it keeps {size(kept)} (more than {size(rule.retained)})"
                numbers = {"retained": kept, "inactive": round(idle), "rule": rule.model_dump(mode="json")}
                yield Drop(slot, False, "slot-abandoned", said, numbers)
                break


def _named(rule: ForeignRule, slot: SlotFacts, database: str) -> bool:
    if slot.slot_type != rule.type or not fnmatchcase(slot.name, rule.name):
        return False
    return rule.type == "physical" or slot.database == (rule.database or database)
