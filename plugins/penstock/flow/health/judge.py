"""From an observation to a verdict: which alarms should be open, what may be dropped, whether to drain. Pure.

`RULES` and `LAKE_RULES` are the whole list of what is looked at. The same observation and policy always give the same verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace

from penstock.conditions import LEVELS
from penstock.config.policy import Health
from penstock.flow.health import (
    clock_rule,
    conflict_rule,
    ddl_trigger_rule,
    place_rules,
    refusal_rule,
    rules_lake,
    rules_server,
    rules_slot,
    rules_tables,
    verified_rule,
    work_rules,
)
from penstock.flow.health.causes import folded
from penstock.flow.health.drops import Drop, drops
from penstock.flow.health.findings import Case, Finding
from penstock.flow.health.input import Standing
from penstock.flow.health.limits import Forecast, Limits, limits
from penstock.flow.health.observe import Observation
from penstock.flow.health.samples import sample, samples
from penstock.ledger.health import SlotSample

RULES = (
    rules_slot.existence,
    rules_slot.status,
    rules_slot.queue,
    rules_slot.stalled,
    rules_slot.synced,
    rules_slot.idle_timeout,
    rules_slot.publication,
    refusal_rule.refused,
    rules_slot.catalog,
    rules_slot.spills,
    rules_server.capture,
    rules_server.too_slow,
    rules_server.abandoned,
    rules_server.free_slots,
    rules_server.transactions,
    rules_server.standby,
    verified_rule.verified,
    conflict_rule.conflicts,
    ddl_trigger_rule.ddl_trigger,
    clock_rule.clocks,
)
LAKE_RULES: dict[Callable[[Standing], Iterator[Finding]], frozenset[str]] = {
    rules_lake.stale: frozenset({"lake-stale"}),
    rules_lake.merge: frozenset({"merge-paused", "merge-failing", "merge-late"}),
    work_rules.resync: frozenset({"resync-failing"}),
    work_rules.copies: frozenset({"copy-stalled"}),
    work_rules.maintain: frozenset({"maintain-overdue"}),
    work_rules.changelog: frozenset({"changelog-overdue"}),
    work_rules.verify: frozenset({"verify-overdue"}),
    rules_tables.paused: frozenset({"table-paused"}),
    place_rules.room: frozenset({"storage-nearly-full"}),
    place_rules.heard: frozenset({"alerts-unheard"}),
    place_rules.watched: frozenset({"slot-unwatched"}),
}
"""The rules that need no source, each with the alarms that it may open: they are judged while the source does not answer, too."""
_URGENT = ("slot-retained", "slot-unread", "slot-unreserved")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Hold what follows from an observation; `drain`: capture should run now, with larger windows."""

    seen: Observation
    limits: Limits
    samples: Mapping[str, SlotSample]
    findings: tuple[Finding, ...]
    drops: tuple[Drop, ...]
    drain: bool


def judge(seen: Observation, policy: Health) -> Verdict:
    """Judge an observation by a policy."""
    found = limits(policy, seen.seen)
    new_samples = samples(seen, _details(seen, found))
    own = seen.own
    forecast = Forecast.of(seen.known.history, sample(seen, own, {})) if own else Forecast(None)
    case = Case(seen, policy, found, new_samples, forecast)
    dropping = tuple(drops(case))
    findings = [finding for rule in RULES for finding in rule(case)]
    findings = [_with_drop(finding, dropping, policy) for finding in [*findings, *of_lake(seen.now)]]
    findings = worst_first(folded(findings, seen.now.alarms))
    return Verdict(seen, found, new_samples, tuple(findings), dropping, _drain(case, findings))


def of_lake(now: Standing) -> list[Finding]:
    """Return what is found without the source."""
    return [finding for rule in LAKE_RULES for finding in rule(now)]


def worst_first(findings: list[Finding]) -> list[Finding]:
    """Return findings in the order in which they are told."""
    return sorted(findings, key=lambda finding: -LEVELS.index(finding.level))


def _drain(case: Case, findings: list[Finding]) -> bool:
    """Return whether to capture now: the own slot is critical, and no person has stopped capture."""
    record = case.seen.known.record
    if not case.policy.drain or record is None or record.state != "running" or case.seen.capture.paused:
        return False
    readable = case.own is not None and not case.own.active and not case.own.invalidation
    return readable and any(each.level == "critical" and each.slug in _URGENT for each in findings)


def _with_drop(finding: Finding, dropping: tuple[Drop, ...], policy: Health) -> Finding:
    """Let a finding say that its slot is dropped now, or would be."""
    for drop in dropping:
        if (drop.alarm, drop.slot.name) == (finding.slug, finding.subject):
            what = "dry run, so Penstock only says what it would run" if policy.dry_run else "Penstock now runs"
            numbers = {**finding.numbers, "statement": drop.statement, "dry_run": policy.dry_run}
            return replace(finding, next=f"{finding.next}; {what}: {drop.statement}", numbers=numbers)
    return finding


def _details(seen: Observation, found: Limits) -> dict[str, object]:
    """Return what the own slot's sample carries besides: the limits in force, and the server around it."""
    server, around = seen.seen.server, seen.seen.around
    oldest = max((each.age_seconds or 0 for each in seen.seen.transactions), default=0)
    return {
        "limits": asdict(found),
        "free_slots": server.max_replication_slots - around.slots_taken,
        "free_senders": server.max_wal_senders - around.senders_taken,
        "wal_directory": seen.seen.wal_directory,
        "oldest_transaction": round(oldest),
        "idle_slot_timeout": server.idle_slot_timeout,
        "capture_paused": seen.capture.paused,
        "unseen": list(seen.seen.unseen),
    }
