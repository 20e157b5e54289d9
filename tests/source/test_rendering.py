"""A copied row has the very texts that decoding sends for it, whatever the types of its columns."""

import numpy as np
import psycopg
import pytest
from psycopg import sql

from penstock.source import copy, server_info, slot
from penstock.source.catalog_snapshot import read_catalog
from tests.source.conftest import copied, decoded, inserted, window

SAMPLES = {
    "bool": ["t", "f"],
    "bytea": [r"\x00ff61", ""],
    '"char"': ["x", r"\377"],
    "name": ["a name", ""],
    "int8": ["-9223372036854775808"],
    "int2": ["32767"],
    "int2vector": ["1 2 3"],
    "int4": ["-1"],
    "regproc": ["pg_catalog.now", "-"],
    "text": ["", "NULL", "é€😀 \\ \" ' \t\n"],
    "oid": ["4294967295"],
    "tid": ["(1,2)"],
    "xid": ["4294967295"],
    "xid8": ["18446744073709551615"],
    "cid": ["7"],
    "oidvector": ["1 2"],
    "json": ['{"b" : 1,  "a":null}', "null"],
    "jsonb": ['{"b" : 1,  "a":null}', '"x"'],
    "jsonpath": ["$.a[*] ? (@ > 1)"],
    "xml": ['<?xml version="1.0" encoding="UTF-8"?><a b="c"/>', "text"],
    "point": ["(1.5,-0)"],
    "lseg": ["[(0,0),(1,1)]"],
    "path": ["((0,0),(1,1))", "[(0,0),(1,1)]"],
    "box": ["(1,1),(0,0)"],
    "polygon": ["((0,0),(1,1),(1,0))"],
    "line": ["{1,2,3}"],
    "circle": ["<(1,2),3>"],
    "float4": ["0.1", "NaN", "-Infinity", "1e-30"],
    "float8": ["0.30000000000000004", "-0", "1e300"],
    "money": ["1234.56", "-0.5"],
    "macaddr": ["08:00:2b:01:02:03"],
    "macaddr8": ["08:00:2b:01:02:03:04:05"],
    "inet": ["192.168.0.1", "10.0.0.0/8", "::1"],
    "cidr": ["192.168.0.0/24", "10.1.2.3/32"],
    "aclitem": ["postgres=r*w/postgres"],
    "bpchar": ["ab   "],
    "char(5)": ["ab", ""],
    "varchar": ["  padded  "],
    "varchar(3)": ["abc"],
    "date": ["2020-02-29", "infinity", "0044-03-15 BC", "5874897-12-31"],
    "time": ["24:00:00", "12:34:56.789"],
    "time(0)": ["12:34:56"],
    "timestamp": ["2020-01-01 00:00:00.000001", "-infinity", "294276-12-31 23:59:59"],
    "timestamptz": ["2020-01-01 05:30:00+05:30", "infinity", "0001-01-01 00:00:00+00 BC"],
    "timetz": ["12:00:00+05:30:15"],
    "interval": ["1 year -2 days 03:04:05.6", "-00:00:01"],
    "bit(3)": ["101"],
    "varbit": ["", "10101"],
    "numeric": ["NaN", "Infinity", "1e-20", "123456789012345678901234567890.123456789"],
    "numeric(10,2)": ["12345.60"],
    "refcursor": ["a cursor"],
    "regprocedure": ["pg_catalog.now()"],
    "regoper": ["pg_catalog.||/"],
    "regoperator": ["pg_catalog.+(integer,integer)"],
    "regclass": ["pg_catalog.pg_class", "public.t", '"public"."Odd Name"', "-"],
    "regcollation": ['pg_catalog."C"'],
    "regtype": ["pg_catalog.int4", "public.mood"],
    "regrole": ["postgres"],
    "regnamespace": ["public"],
    "regconfig": ["simple"],
    "regdictionary": ["simple"],
    "uuid": ["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"],
    "pg_lsn": ["16/B374D848"],
    "tsvector": ["'a':1A 'b''c':2"],
    "tsquery": ["'a' & !'b'"],
    "txid_snapshot": ["10:20:10,14"],
    "pg_snapshot": ["10:20:10,14"],
    "int4range": ["[1,5)", "empty", "(,)"],
    "int8range": ["[1,5)"],
    "numrange": ["[1.5,)"],
    "tsrange": ['["2020-01-01 00:00:00",infinity)'],
    "tstzrange": ['["2020-01-01 00:00:00+00",)'],
    "daterange": ["[2020-01-01,2020-02-01)"],
    "int4multirange": ["{[1,2),[5,9)}", "{}"],
    "int8multirange": ["{[1,2)}"],
    "nummultirange": ["{(,1.5)}"],
    "tsmultirange": ["{[2020-01-01,2020-01-02)}"],
    "tstzmultirange": ["{[2020-01-01 00:00:00+00,)}"],
    "datemultirange": ["{[2020-01-01,2020-02-01)}"],
    # made by the test
    "mood": ["sad", "so so"],
    "pair": ['(t,"a ",1.2.3.4)', "(,,)"],
    "shouted": ["(x)", "()"],
    "flag": ["t", "f"],
    "flag_of_flag": ["t"],
    "code": ["ab"],
    "host": ["1.2.3.4"],
    "label": ["a name"],
    "flags": ["{t,f,NULL}"],
    "words": ['{"a b",c}'],
    "period": ['["a","b")'],
}
OWN_TYPES = """
    create type mood as enum ('sad', 'so so');
    create type pair as (a bool, b char(2), c inet);
    create type shouted as (v text);
    create function shout(shouted) returns text language sql immutable as $$ select 'NOT WHAT IS SENT' $$;
    create cast (shouted as text) with function shout(shouted);
    create domain flag as bool; create domain flag_of_flag as flag; create domain code as char(5);
    create domain host as inet; create domain label as name; create domain flags as bool[];
    create domain words as text[];
    create type period as range (subtype = text);
    create table "Odd Name" (id int)
"""
# the array constructor takes an array for one more dimension, not for an element
ARRAY_OF = dict.fromkeys(["flags", "words"], "{0}::{1}, null")
EXTENSIONS = {"citext": ["MiXed"], "hstore": ['"a"=>NULL, "b"=>"NULL"'], "vector": ["[1,2.5]"], "ltree": ["a.b.c"]}
# types that take no input: the server keeps statistics and parse trees in them
NO_COLUMNS = {
    "gtsvector",
    "pg_brin_bloom_summary",
    "pg_brin_minmax_multi_summary",
    "pg_dependencies",
    "pg_mcv_list",
    "pg_ndistinct",
    "pg_node_tree",
}


@pytest.fixture
def samples(writer: psycopg.Connection) -> dict[str, list[str]]:
    """Each type that this server has, with values."""
    available = {name for (name,) in writer.execute("select name from pg_available_extensions")}
    found = dict(SAMPLES)
    for name in sorted(EXTENSIONS.keys() & available):
        writer.execute(f"create extension {name}")
        found[name] = EXTENSIONS[name]
    try:
        writer.execute("select xml '<a/>'")
    except psycopg.errors.FeatureNotSupported:  # a server built without libxml
        del found["xml"]
    return found


def make_table(writer: psycopg.Connection, samples: dict[str, list[str]]) -> int:
    """Make a table with a column and an array column per type, and one row per round of values; return the rounds."""
    types = list(samples)
    columns = sql.SQL(", ").join(
        sql.SQL("{} {}, {} {}[]").format(
            sql.Identifier(f"{name} value"), sql.SQL(name), sql.Identifier(f"{name} array"), sql.SQL(name)
        )
        for name in types
    )
    writer.execute(sql.SQL("create table every (id int primary key, {})").format(columns))
    writer.execute("create publication p for table every")
    rounds = max(map(len, samples.values()))
    for number in range(rounds):
        values = (samples[name][number % len(samples[name])] for name in types)
        rendered = sql.SQL(", ").join(
            sql.SQL(ARRAY_OF.get(name, "{0}::{1}, array[{0}::{1}, null]")).format(sql.Literal(value), sql.SQL(name))
            for name, value in zip(types, values, strict=True)
        )
        writer.execute(sql.SQL("insert into every select {}, {}").format(sql.Literal(number), rendered))
    writer.execute("insert into every (id) values (%s)", (rounds,))
    return rounds


def test_copy_and_stream_agree_on_every_type(source, conn, writer, samples):
    writer.execute(f"create table t (id int); {OWN_TYPES}")
    slot_made = "select pg_create_logical_replication_slot('s', 'pgoutput')"
    writer.execute(slot_made)

    rounds = make_table(writer, samples)
    streamed = inserted(decoded(window(source, server_info.position(conn).flushed)))
    with slot.export_snapshot(source) as exported:
        ranges = copy.plan_ranges(read_catalog(conn, "p", sizes=True).tables, range_bytes=1 << 20, folder="f")
        rows = copied(source, ranges, exported).to_pylist()

    assert len(rows) == len(streamed) == rounds + 1
    for row, expected in zip(sorted(rows, key=lambda row: int(row["id"])), streamed, strict=True):
        differing = {name: (row[name], expected[name]) for name in expected if row[name] != expected[name]}
        # a copy lands a `real` as the text of its double, which a widened column needs: it is the same number
        copied_real, sent_real = differing.pop("float4 value", (None, None))
        assert (copied_real is None) == (sent_real is None)
        assert copied_real is None or np.float32(copied_real) == np.float32(sent_real)
        assert differing == {}
    assert rows[0]["bool value"] == "t"
    assert rows[0]["char(5) value"] == "ab   "
    assert rows[-1] == {**dict.fromkeys(rows[-1]), "id": str(rounds)}


def test_every_built_in_type_has_a_sample(writer):
    query = """
        select t.typname from pg_type t
        where t.typnamespace = 'pg_catalog'::regnamespace and t.typtype in ('b', 'r', 'm')
          and not exists (select from pg_type e where e.oid = t.typelem and e.typarray = t.oid)"""
    built_in = {name for (name,) in writer.execute(query)}

    sampled = {name.split("(")[0].strip('"') for name in SAMPLES} | {"bit"}

    assert built_in - sampled == NO_COLUMNS & built_in
