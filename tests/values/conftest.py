"""What the tests of values share: the pinned settings, the server's raw texts, and types as the catalog has them."""

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
from psycopg import sql

from penstock.engine import duck
from penstock.engine.files import Files
from penstock.engine.order import Resources
from penstock.values.pgtype import PgType
from stack.servers.postgres import Database
from tests.values.cases import SETUP
from tests.values.engines import DuckDb

PINNED = {
    "client_encoding": "UTF8",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "lc_monetary": "C",
}

DESCRIBE = """
select oid::int, typnamespace::regnamespace::text, typname, typtype::text, typbasetype::int, typtypmod,
       case when typsubscript = 'array_subscript_handler'::regproc then typelem::int else 0 end
from pg_type where oid = %s
"""


@dataclass
class Source:
    """One connection under the pinned settings."""

    connection: psycopg.Connection

    def execute(self, statement: str | sql.Composable, *parameters: object) -> psycopg.Cursor:
        text = statement if isinstance(statement, sql.Composable) else statement.encode()
        return self.connection.execute(text, parameters or None)

    def texts(self, statement: str | sql.Composable, *parameters: object) -> list[list[str | None]]:
        """Run a query and return what the types' output functions rendered, untouched by the driver."""
        result = self.execute(statement, *parameters).pgresult
        assert result is not None
        cells = ([result.get_value(row, column) for column in range(result.nfields)] for row in range(result.ntuples))
        return [[None if cell is None else cell.decode() for cell in row] for row in cells]

    def decoded(self, statement: str, *parameters: object) -> object:
        """Run a query for one value and return what the driver makes of its binary form."""
        row = self.connection.execute(statement.encode(), parameters, binary=True).fetchone()
        assert row is not None
        return row[0]

    def type(self, name: str) -> PgType:
        """Describe a type as one writes it in SQL, such as `numeric(10,2)[]`."""
        self.execute(f"create temp table described (x {name})")
        ((oid, typmod),) = self.execute(
            "select atttypid::int, atttypmod from pg_attribute where attrelid = 'described'::regclass and attname = 'x'"
        ).fetchall()
        self.execute("drop table described")
        return self.describe(oid, typmod)

    def describe(self, oid: int, typmod: int = -1) -> PgType:
        ((_, schema, name, kind, base, base_typmod, element),) = self.execute(DESCRIBE, oid).fetchall()
        return PgType(
            oid,
            typmod,
            schema,
            name,
            kind,
            base=self.describe(base, base_typmod) if base else None,
            element=self.describe(element) if element else None,
        )


@pytest.fixture
def source(database: Database) -> Iterator[Source]:
    """A connection to an empty database, on each server."""
    with database.connect() as connection:
        yield pinned(connection)


@pytest.fixture
def source16(database16: Database) -> Iterator[Source]:
    """A connection to an empty database of the embedded server."""
    with database16.connect() as connection:
        yield pinned(connection)


@pytest.fixture
def shop(source: Source) -> Source:
    """A source with the types of the case table."""
    source.execute(SETUP)
    return source


@pytest.fixture(scope="module")
def duckdb() -> Iterator[DuckDb]:
    """The engine of merges, without files."""
    with duck.connect(Resources(), Files()) as opened:
        yield DuckDb(opened)


def pinned(connection: psycopg.Connection) -> Source:
    for name, value in PINNED.items():
        connection.execute("select set_config(%s, %s, false)", (name, value))
    return Source(connection)
