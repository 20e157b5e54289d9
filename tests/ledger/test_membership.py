"""Tables that join and leave, in the ledger: who waits, how far one that left is merged, what may be dropped."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock.errors import LakeError, Trouble
from penstock.jobs.maintenance_plan import TableFolder
from penstock.ledger import Ledger
from penstock.ledger.loads import NewBuild
from penstock.ledger.merge_queue import PublishedTable
from penstock.lsn import Lsn
from tests.ledger.conftest import START, capture, copy, copy_again, entry, facts, publish

LATER = Lsn(START + 10)


def join(ledger: Ledger, name: str, oid: int, table: str, **changes: object) -> None:
    ledger.membership.join(name, facts(oid, table, **changes), lsn=START, xid=900, message=f"{table} joined")


def leave(ledger: Ledger, name: str, oid: int, through: Lsn = LATER, *, discard: bool = False) -> None:
    ledger.membership.leave(name, oid, through=through, discard=discard, message=f"{oid} left")


def soon() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=1)


def ring(ledger: Ledger, name: str, *, every: timedelta, paused: bool = False) -> list[int]:
    return ledger.membership.to_announce(name, joined=True, paused=paused, every=every)


def states(ledger: Ledger, name: str) -> dict[int, str]:
    return {table.oid: table.state for table in ledger.tables.all(name)}


def shown(ledger: Ledger, name: str) -> dict[int, tuple[bool, bool]]:
    with ledger.page.panels() as panel:
        return {table.oid: (table.state == "waiting", table.state == "leaving") for table in panel.tables(name)}


def test_a_table_that_joined_waits_and_is_announced_once_in_a_while(ledger: Ledger, ready: str) -> None:
    join(ledger, ready, 3, "c")

    (waiting,) = [each for each in ledger.tables.all(ready) if each.waits]
    assert (waiting.oid, waiting.state, waiting.joined_lsn, waiting.joined_xid) == (3, "new", START, 900)
    assert shown(ledger, ready) == {1: (False, False), 2: (False, False), 3: (True, False)}
    assert ring(ledger, ready, every=timedelta(minutes=1)) == [3]
    assert ring(ledger, ready, every=timedelta(minutes=1)) == []
    assert ring(ledger, ready, every=timedelta(0)) == [3]


def test_a_paused_table_is_announced_ever_more_rarely_also_when_it_is_paused_again_soon_after_a_copy(
    ledger: Ledger, ready: str
) -> None:
    trouble = Trouble("schema-change", "x", "copy")
    ten: dict[str, Any] = {"every": timedelta(minutes=10), "paused": True}

    def age(minutes: int) -> None:
        moved = f"announced_at - interval '{minutes} minutes', paused_at = paused_at - interval '{minutes} minutes'"
        with ledger.transaction() as transaction:
            transaction.connection.execute(f"update penstock.table set announced_at = {moved}".encode())

    ledger.tables.stop(ready, {2: Trouble.usual("foreign-commit", "x")})
    assert ring(ledger, ready, **ten) == []
    ledger.tables.stop(ready, {2: trouble})
    assert ring(ledger, ready, every=timedelta(minutes=10)) == [], "where a person decides"

    rings = []
    for minute in range(100):
        if ring(ledger, ready, **ten):
            rings.append(minute)
            ledger.tables.resume(ready, 2)  # a copy was switched, and is of no use
            ledger.tables.stop(ready, {2: trouble})
        age(1)
    assert rings[:2] == [0, 10]
    assert len(rings) == 5, rings
    assert all(after >= 2 * before for before, after in itertools.pairwise(rings)), rings

    ledger.tables.resume(ready, 2)
    age(200)
    ledger.tables.stop(ready, {2: trouble})
    assert ring(ledger, ready, **ten) == [2]
    age(10)
    assert ring(ledger, ready, **ten) == [2], "a new series"


def test_a_table_that_left_is_merged_through_where_it_was_published_and_no_further(ledger: Ledger, ready: str) -> None:
    capture(ledger, ready, START, LATER, files=[entry(1), entry(2)])
    leave(ledger, ready, 2)
    leave(ledger, ready, 2, Lsn(START + 15))
    capture(ledger, ready, LATER, START + 20, files=[entry(1), entry(2)])

    assert states(ledger, ready) == {1: "ready", 2: "ready"}
    assert shown(ledger, ready)[2] == (False, True)
    queue = ledger.merges.to_merge(ready)
    assert {table.oid: len(queue.files(table)) for table in queue.tables} == {1: 2, 2: 1}
    publish(ledger, ready, Lsn(START + 20), [PublishedTable(1, 21), PublishedTable(2, 22)])

    (left,) = (table for table in ledger.tables.all(ready) if table.oid == 2)
    assert (left.state, left.complete_through, left.left_lsn) == ("dropped", LATER, LATER)
    assert [event.message for event in ledger.events.all(ready) if event.slug == "table-removed"] == ["2 left"]


def test_a_table_that_is_merged_as_far_or_was_never_merged_is_dropped_at_once(ledger: Ledger, ready: str) -> None:
    join(ledger, ready, 3, "c")
    ledger.tables.stop(ready, {2: Trouble.usual("divergence", "x")})
    leave(ledger, ready, 1, START)
    leave(ledger, ready, 2)
    leave(ledger, ready, 3)

    assert states(ledger, ready) == dict.fromkeys((1, 2, 3), "dropped")
    assert ring(ledger, ready, every=timedelta(0)) == []


def test_a_leaving_table_that_a_merge_pauses_is_dropped_at_the_next_look(ledger: Ledger, ready: str) -> None:
    leave(ledger, ready, 2)
    ledger.tables.stop(ready, {2: Trouble.usual("foreign-commit", "x")})
    assert states(ledger, ready)[2] == "paused"
    leave(ledger, ready, 2, Lsn(START + 20))

    (left,) = (table for table in ledger.tables.all(ready) if table.oid == 2)
    assert (left.state, left.left_lsn, left.paused_slug) == ("dropped", LATER, None)


def test_a_rebuild_of_a_table_that_left_is_given_up(ledger: Ledger, ready: str) -> None:
    copy_again(ledger, ready, NewBuild("r", "resync", facts(2, "b"), ("ns", "_penstock_new_r", "shop", "b")))

    leave(ledger, ready, 2)

    assert ledger.loads.builds(ready) == []
    (gone,) = ledger.loads.builds(ready, states=None)
    assert (gone.state, gone.slug) == ("given_up", "rebuild-given-up")


def test_a_copy_that_was_not_loaded_holds_no_window_back_when_its_table_returns(ledger: Ledger, running: str) -> None:
    ledger.tables.save(running, [facts(1, "a"), facts(2, "b")])
    copy(ledger, running, 1, 2)
    publish(ledger, running, START, [PublishedTable(1, 11, "first")])
    capture(ledger, running, START, LATER, files=[entry(2)])
    publish(ledger, running, LATER, [PublishedTable(1, 12)])
    assert ledger.maintenance.old_windows(running, before=soon()) == [], "the copy of table 2 needs it"

    leave(ledger, running, 2)
    join(ledger, running, 2, "b")

    assert [each.oid for each in ledger.loads.copies(running)] == [1]
    assert [each.upto_lsn for each in ledger.maintenance.old_windows(running, before=soon())] == [LATER]
    copy(ledger, running, 2, copy_id="again", lsn=LATER)
    assert [(each.oid, each.copy_id) for each in ledger.loads.copies(running, state="ready")] == [(2, "again")]


def test_a_table_that_is_merged_on_before_it_goes_keeps_the_copy_of_its_rebuild(ledger: Ledger, ready: str) -> None:
    capture(ledger, ready, START, LATER)
    copy_again(ledger, ready, NewBuild("r", "resync", facts(2, "b"), ("ns", "_penstock_new_r", "shop", "b")), lsn=LATER)

    leave(ledger, ready, 2)

    assert states(ledger, ready)[2] == "ready"
    assert [each.copy_id for each in ledger.loads.copies(ready, state="given_up")] == ["second"]


def test_a_namesake_takes_the_target_of_a_table_that_left_and_of_no_other(ledger: Ledger, ready: str) -> None:
    with pytest.raises(LakeError, match="target-clash"):
        join(ledger, ready, 3, "b")
    assert states(ledger, ready) == {1: "ready", 2: "ready"}

    leave(ledger, ready, 2, discard=True)
    join(ledger, ready, 3, "b")
    assert states(ledger, ready) == {1: "ready", 2: "dropped", 3: "new"}
    assert ledger.membership.to_discard(ready) == [], "its place in the lake is the newcomer's"


def test_a_table_that_comes_back_is_not_discarded(ledger: Ledger, ready: str) -> None:
    leave(ledger, ready, 2, START, discard=True)
    assert [table.oid for table in ledger.membership.to_discard(ready)] == [2]
    ledger.maintenance.see_old_tables(ready, [TableFolder("ns.shop", "b", "/b"), TableFolder("ns.shop", "other", "/o")])

    join(ledger, ready, 2, "b")
    ledger.membership.discarded(ready, 2)

    (back,) = [each for each in ledger.tables.all(ready) if each.waits]
    assert (back.snapshot_id, back.complete_through, back.left_lsn) == (12, START, None)
    assert ledger.membership.to_discard(ready) == []
    assert [old.table for old in ledger.maintenance.see_old_tables(ready, [])] == ["other"]

    leave(ledger, ready, 2, START, discard=True)
    ledger.membership.discarded(ready, 2)
    (gone,) = (table for table in ledger.tables.all(ready) if table.oid == 2)
    assert (gone.snapshot_id, gone.discard) == (None, False)


def test_what_stands_is_reported_once_and_again_when_it_has_changed(ledger: Ledger, running: str) -> None:
    def tell(message: str, **changes: object) -> bool:
        return ledger.events.add_on_change(running, slug="publication-differs", message=message, **changes)

    assert not tell("agrees", first=False), "nothing was told before"
    assert [tell("differs"), tell("differs"), tell("differs", table_oid=7)] == [True, False, True]
    assert [tell("agrees", first=False), tell("agrees", first=False), tell("differs")] == [True, False, True]
    assert len(ledger.events.all(running)) == 4
