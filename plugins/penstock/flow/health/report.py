"""A health check as a person reads it, and as other tools do. Pure."""

from typing import Any

from penstock.codec import fields_of
from penstock.config.policy import Health
from penstock.flow.health.input import SlotInput
from penstock.flow.health.judge import Verdict
from penstock.ledger.health import SlotSample
from penstock.units import sentence, size, span

Row = tuple[str, str]
_SLOT_FIELDS = (
    "slot active confirmed_lsn restart_lsn unread retained wal_status safe_wal_size invalidation inactive_since unchanged_since"
    " catalog_xmin_age spill_bytes total_bytes own slot_type database"
)


def lines(verdict: Verdict) -> list[Row]:
    """Return the check as labelled lines, the urgent ones first."""
    facts = verdict.facts
    policy, limits, server, around = facts.policy, facts.limits, facts.source.server, facts.source.around
    how = "would run" if policy.dry_run else "may run"
    keep = "unlimited" if limits.keep_size is None else size(limits.keep_size)
    rooms = [disk for disk in facts.disks if disk.free is not None]
    return [
        *((f"{each.level} {each.slug}", sentence(f"{each.message}; {each.next}")) for each in verdict.findings),
        *((f"{how}", f"{each.statement} -- {each.reason}") for each in verdict.drops),
        *([("drain", "capture should run now, with larger windows")] if verdict.drain else []),
        ("slot", _slot(facts.own, facts) if facts.own else f"the server has no slot {facts.pipeline.slot}"),
        ("limits", f"warn {size(limits.warn)}, critical {size(limits.critical)}, drop {size(limits.drop)}"),
        ("WAL budget", f"{size(limits.budget)} (max_slot_wal_keep_size {keep}, disk {size(policy.disk)})"),
        ("WAL directory", size(facts.source.wal_directory)),
        ("free slots", f"{server.max_replication_slots - around.slots_taken} of {server.max_replication_slots}"),
        ("free senders", f"{server.max_wal_senders - around.senders_taken} of {server.max_wal_senders}"),
        *((f"disk of the {disk.what}", f"{size(disk.free)} free of {size(disk.total)}") for disk in rooms),
        *((f"other slot {name}", _slot(each, facts)) for name, each in facts.samples.items() if not each.own),
        *(("cannot see", each) for each in _unseen(facts)),
        ("alerts go to", _channels(policy)),
    ]


def plain(verdict: Verdict) -> dict[str, Any]:
    """Return the check as plain data."""
    facts = verdict.facts
    return {
        "pipeline": facts.name,
        "at": facts.at,
        "dry_run": facts.policy.dry_run,
        "drain": verdict.drain,
        "alarms": [fields_of(each, "slug subject level message next numbers since") for each in verdict.findings],
        "drops": [{"slot": each.slot.name} | fields_of(each, "own reason statement numbers") for each in verdict.drops],
        "slots": [fields_of(sample, _SLOT_FIELDS) for sample in facts.samples.values()],
        "unseen": _unseen(facts),
    }


def gauges(verdict: Verdict) -> dict[str, float]:
    """Return the numbers of the own slot, of the lake and of the tables, by the name of their gauge."""
    facts, lake = verdict.facts, verdict.facts.lake
    own, server, around = facts.own, facts.source.server, facts.source.around
    levels = [finding.level for finding in verdict.findings]
    numbers: dict[str, float | None] = {
        "slot.free_slots": server.max_replication_slots - around.slots_taken,
        "slot.alarms_warn": levels.count("warn"),
        "slot.alarms_critical": levels.count("critical"),
    }
    if own is not None:
        numbers |= {
            "slot.unread_bytes": own.unread,
            "slot.retained_bytes": own.retained,
            "slot.safe_wal_bytes": own.safe_wal_size,
            "slot.catalog_xmin_age": own.catalog_xmin_age,
            "slot.unchanged_seconds": (own.at - own.unchanged_since).total_seconds(),
        }
    if lake is not None:
        fresh = lake.as_of or lake.cut_at
        numbers |= {
            "lake.freshness_seconds": facts.age(fresh) if fresh else None,
            "lake.unmerged_changes": lake.unmerged_changes,
            "lake.unmerged_bytes": lake.unmerged_bytes,
            "tables.all": lake.tables,
            "tables.ready": lake.tables_ready,
            "tables.paused": lake.tables_paused,
            "tables.conflicting": sum(table.suspected for table in facts.verified),
            "tables.differing": sum(table.differs for table in facts.verified),
        }
    return {f"penstock.{name}": float(value) for name, value in numbers.items() if value is not None}


def _slot(sample: SlotSample, facts: SlotInput) -> str:
    idle = None if sample.inactive_since is None else facts.age(sample.inactive_since)
    state = "active" if sample.active else f"inactive for {span(idle)}"
    found = f"{sample.slot_type}, {state}, {size(sample.unread)} unread, {size(sample.retained)} retained"
    safe = "" if sample.safe_wal_size is None else f", {size(sample.safe_wal_size)} safe"
    return f"{found}, {sample.invalidation or sample.wal_status}{safe}"


def _unseen(facts: SlotInput) -> list[str]:
    found = list(facts.source.unseen)
    if facts.dag("capture").paused is None:
        found.append("whether the capture DAG is paused or fails (Airflow knows)")
    if facts.record is None:
        found.append("the pipeline's past: the ledger does not know it yet, nothing is recorded")
    return [*found, *(f"how full the {disk.what} is, at {disk.place}" for disk in facts.disks if disk.free is None)]


def _channels(policy: Health) -> str:
    found = [
        f"{level}: {', '.join(section.channels)}"
        for level, section in (("warn", policy.warn), ("critical", policy.critical))
        if section.channels
    ]
    return (
        "; ".join(found)
        or "no one: health.warn.channels and health.critical.channels are empty; alarms are events and log lines only"
    )
