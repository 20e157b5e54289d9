"""Holds: one process at a time, and none after its process has gone."""

from contextlib import ExitStack

import pytest

from penstock.config.connections import Connection
from penstock.errors import LedgerError
from penstock.ledger import Ledger


@pytest.fixture
def holding() -> ExitStack:
    return ExitStack()


def test_a_second_holder_is_refused_and_learns_who_has_it(
    connection: Connection, name: str, holding: ExitStack
) -> None:
    with holding:
        holding.enter_context(Ledger(connection).locks.hold(name, "lake"))
        with pytest.raises(LedgerError) as caught:
            holding.enter_context(Ledger(connection).locks.hold(name, "lake"))
    assert caught.value.slug == "work-under-way"
    assert f"penstock {name} lake" in caught.value.message


def test_another_work_and_another_pipeline_are_free(connection: Connection, name: str, holding: ExitStack) -> None:
    with holding:
        for pipeline, work in ((name, "lake"), (name, "changelog"), (f"{name}_2", "lake")):
            holding.enter_context(Ledger(connection).locks.hold(pipeline, work))
        with pytest.raises(LedgerError, match="work-under-way"):
            holding.enter_context(Ledger(connection).locks.hold(name, "changelog"))


def test_a_hold_is_free_again_after_an_error_inside(connection: Connection, name: str, holding: ExitStack) -> None:
    with pytest.raises(ZeroDivisionError), Ledger(connection).locks.hold(name, "lake"):
        raise ZeroDivisionError
    assert holding.enter_context(Ledger(connection).locks.hold(name, "lake")) is None
    holding.close()


def test_a_hold_ends_with_the_session_of_its_process(connection: Connection, name: str, holding: ExitStack) -> None:
    holding.enter_context(Ledger(connection).locks.hold(name, "lake"))
    ledger = Ledger(connection)
    with ledger.transaction() as transaction:
        ended = transaction.connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = %s",
            (f"penstock {name} lake",),
        ).fetchall()
    assert ended == [(True,)]
    with ledger.locks.hold(name, "lake", wait=30), pytest.raises(LedgerError, match="work-under-way"):
        holding.enter_context(Ledger(connection).locks.hold(name, "lake"))


def test_a_hold_is_free_for_the_next_run_as_soon_as_it_ends(connection: Connection, name: str) -> None:
    for _ in range(50):
        with Ledger(connection).locks.hold(name, "lake", "changelog"):
            pass
        with pytest.raises(ZeroDivisionError), Ledger(connection).locks.hold(name, "lake", "changelog"):
            _ = 1 / 0
