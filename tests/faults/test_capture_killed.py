"""Capture killed between any two of its steps, with and without a crash of the source: nothing lost, nothing twice."""

import pytest

from tests.faults.harness import killed, killed_twice, run
from tests.faults.oracle import at_source, landed
from tests.faults.steps import Kill, Step, called, slow
from tests.pipeline_env import PipelineEnv
from tests.waiting import wait_until

STEPS = [
    (Step.WINDOW_LOOK_NOTED, "after"),
    (Step.WINDOW_PLANNED, "after"),
    (Step.FILE_PERSISTED, "after"),
    (Step.FILE_SHOWN, "after"),
    (Step.WINDOW_STAGED, "after"),
    (Step.SLOT_ADVANCED, "after"),
]
TWINS = [  # each leaves behind almost what one of the steps above does
    (Step.WINDOW_PLANNED, "before"),
    (Step.ROWS_WRITTEN, "after"),
    (Step.WINDOW_STAGED, "before"),
    (Step.SLOT_ADVANCED, "before"),
    (Step.WINDOW_CONFIRMED, "before"),
    (Step.WINDOW_CONFIRMED, "after"),
]
CHANGES = """
insert into t select n, 'row ' || n, repeat(md5(n::text), 100) from generate_series({0} * 100 + 1, {0} * 100 + 50) n;
update t set name = name || '+' where id % 7 = {0} % 7;
update t set id = id + 100000 where id = {0} * 100 + 1;
delete from t where id = {0} * 100 + 2;
"""


def begin(env: PipelineEnv) -> None:
    env.sql("create table t (id int primary key, name text, body text)")
    env.sql("alter table t alter body set storage external")
    env.sql("insert into t select n, 'copied ' || n, repeat(md5(n::text), 100) from generate_series(1, 20) n")
    assert run(env, "prepare").returncode == 0
    assert run(env, "copy").returncode == 0


@pytest.mark.parametrize(
    ("steps", "crash"),
    [
        (STEPS, False),
        pytest.param([*STEPS, *TWINS], False, marks=pytest.mark.slow),
        pytest.param([*STEPS, *TWINS], True, marks=pytest.mark.slow),
    ],
    ids=["source up", "source up, every step", "source crashed too, every step"],
)
def test_whatever_step_is_the_last_the_next_run_continues_exactly(
    doomed: PipelineEnv, steps: list[tuple[str, str]], crash: bool
) -> None:
    begin(doomed)
    for number, kill in enumerate(steps, start=1):
        doomed.sql(CHANGES.format(number))

        def between(number: int = number) -> None:
            if crash:
                doomed.source.server.restart("immediate")
            doomed.sql(CHANGES.format(number + 50))

        killed_twice(doomed, "capture", kill, between)

    repaired = run(doomed, "capture")
    assert repaired.returncode == 0, repaired.stderr[-2000:]
    assert landed(doomed, "t", "id") == at_source(doomed, "t", "id")
    listed = {entry.path for window in doomed.ctx.ledger.windows.all(doomed.name) for entry in window.files}
    assert set(doomed.ctx.landing.list(f"{doomed.name}/windows")) == listed, "a dead attempt left files"


@pytest.mark.slow
def test_a_full_disk_stops_capture_with_its_name_and_loses_nothing(doomed: PipelineEnv) -> None:
    begin(doomed)
    doomed.sql(
        "insert into t select n, 'x', md5(random()::text) || md5(random()::text) from generate_series(100, 30000) n"
    )

    full = run(doomed, "capture", FILE_LIMIT="65536")
    assert full.returncode != 0
    assert "landing-unwritable" in full.stderr

    assert run(doomed, "capture").returncode == 0
    assert landed(doomed, "t", "id") == at_source(doomed, "t", "id")


def test_an_unreachable_ledger_stops_capture_before_the_slot_moves(doomed: PipelineEnv) -> None:
    begin(doomed)
    doomed.sql(CHANGES.format(1))
    slot = "select confirmed_flush_lsn from pg_replication_slots where database = current_database()"
    before = doomed.sql(slot)
    ledger, doomed.ledger = doomed.ledger, _nowhere(doomed)

    lost = run(doomed, "capture")
    assert lost.returncode != 0
    assert "ledger-unreachable" in lost.stderr
    assert doomed.ledger.password not in lost.stderr
    assert doomed.sql(slot) == before

    doomed.ledger = ledger
    assert run(doomed, "capture").returncode == 0
    assert landed(doomed, "t", "id") == at_source(doomed, "t", "id")


def _nowhere(env: PipelineEnv) -> object:
    from stack import ports  # noqa: PLC0415
    from tests.pipeline_env import _Place  # noqa: PLC0415

    return _Place(port=ports.choose(), password="never-to-be-printed", name=env.ledger.name)


AHEAD: list[Kill] = [
    (Step.READ_AHEAD_MESSAGES, "after", 2),
    (Step.READ_AHEAD_STARTED, "after", 2),
    (Step.WINDOW_STAGED, "before", 2),
    (Step.SLOT_ADVANCED, "before", 2),
]


@pytest.mark.parametrize("kill", slow(AHEAD, but=AHEAD[:1]), ids=called)
def test_a_run_that_died_while_it_read_ahead_leaves_no_slot_and_no_gap(doomed: PipelineEnv, kill: Kill) -> None:
    begin(doomed)
    doomed.settings["capture"] = {"max_wal_bytes": "1MiB"}
    for number in range(1, 9):
        ids = f"generate_series({number} * 1000, {number} * 1000 + 100)"
        doomed.sql(f"insert into t (id, body) select n, repeat(md5(n::text), 300) from {ids} n")
        doomed.sql(CHANGES.format(number))

    killed(doomed, "capture", *kill)
    repaired = run(doomed, "capture")

    assert repaired.returncode == 0, repaired.stderr[-2000:]
    assert landed(doomed, "t", "id") == at_source(doomed, "t", "id")
    wait_until(
        lambda: not doomed.sql("select from pg_replication_slots where temporary"), "the copy of the slot is gone"
    )
