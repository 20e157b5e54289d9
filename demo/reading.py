"""How long every change took from its commit at the source to a reader of the lake, from what is landed and from the cuts."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise

import pyarrow.compute as pc

from penstock.landing.zone import LandingZone
from penstock.ledger.records import CutRecord, WindowRecord


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
        committed = zone.columns(file.path, ["committed_at"])["committed_at"]
        for micros in pc.cast(committed, "int64").to_pylist():
            yield seen, micros / 1e6
