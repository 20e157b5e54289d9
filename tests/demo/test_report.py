"""The report's figures are those of ledger, load and task instances, and its freshness means what it says."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from io import StringIO

from rich.console import Console

from demo.report import Figures, table
from demo.workload import Totals
from penstock.ledger.records import CutRecord, WindowRecord
from penstock.lsn import Lsn

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def window(upto: int, rows: int, planned: timedelta) -> WindowRecord:
    return WindowRecord(
        pipeline="shop",
        from_lsn=Lsn(upto - 100),
        upto_lsn=Lsn(upto),
        attempt="a",
        state="confirmed",
        rows=rows,
        bytes=1,
        transactions=1,
        messages=1,
        files=(),
        source_time=NOON + planned,
        planned_at=NOON,
        staged_at=NOON,
        seconds=2.0,
        era=1,
        digest=None,
    )


def cut(lsn: int, published: timedelta) -> CutRecord:
    return CutRecord("shop", Lsn(lsn), "a", [], 0, NOON + published, 1, 9)


def figures() -> Figures:
    return Figures(
        load=Totals(Counter(click=600), Counter(), 60.0),
        copied_rows=1000,
        windows=[window(200, 3000, timedelta(0)), window(300, 1000, timedelta(seconds=60))],
        cuts=[cut(100, timedelta(0)), cut(200, timedelta(seconds=30)), cut(300, timedelta(seconds=100))],
        copy_seconds=[4.0],
        load_seconds=[5.0],
        merge_seconds=[20.0, 30.0],
    )


def printed(shown: Figures) -> list[list[str]]:
    console = Console(width=150, file=StringIO())
    with console.capture() as captured:
        console.print(table(shown))
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in captured.get().splitlines() if "│" in line]


def test_a_cut_is_as_old_as_the_moment_of_the_source_that_it_shows():
    # the first cut is the copy's, which no window ends at
    assert figures().freshness() == [30.0, 40.0]


def test_each_stage_shows_how_much_went_through_and_how_fast():
    assert printed(figures()) == [
        ["source", "transactions committed", "600", "60.0", "10"],
        ["copy", "rows into the landing zone", "1,000", "4.0", "250"],
        ["load", "rows into the lake", "1,000", "5.0", "200"],
        ["capture", "changes in 2 windows", "4,000", "4.0", "1,000"],
        ["merge", "changes in 2 runs", "4,000", "50.0", "80"],
        ["lake", "age of 2 cuts when new: median, worst", "", "35.0", "40.0 s"],
    ]


def test_a_stage_that_has_not_run_shows_no_rate():
    nothing = Figures(Totals(), 0, [], [], [], [], [])

    assert [line[-1] for line in printed(nothing)] == [""] * 5
