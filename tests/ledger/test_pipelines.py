import pytest

from penstock.errors import ConfigError, LedgerError
from penstock.ledger import Ledger
from penstock.ledger.merge_queue import PublishedTable
from penstock.ledger.merges import NewCut
from penstock.ledger.windows import WindowContent
from penstock.lsn import Lsn
from tests.ledger.conftest import START, bootstrap, capture, copy, facts, intend, plan, publish, publish_cut, together


def register(ledger: Ledger, name: str, slot: str = "slot") -> str:
    return ledger.pipelines.register(name, database="app", slot=slot, publication="pub").state


def test_an_unknown_pipeline_is_not_bootstrapped(ledger: Ledger) -> None:
    for call in (
        ledger.pipelines.get,
        ledger.merges.begin,
        ledger.merges.to_merge,
        ledger.pipelines.finish_bootstrap,
    ):
        with pytest.raises(LedgerError, match=r"\[not-bootstrapped\] expected the ledger to know pipeline nobody"):
            call("nobody")


def test_registering_is_remembered_and_may_be_repeated(ledger: Ledger, name: str) -> None:
    assert register(ledger, name) == "new"
    assert register(ledger, name) == "new"
    found = ledger.pipelines.get(name)
    assert (found.slot, found.publication, found.position, found.merge_attempt) == ("slot", "pub", None, None)
    assert found in ledger.pipelines.all()


def test_the_names_may_change_until_a_slot_is_intended(ledger: Ledger, name: str) -> None:
    register(ledger, name, slot="one")
    register(ledger, name, slot="two")
    intend(ledger, name)

    with pytest.raises(ConfigError, match="to keep its slot two, got three instead"):
        register(ledger, name, slot="three")
    assert ledger.pipelines.get(name).slot == "two"


def test_a_slot_is_intended_then_recorded_then_the_pipeline_runs(ledger: Ledger, name: str) -> None:
    register(ledger, name)
    intend(ledger, name)
    intended = ledger.pipelines.get(name)
    assert (intended.state, intended.position, intended.publication_oid) == ("bootstrapping", None, 16400)
    assert intended.system_identifier == (1 << 64) - 1
    assert intended.slot_intent_at is not None

    recorded = ledger.pipelines.record_slot(name, consistent_point=START)
    assert (recorded.consistent_point, recorded.position) == (START, START)
    assert isinstance(recorded.position, Lsn)
    assert ledger.pipelines.finish_bootstrap(name).state == "running"
    assert ledger.pipelines.finish_bootstrap(name).state == "running"


def test_an_intention_may_be_repeated_after_a_crash_but_not_after_the_slot(ledger: Ledger, name: str) -> None:
    register(ledger, name)
    intend(ledger, name)
    intend(ledger, name)
    ledger.pipelines.record_slot(name, consistent_point=START)

    with pytest.raises(LedgerError, match="ledger-conflict"):
        intend(ledger, name)


def test_recording_the_same_slot_again_is_fine_and_another_is_refused(ledger: Ledger, name: str) -> None:
    register(ledger, name)
    with pytest.raises(LedgerError, match="ledger-conflict"):
        ledger.pipelines.record_slot(name, consistent_point=START)
    intend(ledger, name)
    ledger.pipelines.record_slot(name, consistent_point=START)

    assert ledger.pipelines.record_slot(name, consistent_point=START).position == START
    with pytest.raises(LedgerError, match="ledger-conflict"):
        ledger.pipelines.record_slot(name, consistent_point=Lsn(START + 1))


def test_of_two_bootstraps_at_once_one_records_its_slot(ledger: Ledger, name: str) -> None:
    register(ledger, name)
    intend(ledger, name)
    points = [Lsn(100), Lsn(200), Lsn(300)]
    outcomes = together(*(lambda p=point: ledger.pipelines.record_slot(name, consistent_point=p) for point in points))

    assert sorted(isinstance(outcome, LedgerError) for outcome in outcomes) == [False, True, True]


def test_a_pipeline_without_a_slot_cannot_run_or_plan(ledger: Ledger, name: str) -> None:
    register(ledger, name)
    with pytest.raises(LedgerError, match="ledger-conflict"):
        ledger.pipelines.finish_bootstrap(name)
    with pytest.raises(LedgerError, match="not-bootstrapped"):
        plan(ledger, name, 0, 1)
    with pytest.raises(LedgerError, match="not-bootstrapped"):
        ledger.merges.begin(name)


def test_a_halted_pipeline_changes_nothing_until_it_is_resumed(ledger: Ledger, running: str) -> None:
    attempt = plan(ledger, running, START, START + 8)
    merge = ledger.merges.begin(running)
    halted = ledger.pipelines.halt(running, slug="slot-lost", reason="the slot is gone")
    assert (halted.state, halted.halted_slug, halted.halted_from) == ("halted", "slot-lost", "running")

    calls = [
        lambda: plan(ledger, running, START, START + 8),
        lambda: ledger.windows.stage(
            running,
            from_lsn=START,
            attempt=attempt,
            content=WindowContent([], {}, transactions=0, messages=0),
            digest="any:",
            seconds=0,
        ),
        lambda: ledger.merges.begin(running),
        lambda: publish_cut(ledger, running, NewCut(merge, START, [], cuts_snapshot_id=9)),
    ]
    for call in calls:
        with pytest.raises(
            LedgerError, match=r"halted by slot-lost: the slot is gone; follow docs/runbooks/slot-lost.md"
        ):
            call()

    resumed = ledger.pipelines.resume(running)
    assert (resumed.state, resumed.halted_slug, resumed.halted_reason, resumed.halted_from) == (
        "running",
        None,
        None,
        None,
    )
    plan(ledger, running, START, START + 8)
    assert [(event.slug, event.level) for event in ledger.events.all(running)] == [("slot-lost", "error")]


def test_a_second_halt_remembers_where_the_first_came_from(ledger: Ledger, running: str) -> None:
    ledger.pipelines.halt(running, slug="slot-lost", reason="one")
    assert ledger.pipelines.halt(running, slug="source-changed", reason="two").halted_from == "running"
    assert ledger.pipelines.resume(running).state == "running"
    with pytest.raises(LedgerError, match="ledger-conflict"):
        ledger.pipelines.resume(running)


def test_a_pipeline_that_was_torn_down_begins_a_new_era_and_keeps_its_history(ledger: Ledger, ready: str) -> None:
    capture(ledger, ready, START, START + 8)
    before = ledger.merges.last_cut(ready)
    assert ledger.pipelines.tear_down(ready).state == "torn_down"
    with pytest.raises(LedgerError, match="not-bootstrapped"):
        plan(ledger, ready, START + 8, START + 16)
    with pytest.raises(LedgerError, match="ledger-conflict"):
        ledger.pipelines.halt(ready, slug="slot-lost", reason="too late")

    bootstrap(ledger, ready, point=Lsn(START + 900))
    assert ledger.windows.all(ready) == []
    assert ledger.loads.copies(ready) == []
    assert ledger.tables.all(ready) == []
    assert ledger.pipelines.get(ready).era == 2
    assert ledger.merges.last_cut(ready) == before
    ledger.tables.save(ready, [facts(1, "a")])
    copy(ledger, ready, 1, copy_id="second", lsn=Lsn(START + 900))
    publish(ledger, ready, Lsn(START + 900), [PublishedTable(1, 21, "second")])
