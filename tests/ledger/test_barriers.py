"""A mark makes a window and a cut end exactly there, whoever makes them, and never outlives the cut."""

import pytest

from penstock.errors import LedgerError
from penstock.ledger import Ledger
from penstock.ledger.merge_queue import PublishedTable
from penstock.lsn import Lsn
from tests.ledger.conftest import START, capture, entry, plan, publish, stage, together

MARK, LATER, END = Lsn(START + 10), Lsn(START + 20), Lsn(START + 30)
BOTH = [PublishedTable(1, 21), PublishedTable(2)]


def places(ledger: Ledger, name: str) -> list[Lsn]:
    return list(ledger.barriers.all(name))


def test_a_window_ends_at_the_next_mark_and_the_one_after_continues_from_there(ledger: Ledger, ready: str) -> None:
    assert ledger.barriers.add(ready, MARK, reason="verify")
    assert ledger.barriers.add(ready, LATER, reason="verify")

    assert capture(ledger, ready, START, END).upto_lsn == MARK
    assert capture(ledger, ready, MARK, END).upto_lsn == LATER
    assert capture(ledger, ready, LATER, END).upto_lsn == END


def test_a_mark_beyond_the_end_of_the_wal_waits_for_the_window_that_comes_to_it(ledger: Ledger, ready: str) -> None:
    assert ledger.barriers.add(ready, END, reason="verify")

    assert capture(ledger, ready, START, MARK).upto_lsn == MARK
    queue = ledger.merges.to_merge(ready)
    assert (queue.upto, queue.marked) == (MARK, False)
    assert capture(ledger, ready, MARK, END).upto_lsn == END
    assert ledger.merges.to_merge(ready).marked


def test_merges_stop_at_each_mark_and_the_cut_forgets_it(ledger: Ledger, ready: str) -> None:
    for lsn in (MARK, LATER):
        ledger.barriers.add(ready, lsn, reason="verify")
    for first in (START, MARK, LATER):
        capture(ledger, ready, first, END, files=[entry(1)])

    queue = ledger.merges.to_merge(ready)
    assert (queue.upto, queue.marked, len(queue.windows)) == (MARK, True, 1)
    publish(ledger, ready, queue.upto, BOTH)
    reached = ledger.barriers.reached(ready, MARK)
    assert reached.cut is not None
    assert (reached.cut.lsn, reached.cut.tables[0]["snapshot_id"]) == (MARK, 21)
    assert places(ledger, ready) == [LATER]

    queue = ledger.merges.to_merge(ready)
    assert (queue.upto, queue.marked, len(queue.windows)) == (LATER, True, 1)
    publish(ledger, ready, queue.upto, BOTH)
    queue = ledger.merges.to_merge(ready)
    assert (queue.upto, queue.marked, len(queue.windows)) == (END, False, 1)
    assert places(ledger, ready) == []


def test_a_mark_where_the_pipeline_stands_makes_a_cut_even_without_a_change(ledger: Ledger, ready: str) -> None:
    capture(ledger, ready, START, MARK)
    assert ledger.barriers.add(ready, MARK, reason="verify")

    queue = ledger.merges.to_merge(ready)
    assert (queue.upto, queue.marked) == (MARK, True)


def test_a_mark_behind_the_pipeline_or_inside_a_window_under_way_is_refused(ledger: Ledger, ready: str) -> None:
    attempt = plan(ledger, ready, START, LATER)
    assert not ledger.barriers.add(ready, MARK, reason="verify")
    assert ledger.barriers.add(ready, LATER, reason="verify")
    ledger.barriers.remove(ready, LATER)
    stage(ledger, ready, START, attempt)
    assert not ledger.barriers.add(ready, MARK, reason="verify")

    assert places(ledger, ready) == []
    assert not ledger.barriers.reached(ready, MARK).reachable
    assert ledger.barriers.reached(ready, END).reachable


def test_a_mark_that_a_window_has_passed_over_holds_no_merge_up(ledger: Ledger, ready: str) -> None:
    capture(ledger, ready, START, LATER)
    with ledger.transaction() as transaction:  # as if a Penstock that knows no marks had captured at the same time
        transaction.connection.execute(
            "insert into penstock.mark (pipeline, era, lsn, reason) values (%s, 1, %s, 'verify')", (ready, MARK)
        )

    queue = ledger.merges.to_merge(ready)
    assert (queue.upto, queue.marked) == (LATER, False)
    publish(ledger, ready, queue.upto, BOTH)
    assert places(ledger, ready) == []


def test_a_window_and_a_mark_made_at_once_never_cross(ledger: Ledger, ready: str) -> None:
    position = int(START)
    for _ in range(10):
        mark = Lsn(position + 5)
        outcomes = together(
            lambda mark=mark: Ledger(ledger.connection).barriers.add(ready, mark, reason="verify"),
            lambda position=position: plan(Ledger(ledger.connection), ready, position, position + 10),
        )
        added, attempt = outcomes
        window = stage(ledger, ready, position, attempt)

        assert added is (window.upto_lsn == mark)
        position = int(window.upto_lsn)


def test_a_halted_pipeline_takes_no_mark_and_a_new_era_forgets_those_of_the_old(ledger: Ledger, ready: str) -> None:
    ledger.barriers.add(ready, MARK, reason="verify")
    ledger.pipelines.halt(ready, slug="slot-lost", reason="for the test")
    with pytest.raises(LedgerError, match="pipeline-halted"):
        ledger.barriers.add(ready, LATER, reason="verify")

    ledger.pipelines.begin_era(ready)
    assert places(ledger, ready) == []
