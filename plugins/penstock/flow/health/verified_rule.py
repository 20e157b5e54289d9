"""The rules for what verifications found: a table that differs, until a later one has seen it equal, or cannot be read. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.flow.health.findings import Case, Finding
from penstock.ledger.verifications import VerifiedTable

SLUG = "verify-differs"
UNREADABLE = "verify-unreadable"


def verified(case: Case) -> Iterator[Finding]:
    """Report every table in which source and lake differ, and every one that could not be read."""
    yield from differing(case.seen.known.verified)
    yield from unreadable(case.seen.known.verified)


def unreadable(tables: Iterable[VerifiedTable]) -> Iterator[Finding]:
    """Report those of these tables of which the newest comparison could not read a side."""
    for table in tables:
        if table.outcome == "unreadable":
            subject = f"{table.schema}.{table.name}"
            said = f"{subject} could not be compared at {table.compared_lsn}: {table.reason}"
            step = "nothing is known of its rows until a later verification has read it"
            yield Finding(
                UNREADABLE, subject, "critical", said, step, {"lsn": str(table.compared_lsn)}, table.compared_at
            )


def differing(tables: Iterable[VerifiedTable]) -> Iterator[Finding]:
    """Report those of these tables that differ, with the counts of the newest look at what differed."""
    for table in tables:
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
        yield Finding(SLUG, subject, "critical", said, step, numbers, table.differing_at)
