"""What a capture says that it has brought: per window for the log, in sum for XCom, metrics and lineage. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.flow.schema.evidence import Landed
from penstock.lsn import Lsn
from penstock.source import server_info
from penstock.units import several


@dataclass(frozen=True, slots=True)
class WindowReport:
    """Say what one window brought."""

    from_lsn: Lsn
    upto_lsn: Lsn
    changes: int
    transactions: int
    bytes: int
    seconds: float
    behind: int
    """Bytes of WAL that were already written beyond the window when it was planned."""
    changes_of: Mapping[int, int] = field(default_factory=dict)
    """The changes per table's oid."""
    ahead: bool = False
    """Whether it was decoded while the window before it was written."""

    @classmethod
    def of(
        cls, from_lsn: Lsn, upto: Lsn, landed: Landed | None, seconds: float, end: server_info.Position, *, ahead: bool
    ) -> WindowReport:
        """Sum up what was landed, None where there was no new WAL."""
        files = landed.files if landed else ()
        return cls(
            from_lsn=from_lsn,
            upto_lsn=upto,
            changes=sum(entry.rows for entry in files),
            transactions=landed.totals.transactions if landed else 0,
            bytes=sum(entry.bytes for entry in files),
            seconds=seconds,
            behind=end.flushed - upto,
            changes_of=_sums((entry.oid, entry.rows) for entry in files),
            ahead=ahead,
        )

    def line(self) -> str:
        """Return the window as one line of a log."""
        return (
            f"window {self.from_lsn}-{self.upto_lsn}: {self.upto_lsn - self.from_lsn} bytes of WAL, {several(self.changes, 'change')} in "
            f"{several(self.transactions, 'transaction')}, {self.seconds:.1f} s{' after it was read ahead' if self.ahead else ''}, "
            f"{self.behind} bytes of WAL behind"
        )


@dataclass(frozen=True, slots=True)
class CaptureReport:
    """Sum up one run of capture."""

    windows: tuple[WindowReport, ...]

    @property
    def changes(self) -> int:
        """Count the changes landed."""
        return sum(window.changes for window in self.windows)

    @property
    def changes_of(self) -> dict[int, int]:
        """Count the changes landed per table's oid."""
        return _sums(each for window in self.windows for each in window.changes_of.items())

    @property
    def upto(self) -> Lsn:
        """Name the position through which everything is landed."""
        return self.windows[-1].upto_lsn

    @property
    def caught_up(self) -> bool:
        """Return whether the last window reached the end of the WAL as it was when it was planned."""
        return not self.windows[-1].behind

    def summary(self) -> dict[str, Any]:
        """Return the figures as plain data for logs and XCom."""
        seconds = sum(window.seconds for window in self.windows)
        return {
            "windows": len(self.windows),
            "changes": self.changes,
            "transactions": sum(window.transactions for window in self.windows),
            "bytes": sum(window.bytes for window in self.windows),
            "upto": str(self.upto),
            "caught_up": self.caught_up,
            "seconds": round(seconds, 3),
            "changes_per_second": round(self.changes / seconds) if seconds else 0,
        }


def _sums(counted: Iterable[tuple[int, int]]) -> dict[int, int]:
    sums = Counter[int]()
    for oid, count in counted:
        sums[oid] += count
    return dict(sums)
