"""What the demo says at the end: how much went through each stage, how fast, and how fresh the lake was.

Seconds of copy and merge include the start of Spark; they come from the ledger and from Airflow's task instances.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from rich.table import Table

from demo import reading
from demo.workload import Totals
from penstock.ledger.records import CutRecord, WindowRecord


@dataclass(frozen=True)
class Figures:
    """What one demo did; windows and cuts in order. Each list of seconds has one entry per run of that Spark task."""

    load: Totals
    copied_rows: int
    windows: Sequence[WindowRecord]
    cuts: Sequence[CutRecord]
    copy_seconds: Sequence[float]
    load_seconds: Sequence[float]
    merge_seconds: Sequence[float]
    reading_seconds: Sequence[float] = ()
    """Of every change that was merged, from its commit at the source to the cut that shows it."""

    @property
    def changes(self) -> int:
        """Count the changes captured."""
        return sum(window.rows for window in self.windows)

    def freshness(self) -> list[float]:
        """Return the age of each cut when it was published, in seconds."""
        return reading.ages(self.windows, self.cuts)


def table(figures: Figures) -> Table:
    """Return the figures of each stage as a table."""
    shown = Table("stage", "what", title="What went through", title_justify="left")
    for heading in ("how much", "seconds", "per second"):
        shown.add_column(heading, justify="right")
    for stage, what, how_much, seconds in _stages(figures):
        shown.add_row(stage, what, f"{how_much:,}", f"{seconds:.1f}", f"{how_much / seconds:,.0f}" if seconds else "")
    if ages := figures.freshness():
        what = f"age of {len(ages)} cuts when new: median, worst"
        shown.add_row("lake", what, "", f"{median(ages):.1f}", f"{max(ages):.1f} s")
    if figures.reading_seconds:
        what, spans = "from a commit to its cut: median, 95 %", sorted(figures.reading_seconds)
        worst = spans[int(len(spans) * 0.95)]
        shown.add_row("lake", what, f"{len(spans):,}", f"{median(spans):.1f}", f"{worst:.1f} s")
    return shown


def _stages(figures: Figures) -> Iterator[tuple[str, str, int, float]]:
    load, windows = figures.load, figures.windows
    yield "source", "transactions committed", load.transactions, load.seconds
    yield "copy", "rows into the landing zone", figures.copied_rows, sum(figures.copy_seconds)
    yield "load", "rows into the lake", figures.copied_rows, sum(figures.load_seconds)
    captured = sum(window.seconds or 0 for window in windows)
    yield "capture", f"changes in {len(windows)} windows", figures.changes, captured
    merges = len(figures.merge_seconds)
    yield "merge", f"changes in {merges} runs", figures.changes, sum(figures.merge_seconds)
