"""The server's catalog says which types' texts are names of other objects; a rename shows that it is right."""

import pytest

from penstock.source import types
from penstock.source.session import SourceSession
from stack.servers.postgres import Database

MADE = """
create schema s;
create domain s.relation as regclass;
create type s.pair as (n int, relation s.relation);
create type s.mood as enum ('fine');
create type s.plain as (n int, at timestamptz, mood s.mood);
create type s.relations as range (subtype = regclass);
create type s.spans as range (subtype = interval);
create type s.loose;
create function s.loose_in(cstring) returns s.loose language internal immutable strict as 'textin';
create function s.loose_out(s.loose) returns cstring language internal stable strict as 'textout';
create type s.loose (input = s.loose_in, output = s.loose_out, like = text);
"""
NAMES = {
    **{each: each for each in ("regclass", "regproc", "regprocedure", "regoper", "regoperator", "regtype", "regrole")},
    **{each: each for each in ("regnamespace", "regcollation", "regconfig", "regdictionary", "aclitem", "loose")},
    **dict.fromkeys(("_regclass", "relation", "_relation", "pair", "_pair", "relations", "_relations"), "regclass"),
    "_aclitem": "aclitem",
}
"""Types by their names in the catalog, and the one within whose text is a name."""
NOT = (
    *(
        "int4",
        "oid",
        "name",
        "text",
        "bool",
        "bytea",
        "uuid",
        "json",
        "jsonb",
        "xml",
        "money",
        "date",
        "time",
        "interval",
    ),
    *(
        "timestamp",
        "timestamptz",
        "float8",
        "numeric",
        "point",
        "tsvector",
        "pg_lsn",
        "_text",
        "int2vector",
        "oidvector",
    ),
    *("int4range", "tstzrange", "int4multirange", "mood", "_mood", "plain", "spans"),
)


def test_types_whose_text_is_the_name_of_another_object_are_known_by_the_catalog(
    conn: SourceSession, database: Database
) -> None:
    database.execute(MADE)
    oids = dict(
        database.execute("select typname::text, oid::int from pg_type where typname = any (%s)", [*NAMES, *NOT])
    )
    assert oids.keys() == {*NAMES, *NOT}

    known = types.read_types(conn, oids.values())

    assert {name: known.naming(oids[name]) for name in NAMES} == NAMES
    assert {name for name in NOT if known.naming(oids[name])} == set()


@pytest.mark.parametrize(
    ("type", "value", "rename"),
    [
        ("regclass", "s.t", "alter table s.t rename to u"),
        ("regnamespace", "s", "alter schema s rename to z"),
        ("regproc", "s.f", "alter function s.f rename to g"),
        ("regprocedure", "s.f(int)", "alter function s.f rename to g"),
        ("regtype", "s.mood", "alter type s.mood rename to humour"),
        ("regcollation", "s.c", "alter collation s.c rename to d"),
        ("regconfig", "s.w", "alter text search configuration s.w rename to x"),
        ("regdictionary", "s.y", "alter text search dictionary s.y rename to z"),
        ("regclass[]", "{s.t}", "drop table s.t"),
    ],
)
def test_a_rename_changes_the_text_of_rows_that_nobody_writes(
    database: Database, type: str, value: str, rename: str
) -> None:
    """That is why such types are named: were one of them to keep its text, nothing would be to be said of it."""
    database.execute(
        "create schema s; create table s.t (); create type s.mood as enum ('fine');"
        "create function s.f(int) returns int language sql as 'select 1'; create collation s.c from \"C\";"
        "create text search configuration s.w (copy = simple); create text search dictionary s.y (template = simple)"
    )
    database.execute(f"create table named (x {type}); insert into named values ('{value}')")
    before = database.execute("select x::text, ctid, xmin from named")
    database.execute(rename)
    after = database.execute("select x::text, ctid, xmin from named")

    assert before[0][1:] == after[0][1:]
    assert before[0][0] != after[0][0]
