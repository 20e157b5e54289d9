"""All tables and the ledger move together, once, and only for the newest attempt."""

import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from penstock.errors import LakeError, LedgerError, Trouble
from penstock.jobs.pointers import Fresh, Pointer
from penstock.ledger import Ledger
from penstock.ledger.iceberg_pointers import moved
from penstock.ledger.merge_queue import PublishedTable
from penstock.ledger.merges import NewCut
from penstock.ledger.records import CutRecord
from penstock.lsn import Lsn
from stack.servers.postgres import Database
from tests.ledger.conftest import START, Lake, bootstrap, capture, connection_to, copy, facts, publish_cut, together
from tests.waiting import wait_until

END = Lsn(START + 10)


@pytest.fixture
def due(ledger: Ledger, ready: str) -> str:
    """A pipeline with one window to merge."""
    capture(ledger, ready, START, END)
    return ready


def publish(ledger: Ledger, lake: Lake, name: str, attempt: str, pointers: list[Pointer], **changes: Any) -> CutRecord:
    catalog = {"catalog": connection_to(lake.database), "catalog_name": lake.catalog, "pointers": pointers}
    new = NewCut(attempt, END, [PublishedTable(1, 21), PublishedTable(2)], cuts_snapshot_id=9)
    return publish_cut(ledger, name, new, **(catalog | changes))


def unchanged(ledger: Ledger, lake: Lake, name: str) -> bool:
    """Return whether nothing at all was published after the first cut."""
    pointers = {table: now for table, (now, _) in lake.shows().items()}
    tables = {(table.state, table.complete_through) for table in ledger.tables.all(name)}
    cut = ledger.merges.last_cut(name)
    return (
        all(now == f"{table}-0" for table, now in pointers.items())
        and tables == {("ready", START)}
        and cut is not None
        and cut.lsn == START
    )


def test_pointers_tables_and_cut_move_together(ledger: Ledger, lake_rows: Lake, due: str) -> None:
    pointers = lake_rows.add("a", "_penstock_cuts")
    attempt = ledger.merges.begin(due)
    cut = publish(ledger, lake_rows, due, attempt, pointers, rows=42)

    assert lake_rows.shows() == {"a": ("a-1", "a-0"), "_penstock_cuts": ("_penstock_cuts-1", "_penstock_cuts-0")}
    assert (cut.lsn, cut.attempt, cut.rows) == (END, attempt, 42)
    assert [
        (entry["oid"], entry["state"], entry["complete_through"], entry["snapshot_id"]) for entry in cut.tables
    ] == [
        (1, "ready", str(END), 21),
        (2, "ready", str(END), 12),
    ]
    assert [(table.complete_through, table.snapshot_id) for table in ledger.tables.all(due)] == [(END, 21), (END, 12)]
    assert ledger.merges.to_merge(due).windows == ()
    assert ledger.merges.last_cut(due) == cut


def test_publishing_again_after_a_lost_answer_returns_the_cut(ledger: Ledger, lake_rows: Lake, due: str) -> None:
    pointers = lake_rows.add("a")
    attempt = ledger.merges.begin(due)
    cut = publish(ledger, lake_rows, due, attempt, pointers)

    assert publish(ledger, lake_rows, due, attempt, pointers) == cut
    ledger.merges.begin(due)
    ledger.pipelines.halt(due, slug="slot-lost", reason="later")
    assert publish(ledger, lake_rows, due, attempt, pointers) == cut
    assert len(ledger.merges.cuts(due)) == 2


def test_a_foreign_move_of_one_table_stops_all(ledger: Ledger, lake_rows: Lake, due: str) -> None:
    pointers = lake_rows.add("a", "b", "c")
    lake_rows.move("b", "foreign")
    attempt = ledger.merges.begin(due)

    with pytest.raises(LakeError, match=r"\[publish-conflict\].*another session moved ns.b;"):
        publish(ledger, lake_rows, due, attempt, pointers)
    lake_rows.move("b", "b-0")
    assert unchanged(ledger, lake_rows, due)
    publish(ledger, lake_rows, due, attempt, pointers)


def test_a_table_that_is_gone_from_the_catalog_stops_all(ledger: Ledger, lake_rows: Lake, due: str) -> None:
    pointers = [*lake_rows.add("a"), Pointer(("ns", "gone"), "gone-0", "gone-1")]

    with pytest.raises(LakeError, match=r"another session moved ns.gone;"):
        publish(ledger, lake_rows, due, ledger.merges.begin(due), pointers)
    assert unchanged(ledger, lake_rows, due)


def test_tables_of_another_catalog_in_the_same_database_are_left_alone(
    ledger: Ledger, control: Database, due: str
) -> None:
    ours, theirs = Lake(control, f"ours_{due}"), Lake(control, f"theirs_{due}")
    pointers = ours.add("a")
    theirs.add("a")
    publish(ledger, ours, due, ledger.merges.begin(due), pointers)

    assert theirs.shows() == {"a": ("a-0", None)}


def test_an_older_attempt_can_publish_nothing(ledger: Ledger, lake_rows: Lake, due: str) -> None:
    pointers = lake_rows.add("a")
    zombie = ledger.merges.begin(due)
    newest = ledger.merges.begin(due)

    with pytest.raises(LedgerError, match=rf"\[ledger-conflict\] expected attempt {zombie} to be the newest"):
        publish(ledger, lake_rows, due, zombie, pointers)
    assert unchanged(ledger, lake_rows, due)
    publish(ledger, lake_rows, due, newest, pointers)
    with pytest.raises(LedgerError, match="ledger-conflict"):
        publish(ledger, lake_rows, due, zombie, lake_rows.add("z"))


def test_a_cut_beyond_what_is_staged_is_refused(ledger: Ledger, lake_rows: Lake, due: str) -> None:
    with pytest.raises(LedgerError, match="or the position is not reached"):
        publish(ledger, lake_rows, due, ledger.merges.begin(due), lake_rows.add("a"), lsn=Lsn(END + 1))
    assert unchanged(ledger, lake_rows, due)


def test_a_cut_before_what_a_table_already_has_is_refused(ledger: Ledger, lake_rows: Lake, due: str) -> None:
    with pytest.raises(LedgerError, match=r"\[1, 2\] were paused, copied again or published meanwhile"):
        publish(ledger, lake_rows, due, ledger.merges.begin(due), lake_rows.add("a"), lsn=Lsn(START - 1))
    assert unchanged(ledger, lake_rows, due)


def test_a_table_that_was_paused_meanwhile_stops_the_publish(ledger: Ledger, lake_rows: Lake, due: str) -> None:
    attempt = ledger.merges.begin(due)
    ledger.tables.stop(due, {2: Trouble.usual("divergence", "by hand")})

    with pytest.raises(LedgerError, match=r"but \[2\] were paused"):
        publish(ledger, lake_rows, due, attempt, lake_rows.add("a"))
    ledger.tables.resume(due, 2)
    assert unchanged(ledger, lake_rows, due)


def test_a_table_that_was_copied_again_meanwhile_stops_the_publish(ledger: Ledger, lake_rows: Lake, due: str) -> None:
    attempt = ledger.merges.begin(due)
    copy(ledger, due, 2, copy_id="again")

    with pytest.raises(LedgerError, match=r"but \[2\] were"):
        publish(ledger, lake_rows, due, attempt, lake_rows.add("a"))


def test_a_copy_is_loaded_by_the_cut_that_names_it_and_no_other(ledger: Ledger, lake_rows: Lake, due: str) -> None:
    ledger.tables.save(due, [facts(3, "c")])
    copy(ledger, due, 3, copy_id="late")
    attempt = ledger.merges.begin(due)
    pointers = lake_rows.add("a")

    for wrong in (None, "other"):
        with pytest.raises(LedgerError, match=r"but \[3\] were"):
            publish(ledger, lake_rows, due, attempt, pointers, tables=[PublishedTable(3, 31, wrong)])
    publish(ledger, lake_rows, due, attempt, pointers, tables=[PublishedTable(3, 31, "late")])
    table = next(table for table in ledger.tables.all(due) if table.oid == 3)
    assert (table.state, table.complete_through, table.snapshot_id) == ("ready", END, 31)
    assert {record.state for record in ledger.loads.copies(due)} == {"done"}


def test_a_cut_says_of_a_table_that_waits_for_another_that_it_is_copied(
    ledger: Ledger, lake_rows: Lake, due: str
) -> None:
    ledger.tables.save(due, [facts(3, "c")])
    copy(ledger, due, 3, copy_id="late")

    cut = publish(ledger, lake_rows, due, ledger.merges.begin(due), lake_rows.add("a"))
    assert {entry["oid"]: entry["state"] for entry in cut.tables} == {1: "ready", 2: "ready", 3: "copied"}


def test_tables_that_spark_had_to_pause_stay_behind(ledger: Ledger, lake_rows: Lake, due: str) -> None:
    attempt, pointers = ledger.merges.begin(due), lake_rows.add("a")
    with ledger.together(due):
        ledger.tables.stop(due, {2: Trouble("divergence", "a change without its row", "resume")})
        cut = publish(ledger, lake_rows, due, attempt, pointers, tables=[PublishedTable(1, 21)])

    assert [(entry["oid"], entry["state"], entry["complete_through"]) for entry in cut.tables] == [
        (1, "ready", str(END)),
        (2, "paused", str(START)),
    ]
    assert [(event.slug, event.table_oid) for event in ledger.events.all(due)] == [("divergence", 2)]


def test_of_two_publishers_of_one_pipeline_the_newest_wins(ledger: Ledger, lake_rows: Lake, due: str) -> None:
    pointers = lake_rows.add("a", "b")
    zombie, newest = ledger.merges.begin(due), ledger.merges.begin(due)
    outcomes = together(*(lambda a=a: publish(ledger, lake_rows, due, a, pointers) for a in (zombie, newest, newest)))

    assert isinstance(outcomes[0], LedgerError)
    assert outcomes[1] == outcomes[2]
    assert outcomes[1].attempt == newest


def test_of_two_pipelines_that_fight_for_the_same_tables_one_wins_each_time(
    ledger: Ledger, control: Database, due: str
) -> None:
    rival = f"{due}_rival"
    bootstrap(ledger, rival, point=END)
    for round_number in range(8):
        lake = Lake(control, f"{due}_{round_number}")
        pointers = lake.add("a", "b", "c")
        attempts = {pipeline: ledger.merges.begin(pipeline) for pipeline in (due, rival)}
        orders = {
            due: pointers,
            rival: [Pointer(p.place, p.old, f"{p.place[1]}-rival") for p in pointers[::-1]],
        }
        outcomes = together(
            *(
                lambda p=pipeline, lake=lake, a=attempts, o=orders: publish(ledger, lake, p, a[p], o[p], tables=[])
                for pipeline in (due, rival)
            )
        )
        lost = [outcome for outcome in outcomes if isinstance(outcome, Exception)]

        assert [error.slug for error in lost] == ["publish-conflict"]
        assert len({now.rpartition("-")[2] for now, _ in lake.shows().values()}) == 1


def test_a_connection_killed_in_the_middle_leaves_nothing_moved(
    ledger: Ledger, lake_rows: Lake, due: str, control: Database
) -> None:
    pointers = lake_rows.add("a", "b")
    attempt = ledger.merges.begin(due)
    outcomes: list[Any] = []
    with control.connect(autocommit=False) as holder:
        # b is held, so the publisher stops with the ledger's rows changed and a locked
        holder.execute(
            "select 1 from iceberg_tables where catalog_name = %s and table_name = 'b' for update", (lake_rows.catalog,)
        )
        thread = threading.Thread(
            target=lambda: outcomes.extend(together(lambda: publish(ledger, lake_rows, due, attempt, pointers)))
        )
        thread.start()
        waiting = (
            "select pid from pg_stat_activity where application_name = 'penstock ledger' and wait_event_type = 'Lock'"
        )
        wait_until(lambda: control.execute(waiting), "the publish waits for the lock")
        control.execute("select pg_terminate_backend(%s, 5000)", control.execute(waiting)[0][0])
        thread.join()

    assert [error.slug for error in outcomes] == ["ledger-unreachable"]
    assert unchanged(ledger, lake_rows, due)
    assert publish(ledger, lake_rows, due, attempt, pointers).lsn == END


def test_a_pipeline_row_that_another_session_locks_is_waited_for_not_for_ever(
    ledger: Ledger, due: str, control: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = connection_to(control)
    impatient = Ledger(connection)
    with control.connect(autocommit=False) as holder, impatient.session():
        holder.execute("select 1 from penstock.pipeline where name = %s for update", (due,))
        with impatient.transaction() as transaction:
            transaction.connection.execute("set lock_timeout = '50ms'")
        with pytest.raises(LedgerError, match=r"\[ledger-conflict\].*lock timeout"):
            impatient.merges.begin(due)


# --- a catalog in another database -----------------------------------------------------------------


@pytest.fixture
def elsewhere(lake: Any, name: str) -> Lake:
    """A catalog that lives in a database of its own."""
    return Lake(lake.database, f"lake_{name}")


def test_a_catalog_elsewhere_is_moved_with_the_ledger(ledger: Ledger, elsewhere: Lake, due: str) -> None:
    pointers = elsewhere.add("a", "b")
    attempt = ledger.merges.begin(due)
    cut = publish(ledger, elsewhere, due, attempt, pointers)

    assert elsewhere.shows() == {"a": ("a-1", "a-0"), "b": ("b-1", "b-0")}
    assert publish(ledger, elsewhere, due, attempt, pointers) == cut


def test_a_conflict_elsewhere_leaves_the_ledger_as_it_was(ledger: Ledger, elsewhere: Lake, due: str) -> None:
    pointers = elsewhere.add("a", "b")
    elsewhere.move("b", "foreign")

    with pytest.raises(LakeError, match="publish-conflict"):
        publish(ledger, elsewhere, due, ledger.merges.begin(due), pointers)
    elsewhere.move("b", "b-0")
    assert unchanged(ledger, elsewhere, due)


def test_a_crash_between_the_two_databases_is_healed_by_publishing_again(
    ledger: Ledger, elsewhere: Lake, due: str
) -> None:
    pointers = elsewhere.add("a", "b")
    attempt = ledger.merges.begin(due)
    for table in ("a", "b"):
        elsewhere.move(table, f"{table}-1")

    assert publish(ledger, elsewhere, due, attempt, pointers).lsn == END


def test_a_catalog_that_does_not_answer_or_is_not_set_up_is_named(
    ledger: Ledger, lake_rows: Lake, due: str, database16: Database
) -> None:
    attempt = ledger.merges.begin(due)
    pointers = lake_rows.add("a")
    dead = connection_to(Database(database16.server, "absent"))

    for catalog in (connection_to(database16), dead):
        with pytest.raises(LakeError, match="catalog-unreachable") as caught:
            publish(ledger, lake_rows, due, attempt, pointers, catalog=catalog)
        assert catalog.password not in str(caught.value)
    assert unchanged(ledger, lake_rows, due)


# --- the lake knows better -------------------------------------------------------------------------


def adopt(ledger: Ledger, name: str, attempt: str, **changes: Any) -> CutRecord:
    tables = [PublishedTable(1, 21), PublishedTable(2, 22)]
    return ledger.merges.adopt_published(name, replace(NewCut(attempt, END, tables, cuts_snapshot_id=9), **changes))


def test_what_the_lake_says_is_adopted_once(ledger: Ledger, due: str) -> None:
    attempt = ledger.merges.begin(due)
    cut = adopt(ledger, due, attempt)

    assert (cut.lsn, cut.attempt) == (END, attempt)
    assert adopt(ledger, due, attempt) == cut
    assert [(table.complete_through, table.snapshot_id) for table in ledger.tables.all(due)] == [(END, 21), (END, 22)]


def test_adopting_fences_a_merge_that_was_planned_without_it(ledger: Ledger, lake_rows: Lake, due: str) -> None:
    lost = ledger.merges.begin(due)
    running = ledger.merges.begin(due)
    adopt(ledger, due, lost)

    with pytest.raises(LedgerError, match="ledger-conflict"):
        publish(ledger, lake_rows, due, running, lake_rows.add("a"))


def test_adopting_keeps_the_states_that_need_a_person(ledger: Ledger, due: str) -> None:
    attempt = ledger.merges.begin(due)
    ledger.tables.stop(due, {1: Trouble.usual("divergence", "by hand")})
    copy(ledger, due, 2, copy_id="again")
    adopt(ledger, due, attempt)

    assert [(table.state, table.complete_through) for table in ledger.tables.all(due)] == [
        ("paused", END),
        ("copied", END),
    ]
    assert [record.state for record in ledger.loads.copies(due) if record.copy_id == "again"] == ["ready"]
    assert ledger.tables.resume(due, 1).state == "ready"


def test_adopting_loads_the_copy_that_the_lake_holds(ledger: Ledger, running: str) -> None:
    ledger.tables.save(running, [facts(1, "a"), facts(2, "b")])
    copy(ledger, running, 1, 2)
    adopt(ledger, running, "lost", lsn=START, tables=[PublishedTable(1, 21, "first"), PublishedTable(2, 22, "first")])

    assert [(table.state, table.complete_through) for table in ledger.tables.all(running)] == [("ready", START)] * 2
    assert {record.state for record in ledger.loads.copies(running)} == {"done"}


def test_adopting_the_first_copy_of_a_paused_table_leaves_the_pause_to_a_person(ledger: Ledger, running: str) -> None:
    ledger.tables.save(running, [facts(1, "a")])
    copy(ledger, running, 1)
    ledger.tables.stop(running, {1: Trouble.usual("divergence", "by hand")})
    adopt(ledger, running, "lost", lsn=START, tables=[PublishedTable(1, 21, "first")])

    (table,) = ledger.tables.all(running)
    assert (table.state, table.paused_reason, table.complete_through, table.snapshot_id) == (
        "paused",
        "by hand",
        START,
        21,
    )
    assert ledger.tables.resume(running, 1).state == "ready"


def test_a_first_copy_of_a_table_that_was_paused_meanwhile_is_in_no_cut(ledger: Ledger, running: str) -> None:
    ledger.tables.save(running, [facts(1, "a")])
    copy(ledger, running, 1)
    attempt = ledger.merges.begin(running)
    ledger.tables.stop(running, {1: Trouble.usual("divergence", "by hand")})

    assert ledger.merges.to_merge(running).rebuilds == ()
    with pytest.raises(LedgerError, match=r"but \[1\] were"):
        publish_cut(ledger, running, NewCut(attempt, START, [PublishedTable(1, 21, "first")], cuts_snapshot_id=9))
    assert ledger.tables.resume(running, 1).state == "copied"


def test_nothing_beyond_the_staged_windows_is_adopted(ledger: Ledger, due: str) -> None:
    with pytest.raises(LedgerError, match="the position is not reached"):
        adopt(ledger, due, "from-the-future", lsn=Lsn(END + 1))
    assert [table.complete_through for table in ledger.tables.all(due)] == [START, START]


# --- fresh tables take names -----------------------------------------------------------------------


def fresh(lake: Lake, table: str, old: str | None = "0") -> Pointer:
    """Make a fresh table for a name; return the move that gives it the name."""
    lake.add(f"{table}-fresh")
    prepared = Fresh(("ns", f"{table}-fresh"), f"{table}-fresh-0", ("ns", f"{table}-kept"))
    return Pointer(("ns", table), f"{table}-{old}" if old else None, f"{table}-fresh-1", prepared)


def test_fresh_tables_take_their_names_in_the_cut_and_the_old_ones_continue_under_others(
    ledger: Ledger, lake_rows: Lake, due: str
) -> None:
    cuts = lake_rows.add("a", "b", "_penstock_cuts")[2:]
    pointers = [fresh(lake_rows, "a"), fresh(lake_rows, "b"), fresh(lake_rows, "new", old=None), *cuts]
    attempt = ledger.merges.begin(due)
    cut = publish(ledger, lake_rows, due, attempt, pointers)

    assert lake_rows.shows() == {
        "a": ("a-fresh-1", "a-fresh-0"),
        "a-kept": ("a-0", None),
        "b": ("b-fresh-1", "b-fresh-0"),
        "b-kept": ("b-0", None),
        "new": ("new-fresh-1", "new-fresh-0"),
        "_penstock_cuts": ("_penstock_cuts-1", "_penstock_cuts-0"),
    }
    assert publish(ledger, lake_rows, due, attempt, pointers) == cut


@pytest.mark.parametrize("which", ["a", "a-fresh"])
def test_a_foreign_move_of_a_name_or_of_its_fresh_table_stops_all(
    ledger: Ledger, lake_rows: Lake, due: str, which: str
) -> None:
    lake_rows.add("a")
    pointers = [fresh(lake_rows, "a"), *lake_rows.add("b")]
    lake_rows.move(which, "foreign")
    before = lake_rows.shows()

    with pytest.raises(LakeError, match=r"\[publish-conflict\].*another session moved ns.a;"):
        publish(ledger, lake_rows, due, ledger.merges.begin(due), pointers)
    assert lake_rows.shows() == before


def test_a_name_that_was_free_and_is_taken_meanwhile_stops_all(ledger: Ledger, lake_rows: Lake, due: str) -> None:
    pointers = [fresh(lake_rows, "new", old=None), *lake_rows.add("b", "new")[:1]]

    with pytest.raises(LakeError, match=r"another session moved ns\.new;"):
        publish(ledger, lake_rows, due, ledger.merges.begin(due), pointers)
    assert "new-fresh" in lake_rows.shows()


def test_a_kept_name_that_is_taken_stops_all_and_is_named(ledger: Ledger, lake_rows: Lake, due: str) -> None:
    lake_rows.add("a", "a-kept")
    pointers = [*lake_rows.add("b"), fresh(lake_rows, "a")]

    with pytest.raises(LakeError, match=r"\[publish-conflict\].*the names ns.a-kept to be free"):
        publish(ledger, lake_rows, due, ledger.merges.begin(due), pointers)
    assert unchanged(ledger, Lake(lake_rows.database, "none"), due)
    assert lake_rows.shows()["b"] == ("b-0", None)


def test_fresh_tables_of_a_catalog_elsewhere_are_known_to_have_moved(ledger: Ledger, elsewhere: Lake, due: str) -> None:
    elsewhere.add("a")
    pointers = [fresh(elsewhere, "a")]
    connection = connection_to(elsewhere.database)
    assert not moved(connection, elsewhere.catalog, pointers)

    publish(ledger, elsewhere, due, ledger.merges.begin(due), pointers)
    assert moved(connection, elsewhere.catalog, pointers)


# --- clocks -----------------------------------------------------------------------------------------


def test_a_driver_whose_clock_is_ahead_of_the_ledgers_publishes_nothing(
    ledger: Ledger, lake_rows: Lake, due: str
) -> None:
    pointers = lake_rows.add("a", "b")
    ahead = [replace(pointers[0], stamped=milliseconds(3600)), pointers[1]]

    with pytest.raises(LakeError, match=r"^\[clock-skew\].*that are 3[56]\d\d s ahead"):
        publish(ledger, lake_rows, due, ledger.merges.begin(due), ahead)
    assert unchanged(ledger, lake_rows, due)
    present = [replace(each, stamped=milliseconds(0)) for each in pointers]
    publish(ledger, lake_rows, due, ledger.merges.begin(due), present)


def milliseconds(ahead: float) -> int:
    return int((time.time() + ahead) * 1000)
