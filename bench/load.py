"""The rows and the changes that are measured: one table of 8 columns, filled and changed by the server itself."""

from typing import Any

import psycopg

COLUMNS = ("id", "account", "name", "email", "amount", "at", "tags", "doc")
TABLE = """
create table bench (
  id bigint primary key, account int, name text, email text,
  amount numeric(12, 2), at timestamptz, tags int[], doc jsonb)
"""
ROW = """
  n, mod(n * 7919, 100000), 'customer ' || n, md5(n::text) || '@example.org',
  mod(n, 1000000) / 100.0, '2026-01-01'::timestamptz + n * interval '1 second',
  array[mod(n, 10), mod(n, 100)], jsonb_build_object('n', n, 'state', md5((n / 3)::text))
"""
INSERT = f"insert into bench select {ROW} from generate_series(%s::bigint, %s::bigint) n"
UPDATE = "update bench set amount = amount + 1, name = name || '!' where id between %s and %s"
DELETE = "delete from bench where id between %s and %s"
STEP = 10_000


def create(conn: psycopg.Connection[Any], rows: int = 0) -> None:
    """Make the table and its publication, with so many rows."""
    conn.execute("drop table if exists bench cascade")
    conn.execute(TABLE)
    conn.execute("drop publication if exists bench")
    conn.execute("create publication bench for table bench")
    if rows:
        conn.execute(INSERT, (1, rows))
    conn.execute("vacuum analyze bench")
    conn.execute("checkpoint")  # else the server writes the rows of now while it is measured


def change(conn: psycopg.Connection[Any], changes: int, *, one_transaction: bool = False) -> None:
    """Make so many changes: half inserts, three eighths updates, one eighth deletes."""
    inserts = changes // 2
    conn.autocommit = not one_transaction
    for statement, share in ((INSERT, changes // 2), (UPDATE, changes * 3 // 8), (DELETE, changes // 8)):
        for first in range(1, share + 1, STEP):
            conn.execute(statement, (first, min(first + STEP - 1, share)))
    if one_transaction:
        conn.commit()
        conn.autocommit = True
    assert inserts * 2 == changes, "changes must divide by two"


def slot(conn: psycopg.Connection[Any], name: str) -> None:
    """Make a slot that starts now."""
    conn.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", (name,))
