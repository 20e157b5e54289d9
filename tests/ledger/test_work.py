"""How far a task is, is noted while it works, and forgotten when it is done."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.config.connections import Connection
from penstock.ledger import Ledger
from penstock.ledger.work import WorkNote
from penstock.orchestration import tasks
from penstock.orchestration.tasks import WorkNotes

TASK = {"dag": "shop.bootstrap", "run_id": "first", "task": "copy"}


def notes_of(connection: Connection, name: str, task: dict[str, str]) -> WorkNotes:
    ctx: Any = SimpleNamespace(name=name, task=task, ledger=Ledger(connection, task))
    return WorkNotes(ctx)


def under_way(ledger: Ledger, name: str) -> list[WorkNote]:
    with ledger.page.panels() as panel:
        return panel.work(name)


def test_a_work_is_noted_while_it_lasts(
    ledger: Ledger, connection: Connection, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "EVERY_SECONDS", 0.0)
    notes = notes_of(connection, name, TASK)

    notes("copying", 1, 4)
    notes("copying", 2, 4, 100)
    (noted,) = under_way(ledger, name)
    notes("copying", 4, 4, 250)

    assert (noted.done, noted.total, noted.rows, noted.first_done, noted.first_rows) == (2, 4, 100, 1, 100)
    assert (noted.dag, noted.run_id, noted.task) == ("shop.bootstrap", "first", "copy")
    assert under_way(ledger, name) == []


def test_it_is_noted_every_other_second_only(ledger: Ledger, connection: Connection, name: str) -> None:
    notes = notes_of(connection, name, TASK)

    for done in range(100):
        notes("copying", done, 100)

    (noted,) = under_way(ledger, name)
    assert noted.done < 99


def test_what_a_killed_run_has_left_goes_with_the_next_ones_first_note(
    ledger: Ledger, connection: Connection, name: str
) -> None:
    notes_of(connection, name, TASK)("copying", 1, 4)
    notes_of(connection, name, {**TASK, "run_id": "second"})("loading", 0, 2)

    assert [(each.run_id, each.what) for each in under_way(ledger, name)] == [("second", "loading")]


def test_a_ledger_that_does_not_answer_stops_no_work(connection: Connection, name: str) -> None:
    from dataclasses import replace  # noqa: PLC0415

    notes = notes_of(replace(connection, host="127.0.0.255"), name, TASK)

    assert notes("copying", 1, 4) is None


def test_a_kept_spark_application_is_noted_once_whoever_keeps_it_and_forgotten(ledger: Ledger, name: str) -> None:
    until = datetime(2026, 11, 23, 8, 5, tzinfo=UTC)

    ledger.work.keep_spark(name, until=until, cuts=1)
    ledger.work.keep_spark(name, until=until + timedelta(minutes=5), cuts=2)
    (noted,) = under_way(ledger, name)
    ledger.work.forget_spark(name)

    assert (noted.until, noted.done, noted.share, noted.fresh) == (until + timedelta(minutes=5), 2, None, True)
    assert under_way(ledger, name) == []
