"""Changes that only a copy of the table, or of a partition, follows: it is made by itself, and of nothing else."""

from dataclasses import dataclass

import pytest

from penstock.flow.verify.compare import compare
from tests.pipeline_env import PipelineEnv

PLAIN = "create table {t} (id int primary key, a text, n int); insert into {t} select i, 'a' || i, i from generate_series(1, 30) i"
PARTED = """
create table {t} (id int primary key, a text, n int) partition by range (id);
create table {t}_1 partition of {t} for values from (0) to (100);
create table {t}_2 partition of {t} for values from (100) to (300);
insert into {t} select i, 'a' || i, i from generate_series(1, 199, 6) i
"""
SPOT = (
    "create type {t}_spot as (x int, y text); create table {t} (id int primary key, a text, n int, s {t}_spot, ss {t}_spot[]); "
    "insert into {t} select i, 'a', i, row(i, 'y')::{t}_spot, array[row(i, 'z')::{t}_spot] from generate_series(1, 30) i"
)
BEFORE = "update {t} set n = -1 where id between 1 and 9; delete from {t} where id = 13; update {t} set id = 190 where id = 19"
WITHIN = "update {t} set n = n + 7 where id between 5 and 25; insert into {t} (id, a) values (200, '200')"
AFTER = "update {t} set n = 8 where id between 7 and 13; delete from {t} where id = 25; update {t} set id = 290 where id = 7"


@dataclass(frozen=True)
class Case:
    """A table, its change, and the slug with which it waits for its copy, None where it needs none."""

    change: str
    made: str = PLAIN
    slug: str | None = "schema-change"


CASES = {
    "attribute_added": Case("alter type {t}_spot add attribute z int cascade", SPOT),
    "attribute_dropped": Case("alter type {t}_spot drop attribute y cascade", SPOT),
    "attribute_renamed": Case("alter type {t}_spot rename attribute y to w cascade", SPOT, slug=None),
    "went_and_came": Case(
        "alter publication {p} drop table {t}; update {t} set n = 5 where id = 3; alter publication {p} add table only {t}",
        slug="publication-changed",
    ),
    "filtered": Case(
        "alter publication {p} drop table {t}; alter publication {p} add table only {t} where (id < 10); "
        "update {t} set n = 5 where id = 23; alter publication {p} drop table {t}; alter publication {p} add table only {t}",
        slug="publication-changed",
    ),
    "columns": Case(
        "alter publication {p} drop table {t}; alter publication {p} add table only {t} (id); "
        "update {t} set n = 5 where id = 23; alter publication {p} drop table {t}; alter publication {p} add table only {t}",
        slug="publication-changed",
    ),
    "unlogged_part": Case(
        "alter table {t}_1 set unlogged; update {t} set n = 6 where id = 31; alter table {t}_1 set logged", PARTED
    ),
    "part_there_and_back": Case(
        "alter table {t} detach partition {t}_1; update {t}_1 set a = 'alone'; "
        "alter table {t} attach partition {t}_1 for values from (0) to (100)",
        PARTED,
    ),
    "parted_key": Case("alter table {t} drop constraint {t}_pkey, add primary key (id, a)", PARTED),
    "key_and_type": Case(
        "alter table {t} drop constraint {t}_pkey, alter a type int using id * 3, add primary key (id, a)"
    ),
    "keyless_type": Case(
        "alter table {t} alter a type int using id * 3",
        f"{PLAIN}; alter table {{t}} drop constraint {{t}}_pkey, replica identity full",
    ),
    "misfits": Case(
        "alter table {t} rename a to b; alter table {t} rename b to c; alter table {t} rename c to a; alter table {t} rename d to e",
        PLAIN.replace("n int", "n int, d date default 'infinity'"),
    ),
    "packed": Case("vacuum full {t}", slug=None),
    "clustered": Case("cluster {t} using {t}_pkey", slug=None),
}
SEEN_LATER = ("misfits", "unlogged_part")
"""What the merge finds, or the first capture that has seen the whole stream of a new file."""
IN_PART = ("unlogged_part", "part_there_and_back", "attribute_added", "attribute_dropped")
"""Tables of which one partition's rows are read, or some columns, not all."""
MADE_AGAIN = "begin; update gone set n = 5; drop table gone; create table gone (id int primary key, b text); insert into gone values (1, 'new'); commit"


@pytest.mark.slow
def test_tables_that_only_a_copy_follows_are_copied_alone_and_are_equal(env: PipelineEnv) -> None:
    for name, case in CASES.items():
        env.sql(case.made.format(t=name))
    env.bootstrap(PLAIN.format(t="gone"))
    copied = env.copies()
    oids = {table.oid: table.name for table in env.tables}

    for name, case in CASES.items():
        change = case.change.format(t=name, p=env.ctx.pipeline.publication)
        env.sql(BEFORE.format(t=name))
        with env.source.connect() as conn:
            alone = change.startswith(("vacuum", "cluster"))
            for statement in [change] if alone else [f"begin; {change}; {WITHIN.format(t=name)}; commit"]:
                conn.execute(statement.encode())
        env.sql(AFTER.format(t=name))
    env.land(MADE_AGAIN)
    assert {table.name: table.paused_slug for table in env.tables} == {
        **{name: case.slug for name, case in CASES.items() if name not in SEEN_LATER},
        **dict.fromkeys((*SEEN_LATER, "gone")),
    }
    for _ in range(2):
        env.merge()
        env.wake()
        env.land()

    records = [table for table in env.tables if table.state != "dropped"]
    assert {table.state for table in records} == {"ready"}
    compared = compare(env.ctx, records)
    assert compared.equal, [line for table in compared.tables for line in table.lines()]
    assert {oids.get(oid, "gone") for _, oid in env.copies() - copied} == {
        "gone",
        *(name for name, case in CASES.items() if case.slug is not None and name not in IN_PART),
    }
