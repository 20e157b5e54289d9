"""What a verification came to, as plain data, and the error that it is for whoever asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.compare.report import TableComparison
from penstock.errors import LakeError
from penstock.ledger.verifications import Finding
from penstock.lsn import Lsn

UNPUBLISHED = "the source does not publish it"


@dataclass(frozen=True, slots=True)
class Verification:
    """Report one verification; one without a barrier has neither a number in the ledger nor a position."""

    findings: tuple[Finding, ...]
    number: int | None = None
    lsn: Lsn | None = None

    @property
    def differing(self) -> list[str]:
        """Name the tables in which source and lake differ."""
        return sorted({f"{each.schema}.{each.name}" for each in self.findings if each.outcome == "differs"})

    @property
    def unreadable(self) -> list[str]:
        """Name the tables of which a side could not be read."""
        return sorted({f"{each.schema}.{each.name}" for each in self.findings if each.outcome == "unreadable"})

    @property
    def rows(self) -> int:
        """Count the rows of the source that were compared."""
        return sum(each.source_rows for each in self.findings)

    def summary(self) -> dict[str, object]:
        """Return the figures as plain data for logs and XCom."""
        outcomes = [each.outcome for each in self.findings]
        recorded = {} if self.number is None else {"verification": self.number, "lsn": str(self.lsn)}
        return {
            **recorded,
            "rows": self.rows,
            **{outcome: outcomes.count(outcome) for outcome in ("equal", "differs", "skipped", "unreadable")},
            "differing": self.differing,
            "unread": self.unreadable,
        }


def finding(oid: int, found: TableComparison, **share: Any) -> Finding:
    """Return what a comparison of one table, or of one share, found."""
    if found.trouble is not None:
        return Finding(oid, found.schema, found.name, "unreadable", reason=str(found.trouble), **share)
    if not found.in_source:
        return Finding(oid, found.schema, found.name, "skipped", reason=UNPUBLISHED, **share)
    counts: dict[str, Any] = {**found.broken, **share}
    details = {
        "in_lake": found.in_lake,
        "counted_whole": found.whole,
        "left_out": found.left_out,
        "columns_missing": list(found.columns_missing),
        "columns_extra": list(found.columns_extra),
        "first": [{"kind": row.kind, "key": row.key, "columns": list(row.columns)} for row in found.first],
    }
    return Finding(
        oid,
        found.schema,
        found.name,
        "equal" if found.equal else "differs",
        source_rows=found.source_rows,
        lake_rows=found.lake_rows,
        reason=found.why_renamed,
        details=details,
        **counts,
    )


def require_equal(differing: Sequence[str], lsn: Lsn | str | None, unreadable: Sequence[str] = ()) -> None:
    """Raise LakeError: "verify-differs" when there are tables that differ, else "verify-unreadable" for those not compared."""
    at = "now" if lsn is None else f"at {lsn}"
    if differing:
        raise LakeError(
            "verify-differs",
            f"expected source and lake to be equal {at}, but these tables differ: {', '.join(differing)}; the log of "
            "the comparison has counts, columns and hashes of keys",
        )
    if unreadable:
        raise LakeError(
            "verify-unreadable",
            f"expected to read every table on both sides {at}, but not so: {', '.join(unreadable)}; the log of the "
            "comparison has the reasons, and all other tables were compared",
        )
