"""The rules for tables: those that stand still, and those of which a comparison or a merge says that rows may be wrong. Pure.

A verdict on rows stays until all that is in question has been seen to be equal, or the table was copied since. It says how many
rows, which columns and at which position, never a value.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.conditions import needs_copy
from penstock.flow.context import on_change
from penstock.flow.health.findings import Finding
from penstock.flow.health.input import HealthInput
from penstock.ledger.table_records import TableRecord

COMPARED = frozenset({"verify-differs", "verify-unreadable", "divergence-suspected"})
"""What `differing`, `unreadable` and `suspected` report: verifications and merges bring them up to date as well."""


def paused(facts: HealthInput) -> Iterator[Finding]:
    """Report every table that is paused."""
    for each in facts.ledger.still:
        if each.state == "paused":
            said = f"{each.qualified} is paused by {each.paused_slug}: {each.paused_reason}"
            step = f"its changes are landed, readers keep the last cut; {_way_out(facts, each)}"
            yield Finding("table-paused", each.qualified, "warn", said, step, {"reason": each.paused_slug})


def _way_out(facts: HealthInput, table: TableRecord) -> str:
    if not needs_copy(table.remedy):
        return f"fix it, then trigger {facts.name}.{'resync' if table.remedy == 'person' else 'resume'}"
    if on_change(facts.pipeline, table.schema, table.name) == "pause":
        return f"trigger {facts.name}.resync, which copies it again"
    return f"{facts.name}.resync copies it again by itself"


def differing(facts: HealthInput) -> Iterator[Finding]:
    """Report tables that differ, until a later comparison has seen them equal, with the counts of the newest look at what differed."""
    for table in facts.ledger.verified:
        if not table.differs:
            continue
        subject = f"{table.schema}.{table.name}"
        said = (
            f"source and lake differ in {subject} at {table.differing_lsn}: {table.missing} rows missing in the lake, "
            f"{table.extra} too many, {table.different} different"
        )
        numbers = {
            "lsn": str(table.differing_lsn),
            "missing": table.missing,
            "extra": table.extra,
            "different": table.different,
            "verification": table.verification,
        }
        step = "readers see wrong rows until the table is repaired and a later verification finds it equal"
        yield Finding("verify-differs", subject, "critical", said, step, numbers, table.differing_at)


def unreadable(facts: HealthInput) -> Iterator[Finding]:
    """Report tables of which the newest comparison could not read a side."""
    for table in facts.ledger.verified:
        if table.outcome == "unreadable":
            subject, lsn = f"{table.schema}.{table.name}", str(table.compared_lsn)
            said = f"{subject} could not be compared at {lsn}: {table.reason}"
            step = "nothing is known of its rows until a later verification has read it"
            yield Finding("verify-unreadable", subject, "critical", said, step, {"lsn": lsn}, table.compared_at)


def suspected(facts: HealthInput) -> Iterator[Finding]:
    """Report tables that may have diverged: changes met other rows than they should."""
    for table in facts.ledger.verified:
        if not table.suspected:
            continue
        subject = f"{table.schema}.{table.name}"
        counts = ", ".join(f"{name} {count}" for name, count in table.conflicts.items())
        said = f"changes of {subject} met other rows in the lake than at the source since its copy: {counts}"
        numbers = {**table.conflicts, "lsn": str(table.conflict_lsn)}
        step = "readers may see wrong rows until the table is compared and found equal, or resynced"
        yield Finding("divergence-suspected", subject, "critical", said, step, numbers)
