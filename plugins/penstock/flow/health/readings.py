"""Clocks, read so that a slow answer is not taken for a wrong clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Reading:
    """Hold a server's time, and the worker's before and after it was asked for."""

    at: datetime
    before: datetime
    after: datetime

    @property
    def ahead(self) -> tuple[float, float]:
        """Return by how many seconds it is ahead of the worker's clock, at least and at most."""
        return (self.at - self.after).total_seconds(), (self.at - self.before).total_seconds()
