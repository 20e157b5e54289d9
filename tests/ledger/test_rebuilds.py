"""One rebuild of a table at a time; only its newest run advances it; a cut switches to it, whole or not at all."""

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.config.connections import Connection
from penstock.config.model import Pipeline
from penstock.errors import LedgerError, Trouble
from penstock.flow.context import Context
from penstock.flow.load.replay_request import facts_since
from penstock.jobs.pointers import Pointer
from penstock.ledger import Ledger
from penstock.ledger.loads import BuildStep, NewBuild
from penstock.ledger.merge_queue import PublishedTable
from penstock.ledger.table_records import LoadRecord, LoadState
from penstock.lsn import Lsn
from penstock.shapes.accepted import Accepted, GonePartition, OpenQuestion, TableFacts
from penstock.shapes.partition_bounds import Condition
from tests.ledger.conftest import START, Lake, capture, connection_to, copy_again, entry, facts, publish

END = Lsn(START + 10)


def order(id_: str, oid: int = 1, table: str = "a", **changes: object) -> NewBuild:
    wanted = {"cause": "replay", "facts": facts(oid, table), "place": ("ns", f"new_{id_}", table), "copy_id": "first"}
    return NewBuild(id_, **(wanted | changes))  # type: ignore[arg-type]


def begin(ledger: Ledger, name: str, id_: str = "r1") -> LoadRecord:
    """Begin a replay of table 1, and land one window after its copy."""
    capture(ledger, name, START, END, files=[entry(1), entry(2)])
    (rebuild,) = ledger.loads.start(name, [order(id_)])
    return rebuild


def advance(ledger: Ledger, name: str, run: str, id_: str = "r1", state: LoadState = "ready") -> None:
    steps = [BuildStep(id_, END, 31, 5, state)]
    catalog = {"catalog": ledger.connection, "catalog_name": "lake", "pointers": []}
    ledger.loads.advance(name, run=run, steps=steps, **catalog)  # type: ignore[arg-type]


def hide(ledger: Ledger, name: str) -> None:
    """Say that the stream lacks changes of table 1."""
    ledger.membership.hide(
        name, {1: None}, lsn=END, xid=None, trouble=Trouble.usual("publication-changed", "x"), message="x"
    )


def test_a_second_rebuild_in_place_is_refused_by_name(ledger: Ledger, ready: str) -> None:
    begin(ledger, ready)

    with pytest.raises(LedgerError, match=r"rebuild-open.*shop\.a, but replay r1 \(since "):
        ledger.loads.start(ready, [order("r2", 2, "b"), order("r3")])

    assert [each.id for each in ledger.loads.builds(ready)] == ["r1"], "all or none"
    ledger.loads.start(ready, [order("s1", cause="shadow", goal_lsn=END)])
    with pytest.raises(LedgerError, match=r"rebuild-open.*shadow s1"):
        ledger.loads.start(ready, [order("s2", cause="shadow", goal_lsn=END, place=("ns", "new_s1", "a"))])
    with pytest.raises(LedgerError, match=r"rebuild-open.*shop\.a, but replay r1 \(since "):
        copy_again(ledger, ready, order("r4", cause="resync"))


def test_a_rebuild_needs_the_windows_that_its_copy_may_not_have_seen(ledger: Ledger, ready: str) -> None:
    rebuild = begin(ledger, ready)

    assert (rebuild.after, rebuild.snapshot, rebuild.lsn) == (START, "700:705:701", START)
    ledger.loads.run(ready, ids=["r1"], run="run")
    advance(ledger, ready, "run", state="building")
    (rebuild,) = ledger.loads.builds(ready)
    assert (rebuild.after, rebuild.through_lsn, rebuild.snapshot_id, rebuild.built_rows) == (END, END, 31, 5)
    assert rebuild.run is None


def test_only_the_newest_run_advances_a_rebuild(ledger: Ledger, ready: str) -> None:
    begin(ledger, ready)
    ledger.loads.run(ready, ids=["r1"], run="old")
    ledger.loads.run(ready, ids=["r1"], run="new")

    with pytest.raises(LedgerError, match="ledger-conflict"):
        advance(ledger, ready, "old")
    advance(ledger, ready, "new")
    with pytest.raises(LedgerError, match="ledger-conflict"):
        advance(ledger, ready, "new")

    assert [each.state for each in ledger.loads.builds(ready)] == ["ready"]


def test_the_fresh_tables_pointer_and_the_rebuild_move_together_or_not_at_all(
    ledger: Ledger, lake_rows: Lake, ready: str
) -> None:
    begin(ledger, ready)
    pointers = lake_rows.add("fresh")
    ledger.loads.run(ready, ids=["r1"], run="run")
    steps = [BuildStep("r1", END, 31, 5, "ready")]
    catalog = {"catalog": connection_to(lake_rows.database), "catalog_name": lake_rows.catalog}

    with pytest.raises(Exception, match="publish-conflict"):
        ledger.loads.advance(
            ready, run="run", pointers=[Pointer(("ns", "fresh"), "else", "fresh-1")], steps=steps, **catalog
        )
    assert ledger.loads.builds(ready)[0].through_lsn is None
    ledger.loads.advance(ready, run="run", pointers=pointers, steps=steps, **catalog)

    assert lake_rows.shows() == {"fresh": ("fresh-1", "fresh-0")}
    assert ledger.loads.builds(ready)[0].state == "ready"


def test_a_cut_makes_the_rebuilt_table_the_table(ledger: Ledger, ready: str) -> None:
    begin(ledger, ready)
    ledger.loads.run(ready, ids=["r1"], run="run")
    advance(ledger, ready, "run")
    ledger.tables.stop(ready, {1: Trouble.usual("divergence", "for this test")})
    queue = ledger.merges.to_merge(ready)
    assert [each.id for each in queue.rebuilds] == ["r1"]

    publish(ledger, ready, END, [PublishedTable(1, 41, load="r1"), PublishedTable(2, 42)])

    first = next(table for table in ledger.tables.all(ready) if table.oid == 1)
    assert (first.state, first.snapshot_id, first.complete_through, first.copy_id) == ("ready", 41, END, "first")
    assert first.paused_slug is None
    (rebuild,) = ledger.loads.builds(ready, states=["done"])
    assert rebuild.former is not None
    assert (rebuild.former.identity, len(rebuild.former.columns)) == ("d", 2)
    assert ledger.loads.builds(ready) == []


def test_what_is_open_of_a_rebuild_is_open_of_the_table_from_the_cut_on(ledger: Ledger, ready: str) -> None:
    def known(subject: int) -> TableFacts:
        gone = GonePartition(subject, "p", (Condition(1, "int", "1"),), START, file=7)
        question = OpenQuestion("label", subject, START)
        return facts(1, "a", accepted=Accepted(facts(1, "a").accepted.shape, (question,), (gone,)))

    begin(ledger, ready)
    ledger.tables.save(ready, [known(901)])
    ledger.loads.reshape(ready, "r1", known(902))
    ledger.loads.reshape(ready, "r1", known(903))
    assert [each.accepted for each in ledger.loads.builds(ready)] == [known(903).accepted]
    ledger.loads.run(ready, ids=["r1"], run="run")
    advance(ledger, ready, "run")
    publish(ledger, ready, END, [PublishedTable(1, 41, load="r1"), PublishedTable(2, 42)])

    assert {table.oid: table.accepted for table in ledger.tables.all(ready)}[1] == known(903).accepted
    ledger.tables.save(ready, [facts(1, "a")])
    assert ledger.tables.all(ready)[0].accepted == facts(1, "a").accepted


def test_what_a_rebuild_met_on_its_way_becomes_the_tables_count(ledger: Ledger, ready: str) -> None:
    publish(ledger, ready, START, [PublishedTable(1, 21, misfits=9, update_missing=9), PublishedTable(2)])
    begin(ledger, ready)
    for state in ("building", "ready"):
        ledger.loads.run(ready, ids=["r1"], run="run")
        step = BuildStep("r1", END, 31, 5, state, update_missing=1, misfits=2)
        catalog = {"catalog": ledger.connection, "catalog_name": "lake"}
        ledger.loads.advance(ready, run="run", pointers=[], steps=[step], **catalog)

    switched = PublishedTable(1, 41, load="r1", delete_missing=1)
    publish(ledger, ready, END, [switched, PublishedTable(2, 42)])

    first = next(table for table in ledger.verifications.tables(ready) if table.oid == 1)
    assert (first.conflicts, first.misfits) == ({"update_missing": 2, "delete_missing": 1}, 4)
    assert (first.conflict_lsn, first.suspected) == (END, True)
    (cut,) = ledger.merges.cuts(ready, limit=1)
    assert [table["counts"] for table in cut.tables if "counts" in table] == [{"delete_missing": 1}]


def test_a_rebuild_that_was_given_up_meanwhile_is_in_no_cut(ledger: Ledger, ready: str) -> None:
    rebuild = begin(ledger, ready)
    ledger.loads.run(ready, ids=["r1"], run="run")
    advance(ledger, ready, "run")
    ledger.loads.give_up(ready, rebuild, reason="for this test")

    with pytest.raises(LedgerError, match="ledger-conflict"):
        publish(ledger, ready, END, [PublishedTable(1, 41, load="r1"), PublishedTable(2, 42)])

    assert {table.complete_through for table in ledger.tables.all(ready)} == {START}
    assert [event.slug for event in ledger.events.all(ready)] == ["rebuild-given-up"]


def test_a_copy_of_a_rebuild_leaves_the_table_as_it_is_until_the_cut(ledger: Ledger, ready: str) -> None:
    before = ledger.tables.all(ready)
    copy_again(ledger, ready, order("r1", cause="resync"), copy_id="dead")
    copy_again(ledger, ready, order("r1", cause="resync", facts=facts(1, "a", identity="f")))
    assert [each.copy_id for each in ledger.loads.copies(ready, state="copying")] == ["second"], (
        "a dead copy is forgotten"
    )

    ledger.loads.finish_copy(ready, copy_id="second", oid=1, files=[entry(1, version=0)])
    with pytest.raises(LedgerError, match="ledger-conflict"):
        ledger.loads.finish_copy(ready, copy_id="second", oid=1, files=[])

    assert ledger.tables.all(ready) == before
    assert ledger.loads.builds(ready)[0].state == "building"
    capture(ledger, ready, START, END)
    ledger.loads.run(ready, ids=["r1"], run="run")
    advance(ledger, ready, "run")
    publish(ledger, ready, END, [PublishedTable(1, 41, load="r1"), PublishedTable(2, 42)])
    first = next(table for table in ledger.tables.all(ready) if table.oid == 1)
    assert (first.copy_id, first.identity) == ("second", "f")
    assert {each.copy_id: each.state for each in ledger.loads.copies(ready) if each.oid == 1}["second"] == "done"


def test_a_replay_does_not_begin_with_a_copy_that_was_forgotten(ledger: Ledger, ready: str) -> None:
    hide(ledger, ready)
    assert [each.oid for each in ledger.loads.copies(ready)] == [2]

    with pytest.raises(LedgerError, match=r"ledger-conflict.*files of copy first of shop\.a"):
        ledger.loads.start(ready, [order("r1")])

    assert ledger.loads.builds(ready, states=None) == []


def test_an_older_copy_is_of_the_table_that_the_next_one_replaced_also_when_that_is_forgotten(
    connection: Connection, ready: str
) -> None:
    ctx = Context(
        Pipeline.model_validate({"name": ready, "tables": {"include": ["shop.*"]}}), lambda _: connection, Path()
    )
    with ctx.ledger.session():
        resync = order("r1", cause="resync", facts=facts(1, "a", identity="f"))
        copy_again(ctx.ledger, ready, resync, lsn=Lsn(START + 1))
        ctx.ledger.loads.finish_copy(ready, copy_id="second", oid=1, files=[entry(1, version=0)])
        capture(ctx.ledger, ready, START, END)
        ctx.ledger.loads.run(ready, ids=["r1"], run="run")
        advance(ctx.ledger, ready, "run")
        publish(ctx.ledger, ready, END, [PublishedTable(1, 41, load="r1"), PublishedTable(2, 42)])
        ctx.ledger.loads.start(ready, [order("s1", cause="shadow", goal_lsn=END)])
        hide(ctx.ledger, ready)

        (first,) = (each for each in ctx.ledger.loads.copies(ready) if each.oid == 1)
        (table,) = (each for each in ctx.ledger.tables.all(ready) if each.oid == 1)
        assert (first.copy_id, table.copy_id, table.identity) == ("first", "second", "f")
        assert facts_since(ctx, table, first).identity == "d"
        later_era = replace(first, era=first.era + 1)
        assert facts_since(ctx, table, later_era).identity == "f", "what an era that has ended replaced is of that era"


def test_a_new_era_ends_the_rebuilds_of_the_one_before(ledger: Ledger, ready: str) -> None:
    begin(ledger, ready)
    ledger.pipelines.halt(ready, slug="slot-lost", reason="for this test")

    ledger.pipelines.begin_era(ready)

    (rebuild,) = ledger.loads.builds(ready, states=None)
    assert (rebuild.state, rebuild.reason) == ("given_up", "the era of its slot has ended")
