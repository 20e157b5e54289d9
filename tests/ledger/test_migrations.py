import psycopg
import pytest
from alembic.script import ScriptDirectory

from penstock.config.connections import Connection
from penstock.errors import LedgerError
from penstock.ledger import Ledger
from penstock.ledger.migrate import config
from penstock.ledger.session import REVISION
from stack.servers.postgres import Database
from tests.ledger.conftest import connection_to, together


def test_the_code_expects_the_newest_revision() -> None:
    assert ScriptDirectory.from_config(config()).get_heads() == [REVISION]


def test_every_table_of_the_ledger_is_made_in_its_own_schema(control: Database) -> None:
    found = control.execute("select tablename from pg_tables where schemaname = 'penstock' order by 1")

    assert [table for (table,) in found] == [
        "alarm",
        "alembic_version",
        "changelog_fill",
        "cut",
        "departed_partition",
        "event",
        "gap",
        "key_share",
        "lake_sample",
        "load",
        "maintenance",
        "mark",
        "old_table",
        "open_question",
        "pipeline",
        "relation",
        "shape",
        "skipped",
        "slot_sample",
        "source_clock",
        "spent",
        "summary",
        "table",
        "table_cut",
        "task_outcome",
        "verification",
        "verified",
        "window",
        "work",
    ]


def test_migrating_again_changes_nothing(ledger: Ledger, running: str) -> None:
    before = ledger.pipelines.get(running)

    assert ledger.migrate() == REVISION
    assert ledger.pipelines.get(running) == before


def test_two_migrations_at_once_are_one_after_the_other(database16: Database) -> None:
    outcomes = together(*(Ledger(connection_to(database16)).migrate for _ in range(4)))

    assert outcomes == [REVISION] * 4
    assert database16.execute("select version_num from penstock.alembic_version") == [(REVISION,)]


def test_a_migration_that_fails_leaves_nothing(database16: Database) -> None:
    database16.execute("create schema penstock; create table penstock.cut (number int)")

    with pytest.raises(psycopg.errors.DuplicateTable):
        Ledger(connection_to(database16)).migrate()
    found = database16.execute("select tablename from pg_tables where schemaname = 'penstock'")
    assert found == [("cut",)]


def test_a_ledger_that_was_never_migrated_says_so(database16: Database) -> None:
    ledger = Ledger(connection_to(database16))

    for call in (ledger.version, ledger.pipelines.all):
        with pytest.raises(LedgerError, match=r"\[ledger-not-migrated\].*found none; the first bootstrap makes it"):
            call()


@pytest.mark.parametrize("revision", ["0001", "0006", "r9999"])
def test_another_revision_is_refused_by_every_call(database16: Database, revision: str) -> None:
    """The first two were of commits before the first release."""
    Ledger(connection_to(database16)).migrate()
    database16.execute("update penstock.alembic_version set version_num = %s", revision)
    ledger = Ledger(connection_to(database16))

    for call in (ledger.version, ledger.pipelines.all, ledger.migrate):
        with pytest.raises(LedgerError, match=r"\[ledger-not-migrated\].*drop its schema penstock and bootstrap again"):
            call()
    assert database16.execute("select version_num from penstock.alembic_version") == [(revision,)]


def test_a_role_that_may_not_make_the_schema_is_named(database16: Database) -> None:
    role = f"nobody_{database16.name}"
    database16.execute(f"create role {role} login password 'only-for-tests'")
    try:
        asked = connection_to(database16)
        poor = Connection(asked.id, asked.host, asked.port, role, "only-for-tests", asked.database)
        with pytest.raises(LedgerError, match=r"\[ledger-not-migrated\].*permission denied for database"):
            Ledger(poor).migrate()
    finally:
        database16.execute(f"drop role {role}")
