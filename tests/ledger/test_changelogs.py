"""The ledger knows when windows' transactions committed, how far history reaches, and which intervals are filled."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock.config.connections import Connection
from penstock.contract.manifest import ChangeCounts, FileEntry, microseconds
from penstock.errors import LakeError, Trouble
from penstock.jobs.plans import ChangelogPlan, TableResult
from penstock.ledger import Ledger
from penstock.ledger.changelogs import FillRecord
from penstock.lsn import Lsn
from stack.servers.postgres import Database
from tests.ledger.conftest import START, Lake, capture, facts, intend, publish, set_state

BEGUN = datetime(2026, 11, 1, tzinfo=UTC)


def hour(number: float) -> datetime:
    return BEGUN + timedelta(hours=number)


def file(low: datetime | None, high: datetime | None, rows: int = 3) -> FileEntry:
    ends = [microseconds(time) if time else None for time in (low, high)]
    return FileEntry(
        "f",
        1,
        1,
        rows,
        9,
        1,
        2,
        ("id",),
        ChangeCounts(inserts=rows),
        min_committed_at=ends[0],
        max_committed_at=ends[1],
    )


def begun(ledger: Ledger, name: str) -> str:
    """Make a pipeline whose slot was made at the hour 0."""
    ledger.pipelines.register(name, database="app", slot=f"slot_{name}", publication="pub")
    intend(ledger, name)
    ledger.pipelines.record_slot(name, consistent_point=START, source_time=hour(0))
    ledger.pipelines.finish_bootstrap(name)
    return name


def land(ledger: Ledger, name: str, number: int, *files: FileEntry) -> None:
    """Capture the nth window, which ends where the WAL did at the hour n."""
    ledger.changelogs.note_source_clock(name, at=hour(number), lsn=Lsn(START + number * 0x100))
    capture(ledger, name, START + (number - 1) * 0x100, START + number * 0x100, files=files)


def found(ledger: Ledger, name: str, start: float, end: float) -> list[Lsn]:
    work = ledger.changelogs.interval_work(name, from_time=hour(start), upto_time=hour(end))
    return [window.from_lsn for window in work.windows]


def fill(ledger: Ledger, name: str, start: float, end: float, **changes: Any) -> FillRecord:
    moved, called = changes.pop("pointers", []), changes.pop("called", None)
    frame = {"pipeline": name, "attempt": "a", "catalog": "lake", **changes}
    plan = ChangelogPlan(hour(start), hour(end), START, (), **frame)
    filled = TableResult(1, ("ns", "t"), None, 7, {"rows_written": 5}, 0.1)
    done = [filled, *(replace(filled, pointer=pointer, counts={}) for pointer in moved)]
    return ledger.changelogs.fill(name, plan, done, catalog=ledger.connection, called=called)


def test_an_intervals_windows_are_those_whose_commit_times_overlap_it(ledger: Ledger, name: str) -> None:
    begun(ledger, name)
    land(ledger, name, 1, file(hour(0.1), hour(0.5)), file(hour(0.2), hour(0.9)))
    land(ledger, name, 2)
    land(ledger, name, 3, file(hour(2), hour(3)))
    land(ledger, name, 4, file(hour(3.5), hour(3.6)), file(None, None))
    land(ledger, name, 5, file(None, None, rows=0))

    first, third, untold = (Lsn(START + place * 0x100) for place in (0, 2, 3))
    assert found(ledger, name, 0, 1) == [first, untold], "a file that tells no time may hold any"
    assert found(ledger, name, 0.9, 1) == [first, untold]
    assert found(ledger, name, 0.91, 1.5) == [untold]
    assert found(ledger, name, 1, 2) == [untold], "the interval's end is not part of it"
    assert found(ledger, name, 3, 4) == [third, untold]


def test_the_windows_of_an_interval_are_found_by_the_index(ledger: Ledger, control: Database, name: str) -> None:
    begun(ledger, name)
    control.execute(
        "insert into penstock.window (pipeline, from_lsn, upto_lsn, attempt, state, settings_digest, staged_at, committed)"
        " select %s, ('1/' || to_hex(n * 16))::pg_lsn, ('1/' || to_hex(n * 16 + 16))::pg_lsn, 'a', 'staged', 'd', now(),"
        " tstzrange(%s::timestamptz + n * interval '1 minute', %s::timestamptz + (n + 1) * interval '1 minute')"
        " from generate_series(1, 20000) n",
        name,
        hour(0),
        hour(0),
    )
    control.execute("analyze penstock.window")
    ((plan,),) = control.execute(
        "explain (analyze, format json) select from penstock.window where pipeline = %s and state <> 'planned' "
        "and committed && tstzrange(%s, %s)",
        name,
        hour(24),
        hour(25),
    )

    assert "window_by_commit_time" in str(plan)
    assert plan[0]["Plan"]["Actual Rows"] <= 62
    assert len(found(ledger, name, 24, 25)) == plan[0]["Plan"]["Actual Rows"]
    control.execute("delete from penstock.window where pipeline = %s", name)


def test_history_is_captured_through_the_clock_of_the_newest_position_that_capture_has_passed(
    ledger: Ledger, name: str
) -> None:
    begun(ledger, name)
    known = ledger.changelogs.history(name)
    assert (known.known_from, known.from_the_start) == (hour(0), True)
    assert known.captured_through is None, "the clock was read after the slot was made: commits may lie between"
    assert ledger.windows.complete_time(name, START) is None

    ledger.changelogs.note_source_clock(name, at=hour(1), lsn=Lsn(START + 0x200))
    capture(ledger, name, START, START + 0x100, files=[])
    assert ledger.changelogs.history(name).captured_through is None, "half of what the clock saw is captured"
    capture(ledger, name, START + 0x100, START + 0x200, files=[])
    assert ledger.changelogs.history(name).captured_through == hour(1)
    assert ledger.windows.complete_time(name, Lsn(START + 0x200)) == hour(1)

    ledger.changelogs.note_source_clock(name, at=hour(3), lsn=Lsn(START + 0x200))
    assert ledger.changelogs.history(name).captured_through == hour(3), "an idle source moves the clock alone"
    ledger.changelogs.note_source_clock(name, at=hour(2), lsn=Lsn(START + 0x200))
    assert ledger.changelogs.history(name).captured_through == hour(3), "two captures may note in either order"


def test_history_begins_where_the_oldest_window_does(ledger: Ledger, control: Database, name: str) -> None:
    begun(ledger, name)
    for number in range(1, 5):
        land(ledger, name, number, file(hour(number - 0.5), hour(number - 0.5)))
    assert ledger.changelogs.history(name).known_from == hour(0)

    control.execute("delete from penstock.window where pipeline = %s and from_lsn < %s", name, str(Lsn(START + 0x200)))
    known = ledger.changelogs.history(name)
    assert (known.known_from, known.from_the_start) == (hour(2), False)

    control.execute("delete from penstock.window where pipeline = %s", name)
    known = ledger.changelogs.history(name)
    assert (known.known_from, known.from_the_start) == (hour(4), False), "all went: history begins at the position"


def test_a_ledger_that_never_saw_the_clock_knows_no_history(ledger: Ledger, running: str) -> None:
    capture(ledger, running, START, START + 0x100, files=[])
    known = ledger.changelogs.history(running)

    assert (known.captured_through, known.known_from, known.from_the_start) == (None, None, False)


def test_a_fill_moves_the_pointers_with_its_record_and_takes_the_place_of_what_lay_within(
    ledger: Ledger, name: str, lake_rows: Lake
) -> None:
    begun(ledger, name)
    pointers = lake_rows.add("t__changelog")
    fill(ledger, name, 0, 1)
    fill(ledger, name, 1, 2)
    fill(ledger, name, 2, 4)

    filled = fill(ledger, name, 0, 2, attempt="b", catalog=lake_rows.catalog, pointers=pointers)

    assert lake_rows.shows() == {"t__changelog": ("t__changelog-1", "t__changelog-0")}
    assert (filled.attempt, filled.rows, filled.late_rows) == ("b", 5, 0)
    intervals = [(each.from_time, each.upto_time) for each in ledger.changelogs.fills(name)]
    assert intervals == [(hour(2), hour(4)), (hour(0), hour(2))]
    assert [each.from_time for each in ledger.changelogs.fills(name, since=hour(2), before=hour(3))] == [hour(2)]


def test_a_fill_whose_pointer_another_session_moved_leaves_neither_pointer_nor_record(
    ledger: Ledger, name: str, lake_rows: Lake
) -> None:
    begun(ledger, name)
    pointers = lake_rows.add("t__changelog", "u__changelog")
    lake_rows.move("u__changelog", "elsewhere")

    with pytest.raises(LakeError, match=r"publish-conflict.*u__changelog"):
        fill(ledger, name, 0, 1, catalog=lake_rows.catalog, pointers=pointers)

    assert lake_rows.shows()["t__changelog"] == ("t__changelog-0", None)
    assert ledger.changelogs.fills(name) == []


def test_late_changes_are_counted_on_the_fill_that_lacks_them_and_no_later_one(ledger: Ledger, name: str) -> None:
    begun(ledger, name)
    first = fill(ledger, name, 0, 1)
    ledger.changelogs.note_late(name, first, rows=2, message="late")
    ledger.changelogs.note_late(name, first, rows=3, message="late")
    assert [each.late_rows for each in ledger.changelogs.fills(name)] == [5]

    fill(ledger, name, 0, 1, attempt="b")
    ledger.changelogs.note_late(name, first, rows=1, message="late")

    assert [each.late_rows for each in ledger.changelogs.fills(name)] == [0]
    assert [event.slug for event in ledger.events.all(name)] == ["changes-late"] * 3


def test_work_on_an_interval_holds_dropped_and_paused_tables_too(ledger: Ledger, name: str) -> None:
    begun(ledger, name)
    ledger.tables.save(name, [facts(1, "a"), facts(2, "b")])
    ledger.tables.stop(name, {1: Trouble.usual("schema-change", "for this test")})
    set_state(ledger, name, 2, "dropped")

    work = ledger.changelogs.interval_work(name, from_time=hour(0), upto_time=hour(1))

    assert [(table.name, table.state) for table in work.tables] == [("a", "paused"), ("b", "dropped")]


def test_history_is_readable_on_a_connection_of_its_own(connection: Connection, ledger: Ledger, name: str) -> None:
    begun(ledger, name)

    assert Ledger(connection).changelogs.history(name) == ledger.changelogs.history(name)


def complete_as_of(ledger: Ledger, name: str) -> datetime | None:
    with ledger.page.panels() as panel:
        (row,) = panel.pipelines(name)
    return row.as_of


def test_a_lake_that_lacks_nothing_is_as_fresh_as_the_last_look_at_its_source(ledger: Ledger, name: str) -> None:
    begun(ledger, name)
    ledger.tables.save(name, [facts(1, "a")])
    assert complete_as_of(ledger, name) is None, "there is no cut"
    publish(ledger, name, START, [])
    assert complete_as_of(ledger, name) == hour(0), "a first copy shows the source as it was when the slot was made"

    land(ledger, name, 1)
    assert complete_as_of(ledger, name) == hour(1), "a window without changes"
    ledger.changelogs.note_source_clock(name, at=hour(9), lsn=Lsn(START + 0x100))
    assert complete_as_of(ledger, name) == hour(9), "nothing to bring is not late"
    ledger.changelogs.note_source_clock(name, at=hour(9), lsn=Lsn(START + 0x100), looked_at=hour(10))
    assert complete_as_of(ledger, name) == hour(10), "an idle standby knows no time of a commit, but its own clock"

    ledger.changelogs.note_source_clock(name, at=hour(11), lsn=Lsn(START + 0x300))
    assert complete_as_of(ledger, name) == hour(10), "there is something to bring"
    capture(ledger, name, START + 0x100, START + 0x200, files=[])
    assert complete_as_of(ledger, name) == hour(10), "a window of a backlog is as old as the look that saw its end"
    capture(ledger, name, START + 0x200, START + 0x300, files=[file(hour(10), hour(11))])
    assert complete_as_of(ledger, name) == hour(10), "a change waits for its merge"
    publish(ledger, name, Lsn(START + 0x300), [])
    assert complete_as_of(ledger, name) == hour(11)


def test_the_clock_of_the_oldest_window_that_is_not_merged_is_not_forgotten(ledger: Ledger, name: str) -> None:
    begun(ledger, name)
    publish(ledger, name, START, [])
    capture(ledger, name, START, START + 0x100, files=[file(hour(1), hour(2))])
    ledger.changelogs.note_source_clock(name, at=hour(3), lsn=Lsn(START + 0x100))

    ledger.maintenance.forget_landed(name, before=hour(9))

    assert complete_as_of(ledger, name) == hour(0)
