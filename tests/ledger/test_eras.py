"""Every slot begins an era: what was before is kept apart, and the gap between is known."""

from datetime import UTC, datetime, timedelta

import pytest

from penstock.errors import LedgerError
from penstock.ledger import Ledger
from penstock.ledger.merge_queue import PublishedTable
from penstock.ledger.merges import NewCut
from penstock.lsn import Lsn
from tests.ledger.conftest import START, capture, copy, entry, facts, intend, plan, publish, publish_cut, stage

NOON = datetime(2026, 11, 21, tzinfo=UTC)
LATER = NOON + timedelta(hours=3)


def leave(ledger: Ledger, name: str, slug: str = "slot-lost") -> None:
    ledger.pipelines.halt(name, slug=slug, reason="for this test")
    ledger.pipelines.begin_era(name)


def enter(ledger: Ledger, name: str, point: Lsn) -> None:
    """Record a slot and copy one table."""
    intend(ledger, name)
    ledger.pipelines.record_slot(name, consistent_point=point, source_time=LATER)
    ledger.tables.save(name, [facts(7, "a")])
    copy(ledger, name, 7, copy_id="second", lsn=point, snapshot="3:5:3")
    ledger.pipelines.finish_bootstrap(name)


def test_an_era_ends_with_everything_that_its_slot_gave_a_meaning(ledger: Ledger, ready: str) -> None:
    capture(ledger, ready, START, START + 8)
    plan(ledger, ready, START + 8, START + 16)
    leave(ledger, ready)

    record = ledger.pipelines.get(ready)
    assert (record.era, record.state, record.position, record.slot_intent_at) == (2, "bootstrapping", None, None)
    assert (record.slot_made, record.halted_slug, record.merge_attempt) == (None, None, None)
    assert (ledger.windows.all(ready), ledger.tables.all(ready), ledger.loads.copies(ready)) == ([], [], [])
    assert [cut.era for cut in ledger.merges.cuts(ready)] == [1]


def test_the_gap_begins_at_the_last_window_and_ends_at_the_next_slot(ledger: Ledger, ready: str) -> None:
    capture(ledger, ready, START, START + 8)
    leave(ledger, ready)
    (gap,) = ledger.pipelines.gaps(ready)
    assert (gap.era, gap.reason, gap.from_lsn, gap.from_time) == (1, "slot-lost", START + 8, NOON)
    assert (gap.upto_lsn, gap.upto_time) == (None, None)

    enter(ledger, ready, Lsn(START + 100))
    (gap,) = ledger.pipelines.gaps(ready)
    assert (gap.upto_lsn, gap.upto_time) == (START + 100, LATER)


def test_a_gap_continues_over_an_era_that_never_had_a_slot(ledger: Ledger, ready: str) -> None:
    leave(ledger, ready)
    leave(ledger, ready, "slot-missing")
    enter(ledger, ready, Lsn(START + 100))

    assert [(gap.era, gap.reason, gap.upto_lsn) for gap in ledger.pipelines.gaps(ready)] == [
        (1, "slot-lost", START + 100)
    ]
    assert ledger.pipelines.get(ready).era == 3


def unmerged(ledger: Ledger, name: str) -> int:
    with ledger.page.panels() as panel:
        return panel.window_totals(name)[1]


def test_positions_and_transaction_ids_may_go_back_from_one_era_to_the_next(ledger: Ledger, ready: str) -> None:
    for from_ in (START, START + 10, START + 20):
        capture(ledger, ready, from_, from_ + 10, files=[entry(7, max_xid=900)])
    leave(ledger, ready)
    enter(ledger, ready, Lsn(START - 50))
    capture(ledger, ready, START - 50, START, files=[entry(7, max_xid=4)])
    capture(ledger, ready, START, START + 10, files=[entry(7, max_xid=6)])

    queue = ledger.merges.to_merge(ready)
    assert [(window.from_lsn, window.era) for window in queue.windows] == [(START - 50, 2), (START, 2)]
    assert unmerged(ledger, ready) == 2
    cut_lsn = Lsn(START + 10)
    publish(ledger, ready, cut_lsn, [PublishedTable(7, 71, "second")])
    assert [(cut.lsn, cut.era) for cut in ledger.merges.cuts(ready)] == [(START + 10, 2), (START, 1)]
    assert unmerged(ledger, ready) == 0


def test_an_era_cannot_end_while_the_pipeline_runs(ledger: Ledger, ready: str) -> None:
    with pytest.raises(LedgerError, match=r"ledger-conflict.*to be halted before its slot is left"):
        ledger.pipelines.begin_era(ready)
    assert ledger.pipelines.get(ready).era == 1


def test_a_window_that_was_planned_before_cannot_be_staged_after(ledger: Ledger, ready: str) -> None:
    attempt = plan(ledger, ready, START, START + 8)
    leave(ledger, ready)
    enter(ledger, ready, START)

    with pytest.raises(LedgerError, match="ledger-conflict"):
        stage(ledger, ready, START, attempt)
    assert ledger.windows.all(ready) == []


def test_a_merge_of_the_era_before_can_publish_nothing_after(ledger: Ledger, ready: str) -> None:
    attempt = ledger.merges.begin(ready)
    leave(ledger, ready)
    enter(ledger, ready, START)

    with pytest.raises(LedgerError, match="ledger-conflict"):
        publish_cut(ledger, ready, NewCut(attempt, START, [PublishedTable(7, 71, "second")], cuts_snapshot_id=9))
    assert [cut.era for cut in ledger.merges.cuts(ready)] == [1]


def test_no_merge_begins_while_tables_are_still_to_be_copied(ledger: Ledger, ready: str) -> None:
    leave(ledger, ready)
    intend(ledger, ready)
    ledger.pipelines.record_slot(ready, consistent_point=START)

    with pytest.raises(LedgerError, match=r"not-bootstrapped.*every table.*to be copied before a merge"):
        ledger.merges.begin(ready)


def test_what_a_halted_pipeline_has_landed_may_be_merged_once_more(ledger: Ledger, ready: str) -> None:
    capture(ledger, ready, START, START + 8)
    ledger.pipelines.halt(ready, slug="slot-lost", reason="for this test")
    with pytest.raises(LedgerError, match="pipeline-halted"):
        ledger.merges.begin(ready)

    attempt = ledger.merges.begin(ready, halted=True)
    new = NewCut(attempt, Lsn(START + 8), [PublishedTable(1), PublishedTable(2)], cuts_snapshot_id=9)
    cut = publish_cut(ledger, ready, new, halted=True)
    assert (cut.lsn, cut.era) == (START + 8, 1)


def test_windows_of_past_eras_are_trimmed_by_their_age(ledger: Ledger, ready: str) -> None:
    capture(ledger, ready, START, START + 10)
    stage(ledger, ready, START + 10, plan(ledger, ready, START + 10, START + 20))  # never confirmed, and never will be
    leave(ledger, ready)
    enter(ledger, ready, START)
    capture(ledger, ready, START, START + 10, files=[entry(7, max_xid=6)])

    assert ledger.maintenance.old_windows(ready, before=datetime.now(UTC) - timedelta(hours=1)) == []
    assert [
        (window.era, window.from_lsn)
        for window in ledger.maintenance.forget_landed(ready, before=datetime.now(UTC)).windows
    ] == [
        (1, START),
        (1, START + 10),
    ]
    assert [window.era for window in ledger.windows.all(ready)] == [2]
    assert ledger.maintenance.old_windows(ready, before=datetime.now(UTC)) == []
