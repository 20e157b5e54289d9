"""What the ledger says when the control database does not answer, and how its connections behave."""

from dataclasses import replace

import pytest

from penstock.codec import record_of
from penstock.config.connections import Connection
from penstock.errors import LedgerError
from penstock.ledger import Ledger
from penstock.ledger.windows import WindowPace
from stack import ports
from stack.servers.postgres import Database
from tests.waiting import wait_until

BACKENDS = "select count(*) from pg_stat_activity where application_name = 'penstock ledger' and datname = 'control'"


@pytest.mark.parametrize("wrong", ["port", "password", "database", "host"])
def test_a_control_database_that_refuses_is_named_without_the_password(connection: Connection, wrong: str) -> None:
    values = {"port": ports.choose(), "password": "wrong-secret", "database": "absent", "host": "127.0.0.255"}
    ledger = Ledger(replace(connection, **{wrong: values[wrong]}))

    for call in (ledger.pipelines.all, ledger.migrate, ledger.version):
        with pytest.raises(LedgerError) as caught:
            call()
        assert caught.value.slug == "ledger-unreachable"
        assert caught.value.__cause__ is None
        for secret in (connection.password, "wrong-secret"):
            assert secret not in str(caught.value)


@pytest.mark.parametrize("change", [{"seconds": "hunter2"}, {"wal_bytes": None}, {"more": "hunter2"}])
def test_a_row_that_is_not_as_its_record_has_it_is_refused_without_its_values(change: dict[str, str | None]) -> None:
    row = {"wal_bytes": 2, "read_bytes": None, "seconds": 0.5}
    assert record_of(WindowPace, row) == WindowPace(**row)

    with pytest.raises(ValueError, match="WindowPace") as caught:
        record_of(WindowPace, row | change)

    assert "hunter2" not in str(caught.value)


@pytest.fixture
def fresh(connection: Connection) -> Ledger:
    return Ledger(connection)


def test_a_session_is_one_connection_and_ends_with_the_block(fresh: Ledger, running: str, control: Database) -> None:
    before = control.execute(BACKENDS)[0][0]
    with fresh.session():
        fresh.pipelines.get(running)
        with fresh.session():
            fresh.pipelines.get(running)
        fresh.pipelines.get(running)
        assert control.execute(BACKENDS) == [(before + 1,)]
    fresh.pipelines.get(running)
    wait_until(lambda: control.execute(BACKENDS) == [(before,)], "the backend ends, a moment after its client")


def test_a_failed_call_in_a_session_undoes_only_itself(ledger: Ledger, running: str) -> None:
    ledger.events.add(running, slug="test", message="before")
    with pytest.raises(LedgerError, match="ledger-conflict"):
        ledger.pipelines.resume(running)
    ledger.events.add(running, slug="test", message="after")

    assert [event.message for event in ledger.events.all(running)] == ["after", "before"]


def test_a_connection_that_dies_between_calls_is_unreachable(fresh: Ledger, running: str, control: Database) -> None:
    with fresh.session():
        fresh.pipelines.get(running)
        control.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = 'penstock ledger'"
        )
        with pytest.raises(LedgerError, match="ledger-unreachable"):
            fresh.pipelines.get(running)
    assert fresh.pipelines.get(running).name == running
