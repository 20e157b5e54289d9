"""Two numbers of freshness, never one: how old cuts are when they are new, and how long changes take to a cut.

Both come from the ledger and from what is landed, by the source's clock.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise

import pyarrow.compute as pc

from penstock.landing.zone import LandingZone
from penstock.ledger.records import CutRecord, WindowRecord


def ages(windows: Sequence[WindowRecord], cuts: Sequence[CutRecord]) -> list[float]:
    """Return, per cut, how many seconds old the source's newest moment in it was when readers saw it."""
    times = {window.upto_lsn: window.source_time for window in windows}
    found = ((cut.published_at, times.get(cut.lsn)) for cut in cuts)
    return [(seen - newest).total_seconds() for seen, newest in found if newest is not None]


def seconds(zone: LandingZone, windows: Sequence[WindowRecord], cuts: Sequence[CutRecord]) -> list[float]:
    """Return, per change of these windows, the seconds between its commit by the source's clock and the cut that holds it.

    Windows up to the first cut are left out: what came with the copy was not waited for.
    """
    return [
        seen.timestamp() - committed
        for before, cut in pairwise(cuts)
        for window in windows
        if before.lsn < window.upto_lsn <= cut.lsn
        for seen, committed in _changes(zone, window, cut.published_at)
    ]


def _changes(zone: LandingZone, window: WindowRecord, seen: datetime) -> Iterator[tuple[datetime, float]]:
    for file in window.files:
        committed = zone.read(file.path, ["committed_at"])["committed_at"]
        for micros in pc.cast(committed, "int64").to_pylist():
            yield seen, micros / 1e6
