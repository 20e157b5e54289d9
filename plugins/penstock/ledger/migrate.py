"""Bring the ledger's schema to this code's revision, with Alembic and without an ini file.

All revisions are applied in one transaction under an advisory lock: two migrators are one after the other,
and a killed one leaves nothing.
"""

from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import create_engine, pool
from sqlalchemy.exc import DBAPIError

from penstock import sql
from penstock.config.connections import Connection
from penstock.errors import LedgerError
from penstock.ledger.session import UNRELEASED, connect, named

_SCRIPTS = Path(__file__).parent / "migrations"


def config() -> Config:
    """Return Alembic's configuration of the ledger."""
    settings = Config()
    settings.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    settings.set_main_option("path_separator", "os")
    return settings


def upgrade(connection: Connection) -> None:
    """Apply every revision that is missing; raises LedgerError("ledger-unreachable", "ledger-not-migrated")."""
    try:
        _upgrade(connection)
    except DBAPIError as error:
        if isinstance(error.orig, psycopg.Error):
            raise named(error.orig, connection) from None
        raise
    except CommandError as error:
        raise LedgerError(
            "ledger-not-migrated",
            f"expected a ledger of this Penstock's revision or an older one at {connection.address}, got: {error}; "
            f"where a newer Penstock migrated it, run that one. {UNRELEASED}",
        ) from error


def _upgrade(connection: Connection) -> None:
    def opened() -> psycopg.Connection:
        fresh = connect(connection, "penstock migrate")
        fresh.autocommit = False
        return fresh

    engine = create_engine("postgresql+psycopg://", creator=opened, poolclass=pool.NullPool)
    with engine.begin() as transaction:
        run = transaction.exec_driver_sql
        run(sql.load("ledger/migrate/migration_lock"))
        if not run(sql.load("ledger/migrate/schema_exists")).scalar_one():
            run(sql.load("ledger/migrate/create_schema"))
        settings = config()
        settings.attributes["connection"] = transaction
        command.upgrade(settings, "head")
