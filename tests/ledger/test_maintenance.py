"""What the ledger forgets, and what it must not: windows, copies, cuts, history; and what it notes of maintenance."""

from datetime import UTC, datetime, timedelta

from penstock.errors import Trouble
from penstock.jobs.maintenance_plan import Figures, TableFolder, TableReport
from penstock.ledger import Ledger, new_attempt
from penstock.ledger.merge_queue import PublishedTable
from penstock.lsn import Lsn
from stack.servers.postgres import Database
from tests.ledger.conftest import START, capture, copy, entry, facts, plan, publish, stage

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
FIGURES = Figures(1, 10, 3, 0, 0, 1, 1)


def now() -> datetime:
    return datetime.now(UTC)


def forgotten(ledger: Ledger, name: str) -> list[int]:
    """Forget all that may go, however young, and return where the windows that went began."""
    return [window.from_lsn for window in ledger.maintenance.forget_landed(name, before=now()).windows]


def history(ledger: Ledger, name: str, before: datetime, cuts: datetime, daily: datetime) -> None:
    ledger.maintenance.trim_history(name, before=before, cuts_before=cuts, daily_before=daily)


# --- windows and copies -----------------------------------------------------------------------------


def test_only_old_windows_that_every_table_has_merged_are_forgotten(ledger: Ledger, ready: str) -> None:
    for from_ in (START, START + 10, START + 20):
        capture(ledger, ready, from_, from_ + 10)
    publish(ledger, ready, Lsn(START + 20), [PublishedTable(1), PublishedTable(2)])

    assert ledger.maintenance.forget_landed(ready, before=now() - HOUR).windows == ()
    assert forgotten(ledger, ready) == [START, START + 10]
    assert [window.from_lsn for window in ledger.windows.all(ready)] == [START + 20]


def test_a_window_that_some_table_still_needs_is_not_forgotten(ledger: Ledger, ready: str) -> None:
    for from_, max_xid in ((START, 699), (START + 10, 700)):
        capture(ledger, ready, from_, from_ + 10, files=[entry(1, max_xid=max_xid)])
    ledger.tables.stop(ready, {2: Trouble.usual("divergence", "x")})
    publish(ledger, ready, Lsn(START + 20), [PublishedTable(1)])
    assert forgotten(ledger, ready) == []

    ledger.tables.resume(ready, 2)
    publish(ledger, ready, Lsn(START + 20), [PublishedTable(2)])
    ledger.tables.save(ready, [facts(3, "c")])
    copy(ledger, ready, 3, copy_id="late", lsn=Lsn(START + 20), snapshot="700:705:701")
    assert forgotten(ledger, ready) == [START]


def test_a_window_that_is_not_confirmed_is_not_forgotten(ledger: Ledger, ready: str) -> None:
    stage(ledger, ready, START, plan(ledger, ready, START, START + 10))
    publish(ledger, ready, Lsn(START + 10), [PublishedTable(1), PublishedTable(2)])

    assert forgotten(ledger, ready) == []


def test_no_window_is_forgotten_while_no_table_is_known(ledger: Ledger, running: str) -> None:
    capture(ledger, running, START, START + 10, files=[entry(1)])

    assert forgotten(ledger, running) == []


def test_a_copy_is_forgotten_with_the_first_window_that_its_replay_needs(ledger: Ledger, ready: str) -> None:
    capture(ledger, ready, START, START + 10, files=[entry(1, max_xid=699)])
    publish(ledger, ready, Lsn(START + 10), [PublishedTable(1), PublishedTable(2)])
    gone = ledger.maintenance.forget_landed(ready, before=now())
    assert ([window.from_lsn for window in gone.windows], gone.copies) == ([START], ()), "its snapshot saw all of it"

    capture(ledger, ready, START + 10, START + 20, files=[entry(1, max_xid=700)])
    publish(ledger, ready, Lsn(START + 20), [PublishedTable(1), PublishedTable(2)])
    gone = ledger.maintenance.forget_landed(ready, before=now())
    assert sorted(gone.copies) == [("first", 1, 100), ("first", 2, 100)]
    assert ledger.loads.copies(ready) == []


def test_an_older_copy_stays_for_as_long_as_windows_do(ledger: Ledger, ready: str) -> None:
    copy(ledger, ready, 1, copy_id="second")
    publish(ledger, ready, START, [PublishedTable(1, 13, "second"), PublishedTable(2)])

    assert ledger.maintenance.forget_landed(ready, before=now() - HOUR).copies == ()
    assert ledger.maintenance.forget_landed(ready, before=now()).copies == (("first", 1, 100),)
    assert [(kept.copy_id, kept.oid) for kept in ledger.loads.copies(ready)] == [("first", 2), ("second", 1)]


def test_what_the_landing_zone_must_hold_is_listed_for_every_era_and_state(ledger: Ledger, ready: str) -> None:
    first = capture(ledger, ready, START, START + 10)
    planned = plan(ledger, ready, START + 10, START + 20)
    cut = publish(ledger, ready, START, [PublishedTable(1), PublishedTable(2)])
    begun = ledger.merges.begin(ready)
    needed = ledger.maintenance.needed_landed(ready)

    assert sorted(needed.windows) == [
        (START, START + 10, first.attempt),
        (START + 10, START + 20, planned),
    ]
    assert (needed.runs, {copied.id for copied in needed.copies}) == ({cut, begun}, {"first"})


# --- cuts and history -------------------------------------------------------------------------------


def test_cuts_go_by_age_but_the_last_one_and_for_longer_the_last_one_of_each_day(
    ledger: Ledger, ready: str, control: Database
) -> None:
    for step in range(1, 7):
        capture(ledger, ready, START + step * 10 - 10, START + step * 10)
        publish(ledger, ready, Lsn(START + step * 10), [PublishedTable(1), PublishedTable(2)])
    # the fixture's cut and six more: two on each of three days, ten days apart, and one just now
    for age, lsn in ((20, 0), (20, 10), (10, 20), (10, 30), (2, 40), (2, 50)):
        control.execute(
            "update penstock.cut set published_at = date_trunc('day', now(), 'UTC') - %s * interval '1 day' "
            "+ %s * interval '1 second' where pipeline = %s and lsn = %s::pg_lsn",
            age,
            lsn,
            ready,
            str(Lsn(START + lsn)),
        )

    history(ledger, ready, now() - 30 * DAY, now() - DAY, now() - 15 * DAY)
    assert [cut.lsn - START for cut in ledger.merges.cuts(ready)] == [60, 50, 30]
    history(ledger, ready, now(), now(), now())
    assert [cut.lsn - START for cut in ledger.merges.cuts(ready)] == [60]


def test_events_and_reports_go_by_age(ledger: Ledger, ready: str) -> None:
    ledger.events.add(ready, slug="old", message="x")
    ledger.maintenance.begin(ready, new_attempt(), dry_run=False)
    history(ledger, ready, now() - HOUR, now() - HOUR, now() - HOUR)
    assert (len(ledger.events.all(ready)), len(ledger.maintenance.all(ready))) == (1, 1)

    history(ledger, ready, now(), now() - HOUR, now() - HOUR)
    assert (ledger.events.all(ready), ledger.maintenance.all(ready)) == ([], [])


# --- runs of maintenance ----------------------------------------------------------------------------


def test_a_run_has_a_report_when_it_has_ended(ledger: Ledger, ready: str) -> None:
    killed, ended = new_attempt(), new_attempt()
    ledger.maintenance.begin(ready, killed, dry_run=False)
    ledger.maintenance.begin(ready, ended, dry_run=True)
    ledger.maintenance.end(ready, ended, {"lake": {}}, "looked")

    newest, older = ledger.maintenance.all(ready, limit=5)
    assert (newest.attempt, newest.report, newest.dry_run) == (ended, {"lake": {}}, True)
    assert (older.attempt, older.report, older.ended_at) == (killed, None, None)
    assert ledger.events.all(ready)[0].message == "looked"


def test_compacted_snapshots_are_taken_over_only_while_no_merge_has_begun_since(ledger: Ledger, ready: str) -> None:
    def compacted(oid: int, snapshot: int) -> TableReport:
        return TableReport(("ns", "shop", "x"), oid, snapshot, FIGURES, FIGURES, 0.1)

    def snapshots() -> list[int | None]:
        return [table.snapshot_id for table in ledger.tables.all(ready)]

    attempt = ledger.merges.begin(ready, halted=True)
    assert ledger.maintenance.move_compacted(ready, attempt, [(compacted(1, 21), 11), (compacted(2, 22), 99)]) == 1
    assert snapshots() == [21, 12]

    ledger.merges.begin(ready)
    assert ledger.maintenance.move_compacted(ready, attempt, [(compacted(1, 31), 21)]) == 0
    assert snapshots() == [21, 12]


def test_an_old_table_is_known_since_it_was_first_seen(ledger: Ledger, ready: str) -> None:
    old = TableFolder("ns._penstock_era1.shop", "a", "file:///lake/a")
    first = ledger.maintenance.see_old_tables(ready, [old])
    assert ledger.maintenance.see_old_tables(ready, [old]) == first
    assert list(first) == [old]

    ledger.maintenance.forget_old_tables(ready, [old])
    assert ledger.maintenance.see_old_tables(ready, []) == {}
