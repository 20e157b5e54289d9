import pytest

from penstock.errors import LedgerError, Trouble
from penstock.ledger import Ledger, new_attempt
from penstock.ledger.merge_queue import PublishedTable
from penstock.lsn import Lsn
from tests.ledger.conftest import START, capture, entry, facts, plan, publish, stage


def test_attempts_sort_by_time_and_suit_files() -> None:
    attempts = [new_attempt() for _ in range(200)]

    assert len(set(attempts)) == 200
    assert all(set(attempt) <= set("0123456789abcdef_t") for attempt in attempts)
    assert [attempt[:18] for attempt in attempts] == sorted(attempt[:18] for attempt in attempts)


def test_events_are_listed_newest_first(ledger: Ledger, running: str) -> None:
    ledger.events.add(running, slug="one", message="first")
    ledger.events.add(running, slug="two", message="second", level="warning", table_oid=7, details={"bytes": 12})

    newest = ledger.events.all(running, limit=1)
    assert [(event.slug, event.level, event.table_oid, event.details) for event in newest] == [
        ("two", "warning", 7, {"bytes": 12})
    ]
    assert len(ledger.events.all(running)) == 2


def test_an_event_of_no_known_pipeline_is_refused(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="ledger-conflict"):
        ledger.events.add("nobody", slug="one", message="x")


def test_the_status_of_a_new_pipeline_is_empty(ledger: Ledger, name: str) -> None:
    ledger.pipelines.register(name, database="app", slot="s", publication="p")
    with ledger.page.panels() as panel:
        (status,) = panel.pipelines(name)
        assert panel.window_totals(name) == ({}, 0)
        assert (panel.tables(name), panel.events(name), panel.windows(name)) == ([], [], [])

    assert (status.cut_lsn, status.unmerged_windows, status.unmerged_changes, status.tables) == (None, 0, 0, 0)


def test_the_status_shows_everything_at_once(ledger: Ledger, ready: str) -> None:
    capture(ledger, ready, START, START + 10, files=[entry(1, rows=5, size=50)])
    publish(ledger, ready, Lsn(START + 10), [PublishedTable(1)])
    capture(ledger, ready, START + 10, START + 20, files=[entry(1, rows=7, size=70), entry(2, rows=1, size=5)])
    stage(ledger, ready, START + 20, plan(ledger, ready, START + 20, START + 30), files=[entry(1, rows=2, size=20)])
    plan(ledger, ready, START + 30, START + 40)
    ledger.tables.save(ready, [facts(3, "c")])
    ledger.tables.stop(ready, {2: Trouble.usual("divergence", "x")})

    with ledger.session(), ledger.page.panels() as panel:
        (status,) = panel.pipelines(ready)
        assert panel.window_totals(ready) == ({"planned": 1, "staged": 1, "confirmed": 2}, 2)
        assert [(table.oid, table.state) for table in panel.tables(ready)] == [(2, "paused"), (3, "new"), (1, "ready")]
        assert (panel.windows(ready)[1]["upto_lsn"], panel.windows(ready)[1]["state"]) == (START + 30, "staged")
        assert (status.cut_lsn, panel.events(ready)[0]["slug"]) == (START + 10, "divergence")
        assert ledger.events.all(ready, limit=1)[0].slug == "divergence", "on the same connection"
    assert (status.unmerged_windows, status.unmerged_changes, status.unmerged_bytes) == (2, 10, 95)
    assert (status.tables, status.tables_ready, status.tables_paused) == (3, 1, 1)
