"""Windows follow each other without a gap, whoever else is at work."""

from dataclasses import replace

import pytest

from penstock.errors import LedgerError, Trouble
from penstock.ledger import Ledger
from penstock.ledger.merge_queue import PublishedTable
from penstock.lsn import Lsn
from penstock.shapes.timeline import RelationMapping
from penstock.wire.messages import RelationColumn
from tests.ledger.conftest import ORDERS, START, capture, copy, entry, facts, plan, publish, stage, start_copy, together


def test_a_window_is_planned_staged_and_confirmed(ledger: Ledger, running: str) -> None:
    attempt = plan(ledger, running, START, START + 100)
    (planned,) = ledger.windows.all(running)
    assert (planned.state, planned.from_lsn, planned.upto_lsn, planned.attempt) == (
        "planned",
        START,
        START + 100,
        attempt,
    )
    assert ledger.pipelines.get(running).position == START

    files = [entry(1, rows=3, size=10), entry(2, rows=4, size=20)]
    staged = stage(ledger, running, START, attempt, files=files, messages=7)
    assert (staged.state, staged.rows, staged.bytes, staged.messages, staged.files) == (
        "staged",
        7,
        30,
        7,
        tuple(files),
    )
    assert ledger.pipelines.get(running).position == START + 100

    assert ledger.windows.confirm(running, through=Lsn(START + 100)) == 1
    (confirmed,) = ledger.windows.all(running)
    assert confirmed.state == "confirmed"
    assert confirmed.planned_at < confirmed.staged_at


def test_a_window_starts_where_the_pipeline_stands(ledger: Ledger, running: str) -> None:
    capture(ledger, running, START, START + 100)

    for wrong in (START, START + 99, START + 101):
        with pytest.raises(LedgerError, match=rf"\[ledger-conflict\].*stands at {Lsn(START + 100)}"):
            plan(ledger, running, wrong, START + 200)


@pytest.mark.parametrize("length", [0, -1])
def test_a_window_has_a_length(ledger: Ledger, running: str, length: int) -> None:
    with pytest.raises(LedgerError, match="violation of window_"):
        plan(ledger, running, START, START + length)


def test_a_dead_planned_window_is_replaced_and_its_attempt_cannot_stage(ledger: Ledger, running: str) -> None:
    dead = plan(ledger, running, START, START + 100)
    alive = plan(ledger, running, START, START + 50)

    with pytest.raises(LedgerError, match="ledger-conflict"):
        stage(ledger, running, START, dead)
    assert stage(ledger, running, START, alive).upto_lsn == START + 50
    assert ledger.pipelines.get(running).position == START + 50


def test_a_staged_window_is_never_replaced(ledger: Ledger, running: str) -> None:
    attempt = plan(ledger, running, START, START + 100)
    staged = stage(ledger, running, START, attempt)

    with pytest.raises(LedgerError, match="ledger-conflict"):
        plan(ledger, running, START, START + 200)
    assert ledger.windows.all(running) == [staged]


def test_staging_again_after_a_lost_answer_returns_the_window(ledger: Ledger, running: str) -> None:
    attempt = plan(ledger, running, START, START + 100)
    staged = stage(ledger, running, START, attempt, files=[entry(1)])

    assert stage(ledger, running, START, attempt, files=[entry(1)]) == staged
    ledger.windows.confirm(running, through=Lsn(START + 100))
    assert stage(ledger, running, START, attempt, files=[entry(1)]).state == "confirmed"
    assert ledger.pipelines.get(running).position == START + 100


def test_what_was_never_planned_cannot_be_staged(ledger: Ledger, running: str) -> None:
    with pytest.raises(LedgerError, match="ledger-conflict"):
        stage(ledger, running, START, "nobody")


def test_of_many_stagers_at_once_one_wins(ledger: Ledger, running: str) -> None:
    for number in range(5):
        from_ = START + 10 * number
        attempts = [plan(ledger, running, from_, from_ + 10) for _ in range(3)]
        outcomes = together(*(lambda a=attempt, f=from_: stage(ledger, running, f, a) for attempt in attempts))

        assert [isinstance(outcome, LedgerError) for outcome in outcomes] == [True, True, False]
    assert [(window.from_lsn, window.upto_lsn) for window in ledger.windows.all(running)] == [
        (START + 10 * number, START + 10 * number + 10) for number in range(5)
    ]


def test_planners_and_stagers_at_once_leave_one_unbroken_row_of_windows(ledger: Ledger, running: str) -> None:
    def captures() -> int:
        done = 0
        for _ in range(12):
            position = ledger.pipelines.get(running).position
            assert position is not None
            try:
                stage(ledger, running, position, plan(ledger, running, position, position + 10))
                done += 1
            except LedgerError as error:
                if error.slug != "ledger-conflict":
                    raise
        return done

    done = together(captures, captures, captures)
    windows = [window for window in ledger.windows.all(running) if window.state == "staged"]
    assert len(windows) == sum(done)
    assert [window.from_lsn for window in windows] == [START + 10 * number for number in range(len(windows))]
    assert ledger.pipelines.get(running).position == START + 10 * len(windows)


def test_confirming_reaches_back_to_windows_that_a_crash_left_staged(ledger: Ledger, running: str) -> None:
    for from_ in (START, START + 10, START + 20):
        stage(ledger, running, from_, plan(ledger, running, from_, from_ + 10))

    assert ledger.windows.confirm(running, through=Lsn(START + 25)) == 2
    assert [window.state for window in ledger.windows.all(running)] == ["confirmed", "confirmed", "staged"]
    assert ledger.windows.confirm(running, through=Lsn(START + 30)) == 1
    assert ledger.windows.confirm(running, through=Lsn(START + 30)) == 0


def test_what_was_never_staged_cannot_be_confirmed(ledger: Ledger, running: str) -> None:
    with pytest.raises(LedgerError, match="ledger-conflict"):
        ledger.windows.confirm(running, through=Lsn(START + 1))


def test_windows_are_found_by_position_and_state(ledger: Ledger, running: str) -> None:
    capture(ledger, running, START, START + 10)
    capture(ledger, running, START + 10, START + 20)
    plan(ledger, running, START + 20, START + 30)

    assert [window.upto_lsn for window in ledger.windows.all(running, after=Lsn(START + 10))] == [
        START + 20,
        START + 30,
    ]
    assert [window.upto_lsn for window in ledger.windows.all(running, state="planned")] == [START + 30]


# --- relations -------------------------------------------------------------------------------------


def test_a_relation_has_one_number_per_content(ledger: Ledger, running: str) -> None:
    versions = ledger.shapes.relation_versions(running)
    widened = replace(ORDERS, columns=(*ORDERS.columns, RelationColumn("added", 20, -1, False)))
    assert (versions.number(ORDERS), versions.number(widened), versions.number(ORDERS)) == (1, 2, 1)
    assert versions.number(replace(ORDERS, oid=9)) == 1

    shapes = {(ORDERS.oid, 1): ORDERS, (ORDERS.oid, 2): widened}
    capture(ledger, running, START, START + 10, relations=shapes)
    capture(ledger, running, START + 10, START + 20, relations=shapes)

    found = ledger.shapes.relations(running)
    assert [(record.version, record.relation, record.from_lsn) for record in found] == [
        (1, ORDERS, START),
        (2, widened, START),
    ]
    again = ledger.shapes.relation_versions(running)
    assert (again.number(widened), again.number(replace(ORDERS, replica_identity="f"))) == (2, 3)


def test_a_relation_has_other_columns_from_the_window_on_that_says_so(ledger: Ledger, running: str) -> None:
    key, known = (ORDERS.oid, 1), RelationMapping((1, 2), (1,))
    for at, mapping in enumerate([None, known, known, RelationMapping((1, 3), (1,)), None]):
        there = {} if mapping is None else {key: mapping}
        capture(ledger, running, START + at, START + at + 1, relations={key: ORDERS}, mappings=there)

    found = [(each.version, each.from_lsn, each.mapping) for each in ledger.shapes.relations(running)]
    assert found == [(1, START, None), (1, START + 1, known), (1, START + 3, RelationMapping((1, 3), (1,)))]
    assert ledger.shapes.relation_versions(running).number(ORDERS) == 1

    ledger.pipelines.halt(running, slug="slot-lost", reason="gone")
    ledger.pipelines.begin_era(running)
    assert [(each.version, each.from_lsn, each.mapping) for each in ledger.shapes.relations(running)] == [(1, 0, None)]


def test_a_shape_keeps_of_what_its_columns_are_made(ledger: Ledger, running: str) -> None:
    named = replace(ORDERS, columns=(*ORDERS.columns, RelationColumn("added", 70001, -1, False, "citext")))

    capture(ledger, running, START, START + 10, relations={(ORDERS.oid, 1): ORDERS, (ORDERS.oid, 2): named})

    assert [record.relation for record in ledger.shapes.relations(running)] == [ORDERS, named]


def test_a_number_that_belongs_to_another_shape_is_refused_with_its_window(ledger: Ledger, running: str) -> None:
    capture(ledger, running, START, START + 10, relations={(ORDERS.oid, 1): ORDERS})
    attempt = plan(ledger, running, START + 10, START + 20)
    other = replace(ORDERS, name="renamed")

    with pytest.raises(LedgerError, match=f"expected shape 1 of relation {ORDERS.oid}"):
        stage(ledger, running, START + 10, attempt, relations={(ORDERS.oid, 1): other})
    assert ledger.pipelines.get(running).position == START + 10
    assert [record.relation for record in ledger.shapes.relations(running)] == [ORDERS]


def test_the_shapes_of_a_dead_attempt_are_not_numbered(ledger: Ledger, running: str) -> None:
    dead = plan(ledger, running, START, START + 10)
    ledger.shapes.relation_versions(running).number(ORDERS)
    plan(ledger, running, START, START + 10)
    with pytest.raises(LedgerError):
        stage(ledger, running, START, dead, relations={(ORDERS.oid, 1): ORDERS})

    assert ledger.shapes.relations(running) == []


# --- what is due -----------------------------------------------------------------------------------


def test_windows_are_due_from_the_table_that_has_least(ledger: Ledger, ready: str) -> None:
    for from_ in (START, START + 10, START + 20):
        capture(ledger, ready, from_, from_ + 10, files=[entry(1)])
    publish(ledger, ready, Lsn(START + 20), [PublishedTable(1, 21)])

    queue = ledger.merges.to_merge(ready)
    assert [window.upto_lsn for window in queue.windows] == [START + 10, START + 20, START + 30]
    assert [(table.oid, table.complete_through) for table in queue.tables] == [(1, START + 20), (2, START)]
    assert (queue.upto, queue.last_cut.lsn if queue.last_cut else None) == (START + 30, START + 20)

    publish(ledger, ready, Lsn(START + 20), [PublishedTable(2, 22)])
    assert [window.upto_lsn for window in ledger.merges.to_merge(ready).windows] == [START + 30]


def test_a_paused_table_delays_no_other_and_comes_back_where_it_was(ledger: Ledger, ready: str) -> None:
    ledger.tables.stop(ready, {2: Trouble.usual("divergence", "a row is missing")})
    capture(ledger, ready, START, START + 10)
    publish(ledger, ready, Lsn(START + 10), [PublishedTable(1)])
    assert ledger.merges.to_merge(ready).windows == ()

    ledger.tables.resume(ready, 2)
    assert [window.from_lsn for window in ledger.merges.to_merge(ready).windows] == [START]


def test_a_copied_table_is_due_from_the_first_change_that_its_snapshot_may_not_have_seen(
    ledger: Ledger, ready: str
) -> None:
    for number, max_xid in enumerate((8, 9, 7, None)):
        from_ = START + 10 * number
        capture(ledger, ready, from_, from_ + 10, files=[entry(3, rows=number, max_xid=max_xid)])
    publish(ledger, ready, Lsn(START + 40), [PublishedTable(1), PublishedTable(2)])
    ledger.tables.save(ready, [facts(3, "c")])
    assert ledger.merges.to_merge(ready).windows == ()

    start_copy(ledger, ready, 3, copy_id="late", snapshot="9:12:10", lsn=Lsn(START + 35))
    assert ledger.merges.to_merge(ready).rebuilds == ()
    ledger.loads.finish_copy(ready, copy_id="late", oid=3, files=[entry(3, version=0)])

    queue = ledger.merges.to_merge(ready)
    assert [window.from_lsn for window in queue.windows] == [START + 10, START + 20, START + 30]
    assert [(table.oid, table.state) for table in queue.tables] == [(1, "ready"), (2, "ready")]
    assert [(each.oid, each.snapshot, each.files) for each in queue.rebuilds] == [
        (3, "9:12:10", (entry(3, version=0),))
    ]


def test_a_snapshot_that_saw_everything_needs_no_window(ledger: Ledger, ready: str) -> None:
    capture(ledger, ready, START, START + 10, files=[entry(3, max_xid=8)])
    publish(ledger, ready, Lsn(START + 10), [PublishedTable(1), PublishedTable(2)])
    ledger.tables.save(ready, [facts(3, "c")])
    copy(ledger, ready, 3, copy_id="late", lsn=Lsn(START + 10), snapshot="9:9:")

    queue = ledger.merges.to_merge(ready)
    assert (queue.windows, [each.oid for each in queue.rebuilds]) == ((), [3])


def test_a_copied_table_waits_until_the_pipeline_has_reached_its_snapshot(ledger: Ledger, ready: str) -> None:
    ledger.tables.save(ready, [facts(3, "c")])
    copy(ledger, ready, 3, copy_id="late", lsn=Lsn(START + 11))
    capture(ledger, ready, START, START + 10)
    early = ledger.merges.to_merge(ready)
    assert ([table.oid for table in early.tables], early.rebuilds) == ([1, 2], ())
    with pytest.raises(LedgerError, match=r"but \[3\] were"):
        publish(ledger, ready, Lsn(START + 10), [PublishedTable(3, 31, "late")])

    capture(ledger, ready, START + 10, START + 11)
    assert [each.oid for each in ledger.merges.to_merge(ready).rebuilds] == [3]
    publish(ledger, ready, Lsn(START + 11), [PublishedTable(3, 31, "late")])


def test_a_table_copied_again_gets_the_changes_that_its_snapshot_missed_though_it_had_them_before(
    ledger: Ledger, ready: str
) -> None:
    capture(ledger, ready, START, START + 10, files=[entry(1, rows=5, max_xid=9), entry(2)])
    publish(ledger, ready, Lsn(START + 10), [PublishedTable(1), PublishedTable(2)])
    copy(ledger, ready, 1, copy_id="again", lsn=Lsn(START + 10), snapshot="9:10:9")

    queue = ledger.merges.to_merge(ready)
    assert {table.oid: [file.rows for file in queue.files(table)] for table in queue.tables} == {2: []}
    assert [file.rows for window in queue.windows for file in window.files if file.oid == 1] == [5]
    assert [each.oid for each in queue.rebuilds] == [1]


def test_a_planned_window_is_not_due(ledger: Ledger, ready: str) -> None:
    plan(ledger, ready, START, START + 10)
    assert ledger.merges.to_merge(ready).windows == ()


def test_the_first_cut_is_due_without_any_window(ledger: Ledger, running: str) -> None:
    ledger.tables.save(running, [facts(1, "a")])
    copy(ledger, running, 1)

    queue = ledger.merges.to_merge(running)
    assert (queue.upto, queue.windows, [each.oid for each in queue.rebuilds]) == (START, (), [1])
