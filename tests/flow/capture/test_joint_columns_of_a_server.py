"""The relations of a window, read together: random histories of tables on a real server, whose catalog says what was right."""

from __future__ import annotations

import random
from itertools import groupby

from psycopg import Connection

from penstock.ledger.relation_records import ColumnLook
from penstock.shapes.joint_columns import read
from penstock.shapes.relation_columns import DROPPED
from penstock.wire.controls import relation_columns
from penstock.wire.messages import Relation
from penstock.wire.pgoutput import Decoder
from stack.servers.postgres import Database

HISTORIES, STEPS = 60, 8
Columns = dict[int, tuple[str, int, int]]


def columns_of(conn: Connection[tuple[object, ...]], table: str) -> Columns:
    found = conn.execute(
        "select attnum, attname, atttypid::int, atttypmod from pg_attribute "
        "where attrelid = %s::regclass and attnum > 0 and not attisdropped order by attnum",
        (table,),
    )
    return {int(str(n)): (str(name), int(str(oid)), int(str(typmod))) for n, name, oid, typmod in found}


def migrate(conn: Connection[tuple[object, ...]], table: str, seed: int) -> tuple[list[ColumnLook], list[Columns]]:
    """Change a table at random, with rows between; return two looks, and what it was at each row."""
    rng, name = random.Random(seed), iter(range(1000))
    conn.execute(f"create table {table} (id int, a text, b int, c text)".encode())
    first, rows, last = columns_of(conn, table), list[Columns](), 4
    for _ in range(STEPS):
        there = columns_of(conn, table)
        loose = [column for n, (column, *_) in there.items() if n > 1]
        step = rng.choice(["add", "drop", "row", "row", "rename"])
        if step == "add" and last < 7:
            last += 1
            conn.execute(f"alter table {table} add x{next(name)} {rng.choice(['text', 'int'])}".encode())
        elif step == "drop" and loose:
            gone = rng.choice([n for n, (column, *_) in there.items() if column in loose and n < 5] or [0])
            if gone:  # what is added stays, or no look has seen it
                conn.execute(f"alter table {table} drop {there[gone][0]}".encode())
        elif step == "rename" and loose:
            conn.execute(f"alter table {table} rename {rng.choice(loose)} to y{next(name)}".encode())
        else:
            conn.execute(f"insert into {table} (id) values (1)".encode())
            rows.append(there)
    return [ColumnLook(4, first), ColumnLook(last, columns_of(conn, table))], rows


def test_random_histories_are_read_as_the_catalog_had_them_or_not_at_all(database16: Database) -> None:
    slot = f"joint_{database16.name}"
    database16.execute("create publication joint for all tables")
    database16.execute(f"select pg_create_logical_replication_slot('{slot}', 'pgoutput')")
    with database16.connect() as conn:
        histories = {f"t{seed}": migrate(conn, f"t{seed}", seed) for seed in range(HISTORIES)}
    peek = (
        f"select data from pg_logical_slot_peek_binary_changes('{slot}', null, null, "
        "'proto_version', '1', 'publication_names', 'joint')"
    )
    decoder = Decoder()
    messages = [decoder.decode(data) for (data,) in database16.execute(peek)]
    sent: dict[str, list[Relation]] = {}
    for message in messages:
        if isinstance(message, Relation):
            sent.setdefault(message.name, []).append(message)

    told = wrong = 0
    for table, (looks, rows) in histories.items():
        relations = [each for each, _ in groupby(sent.get(table, []))]
        versions = [relations.index(each) for each in relations]
        found = read(list(zip(relations, versions, strict=True)), looks)
        for there in rows:
            (version,) = {relations.index(each) for each in relations if relation_columns(each) == list(there.values())}
            answer = found[version]
            told += answer is not None
            wrong += answer is not None and not all(
                n == m or (n == DROPPED and m not in looks[-1].columns) for n, m in zip(answer, there, strict=True)
            )

    assert wrong == 0
    assert told > HISTORIES, "most of them can be read"
