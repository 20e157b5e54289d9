"""A verification that is killed leaves no slot, no open transaction, and a mark that the next one takes away."""

from __future__ import annotations

import signal
import time

from tests.faults.conftest import run
from tests.world import World

MARKS = "penstock.flow.marks"
VERIFY = "penstock.flow.verify"
STEPS = [
    ("penstock.source.slot:_create", "after"),
    ("penstock.ledger:Ledger.add_mark", "before"),
    ("penstock.ledger:Ledger.add_mark", "after"),
    ("penstock.ledger:Ledger.begin_verification", "after"),
    (f"{VERIFY}:fingerprint", "after"),
    (f"{MARKS}:capture", "before"),
    (f"{MARKS}:capture", "after"),
]


def left(world: World) -> list[tuple[str]]:
    """Return what must not stay at the source; the server takes a moment to notice that a process has gone."""
    query = (
        "select slot_name::text from pg_replication_slots where temporary union all "
        f"select application_name from pg_stat_activity where application_name like 'penstock:{world.name}:verify%'"
    )
    deadline = time.monotonic() + 30
    while (found := world.sql(query)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def test_a_verification_killed_anywhere_leaves_nothing_at_the_source_and_no_mark_for_ever(doomed: World) -> None:
    doomed.settings["verify"] = {"wait": "1s"}
    doomed.sql("create table t (id int primary key); insert into t select generate_series(1, 100)")
    assert run(doomed, "prepare").returncode == 0
    assert run(doomed, "copy").returncode == 0

    for step, when in STEPS:
        doomed.sql("insert into t select max(id) + 1 from t")
        process = run(doomed, "verify", step, when, "1")
        assert process.returncode == -signal.SIGKILL, f"{step} was never reached: {process.stderr[-2000:]}"
        assert left(doomed) == [], (step, when)
        assert len(doomed.ctx.ledger.marks(doomed.name)) <= 1, (step, when)

    unharmed = run(doomed, "verify")
    assert "[verify-late]" in unharmed.stderr, unharmed.stderr[-2000:]
    assert left(doomed) == []
    assert doomed.ctx.ledger.marks(doomed.name) == []
    assert doomed.ctx.ledger.windows(doomed.name), "the position was captured all the same"
    assert doomed.ctx.ledger.pipeline(doomed.name).state == "running"


def test_a_capture_after_a_killed_verification_goes_past_its_mark(doomed: World) -> None:
    doomed.sql("create table t (id int primary key)")
    assert run(doomed, "prepare").returncode == 0
    assert run(doomed, "copy").returncode == 0
    run(doomed, "verify", "penstock.ledger:Ledger.begin_verification", "after", "1")
    (mark,) = doomed.ctx.ledger.marks(doomed.name)

    doomed.sql("insert into t values (1)")
    assert run(doomed, "capture").returncode == 0

    windows = doomed.ctx.ledger.windows(doomed.name)
    assert mark.lsn in {window.upto_lsn for window in windows}
    assert windows[-1].upto_lsn > mark.lsn
