"""The numbers of slots: what a check remembers of each, how much WAL the own one may keep, and how fast it comes to that. Pure.

Servers before 17 do not show since when a slot is inactive; then it has been so since the first check that found it
inactive at the place where it still is. The WAL budget is the smallest of what is known: max_slot_wal_keep_size, beyond which the server gives the slot up, and
the disk that the operator names. PostgreSQL itself does not know how much of the disk is free.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from penstock.codec import fields_of
from penstock.conditions import Level
from penstock.config.policy import Critical, Health, Warn
from penstock.ledger.health import SlotSample
from penstock.source.health import SourceHealth
from penstock.source.slot import SlotFacts

GIB = 1 << 30
UNKNOWN_ROOM = {"warn": 1 * GIB, "critical": 5 * GIB}
"""The limits where neither bytes nor a budget are known: what practitioners use."""
_DROP_SHARE = 0.8  # of max_slot_wal_keep_size: the slot goes before the server would take it in the middle of a peek


_AS_SHOWN = "slot_type database active unread retained wal_status safe_wal_size invalidation catalog_xmin_age"
"""What a sample has of a slot as the server shows it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Hold the limits in force, in bytes; `budget` is None where it is not known."""

    budget: int | None
    keep_size: int | None
    warn: int
    critical: int
    drop: int

    def at(self, level: Level) -> int:
        """Return the limit of a level."""
        return self.warn if level == "warn" else self.critical


def limits(policy: Health, source: SourceHealth) -> Limits:
    """Return the limits in force on this server."""
    keep_size = source.server.max_slot_wal_keep_size
    budget = min((each for each in (keep_size, policy.disk) if each is not None), default=None)
    critical = _limit(policy.critical, budget, "critical")
    return Limits(
        budget=budget,
        keep_size=keep_size,
        warn=min(_limit(policy.warn, budget, "warn"), critical),
        critical=critical,
        drop=critical if keep_size is None else min(critical, int(_DROP_SHARE * keep_size)),
    )


def growth(history: Sequence[SlotSample], now: SlotSample | None) -> float:
    """Return how fast WAL piles up behind the own slot, in bytes per second, by its samples, the newest first; 0 without a history."""
    known = [(each.at, each.retained) for each in (now, *history) if each is not None and each.retained is not None]
    seconds = (known[0][0] - known[-1][0]).total_seconds() if known else 0
    return (known[0][1] - known[-1][1]) / seconds if seconds > 0 else 0.0


def _limit(level: Warn | Critical, budget: int | None, name: str) -> int:
    wanted = [level.bytes, None if budget is None else int(level.share * budget)]
    return min((each for each in wanted if each is not None), default=UNKNOWN_ROOM[name])


def sample(source: SourceHealth, slot: SlotFacts, own: bool, last: SlotSample | None) -> SlotSample:
    """Return what is remembered of one slot."""
    at = source.around.at
    return SlotSample(
        at=at,
        slot=slot.name,
        own=own,
        confirmed_lsn=slot.confirmed,
        restart_lsn=slot.restart,
        flushed_lsn=source.flushed,
        inactive_since=_inactive_since(at, slot, last),
        unchanged_since=last.unchanged_since if last and _stands(slot, last) else at,
        spill_bytes=slot.spill_bytes,
        total_bytes=slot.total_bytes,
        **fields_of(slot, _AS_SHOWN),
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
