"""The rule for what merges met: changes without their row, or inserts onto one, until a comparison finds all rows equal. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.flow.health.findings import Case, Finding
from penstock.ledger.verifications import VerifiedTable

SLUG = "divergence-suspected"


def conflicts(case: Case) -> Iterator[Finding]:
    """Report every table that may have diverged."""
    return suspected(case.seen.known.verified)


def suspected(tables: Iterable[VerifiedTable]) -> Iterator[Finding]:
    """Report those of these tables of which changes met other rows than they should."""
    for table in tables:
        if not table.suspected:
            continue
        subject = f"{table.schema}.{table.name}"
        counts = ", ".join(f"{name} {count}" for name, count in table.conflicts.items())
        said = f"changes of {subject} met other rows in the lake than at the source since its copy: {counts}"
        numbers = {**table.conflicts, "lsn": str(table.conflict_lsn)}
        step = "readers may see wrong rows until the table is compared and found equal, or resynced"
        yield Finding(SLUG, subject, "critical", said, step, numbers)
