"""What PostgreSQL does to a table without a word in the stream is seen in the catalog, or in the rows, and named.

Every case has a table of its own. All of them change between two captures of one pipeline, each in the way in which an
application's migration would do it; nothing depends on timing. Then each table is paused for its own reason, or not.
"""

from dataclasses import dataclass

import pytest

from penstock.errors import LakeError, PenstockError, SourceError, Trouble
from penstock.flow.load.read import catalog_now
from penstock.flow.load.resync import fit_to_copy, to_copy
from penstock.flow.recover.resume import resume_table
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin, states
from tests.scenarios.stories import spelt

PLAIN = "create table {t} (id int primary key, v int, s text); insert into {t} select g, g, 'x' from generate_series(1, 20) g"
FULL = "create table {t} (id int, v int); alter table {t} replica identity full"
ROOT = """create table {t} (id int primary key, v int, s text) partition by range (id);
create table {t}_1 partition of {t} for values from (0) to (100);
create table {t}_2 partition of {t} for values from (100) to (200);
insert into {t} select g, g, 'x' from generate_series(0, 199, 10) g"""
DEFAULTED = ROOT + "; create table {t}_d partition of {t} default; insert into {t} values (500, 5), (600, 6)"
DEEP = ROOT + "; create table {t}_s partition of {t} for values from (200) to (400) partition by range (id)"
KEYLESS = """create table {t} (id int, v int) partition by range (id); alter table {t} replica identity full;
create table {t}_1 partition of {t} for values from (0) to (100); alter table {t}_1 replica identity full"""
GENERATED = """create table {t} (id int primary key, v int, g int generated always as (v * 2) stored);
insert into {t} select g, g from generate_series(1, 20) g"""


@dataclass(frozen=True)
class Case:
    """Hold one table: what it is made of, each later transaction, and a part of the reason, None where it continues."""

    made: str
    steps: tuple[str, ...]
    reason: str | None


def cases(groups: dict[tuple[str, str | None], dict[str, str]]) -> dict[str, Case]:
    """Return the cases of tables that are made alike and are paused for one reason, by their names."""
    return {
        name: Case(made, spelt(steps, WORDS), reason)
        for (made, reason), texts in groups.items()
        for name, steps in texts.items()
    }


WORDS = {
    "LIKE_3": "create table {t}_3 (like {t} including all)",
    "ATTACH_3": "alter table {t} attach partition {t}_3 for values from (200) to (300)",
    "NEW_3": "create table {t}_3 partition of {t} for values from (200) to (300)",
    "ROW_3": "insert into {t} values (201, 1)",
    "OWN_ROW_3": "insert into {t}_3 values (201, 1)",
}
"""What is done again and again of a third partition."""


ATTACHED = "was attached, and nothing tells rows that it had"
ALTERED = "column v was altered and the table rewritten"
ADDED = "was added and the table rewritten"
REWRITTEN = "was attached and rewritten or truncated"
NEW_FILE = "has a new file, and nothing tells that it has the rows of before"

PARTITIONS = cases(
    {
        (ROOT, ATTACHED): {
            "a partition is made, filled and attached in one transaction": "LIKE_3; OWN_ROW_3, (202, 2);ATTACH_3",
            "the same with rows from within a savepoint": "LIKE_3;do $$begin OWN_ROW_3; exception when others then raise; end$$;ATTACH_3",
            "a whole tree is filled and attached": "create table {t}_s (like {t} including all) partition by range (id);create table {t}_3 partition of "
            "{t}_s for values from (200) to (300); insert into {t}_s values (201, 1);alter table {t} attach "
            "partition {t}_s for values from (200) to (400)",
            "a table with rows is attached": "LIKE_3; OWN_ROW_3 / ATTACH_3",
            "an empty partition is attached and filled at once": "LIKE_3; ATTACH_3;ROW_3",
        },
        (DEEP, ATTACHED): {
            "the same below a partition that has partitions": "LIKE_3; OWN_ROW_3;alter table {t}_s attach partition {t}_3 for values from (200) to (300)",
        },
        (DEFAULTED, ATTACHED): {
            "a default partition is split in one transaction": "LIKE_3;with moved as (delete from {t}_d where id < 600 returning *) insert into {t}_3 select * from "
            "moved;alter table {t} attach partition {t}_3 for values from (500) to (600)",
        },
        (ROOT, "detached and attached again"): {
            "a partition is detached, changed and attached again": "alter table {t} detach partition {t}_1 / update {t}_1 set v = 7 / "
            "alter table {t} attach partition {t}_1 for values from (0) to (100)",
            "a partition is detached, truncated and attached again": "alter table {t} detach partition {t}_1; truncate {t}_1;alter table {t} attach partition {t}_1 for "
            "values from (0) to (100)",
        },
        (ROOT, "detached or dropped with its rows"): {
            "a partition is dropped": "drop table {t}_1",
        },
        (ROOT, "between two looks"): {
            "a partition comes, takes rows and is dropped": "NEW_3 / ROW_3 / drop table {t}_3",
            "a partition comes, takes rows and is detached": "NEW_3; ROW_3 / alter table {t} detach partition {t}_3",
        },
        (ROOT, NEW_FILE): {
            "a partition is truncated": "truncate {t}_1",
            "all partitions are truncated by name": "truncate {t}_1, {t}_2",
            "a partition is truncated and filled again": "truncate {t}_1 / insert into {t} values (1, 1)",
            "the table is truncated, and a partition later": "truncate {t} / insert into {t} values (1, 1) / truncate {t}_1",
            "a partition is unlogged for a while": "alter table {t}_1 set unlogged / insert into {t} values (1, 1) / alter table {t}_1 set logged",
            "a new partition is unlogged for a while": "create unlogged table {t}_3 partition of {t} for values from (200) to (300) / ROW_3 / "
            "alter table {t}_3 set logged",
            "a new partition takes rows and is truncated": "NEW_3 / ROW_3 / truncate {t}_3",
            "a new partition takes rows, is truncated and packed": "NEW_3 / ROW_3 / truncate {t}_3 / vacuum full {t}_3",
            "a new partition is unlogged for a while, with rows": "create unlogged table {t}_3 partition of {t} for values from (200) to (300); ROW_3 / "
            "alter table {t}_3 set logged",
            "a new partition is packed before it has rows": "NEW_3 / vacuum full {t}_3",
        },
        (ROOT, "is unlogged"): {
            "a partition is set unlogged": "alter table {t}_1 set unlogged",
            "a new partition is unlogged": "create unlogged table {t}_3 partition of {t} for values from (200) to (300)",
        },
        (ROOT, REWRITTEN): {
            "an empty partition is attached, takes rows and is truncated": "LIKE_3 / ATTACH_3 / ROW_3 / truncate {t}_3",
            "a partition that was truncated is attached, takes rows and is truncated": "LIKE_3; OWN_ROW_3 / truncate {t}_3 / ATTACH_3 / ROW_3 / truncate {t}_3",
            "the same in one transaction, in which the last truncate gives no new file": "LIKE_3; OWN_ROW_3 / truncate {t}_3; ATTACH_3;ROW_3; truncate {t}_3",
            "a partition that was truncated is attached ahead": "LIKE_3; OWN_ROW_3 / truncate {t}_3 / ATTACH_3",
            "a partition that was packed is emptied and attached ahead": "LIKE_3; OWN_ROW_3 / delete from {t}_3 / vacuum full {t}_3 / ATTACH_3",
            "a tree that was truncated is attached ahead": "create table {t}_s (like {t} including all) partition by range (id);create table {t}_3 partition of "
            "{t}_s for values from (200) to (300); insert into {t}_s values (201, 1) / truncate {t}_s / "
            "alter table {t} attach partition {t}_s for values from (200) to (400)",
        },
        (KEYLESS, "another replica identity than"): {
            "a new partition has another identity": "create table {t}_2 partition of {t} (primary key (id)) for values from (100) to (200)",
            "a partition takes another identity": "alter table {t}_1 add primary key (id) / alter table {t}_1 replica identity default",
        },
        (KEYLESS, "may have had another replica identity for a while"): {
            "a partition has another identity for a while": "insert into {t} values (1, 1) / alter table {t}_1 add primary key (id) / "
            "alter table {t}_1 replica identity default / delete from {t} where id = 1 / "
            "alter table {t}_1 replica identity full",
        },
        (ROOT, "another replica identity for a while"): {
            "a partition logs another key for a while": "alter table {t}_1 alter v set not null; create unique index {t}_v on {t}_1 (v) / "
            "alter table {t}_1 replica identity using index {t}_v / delete from {t} where id = 10 / "
            "alter table {t}_1 replica identity default",
        },
    }
)
COLUMNS = cases(
    {
        (PLAIN, ALTERED): {
            "a type's change computes values": "alter table {t} alter v type int using v * 100",
            "the same together with an added column": "alter table {t} alter v type int using v * 100, add w int default 7",
            "a type goes to text and back": "alter table {t} alter v type text using v || '0' / alter table {t} alter v type int using v::int",
        },
        (PLAIN, "column s was altered and the table rewritten"): {
            "the same of a text": "alter table {t} alter s type text using upper(s)",
        },
        (ROOT, ALTERED): {
            "the same of a partitioned table": "alter table {t} alter v type int using v * 100",
        },
        (
            "create table {t} (id int primary key, v numeric(10,2), s text); insert into {t} select g, g, 'x' from generate_series(1, 20) g",
            ALTERED,
        ): {
            "a type goes there and back": "alter table {t} alter v type int / alter table {t} alter v type numeric(10,2)",
        },
        (PLAIN, "changed its type"): {
            "a type goes there and stays": "alter table {t} alter v type text",
        },
        (PLAIN, ADDED): {
            "a time of the clock is written into old rows": "alter table {t} add u timestamptz default clock_timestamp(); alter table {t} alter u drop default",
            "a uuid is written into old rows": "alter table {t} add u uuid default gen_random_uuid(); alter table {t} alter u drop default",
            "a serial column is added and loses its default": "alter table {t} add u serial; alter table {t} alter u drop default",
            "an identity column is added and loses it": "alter table {t} add u int generated always as identity; alter table {t} alter u drop identity",
            "a column is added and retyped": "alter table {t} add u int / alter table {t} alter u type text using 'y'",
            "a constant default is dropped and the table packed": "alter table {t} add c int default 7 / alter table {t} alter c drop default / vacuum full {t}",
        },
        (
            "create domain {t}_d as int default 5 check (value > 0);create table {t} (id int primary key, v int, s text); insert into {t} select g, g, 'x' from generate_series(1, 20) g",
            ADDED,
        ): {
            "a column of a domain with default and check is added": "alter table {t} add a {t}_d",
        },
        (ROOT, ADDED): {
            "a volatile default of a partitioned table": "alter table {t} add u uuid default gen_random_uuid(); alter table {t} alter u drop default",
        },
        (GENERATED, "was generated or not published"): {
            "a generated column becomes a plain one": "alter table {t} alter g drop expression",
        },
        (PLAIN, None): {
            "a column of no default is added": "alter table {t} add u int",
            "a column of a constant default is added": "alter table {t} add u int default 7",
            "a column of a constant default, then a packing before it": "vacuum full {t} / alter table {t} add u int default 7",
            "a generated column is added": "alter table {t} add g int generated always as (v + 1) stored",
        },
    }
)
NAMES = cases(
    {
        ("create type {t}_e as enum ('a', 'b'); create table {t} (id int primary key, e {t}_e)", "a label of enum"): {
            "a label is renamed and back": "alter type {t}_e rename value 'a' to 'z' / insert into {t} values (1, 'z') / "
            "alter type {t}_e rename value 'z' to 'a'",
        },
        (
            "create type {t}_e as enum ('a', 'b'); create table {t} (id int primary key, e {t}_e)",
            "a label that its enum no longer has",
        ): {
            "a label is added, taken and renamed": "alter type {t}_e add value 'c' / insert into {t} values (1, 'c') / "
            "alter type {t}_e rename value 'c' to 'd'",
        },
        (
            "create type {t}_e as enum ('a', 'b'); create table {t} (id int primary key, e {t}_e[])",
            "a label that its enum no longer has",
        ): {
            "a label is added, taken within an array and renamed": "alter type {t}_e add value 'c,\\ d' / insert into {t} values (1, array['a', 'c,\\ d', null]::{t}_e[]) / "
            "alter type {t}_e rename value 'c,\\ d' to 'd'",
        },
        (
            "create type {t}_e as enum ('a', 'b'); create table {t} (id int primary key)",
            "a label that its enum no longer has",
        ): {
            "a column of a new enum is added and a label renamed": "alter table {t} add e {t}_e / insert into {t} values (1, 'a') / alter type {t}_e rename value 'a' to 'd'",
        },
        ("create type {t}_e as enum ('a', 'b'); create table {t} (id int primary key, e {t}_e, es {t}_e[])", None): {
            "labels that need quotes are added": "alter type {t}_e add value 'c,\\ \"d' / insert into {t} values (1, 'c,\\ \"d', array['a', 'c,\\ \"d', "
            "null]::{t}_e[])",
        },
        ("create type {t}_c as (a int, b int); create table {t} (id int primary key, c {t}_c)", "composite type"): {
            "a composite type changes and changes back": "alter type {t}_c add attribute x int cascade / alter type {t}_c drop attribute x cascade",
        },
        ("create table {t} (id int primary key, a int, b int)", None): {
            "two columns swap their names and back": "alter table {t} rename a to x; alter table {t} rename b to a; alter table {t} rename x to b / "
            "insert into {t} values (1, 2, 3) / alter table {t} rename a to x; alter table {t} rename b to a; "
            "alter table {t} rename x to b",
        },
        (PLAIN, None): {
            "a column is renamed and back": "alter table {t} rename v to x; insert into {t} values (30, 3) / alter table {t} rename x to v",
        },
        (
            "create table {t} (id int primary key, v int not null unique, s text); insert into {t} select g, g, 'x' from generate_series(1, 20) g",
            None,
        ): {
            "the identity is another one for a while": "alter table {t} replica identity using index {t}_v_key / delete from {t} where id = 3 / "
            "alter table {t} replica identity default",
        },
        ("create type {t}_e as enum ('a', 'b'); create table {t} (id int primary key, e {t}_e)", None): {
            "a label is added": "alter type {t}_e add value 'c' / insert into {t} values (1, 'c')",
        },
        ("create type {t}_e as enum ('a'); create table {t} (id int primary key, e {t}_e, es {t}_e[])", None): {
            "an enum is renamed": "alter type {t}_e rename to {t}_other",
        },
        ("create domain {t}_d as int; create table {t} (id int primary key, d {t}_d)", None): {
            "a domain is renamed": "alter domain {t}_d rename to {t}_other",
        },
    }
)
INNOCENT = cases(
    {
        (PLAIN, None): {
            "vacuum full": "vacuum full {t}",
            "cluster": "cluster {t} using {t}_pkey",
            "analyze": "analyze {t}",
            "an index": "create index on {t} (v)",
            "grant": "grant select on {t} to public",
            "comment": "comment on table {t} is 'x'; comment on column {t}.v is 'x'",
            "not null": "alter table {t} alter v set not null",
            "not null, and packed": "alter table {t} alter v set not null / vacuum full {t}",
            "default": "alter table {t} alter v set default 5",
            "statistics": "alter table {t} alter v set statistics 100",
            "truncate": "truncate {t} / insert into {t} values (1, 1)",
            "truncate with other changes": "truncate {t} / alter table {t} add constraint c check (v > 0)",
            "check and trigger": "alter table {t} add check (v > 0)",
            "full identity for a while": "alter table {t} replica identity full / delete from {t} where id = 3 / "
            "alter table {t} replica identity default",
        },
        (ROOT, None): {
            "a new partition": "NEW_3 / ROW_3 / update {t} set v = 2 where id = 201 / grant select on {t}_3 to public",
            "a new partition, filled in its transaction": "NEW_3; ROW_3;insert into {t}_3 values (202, 1)",
            "an empty partition is attached ahead": "LIKE_3 / ATTACH_3",
            "a partition is packed": "vacuum full {t}_1",
            "all partitions are packed after a change of a column": "alter table {t} alter v set default 3 / vacuum full {t}",
            "the partitioned table is truncated": "truncate {t} / insert into {t} values (1, 1)",
            "the partitioned table is truncated and packed": "delete from {t} where id < 50 / vacuum full {t}_1 / grant select on {t}_1 to public",
            "indexes, grants, comments and keys of a partitioned table": "create index on {t} (v) / grant select on {t}, {t}_1 to public; comment on table {t} is 'x' / "
            "alter table {t} add check (v >= 0) / alter table {t}_1 rename to {t}_one",
        },
        (DEEP, None): {
            "a new partition below a partition": "create table {t}_3 partition of {t}_s for values from (200) to (300) / ROW_3",
        },
        (
            "create table {t} (id int default 1, v int default 2, primary key (id)) partition by range (id);create table {t}_1 partition of {t} for values from (0) to (100)",
            None,
        ): {
            "a new partition, all of defaults": "create table {t}_2 partition of {t} for values from (100) to (200); insert into {t} values (101)",
        },
    }
)


def begun(env: PipelineEnv, cases: dict[str, Case]) -> dict[str, Case]:
    """Begin with a table per case; return the cases by the tables' names."""
    tables = {f"t{number}": each for number, each in enumerate(cases.values())}
    begin(env, "; ".join(each.made.format(t=name) for name, each in tables.items()))
    return tables


def change(env: PipelineEnv, tables: dict[str, Case]) -> None:
    for name, each in tables.items():
        for step in each.steps:
            env.sql(step.format(t=name))
    env.capture()


@pytest.mark.parametrize(
    "cases", [PARTITIONS, COLUMNS, NAMES, INNOCENT], ids=["partitions", "columns", "names", "innocent"]
)
def test_what_the_stream_does_not_carry_pauses_the_table_for_its_reason_and_nothing_else_does(
    env: PipelineEnv, cases: dict[str, Case]
) -> None:
    tables = begun(env, cases)
    env.sql("select pg_logical_emit_message(true, 'test', '')")
    env.capture()  # a look, so that it is known which rows are older

    change(env, tables)
    if any(table.accepted.questions for table in env.tables):
        env.capture()  # the server wrote something of its own between the end of the window and the look

    found = {record.name: record for record in env.tables}
    wrong = [
        (title, each.reason, found[name].paused_reason)
        for (title, each), name in zip(cases.items(), tables, strict=True)
        if (each.reason is None) != (found[name].paused_reason is None)
        or (each.reason or "") not in (found[name].paused_reason or "")
    ]
    assert wrong == []


FLUSH = "set synchronous_commit = on; select pg_logical_emit_message(true, 'flush', '')"
"""The tests' servers commit asynchronously, and a capture reads what is on disk."""


@pytest.mark.parametrize(
    ("rewrite", "other", "state"),
    [
        ("alter table t alter v type text using upper(v)", "grant select on t to public", "paused"),
        ("truncate t", "alter table t alter v set statistics 50", "copied"),
    ],
)
def test_a_column_that_was_altered_beside_a_new_file_is_remembered_over_several_windows(
    env16: PipelineEnv, rewrite: str, other: str, state: str
) -> None:
    begin(env16, "create table t (id int primary key, v text); insert into t values (1, 'a'), (2, 'b')")
    env16.capture()
    env16.settings["capture"] = {"max_wal_bytes": "256KiB"}
    env16.sql(rewrite)
    env16.sql(other)  # so the table's row in pg_class may be another one than the first command's
    env16.sql("select pg_logical_emit_message(false, 'filler', repeat('x', 1000000))")
    env16.sql(FLUSH)

    first = env16.capture()

    assert len(first.windows) > 1, "the first window ended before what had to be awaited"
    assert states(env16) == {"t": state}


UNFIT = cases(
    {
        (KEYLESS, "another replica identity"): {
            "a partition has another identity": "create table {t}_2 partition of {t} (primary key (id)) for values from (100) to (200)",
        },
        (ROOT, "are unlogged"): {"a partition is unlogged": "alter table {t}_1 set unlogged"},
        (
            "create table {t} (v int, id int generated always as (v + 1) stored, primary key (v))",
            "a generated one is not",
        ): {
            "the key is generated": "alter table {t} drop constraint {t}_pkey; alter table {t} add primary key (id)",
        },
    }
)


def test_a_table_that_would_differ_again_is_not_copied_until_that_is_over(env16: PipelineEnv) -> None:
    tables = begun(env16, UNFIT)
    change(env16, tables)
    assert set(states(env16).values()) == {"paused"}

    records = to_copy(env16.ctx, None)
    now = catalog_now(env16.ctx)
    assert fit_to_copy(env16.ctx, records, now) == []
    for name, each in tables.items():
        with pytest.raises(PenstockError, match=each.reason):
            fit_to_copy(env16.ctx, [record for record in records if record.name == name], now, named=True)

    env16.sql(
        "alter table t0_2 replica identity full; alter table t1_1 set logged; alter table t2 replica identity full"
    )
    assert fit_to_copy(env16.ctx, records, catalog_now(env16.ctx)) == records


def test_a_key_on_a_generated_column_is_no_identity(env: PipelineEnv) -> None:
    env.sql("create table t (v int, id int generated always as (v + 1) stored primary key)")

    with pytest.raises(SourceError, match=r"no-usable-identity.*generated"):
        begin(env, "select 1")


@pytest.mark.parametrize("slug", ["merge-failed", "lake-unreadable"])
def test_what_changed_while_a_table_was_paused_is_found_when_it_is_resumed(env16: PipelineEnv, slug: str) -> None:
    begin(env16, ROOT.format(t="root"))
    env16.capture()
    (record,) = env16.tables
    env16.ctx.ledger.tables.stop(env16.name, {record.oid: Trouble.usual(slug, "for this test")})
    env16.sql("truncate root_1")
    env16.land("insert into root values (1, 1)")
    env16.land("select pg_current_xact_id()")

    with pytest.raises(LakeError, match=r"nothing tells that it has the rows of before.*resync"):
        resume_table(env16.ctx, "public.root")
    assert set(states(env16).values()) == {"paused"}
