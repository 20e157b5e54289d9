"""The rules for the pipeline's own slot. Pure."""

from collections.abc import Iterator

from penstock.conditions import Level
from penstock.flow.health.input import SlotInput
from penstock.flow.schema.publication import kinds_text as kinds
from penstock.ledger.health import Finding
from penstock.units import size, span

_LIVING = ("running", "halted", "bootstrapping")
_CATALOG_CRITICAL = 4
_STALLED_CRITICAL = 4
_SPILL_FLOOR = 64 << 20  # below this a share says nothing
_TIMEOUT_SCHEDULES = 3


def queue(facts: SlotInput) -> Iterator[Finding]:
    """Compare the two numbers with their limits: what the slot keeps, and what is still to be read."""
    own, limits = facts.own, facts.limits
    if own is None or own.invalidation:
        return
    numbers = {"unread": own.unread, "retained": own.retained, "warn": limits.warn, "critical": limits.critical}
    for slug, what, value in (
        ("slot-retained", "keeps {} of WAL", own.retained),
        ("slot-unread", "has {} of WAL still to be captured", own.unread),
    ):
        level = value and facts.level(slug, own.slot, value, limits.warn, limits.critical)
        if value and level:
            said = f"slot {own.slot} {what.format(size(value))}, the {level} limit is {size(limits.at(level))}"
            yield Finding(slug, own.slot, level, said, _next_of_queue(facts, value), numbers, own.unchanged_since)


def _next_of_queue(facts: SlotInput, value: int) -> str:
    limits = facts.limits
    ahead = (
        facts.until(value, limits.critical, "it reaches the critical limit"),
        facts.until(value, limits.keep_size, "the server gives the slot up at max_slot_wal_keep_size"),
        facts.until(value, facts.policy.disk, "the disk is full"),
    )
    found = [each for each in ahead if each] or ["it does not grow, as far as the samples show"]
    return "; ".join(found)


def status(facts: SlotInput) -> Iterator[Finding]:
    """Report a slot that is lost, or about to be."""
    own = facts.own
    if own is None:
        return
    numbers = {"wal_status": own.wal_status, "safe_wal_size": own.safe_wal_size, "retained": own.retained}
    if own.invalidation:
        said = f"slot {own.slot} was invalidated ({own.invalidation}); the changes after {own.confirmed_lsn} are lost to it"
        step = f"nothing more is lost; trigger {facts.name}.recover, which copies the tables again"
        yield Finding("slot-lost", own.slot, "critical", said, step, {**numbers, "invalidation": own.invalidation})
    elif own.wal_status == "unreserved":
        said = f"slot {own.slot} keeps more than max_slot_wal_keep_size ({size(facts.limits.keep_size)})"
        step = "at the next checkpoint the server gives it up, unless capture catches up first"
        yield Finding("slot-unreserved", own.slot, "critical", said, step, numbers)


def existence(facts: SlotInput) -> Iterator[Finding]:
    """Report a slot that should be there and is not, or is there and should not be."""
    record, own, name = facts.record, facts.own, facts.pipeline.slot
    if record is None:
        return
    why_needless = needless(facts)
    # the runbook of one that is not needed drops it: it is missed once a capture has halted for want of it
    awaited = record.state == "halted" or (record.state in _LIVING and not why_needless)
    if own is None and record.position is not None and awaited and record.halted_slug != "slot-dropped":
        said = f"expected slot {name} at {record.position}, but the server has no such slot"
        step = f"changes since then are lost to the stream; trigger {facts.name}.recover"
        yield Finding("slot-missing", name, "critical", said, step, {"position": str(record.position)})
    if own is not None and why_needless:
        said = f"slot {name} keeps {size(own.retained)} of WAL that no reader needs: {why_needless}"
        yield Finding(
            "slot-orphaned", name, "critical", said, "WAL piles up until it is dropped", {"retained": own.retained}
        )


def needless(facts: SlotInput) -> str | None:
    """Say why the pipeline needs no slot, or return None."""
    record = facts.record
    had_some, has_none = facts.known_tables > 0, facts.tables == 0  # else its first is yet to come
    is_placed = record is not None and record.state in ("running", "halted") and record.position is not None
    return "the pipeline has no table any more" if is_placed and had_some and has_none else None


def synced(facts: SlotInput) -> Iterator[Finding]:
    """Report a slot that is only a copy of its primary's: it cannot be read here."""
    slot = facts.own_slot
    if slot is not None and slot.synced and facts.source.server.in_recovery:
        said = f"slot {slot.name} is the standby's copy of its primary's slot; it can be read only after a promotion"
        step = "every capture fails until the source's connection leads to the primary"
        yield Finding("slot-synced", slot.name, "critical", said, step, {"synced": True})


def stalled(facts: SlotInput) -> Iterator[Finding]:
    """Report a confirmed position that stands still although there is WAL to read and capture should have run."""
    own, pause = facts.own, facts.pause
    if own is None or own.invalidation or pause is None or not own.unread:
        return
    patience = facts.policy.watch.unchanged_schedules * max(pause, facts.pipeline.capture.time_budget)
    still = facts.age(own.unchanged_since)
    level = facts.level("slot-stalled", own.slot, still, patience, _STALLED_CRITICAL * patience)
    if level:
        said = (
            f"the confirmed position of slot {own.slot} has stood at {own.confirmed_lsn} for {span(still)}, although "
            f"capture runs every {span(pause)} and {size(own.unread)} are unread"
        )
        numbers = {
            "seconds": round(still),
            "unread": own.unread,
            "inactive_since": own.inactive_since and str(own.inactive_since),
        }
        yield Finding(
            "slot-stalled",
            own.slot,
            level,
            said,
            _next_of_queue(facts, own.retained or 0),
            numbers,
            own.unchanged_since,
        )


def idle_timeout(facts: SlotInput) -> Iterator[Finding]:
    """Report a server that gives up idle slots sooner than capture is sure to come again (PostgreSQL 18)."""
    own, pause, timeout = facts.own, facts.pause, facts.source.server.idle_slot_timeout
    if not timeout or own is None or own.invalidation:
        return
    idle = facts.age(own.inactive_since)
    numbers = {"timeout": timeout, "pause": pause, "idle": round(idle)}
    step = "at the first checkpoint after that the server invalidates the slot; it cannot be read again"
    if pause is not None and timeout < _TIMEOUT_SCHEDULES * pause:
        said = (
            f"idle_replication_slot_timeout is {span(timeout)} and capture comes every {span(pause)}: expected at least "
            f"{_TIMEOUT_SCHEDULES} pauses, so that one failed run does no harm"
        )
        level: Level = "critical" if timeout <= pause else "warn"
        yield Finding("slot-idle-timeout", own.slot, level, said, step, numbers)
    elif idle > timeout / 2:
        said = f"slot {own.slot} has been idle for {span(idle)} of the {span(timeout)} that the server allows"
        yield Finding("slot-idle-timeout", own.slot, "critical", said, step, numbers, own.inactive_since)


def publication(facts: SlotInput) -> Iterator[Finding]:
    """Report a publication that leaves out kinds of change which it is meant to send: critical where it has sent them before.

    That partitions come under their own names is no loss where they are the tables that are mirrored.
    """
    record = facts.record
    if record is None or record.publishing is None or record.state not in _LIVING:
        return
    withheld = record.withheld
    missing = tuple(kind for kind in facts.pipeline.source.publish if kind not in record.publishing.sent)
    if withheld:
        said = f"publication {record.publication} does not send {kinds(withheld)} any more"
        step = "its tables stay paused until it does, and are copied again then"
        yield Finding("publication-narrow", record.publication, "critical", said, step, {"withheld": list(withheld)})
    elif missing:
        said = f"publication {record.publication} has never sent {kinds(missing)}: the lake does not show them"
        step = "if that is meant, say so in source.publish; else let the publication's owner widen it"
        yield Finding("publication-narrow", record.publication, "warn", said, step, {"missing": list(missing)})


def catalog(facts: SlotInput) -> Iterator[Finding]:
    """Report a slot that keeps dead rows of the catalogs for too long."""
    own, limit = facts.own, facts.policy.watch.catalog_age
    level = own and facts.level(
        "catalog-xmin-old", own.slot, own.catalog_xmin_age or 0, limit, _CATALOG_CRITICAL * limit
    )
    if own and level:
        said = f"slot {own.slot} keeps catalog rows of the last {own.catalog_xmin_age:,} transactions, the limit is {limit:,}"
        step = "catalogs bloat; at two thousand million the server stops accepting writes"
        yield Finding("catalog-xmin-old", own.slot, level, said, step, {"age": own.catalog_xmin_age, "limit": limit})


def spills(facts: SlotInput) -> Iterator[Finding]:
    """Report decoding that goes by way of the disk."""
    own = facts.own
    if own is None or not own.total_bytes or (own.spill_bytes or 0) < _SPILL_FLOOR:
        return
    share, limit = (own.spill_bytes or 0) / own.total_bytes, facts.policy.watch.spill_share
    level = facts.level("decoding-spills", own.slot, share, limit)
    if level:
        said = f"decoding slot {own.slot} spilled {size(own.spill_bytes)} to disk, of {size(own.total_bytes)} decoded"
        step = "captures stay slower than they need be; raise capture.work_mem"
        yield Finding("decoding-spills", own.slot, level, said, step, {"share": round(share, 3), "limit": limit})
