"""What a verification came to, as plain data, and the error that it is for whoever asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.errors import LakeError
from penstock.ledger.verifications import Finding
from penstock.lsn import Lsn


@dataclass(frozen=True, slots=True)
class Verification:
    """Report one verification."""

    number: int
    lsn: Lsn
    findings: tuple[Finding, ...]

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
        return {
            "verification": self.number,
            "lsn": str(self.lsn),
            "rows": self.rows,
            **{outcome: outcomes.count(outcome) for outcome in ("equal", "differs", "skipped", "unreadable")},
            "differing": self.differing,
            "unread": self.unreadable,
        }


def require_equal(differing: Sequence[str], lsn: Lsn | str, unreadable: Sequence[str] = ()) -> None:
    """Raise LakeError: "verify-differs" when there are tables that differ, else "verify-unreadable" for those not compared."""
    if differing:
        raise LakeError(
            "verify-differs",
            f"expected source and lake to be equal at {lsn}, but these tables differ: {', '.join(differing)}; the log of "
            "the comparison has counts, columns and hashes of keys",
        )
    if unreadable:
        raise LakeError(
            "verify-unreadable",
            f"expected to read every table on both sides at {lsn}, but not so: {', '.join(unreadable)}; the log of the "
            "comparison has the reasons, and all other tables were compared",
        )
