"""The rules for the server around the slot, for slots of others, and for capture. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from penstock.conditions import Level
from penstock.flow.health.findings import Case, Finding
from penstock.flow.health.rules_lake import fails, ran
from penstock.units import size, span

_GROWTH_SAMPLES = 3
_BLIND_XIDS = 1_000_000  # a transaction this old, whose start is hidden from us


def capture(case: Case) -> Iterator[Finding]:
    """Report a capture DAG that is paused or fails, and a pipeline that is halted."""
    state, name, record = case.seen.capture, f"{case.seen.pipeline}.capture", case.seen.known.record
    failed = case.seen.now.failing("capture")
    own, step = case.own, "WAL piles up on the source, and nothing frees it"
    numbers = {"unread": own.unread, "retained": own.retained} if own else {}
    if record is not None and record.state == "halted":
        said = f"pipeline {record.name} is halted by {record.halted_slug}: {record.halted_reason}"
        yield Finding("pipeline-halted", record.name, "critical", said, step if own else "the lake goes stale", numbers)
    if own is None or own.invalidation or record is None:
        return
    if state.paused:
        level: Level = "critical" if (own.retained or 0) >= case.limits.warn else "warn"
        yield Finding("capture-paused", name, level, f"{name} is paused", f"{step}; unpause it", numbers)
    elif failed is not None:
        said = f"{name} {fails(case.seen.now, failed)}"
        found = {**numbers, **ran(name, failed)}
        yield Finding("capture-failing", name, "critical", said, step, found, failed.failing_since)


def too_slow(case: Case) -> Iterator[Finding]:
    """Report that the queue grows while capture is at work: each run then has more to read than the one before."""
    history, rates, own = case.seen.known.history, case.seen.known.rates, case.own
    if own is None or len(history) < _GROWTH_SAMPLES or not rates:
        return
    unread = [each.unread or 0 for each in (own, *history[:_GROWTH_SAMPLES])]
    growing = all(later > earlier for later, earlier in pairwise(unread))
    moving = own.confirmed_lsn != history[_GROWTH_SAMPLES - 1].confirmed_lsn
    seconds = (own.at - history[_GROWTH_SAMPLES - 1].at).total_seconds()
    written = (own.flushed_lsn - history[_GROWTH_SAMPLES - 1].flushed_lsn) / seconds if seconds > 0 else 0
    read = sum(rate.wal_bytes for rate in rates) / max(sum(rate.seconds for rate in rates), 0.001)
    longest = max(rate.seconds for rate in rates)
    if not (growing and moving and (written > read or longest > (case.seen.pause or longest))):
        return
    said = (
        f"the source writes {size(written)}/s of WAL, capture reads {size(read)}/s while it runs, the longest window "
        f"took {span(longest)}, and {size(own.unread)} are waiting"
    )
    level: Level = "critical" if (own.unread or 0) >= case.limits.warn else "warn"
    step = case.forecast.until(own.retained or 0, case.limits.critical, "the slot reaches the critical limit")
    numbers = {
        "written_per_second": round(written),
        "read_per_second": round(read),
        "longest_window": round(longest, 1),
    }
    yield Finding("capture-too-slow", own.slot, level, said, step or "the queue grows", numbers)


def abandoned(case: Case) -> Iterator[Finding]:
    """Report inactive slots of others that keep WAL on the same disk."""
    for slot in case.seen.foreign:
        found = case.samples[slot.name]
        idle, kept = case.age(found.inactive_since), found.retained or 0
        if found.active or slot.synced or slot.name in case.seen.known.others or idle < case.policy.watch.abandoned:
            continue
        level = case.level("slot-abandoned", slot.name, kept, case.limits.warn, case.limits.critical)
        if level:
            said = f"{found.slot_type} slot {slot.name} is not ours, inactive for {span(idle)}, and keeps {size(kept)} of WAL"
            numbers = {
                "retained": kept,
                "inactive": round(idle),
                "warn": case.limits.warn,
                "critical": case.limits.critical,
            }
            step = "WAL piles up on the source until a reader returns or the slot is dropped"
            yield Finding("slot-abandoned", slot.name, level, said, step, numbers, found.inactive_since)


def free_slots(case: Case) -> Iterator[Finding]:
    """Report that the next one who needs a slot or a WAL sender may find none."""
    server, around, least = case.seen.seen.server, case.seen.seen.around, case.policy.watch.free_slots
    for setting, limit, taken in (
        ("max_replication_slots", server.max_replication_slots, around.slots_taken),
        ("max_wal_senders", server.max_wal_senders, around.senders_taken),
    ):
        if limit - taken < least:
            said = f"{taken} of {limit} are taken ({setting}), expected at least {least} free"
            step = "a new slot, copy or standby may be refused; drop slots without a reader, or raise the setting"
            yield Finding("slots-nearly-full", setting, "warn", said, step, {"taken": taken, "limit": limit})


def transactions(case: Case) -> Iterator[Finding]:
    """Report transactions that keep WAL from being freed, in any database of the server."""
    limit = case.policy.watch.transaction
    for each in case.seen.seen.transactions:
        slug = "transaction-prepared-long" if each.prepared else "transaction-open-long"
        seconds = each.age_seconds
        hidden = seconds is None and each.xids >= _BLIND_XIDS
        level = "warn" if hidden else case.level(slug, each.subject, seconds or 0, limit)
        if level:
            since = "an unknown time" if seconds is None else span(seconds)
            said = f"{each.name()} has been open for {since}, {each.xids:,} transactions began since"
            step = "no slot frees WAL from before it, and every capture reads all of that again, until it ends"
            numbers = {"seconds": None if seconds is None else round(seconds), "limit": limit, "xids": each.xids}
            yield Finding(slug, each.subject, level, said, step, numbers)


def standby(case: Case) -> Iterator[Finding]:
    """Report a standby whose primary may remove what our slot needs."""
    around, server = case.seen.seen.around, case.seen.seen.server
    if server.in_recovery and not (around.standby_feedback and around.primary_slot_name):
        said = (
            f"the source is a standby with hot_standby_feedback {'on' if around.standby_feedback else 'off'} and "
            f"primary_slot_name {around.primary_slot_name or 'not set'}; both are needed for a slot to live here"
        )
        step = "the next vacuum of a catalog on the primary may invalidate the slot"
        yield Finding("standby-feedback-off", server.database, "critical", said, step, {})
