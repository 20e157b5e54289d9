"""From what a check knows to a verdict: which alarms should be open, what may be dropped, whether to drain. Pure.

`RULES` and `LAKE_RULES` are the whole list of what is looked at. The same input always gives the same verdict. `FOLLOWS` says what
follows from what: that is named in the alert of its cause and sends none of its own. Both stay open alarms: the page shows them all,
and what still lasts when its cause is over is sent then.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from penstock.conditions import LEVELS, PAGED
from penstock.flow.health import rules_lake, rules_server, rules_slot, rules_tables
from penstock.flow.health.drops import Drop, drops
from penstock.flow.health.input import HealthInput, SlotInput
from penstock.ledger.health import AlarmRecord, Finding

RULES = (
    rules_slot.existence,
    rules_slot.status,
    rules_slot.queue,
    rules_slot.stalled,
    rules_slot.synced,
    rules_slot.idle_timeout,
    rules_slot.publication,
    rules_server.refused,
    rules_slot.catalog,
    rules_slot.spills,
    rules_server.capture,
    rules_server.too_slow,
    rules_server.abandoned,
    rules_server.free_slots,
    rules_server.transactions,
    rules_server.standby,
    rules_server.ddl_trigger,
    rules_server.clocks,
)
LAKE_RULES: dict[Callable[[HealthInput], Iterator[Finding]], frozenset[str]] = {
    rules_lake.stale: frozenset({"lake-stale"}),
    rules_lake.merge: frozenset({"merge-paused", "merge-failing", "merge-late"}),
    rules_tables.resync: frozenset({"resync-failing"}),
    rules_tables.copies: frozenset({"copy-stalled"}),
    rules_tables.maintain: frozenset({"maintain-overdue"}),
    rules_tables.changelog: frozenset({"changelog-overdue"}),
    rules_tables.verify: frozenset({"verify-overdue"}),
    rules_tables.paused: frozenset({"table-paused"}),
    **rules_tables.COMPARED,
    rules_lake.room: frozenset({"storage-nearly-full"}),
    rules_lake.channels: frozenset({"alerts-unheard"}),
    rules_lake.watched: frozenset({"slot-unwatched"}),
}
"""The rules that need no source, each with the alarms that it may open: they are judged while the source does not answer, too."""
_QUEUE = frozenset({"slot-retained", "slot-unread", "slot-stalled"})
_CAPTURE = _QUEUE | {"lake-stale"}
FOLLOWS: dict[str, frozenset[str]] = {
    "source-unreachable": _CAPTURE | {"capture-failing", "verify-overdue"},
    "slot-lost": frozenset({"pipeline-halted", "capture-failing", "lake-stale"}),
    "slot-missing": frozenset({"pipeline-halted", "capture-failing", "lake-stale"}),
    "slot-synced": _CAPTURE | {"capture-failing"},
    "pipeline-halted": _CAPTURE | {"capture-failing", "capture-paused"},
    "capture-paused": _CAPTURE,
    "capture-failing": _CAPTURE,
    "capture-too-slow": frozenset({"slot-unread", "lake-stale"}),
    "storage-nearly-full": frozenset({"merge-failing", "maintain-overdue"}),
    "merge-paused": frozenset({"lake-stale"}),
    "merge-failing": frozenset({"lake-stale"}),
    "merge-late": frozenset({"lake-stale"}),
    "publication-narrow": frozenset({"table-paused"}),
    "resync-failing": frozenset({"copy-stalled"}),
}
"""What follows from a cause, the causes that explain more first."""
SAME_SUBJECT = {"verify-differs": frozenset({"divergence-suspected"})}
"""The same, of one table."""
_URGENT = ("slot-retained", "slot-unread", "slot-unreserved")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Hold what follows from what a check knows; `drain`: capture should run now, with larger windows.

    `undelivered` is what channels complained of that did not take an alert, once it was carried out.
    """

    facts: SlotInput
    findings: tuple[Finding, ...]
    drops: tuple[Drop, ...]
    drain: bool
    undelivered: tuple[str, ...] = ()


def judge(facts: SlotInput) -> Verdict:
    """Judge what is known by the pipeline's policy."""
    dropping = tuple(drops(facts))
    findings = [*(finding for rule in RULES for finding in rule(facts)), *of_lake(facts)]
    findings = worst_first([_with_drop(finding, dropping, facts.policy.dry_run) for finding in findings], facts)
    return Verdict(facts, tuple(findings), dropping, _drain(facts, findings))


def of_lake(facts: HealthInput) -> list[Finding]:
    """Return what is found without the source."""
    return [finding for rule in LAKE_RULES for finding in rule(facts)]


def worst_first(findings: list[Finding], facts: HealthInput) -> list[Finding]:
    """Return findings in the order in which they are told, what follows from another under its cause."""
    return sorted(inhibited(findings, facts.alarms), key=lambda finding: -LEVELS.index(finding.level))


def _drain(facts: SlotInput, findings: list[Finding]) -> bool:
    """Return whether to capture now: the own slot is critical, and no person has stopped capture."""
    if not facts.policy.drain or facts.record is None or facts.record.state != "running" or facts.dag("capture").paused:
        return False
    readable = facts.own is not None and not facts.own.active and not facts.own.invalidation
    return readable and any(each.level == "critical" and each.slug in _URGENT for each in findings)


def _with_drop(finding: Finding, dropping: tuple[Drop, ...], dry_run: bool) -> Finding:
    """Let a finding say that its slot is dropped now, or would be."""
    for drop in dropping:
        if (drop.alarm, drop.slot.name) == (finding.slug, finding.subject):
            what = "dry run, so Penstock only says what it would run" if dry_run else "Penstock now runs"
            numbers = {**finding.numbers, "statement": drop.statement, "dry_run": dry_run}
            return replace(finding, next=f"{finding.next}; {what}: {drop.statement}", numbers=numbers)
    return finding


def inhibited(findings: Sequence[Finding], alarms: Iterable[AlarmRecord] = ()) -> list[Finding]:
    """Return the findings, each with its cause or with what follows from it; a cause is as bad as the worst of these.

    `alarms` are the open ones: an error that has paged is the cause of its own DAG's failing.
    """
    paged = [alarm for alarm in alarms if alarm.slug in PAGED and alarm.closed_at is None]
    causes = [(each, _root(each, findings, paged)) for each in findings]
    found = []
    for finding, cause in causes:
        following = [each for each, root in causes if root == finding.title]
        worst = max((finding, *following), key=lambda each: LEVELS.index(each.level)).level
        follows = tuple(f"{each.slug}: {each.message}" for each in following)
        found.append(replace(finding, level=worst, cause=cause, follows=follows))
    return found


def _root(finding: Finding, findings: Sequence[Finding], paged: Sequence[AlarmRecord]) -> str | None:
    """Name what a finding follows from in the end; causes form no circle."""
    last = finding
    while cause := _cause(last, findings):
        last = cause
    for alarm in paged:
        if last.slug.endswith("-failing") and alarm.subject.startswith(f"{last.subject}."):
            return f"{alarm.slug} {alarm.subject}"
    return None if last is finding else last.title


def _cause(finding: Finding, findings: Sequence[Finding]) -> Finding | None:
    for slug, follow in FOLLOWS.items():
        if finding.slug in follow and (cause := next((each for each in findings if each.slug == slug), None)):
            return cause
    same = (
        each for each in findings if each.subject == finding.subject and finding.slug in SAME_SUBJECT.get(each.slug, ())
    )
    return next(same, None)
