"""From what a check saw to what it remembers of each slot. Pure.

Servers before 17 do not show since when a slot is inactive; then it has been so since the first check that found it
inactive at the place where it still is.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from penstock.flow.health.observe import Observation
from penstock.ledger.health import SlotSample
from penstock.source.slot import SlotFacts


def samples(seen: Observation, details: Mapping[str, Any]) -> dict[str, SlotSample]:
    """Return one sample per slot, by name; the own one carries `details`."""
    kept = [slot for slot in seen.seen.slots if not slot.temporary]
    return {slot.name: sample(seen, slot, details if seen.is_own(slot) else {}) for slot in kept}


def sample(seen: Observation, slot: SlotFacts, details: Mapping[str, Any]) -> SlotSample:
    """Return what is remembered of one slot."""
    last, stats = seen.known.last.get(slot.name), seen.seen.stats.get(slot.name)
    return SlotSample(
        at=seen.at,
        slot=slot.name,
        own=seen.is_own(slot),
        slot_type=slot.slot_type,
        database=slot.database,
        active=slot.active,
        confirmed_lsn=slot.confirmed,
        restart_lsn=slot.restart,
        flushed_lsn=seen.seen.flushed,
        unread=slot.unread,
        retained=slot.retained,
        wal_status=slot.wal_status,
        safe_wal_size=slot.safe_wal_size,
        invalidation=slot.invalidation,
        inactive_since=_inactive_since(seen.at, slot, last),
        unchanged_since=last.unchanged_since if last and _stands(slot, last) else seen.at,
        catalog_xmin_age=slot.catalog_xmin_age,
        spill_bytes=stats.spill_bytes if stats else None,
        total_bytes=stats.total_bytes if stats else None,
        details=dict(details),
    )


def _inactive_since(at: datetime, slot: SlotFacts, last: SlotSample | None) -> datetime | None:
    if slot.active:
        return None
    if slot.inactive_since is not None:
        return slot.inactive_since
    return last.inactive_since or last.at if last and not last.active and _stands(slot, last) else at


def _stands(slot: SlotFacts, last: SlotSample) -> bool:
    """Return whether a slot is where it was: a physical one has only its restart position."""
    if slot.confirmed is None:
        return slot.restart == last.restart_lsn
    return slot.confirmed == last.confirmed_lsn
