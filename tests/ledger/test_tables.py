from dataclasses import replace

import pytest

from penstock.errors import LakeError, LedgerError, Trouble
from penstock.ledger import Ledger
from penstock.ledger.loads import NewRead
from penstock.ledger.merge_queue import PublishedTable
from penstock.lsn import Lsn
from penstock.shapes.accepted import Accepted, GonePartition, HeldBack, OpenQuestion
from penstock.shapes.known_shape import KnownShape
from penstock.shapes.partition_bounds import Condition
from tests.ledger.conftest import START, capture, copy, entry, facts, publish, set_state, start_copy, together
from tests.shapes.tables import shape

ACCEPTED = Accepted(
    shape(enums={900: ("a", 'we"ird')}, composites={901: (("x", 23, -1),)}, hidden={4: "g"}),
    (
        OpenQuestion("file", 1, START),
        OpenQuestion("label", 900, START, checked=True),
        OpenQuestion("values", 2, START, held_back=HeldBack((23, -1), "705", (("n is wider", 7), ("it again", None)))),
    ),
    gone=(GonePartition(9, "p9", (Condition(1, "int", "1", None), Condition(2, "text", values=("a", None))), START),),
)


def states(ledger: Ledger, name: str) -> dict[int, str]:
    return {table.oid: table.state for table in ledger.tables.all(name)}


def start(ledger: Ledger, name: str, copy_id: str, *oids: int) -> None:
    start_copy(ledger, name, *oids, copy_id=copy_id, snapshot="1:1:")


def test_tables_are_remembered_with_their_columns_and_facts(ledger: Ledger, running: str) -> None:
    known = facts(4_000_000_000, 'we"ird', target=("ns", "s", 'we"ird'), accepted=ACCEPTED)
    ledger.tables.save(running, [known])
    (table,) = ledger.tables.all(running)

    assert (table.oid, table.name, table.target, table.columns) == (known.oid, 'we"ird', known.target, known.columns)
    assert (table.accepted, table.state) == (ACCEPTED, "new")


def test_saving_again_takes_over_what_changed_and_keeps_the_state(ledger: Ledger, ready: str) -> None:
    ledger.tables.save(ready, [facts(1, "renamed", target=("ns", "shop", "a"), identity="f")])

    table = next(table for table in ledger.tables.all(ready) if table.oid == 1)
    assert (table.name, table.identity, table.state, table.complete_through) == ("renamed", "f", "ready", START)


def test_two_tables_never_share_a_target(ledger: Ledger, ready: str) -> None:
    with pytest.raises(LakeError, match="target-clash"):
        ledger.tables.save(ready, [facts(3, "c", target=("ns", "shop", "a"))])
    assert states(ledger, ready) == {1: "ready", 2: "ready"}


def test_two_tables_may_swap_their_targets(ledger: Ledger, ready: str) -> None:
    ledger.tables.save(ready, [facts(1, "b"), facts(2, "a")])

    assert {table.oid: table.target[-1] for table in ledger.tables.all(ready)} == {1: "b", 2: "a"}


def test_a_dropped_table_leaves_its_target_to_another_and_may_come_back(ledger: Ledger, ready: str) -> None:
    set_state(ledger, ready, 1, "dropped")
    ledger.tables.save(ready, [facts(9, "a")])
    assert states(ledger, ready) == {1: "dropped", 9: "new", 2: "ready"}

    set_state(ledger, ready, 9, "dropped")
    ledger.tables.save(ready, [facts(1, "a")])
    assert states(ledger, ready)[1] == "new"


def test_a_table_without_a_copy_or_a_position_cannot_pretend(ledger: Ledger, running: str) -> None:
    ledger.tables.save(running, [facts(1, "a")])

    for state in ("copied", "ready", "paused"):
        with pytest.raises(LedgerError, match="violation of table_"):
            set_state(ledger, running, 1, state)


def test_pausing_says_why_and_resuming_goes_back(ledger: Ledger, ready: str) -> None:
    ledger.tables.stop(ready, {1: Trouble.usual("divergence", "a row is missing")})
    (paused,) = (table for table in ledger.tables.all(ready) if table.oid == 1)
    assert (paused.state, paused.paused_slug, paused.paused_from_state) == ("paused", "divergence", "ready")
    ledger.tables.stop(ready, {1: Trouble.usual("schema-change", "a column changed")})
    (again,) = (table for table in ledger.tables.all(ready) if table.oid == 1)
    assert (again.paused_slug, again.paused_from_state) == ("schema-change", "ready")
    assert [(event.slug, event.table_oid) for event in ledger.events.all(ready)] == [
        ("schema-change", 1),
        ("divergence", 1),
    ]

    resumed = ledger.tables.resume(ready, 1)
    assert (resumed.state, resumed.paused_slug, resumed.paused_from_state) == ("ready", None, None)
    with pytest.raises(LedgerError, match="to be paused, but it is ready"):
        ledger.tables.resume(ready, 1)


def test_a_dropped_table_is_not_paused_and_no_event_says_so(ledger: Ledger, ready: str) -> None:
    set_state(ledger, ready, 1, "dropped")

    with pytest.raises(LedgerError, match="not to be dropped"):
        ledger.tables.stop(ready, {1: Trouble.usual("divergence", "x")})
    assert ledger.events.all(ready) == []


# --- copies ----------------------------------------------------------------------------------------


def test_a_copy_takes_its_tables_from_copying_to_copied(ledger: Ledger, running: str) -> None:
    ledger.tables.save(running, [facts(1, "a"), facts(2, "b")])
    started = start_copy(ledger, running, 1, 2)
    assert [(record.oid, record.state, record.lsn, record.snapshot) for record in started] == [
        (1, "copying", START, "700:705:701"),
        (2, "copying", START, "700:705:701"),
    ]
    assert states(ledger, running) == {1: "copying", 2: "copying"}

    done = ledger.loads.finish_copy(running, copy_id="c", oid=1, files=[entry(1, rows=5), entry(1, rows=6)])
    assert (done.state, done.rows, len(done.files)) == ("ready", 11, 2)
    assert states(ledger, running) == {1: "copied", 2: "copying"}
    assert [record.oid for record in ledger.loads.copies(running, state="copying")] == [2]


def test_finishing_again_after_a_lost_answer_returns_the_copy(ledger: Ledger, running: str) -> None:
    ledger.tables.save(running, [facts(1, "a")])
    start(ledger, running, "c", 1)
    done = ledger.loads.finish_copy(running, copy_id="c", oid=1, files=[entry(1)])

    assert ledger.loads.finish_copy(running, copy_id="c", oid=1, files=[entry(1)]) == done
    publish(ledger, running, START, [PublishedTable(1, 5, "c")])
    assert ledger.loads.finish_copy(running, copy_id="c", oid=1, files=[entry(1)]).state == "done"
    assert states(ledger, running) == {1: "ready"}


def test_after_a_crash_only_the_unfinished_tables_are_copied_again(ledger: Ledger, running: str) -> None:
    ledger.tables.save(running, [facts(1, "a"), facts(2, "b")])
    start(ledger, running, "dead", 1, 2)
    ledger.loads.finish_copy(running, copy_id="dead", oid=1, files=[entry(1)])
    start(ledger, running, "next", 2)

    with pytest.raises(LedgerError, match="expected copy dead to be the newest of table 2"):
        ledger.loads.finish_copy(running, copy_id="dead", oid=2, files=[entry(2)])
    ledger.loads.finish_copy(running, copy_id="next", oid=2, files=[entry(2)])
    assert {(record.copy_id, record.oid, record.state) for record in ledger.loads.copies(running)} == {
        ("dead", 1, "ready"),
        ("next", 2, "ready"),
    }


def test_a_first_copy_is_loaded_as_its_table_is_known_by_then(ledger: Ledger, running: str) -> None:
    ledger.tables.save(running, [facts(1, "a")])
    copy(ledger, running, 1)
    ledger.tables.save(running, [facts(1, "a", identity="f", accepted=ACCEPTED)])

    (load,) = ledger.loads.copies(running)
    assert (load.identity, load.accepted.shape) == ("f", ACCEPTED.shape)
    publish(ledger, running, START, [PublishedTable(1, 21, "first")])
    (table,) = ledger.tables.all(running)
    assert (table.state, table.identity, table.accepted) == ("ready", "f", ACCEPTED)


def test_starting_the_same_copy_again_keeps_what_is_finished(ledger: Ledger, running: str) -> None:
    ledger.tables.save(running, [facts(1, "a"), facts(2, "b")])
    start(ledger, running, "c", 1, 2)
    start(ledger, running, "c", 1, 2)

    ledger.loads.finish_copy(running, copy_id="c", oid=1, files=[])
    assert [record.state for record in ledger.loads.copies(running)] == ["ready", "copying"]


def test_a_table_that_is_unknown_or_dropped_or_in_the_lake_is_not_copied_for_the_first_time(
    ledger: Ledger, ready: str
) -> None:
    ledger.tables.save(ready, [facts(3, "c")])
    set_state(ledger, ready, 2, "dropped")

    for other in (99, 2, 1):
        with pytest.raises(LedgerError, match="ledger-conflict"):
            ledger.loads.start_reads(
                ready, copy_id="c", snapshot="1:1:", lsn=START, reads=[NewRead(oid) for oid in (3, other)]
            )
    assert states(ledger, ready) == {1: "ready", 2: "dropped", 3: "new"}
    assert [record.copy_id for record in ledger.loads.copies(ready)] == ["first", "first"]


def test_a_table_dropped_while_it_was_copied_stays_dropped(ledger: Ledger, running: str) -> None:
    ledger.tables.save(running, [facts(1, "a")])
    start(ledger, running, "c", 1)
    ledger.membership.leave(running, 1, through=START, discard=False, message="it left")

    with pytest.raises(LedgerError, match="or the table was dropped"):
        ledger.loads.finish_copy(running, copy_id="c", oid=1, files=[])
    assert states(ledger, running) == {1: "dropped"}


def test_a_table_paused_while_it_was_copied_comes_back_copied(ledger: Ledger, running: str) -> None:
    ledger.tables.save(running, [facts(1, "a")])
    start(ledger, running, "c", 1)
    ledger.tables.stop(running, {1: Trouble.usual("schema-change", "x")})
    ledger.loads.finish_copy(running, copy_id="c", oid=1, files=[])

    assert states(ledger, running) == {1: "paused"}
    assert ledger.tables.resume(running, 1).state == "copied"


def test_a_new_copy_of_a_ready_table_keeps_the_loaded_one(ledger: Ledger, ready: str) -> None:
    copy(ledger, ready, 1, copy_id="again", lsn=Lsn(START + 5))

    assert {(record.copy_id, record.oid, record.state) for record in ledger.loads.copies(ready)} == {
        ("first", 1, "done"),
        ("first", 2, "done"),
        ("again", 1, "ready"),
    }
    assert states(ledger, ready) == {1: "copied", 2: "ready"}


def test_of_two_copies_started_at_once_only_the_newest_finishes(ledger: Ledger, running: str) -> None:
    ledger.tables.save(running, [facts(1, "a")])
    together(lambda: start(ledger, running, "x", 1), lambda: start(ledger, running, "y", 1))
    outcomes = together(
        *(lambda c=c: ledger.loads.finish_copy(running, copy_id=c, oid=1, files=[]) for c in ("x", "y"))
    )

    assert sorted(isinstance(outcome, LedgerError) for outcome in outcomes) == [False, True]
    assert len(ledger.loads.copies(running)) == 1


WATCHED = ("ready", "copied")


def test_a_look_is_remembered_while_the_ledger_keeps_what_it_found(ledger: Ledger, ready: str) -> None:
    found = {table.oid: (f"stamp {table.oid}", table.accepted.shape) for table in ledger.tables.all(ready)}
    ledger.tables.note_looked(ready, found, WATCHED)
    assert ledger.tables.looked(ready, WATCHED) == {1: "stamp 1", 2: "stamp 2"}
    assert ledger.tables.looked(ready, ["paused"]) == {}

    ledger.tables.save(ready, [facts(1, "a")])
    assert ledger.tables.looked(ready, WATCHED) == {2: "stamp 2"}

    ledger.tables.stop(ready, {2: Trouble.usual("schema-change", "it changed")})
    assert ledger.tables.looked(ready, WATCHED) == {}


def test_a_look_that_found_something_else_than_the_ledger_has_is_not_remembered(ledger: Ledger, ready: str) -> None:
    ledger.tables.note_looked(ready, {1: ("stamp", shape(kind="p")), 9: ("stamp", shape())}, WATCHED)

    assert ledger.tables.looked(ready, WATCHED) == {}


def test_tables_can_be_left_out_of_the_list(ledger: Ledger, ready: str) -> None:
    assert [table.oid for table in ledger.tables.all(ready, but=[1, 77])] == [2]


def test_a_look_keeps_the_event_triggers_token_until_another_look_finds_another(ledger: Ledger, running: str) -> None:
    known = facts(1, "a")

    def tokens() -> list[str | None]:
        known = ledger.shapes.histories(running, [1], since=Lsn(START + 100))
        return [each.generation for each in known[1].found]

    def look(trigger: str, at: int, **words: list[int]) -> None:
        found = {} if words else {1: KnownShape.of(known.accepted.shape)}
        ledger.shapes.note(running, found, seen_at=Lsn(START + at), generation=trigger, **words)

    look("first", 1)
    ledger.tables.save(running, [known])
    assert tokens() == ["first"], "saving what was found asks for no trigger"
    look("first", 2)
    look("second", 3, unchanged=[1])
    assert tokens() == ["second"]
    look("", 4)
    assert tokens() == [""], "which may miss commands"


def test_what_was_logged_last_is_kept_until_the_trigger_may_have_missed_something(ledger: Ledger, running: str) -> None:
    ledger.tables.save(running, [facts(1, "a"), facts(2, "b")])
    known = KnownShape.of(facts(1, "a").accepted.shape)
    ledger.shapes.note(running, {1: known, 2: known}, seen_at=Lsn(START), generation="first")

    def logged(start: int, found: dict[int, KnownShape], *, missed: bool = False) -> dict[int, tuple[str | None, int]]:
        capture(ledger, running, START + start, START + start + 1, logged=found, missed=missed)
        histories = ledger.shapes.histories(running, [1, 2], since=Lsn(START + start + 1))
        assert {each.found[-1].generation for each in histories.values()} == {None if missed else "first"}
        return {oid: (each.before.generation, each.before.xid) for oid, each in histories.items() if each.before}

    one, other = replace(known, generation="first", xid=1 << 40), replace(known, generation="first", xid=7)
    assert logged(0, {1: one, 2: one}) == {1: ("first", 1 << 40), 2: ("first", 1 << 40)}
    assert logged(1, {1: replace(other, generation=None)}) == {1: (None, 7), 2: ("first", 1 << 40)}
    assert logged(2, {1: KnownShape(0, {}, gone=True)}) == {2: ("first", 1 << 40)}
    assert logged(3, {1: other}, missed=True) == {1: ("first", 7)}


def test_what_is_done_together_happens_all_or_none(ledger: Ledger, ready: str) -> None:
    trouble = Trouble.usual("divergence", "a row is missing")

    def stop_and_fail() -> None:
        with ledger.together(ready):
            ledger.tables.stop(ready, {1: trouble})
            ledger.tables.resume(ready, 2)  # which is not paused

    with pytest.raises(LedgerError, match="ledger-conflict"):
        stop_and_fail()

    assert {table.state for table in ledger.tables.all(ready)} == {"ready"}
    assert ledger.events.all(ready) == []
    with ledger.together(ready):
        ledger.tables.stop(ready, {1: trouble})
        ledger.tables.stop(ready, {2: trouble}, noted=True)
    assert {table.state for table in ledger.tables.all(ready)} == {"paused"}
    assert [event.table_oid for event in ledger.events.all(ready)] == [1]


@pytest.mark.parametrize(
    ("conflict", "verified", "differs", "suspected"),
    [
        pytest.param(None, None, False, False, id="nothing was met"),
        pytest.param(START, None, False, True, id="no comparison since the conflict"),
        pytest.param(Lsn(START + 1), START, False, True, id="a comparison before the conflict"),
        pytest.param(START, START, False, False, id="a comparison of what the conflict left"),
        pytest.param(START, Lsn(START + 1), True, True, id="rows that differ after the conflict"),
    ],
)
def test_health_and_page_suspect_the_same_tables(
    ledger: Ledger, ready: str, conflict: Lsn | None, verified: Lsn | None, differs: bool, suspected: bool
) -> None:
    update = "update penstock.table set conflict_lsn = %s, verified_through = %s, differs = %s where pipeline = %s and oid = 1"
    with ledger.tables.transaction() as transaction:
        transaction.connection.execute(update, [conflict, verified, differs, ready])

    judged = {table.oid: table.suspected for table in ledger.verifications.tables(ready)}
    with ledger.page.panels() as panel:
        shown = {table.oid: table.suspected for table in panel.tables(ready)}
    assert judged == shown == {1: suspected, 2: False}
