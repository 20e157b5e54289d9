"""The verdict on an interval of commit time: fill it, wait for it, or refuse it with the reason."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock.contract.manifest import ChangeCounts, FileEntry, microseconds
from penstock.errors import LedgerError
from penstock.flow.changelog.coverage import Interval, Verdict, judge, may_hold, parse
from penstock.ledger.changelogs import HistoryRecord
from penstock.ledger.records import GapRecord
from penstock.lsn import Lsn


def day(number: int, hour: int = 0) -> datetime:
    return datetime(2026, 11, number, hour, tzinfo=UTC)


KNOWN = HistoryRecord(
    era=1,
    position=Lsn(5000),
    state="running",
    captured_through=day(20, 12),
    known_from=day(10, 6),
    from_the_start=True,
    known_era=1,
)
NOW = day(20, 13)
GAP = GapRecord("p", 1, "slot-lost", Lsn(1), Lsn(2), day(15, 8), day(15, 10))
AFTER_GAP = replace(KNOWN, era=2, gaps=(GAP,))


def decide(start: datetime, end: datetime, known: HistoryRecord = KNOWN, slack: float = 30) -> Verdict:
    return judge(known, Interval(start, end), slack=slack, now=NOW)


def refused(*arguments: Any) -> LedgerError:
    with pytest.raises(LedgerError) as caught:
        decide(*arguments)
    return caught.value


def test_an_interval_that_is_over_and_captured_is_filled() -> None:
    assert decide(day(11), day(12)) == Verdict()


def test_an_interval_whose_end_capture_has_not_passed_waits_and_says_for_what() -> None:
    waiting = decide(day(20), day(20, 12)).waiting

    assert waiting is not None
    assert "through 2026-11-20 12:00:30 UTC" in waiting
    assert "got 2026-11-20 12:00:00 UTC" in waiting
    assert decide(day(20), day(20, 12), KNOWN, 0).waiting is None


def test_waiting_for_a_halted_pipeline_says_that_it_is_halted() -> None:
    assert "is halted" in str(decide(day(20), day(20, 12), replace(KNOWN, state="halted")).waiting)


def test_an_interval_waits_for_the_first_capture() -> None:
    blank = replace(KNOWN, captured_through=None, known_from=None, from_the_start=False)

    assert "not run yet" in str(decide(day(11), day(12), blank).waiting)


@pytest.mark.parametrize(("start", "end"), [(day(12), day(11)), (day(12), day(12)), (day(20), day(21))])
def test_an_interval_that_is_backwards_empty_or_not_over_is_refused(start: datetime, end: datetime) -> None:
    error = refused(start, end)

    assert error.slug == "interval-invalid"
    assert f"[{start:%F %T} UTC, {end:%F %T} UTC)" in error.message


def test_an_interval_before_the_oldest_window_is_refused_with_the_first_complete_one() -> None:
    trimmed = replace(KNOWN, from_the_start=False)

    for start in (day(1), day(9), day(10)):
        error = refused(start, start + timedelta(days=1), trimmed)
        assert error.slug == "interval-gone"
        assert "complete is [2026-11-11 00:00:00 UTC, 2026-11-12 00:00:00 UTC)" in error.message
    assert decide(day(11), day(12), trimmed) == Verdict()


def test_the_first_complete_interval_may_begin_exactly_where_the_windows_do() -> None:
    trimmed = replace(KNOWN, from_the_start=False, known_from=day(11))

    assert "complete is [2026-11-11 00:00:00" in refused(day(9), day(10), trimmed).message
    assert decide(day(11), day(12), trimmed) == Verdict()


def test_an_interval_across_the_pipelines_beginning_is_filled_with_a_warning() -> None:
    (warning,) = decide(day(10), day(11)).warnings

    assert "begin at 2026-11-10 06:00:00 UTC" in warning
    assert refused(day(9), day(10)).slug == "interval-gone"


def test_an_interval_across_a_gap_between_eras_is_filled_and_the_gap_is_named() -> None:
    (warning,) = decide(day(15), day(16), AFTER_GAP).warnings

    assert "between 2026-11-15 08:00:00 UTC and 2026-11-15 10:00:00 UTC (slot-lost, after era 1)" in warning
    assert decide(day(16), day(17), AFTER_GAP) == Verdict()
    assert decide(day(14), day(15), AFTER_GAP) == Verdict()


def test_an_interval_of_an_era_that_retention_took_is_refused_and_one_within_the_gap_is_not() -> None:
    only_second = replace(AFTER_GAP, known_era=2, known_from=day(15, 10))

    assert refused(day(14), day(15), only_second).slug == "interval-gone"
    assert refused(day(15), day(16), only_second).slug == "interval-gone"
    assert len(decide(day(15, 8), day(15, 12), only_second).warnings) == 1


def test_a_file_may_hold_changes_of_an_interval_unless_its_times_say_otherwise() -> None:
    def entry(low: datetime | None, high: datetime | None, rows: int = 1) -> FileEntry:
        ends = (microseconds(low) if low else None, microseconds(high) if high else None)
        return FileEntry(
            "f",
            1,
            1,
            rows,
            9,
            1,
            1,
            ("id",),
            ChangeCounts(inserts=rows),
            min_committed_at=ends[0],
            max_committed_at=ends[1],
        )

    wanted = Interval(day(11), day(12))
    tick = timedelta(microseconds=1)
    assert may_hold(entry(day(10), day(11)), wanted)
    assert not may_hold(entry(day(10), day(11) - tick), wanted)
    assert may_hold(entry(day(12) - tick, day(13)), wanted)
    assert not may_hold(entry(day(12), day(13)), wanted)
    assert may_hold(entry(day(1), day(20)), wanted)
    assert may_hold(entry(None, None), wanted)
    assert not may_hold(entry(None, None, rows=0), wanted)


def test_times_given_by_hand_are_utc_unless_they_say_otherwise() -> None:
    wanted = parse("2026-11-11", "2026-11-12T02:00:00+02:00")

    assert (wanted.start, wanted.end) == (day(11), day(12))
    for bad in (("yesterday", "2026-11-12"), ("2026-11-11", None), (None, "2026-11-12")):
        with pytest.raises(LedgerError, match="interval-invalid"):
            parse(*bad)
