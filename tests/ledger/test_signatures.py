"""Rows are signed by the task of Airflow that wrote them, so that the page can lead to its log."""

from penstock.config.connections import Connection
from penstock.errors import Trouble
from penstock.ledger import Ledger
from tests.ledger.conftest import START, capture
from tests.ledger.test_health import see

TASK = {"dag": "shop.capture", "run_id": "scheduled__2026-11-23T19:00", "task": "windows"}


def test_what_a_task_writes_is_signed_by_it_and_what_a_shell_writes_by_nobody(
    ledger: Ledger, connection: Connection, ready: str
) -> None:
    working = Ledger(connection, TASK)
    capture(working, ready, int(START), int(START) + 8)
    working.events.add(ready, slug="dag-failed", message="by a task")
    ledger.events.add(ready, slug="dag-failed", message="by a shell")
    see(working, ready)
    working.tables.stop(ready, {1: Trouble.usual("schema-change", "it changed")})

    with ledger.page.panels() as panel:
        events = {each["message"]: each["task"] for each in panel.events(ready)}
        (window,) = panel.windows(ready)
        (alarm,) = panel.alarms(ready)
        paused = {each.oid: each.paused_by for each in panel.tables(ready)}

    assert (events["by a task"], events["by a shell"]) == (TASK, None)
    assert (window["task"], alarm.by_task) == (TASK, TASK)
    assert paused == {1: TASK, 2: None}


def test_the_task_that_met_what_halted_a_pipeline_is_forgotten_with_the_halt(
    ledger: Ledger, connection: Connection, running: str
) -> None:
    Ledger(connection, TASK).pipelines.halt(running, slug="slot-lost", reason="it is lost")

    with ledger.page.panels() as panel:
        (halted,) = panel.pipelines(running)
    ledger.pipelines.resume(running)
    with ledger.page.panels() as panel:
        (resumed,) = panel.pipelines(running)

    assert (halted.halted_by, resumed.halted_by) == (TASK, None)
