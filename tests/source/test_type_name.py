"""The server takes the name of every type for the same type."""

import pytest

from penstock.source.session import SourceSession
from penstock.values.pgtype import type_name
from tests.source.conftest import all_tables

TYPES = (
    *("int2", "int4", "int8", "float4", "float8", "bool", "text", "varchar", "varchar(7)", "char(3)", "bytea", "uuid"),
    *("numeric", "numeric(10)", "numeric(10,2)", "numeric(3,5)", "numeric(5,-2)", "bit(3)", "varbit", "varbit(9)"),
    *("timestamp", "timestamp(0)", "timestamptz(3)", "time(1)", "timetz", "date", "interval", "jsonb", "inet", "point"),
    *("int[]", "varchar(4)[]", "numeric(8,3)[]", "timestamptz(2)[]", "int2vector", "int4range", '"char"', "name"),
    *("mood", "mood[]", "named.price", "named.price[]"),
)


@pytest.fixture
def columns(conn: SourceSession, writer) -> list[tuple[str, str]]:  # type: ignore[no-untyped-def]
    """Our names of columns of all these types, each with the server's name of the type."""
    writer.execute("create type mood as enum ('sad'); create schema named; create domain named.price as numeric(9,2)")
    writer.execute(f"create table t ({', '.join(f'c{number} {type}' for number, type in enumerate(TYPES))})")
    (table,) = (table for table in all_tables(conn) if table.name == "t")
    names = [type_name(column.type) for column in table.columns]
    writer.execute(f"create table again ({', '.join(f'c{number} {name}' for number, name in enumerate(names))})")
    return names


def test_the_server_takes_a_type_s_name_for_that_type(columns: list[str], writer) -> None:  # type: ignore[no-untyped-def]
    asked = (
        "select array_agg(format_type(atttypid, atttypmod) order by attnum) from pg_attribute"
        " where attrelid = '{}'::regclass and attnum > 0"
    )

    (given,), (taken,) = (writer.execute(asked.format(name)).fetchone() for name in ("t", "again"))

    assert dict(zip(columns, taken, strict=True)) == dict(zip(columns, given, strict=True))
