"""The rules for the server around the slot, for slots of others, for capture, and for what capture asks of the source. Pure."""

from collections.abc import Iterator
from itertools import pairwise

from penstock.conditions import Level
from penstock.flow.health.input import SlotInput
from penstock.jobs.pointers import TOLERANCE_SECONDS
from penstock.ledger.health import Finding
from penstock.source.refusals import by_table, explained
from penstock.units import size, span

_GROWTH_SAMPLES = 3
_BLIND_XIDS = 1_000_000  # a transaction this old, whose start is hidden from us


def capture(facts: SlotInput) -> Iterator[Finding]:
    """Report a capture DAG that is paused or fails, and a pipeline that is halted."""
    state, name, record = facts.dag("capture"), f"{facts.name}.capture", facts.record
    own, step = facts.own, "WAL piles up on the source, and nothing frees it"
    numbers = {"unread": own.unread, "retained": own.retained} if own else {}
    if record is not None and record.state == "halted":
        said = f"pipeline {record.name} is halted by {record.halted_slug}: {record.halted_reason}"
        yield Finding("pipeline-halted", record.name, "critical", said, step if own else "the lake goes stale", numbers)
    if own is None or own.invalidation or record is None:
        return
    if state.paused:
        level: Level = "critical" if (own.retained or 0) >= facts.limits.warn else "warn"
        yield Finding("capture-paused", name, level, f"{name} is paused", f"{step}; unpause it", numbers)
    elif failed := facts.failing("capture"):
        said, run, since = failed
        yield Finding("capture-failing", name, "critical", said, step, {**numbers, **run}, since)


def too_slow(facts: SlotInput) -> Iterator[Finding]:
    """Report that the queue grows while capture is at work: each run then has more to read than the one before."""
    history, rates, own = facts.history, facts.rates, facts.own
    if own is None or len(history) < _GROWTH_SAMPLES or not rates:
        return
    unread = [each.unread or 0 for each in (own, *history[:_GROWTH_SAMPLES])]
    growing = all(later > earlier for later, earlier in pairwise(unread))
    moving = own.confirmed_lsn != history[_GROWTH_SAMPLES - 1].confirmed_lsn
    seconds = (own.at - history[_GROWTH_SAMPLES - 1].at).total_seconds()
    written = (own.flushed_lsn - history[_GROWTH_SAMPLES - 1].flushed_lsn) / seconds if seconds > 0 else 0
    read = sum(rate.wal_bytes for rate in rates) / max(sum(rate.seconds for rate in rates), 0.001)
    longest = max(rate.seconds for rate in rates)
    if not (growing and moving and (written > read or longest > (facts.pause or longest))):
        return
    said = (
        f"the source writes {size(written)}/s of WAL, capture reads {size(read)}/s while it runs, the longest window "
        f"took {span(longest)}, and {size(own.unread)} are waiting"
    )
    level: Level = "critical" if (own.unread or 0) >= facts.limits.warn else "warn"
    step = facts.until(own.retained or 0, facts.limits.critical, "the slot reaches the critical limit")
    numbers = {
        "written_per_second": round(written),
        "read_per_second": round(read),
        "longest_window": round(longest, 1),
    }
    yield Finding("capture-too-slow", own.slot, level, said, step or "the queue grows", numbers)


def abandoned(facts: SlotInput) -> Iterator[Finding]:
    """Report inactive slots of others that keep WAL on the same disk."""
    for slot in facts.foreign:
        found = facts.samples[slot.name]
        idle, kept = facts.age(found.inactive_since), found.retained or 0
        if found.active or slot.synced or slot.name in facts.others or idle < facts.policy.watch.abandoned:
            continue
        level = facts.level("slot-abandoned", slot.name, kept, facts.limits.warn, facts.limits.critical)
        if level:
            said = f"{found.slot_type} slot {slot.name} is not ours, inactive for {span(idle)}, and keeps {size(kept)} of WAL"
            numbers = {
                "retained": kept,
                "inactive": round(idle),
                "warn": facts.limits.warn,
                "critical": facts.limits.critical,
            }
            step = "WAL piles up on the source until a reader returns or the slot is dropped"
            yield Finding("slot-abandoned", slot.name, level, said, step, numbers, found.inactive_since)


def free_slots(facts: SlotInput) -> Iterator[Finding]:
    """Report that the next one who needs a slot or a WAL sender may find none."""
    server, around, least = facts.source.server, facts.source.around, facts.policy.watch.free_slots
    for setting, limit, taken in (
        ("max_replication_slots", server.max_replication_slots, around.slots_taken),
        ("max_wal_senders", server.max_wal_senders, around.senders_taken),
    ):
        if limit - taken < least:
            said = f"{taken} of {limit} are taken ({setting}), expected at least {least} free"
            step = "a new slot, copy or standby may be refused; drop slots without a reader, or raise the setting"
            yield Finding("slots-nearly-full", setting, "warn", said, step, {"taken": taken, "limit": limit})


def transactions(facts: SlotInput) -> Iterator[Finding]:
    """Report transactions that keep WAL from being freed, in any database of the server."""
    limit = facts.policy.watch.transaction
    for each in facts.source.transactions:
        slug = "transaction-prepared-long" if each.prepared else "transaction-open-long"
        seconds = each.age_seconds
        hidden = seconds is None and each.xids >= _BLIND_XIDS
        level = "warn" if hidden else facts.level(slug, each.subject, seconds or 0, limit)
        if level:
            since = "an unknown time" if seconds is None else span(seconds)
            said = f"{each.name()} has been open for {since}, {each.xids:,} transactions began since"
            step = "no slot frees WAL from before it, and every capture reads all of that again, until it ends"
            numbers = {"seconds": None if seconds is None else round(seconds), "limit": limit, "xids": each.xids}
            yield Finding(slug, each.subject, level, said, step, numbers)


def standby(facts: SlotInput) -> Iterator[Finding]:
    """Report a standby whose primary may remove what our slot needs."""
    around, server = facts.source.around, facts.source.server
    if server.in_recovery and not (around.standby_feedback and around.primary_slot_name):
        said = (
            f"the source is a standby with hot_standby_feedback {'on' if around.standby_feedback else 'off'} and "
            f"primary_slot_name {around.primary_slot_name or 'not set'}; both are needed for a slot to live here"
        )
        step = "the next vacuum of a catalog on the primary may invalidate the slot"
        yield Finding("standby-feedback-off", server.database, "critical", said, step, {})


def ddl_trigger(facts: SlotInput) -> Iterator[Finding]:
    """Report a trigger that does not write what capture would read."""
    seen = facts.source
    if seen.ddl_trigger is None or seen.ddl_trigger.problem is None:
        return
    database = seen.server.database
    said = f"source.ddl_trigger is on for database {database}, but {seen.ddl_trigger.problem}"
    step = f"columns are followed as without it; a superuser runs what `penstock ddl-trigger {facts.name}` prints"
    numbers = {"condition": seen.ddl_trigger.condition, "version": seen.ddl_trigger.version}
    yield Finding("ddl-trigger-missing", database, "warn", said, step, numbers)


def refused(facts: SlotInput) -> Iterator[Finding]:
    """Report each published table that an ALTER TABLE, or an upgrade of the server, has made refuse the application's changes."""
    record = facts.record
    if record is None or record.state == "torn_down":
        return
    for found in by_table(facts.source.refused).values():
        reason, step = explained(found)
        table, name = found[0].table, record.publication
        said = f"the source refuses updates or deletes of {table}, because publication {name} publishes it: {reason}"
        numbers = {"relations": [f"{each.schema}.{each.name}" for each in found]}
        yield Finding("no-usable-identity", table, "critical", said, f"{step}; or take it out of {name}", numbers)


def clocks(facts: SlotInput) -> Iterator[Finding]:
    """Report clocks that differ from the ledger's."""
    ledger, source = facts.clock, facts.source_clock
    if ledger is None:
        return
    yield from _apart("worker", "this worker's clock", (0.0, 0.0), ledger.ahead)
    if source is not None:
        yield from _apart("source", "the source's clock", source.ahead, ledger.ahead)


def _apart(subject: str, what: str, clock: tuple[float, float], ledger: tuple[float, float]) -> Iterator[Finding]:
    """Report a clock that is apart from the ledger's, however long the questions took."""
    ahead, behind = clock[0] - ledger[1], ledger[0] - clock[1]
    seconds = max(ahead, behind)
    if seconds <= TOLERANCE_SECONDS:
        return
    said = f"{what} is {span(seconds)} {'ahead of' if ahead > 0 else 'behind'} the ledger's"
    step = "freshness, changelogs and retention compare their times; set the clock that is wrong"
    yield Finding("clocks-differ", subject, "warn", said, step, {"seconds": round(ahead if ahead > 0 else -behind)})
