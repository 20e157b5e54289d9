"""Which transactions a snapshot of the source has seen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Hold what a snapshot saw: its text is `xmin:xmax:xip,xip,...`.

    Source: PostgreSQL documentation, "Transaction ID and Snapshot Information Functions" (pg_snapshot).
    """

    xmin: int
    xmax: int
    running: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> Snapshot:
        """Read the text of pg_current_snapshot()."""
        xmin, xmax, running = text.split(":")
        return cls(int(xmin), int(xmax), frozenset(map(int, running.split(","))) if running else frozenset())

    def sees(self, xid: int) -> bool:
        """Return whether the commit of a transaction was seen."""
        return xid < self.xmin or (xid < self.xmax and xid not in self.running)
