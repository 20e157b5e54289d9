"""Two runs of one pipeline at once: they take turns, and where the lock fails one of them stages nothing and takes nothing away."""

from contextlib import nullcontext

import pytest

from penstock.errors import LedgerError
from penstock.flow.capture import run as capture
from penstock.flow.guards import slot_work
from tests.faults.oracle import at_source, landed
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin


def test_one_run_at_a_time_works_on_the_slot_and_nobody_at_the_source_can_hold_it(env16: PipelineEnv) -> None:
    begin(env16)
    env16.flush("insert into t values (2)")

    with slot_work(env16.ctx), pytest.raises(LedgerError, match="work-under-way"):
        env16.capture()
    with env16.source.connect() as stranger:
        stranger.execute("select pg_advisory_lock(hashtextextended(datname, 0)) from pg_database")
        env16.capture()
        held = stranger.execute("select count(*) from pg_locks where locktype = 'advisory' and pid <> pg_backend_pid()")
        assert held.fetchone() == (0,)

    assert landed(env16, "t", "id") == at_source(env16, "t", "id")


@pytest.mark.parametrize("again", [capture.write_window, capture._stage], ids=["before it writes", "before it stages"])
def test_a_run_that_has_lost_its_lock_stages_nothing_and_its_files_are_nobodys(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch, again: object
) -> None:
    begin(env16)
    env16.flush("insert into t values (2)")
    monkeypatch.setattr(capture, "slot_work", lambda ctx: nullcontext())
    name = again.__name__

    def overtaken(*args: object, **words: object) -> object:
        monkeypatch.setattr(capture, name, again)
        env16.capture()
        return again(*args, **words)

    monkeypatch.setattr(capture, name, overtaken)
    with pytest.raises(LedgerError, match=r"ledger-conflict|slot-in-use"):
        env16.capture()
    env16.land("insert into t values (3)")

    assert landed(env16, "t", "id") == at_source(env16, "t", "id")
