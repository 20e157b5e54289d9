"""A table's stamp is another one whenever its description is, and stays while nothing of the table is altered."""

from penstock.source import catalog_snapshot
from penstock.source.session import SourceSession

MADE = """
create type mood as enum ('sad', 'glad'); create type pair as (a int, b text); create domain price as numeric(10, 2);
create table plain (id int primary key, v int, s text); insert into plain values (1, 1, 'x');
create table typed (id int primary key, m mood, p pair, d price, ms mood[]);
create table root (id int primary key, v int) partition by range (id);
create table root_1 partition of root for values from (0) to (100);
create table root_2 partition of root for values from (100) to (200) partition by range (id);
create table root_2_1 partition of root_2 for values from (100) to (150);
create table loose (like root including all);
create table quiet (id int primary key, v int);
create schema other;
create publication p for table plain, typed, root, quiet with (publish_via_partition_root = true)
"""
STEPS = (
    "alter table plain add column n int default 7",
    "alter table plain drop column n",
    "alter table plain add column n text default clock_timestamp()::text",
    "alter table plain rename column n to m",
    "alter table plain rename column m to n",
    "alter table plain alter column v type bigint",
    "alter table plain alter column v set not null",
    "alter table plain rename to plain2",
    "alter table plain2 rename to plain",
    "alter table plain set schema other",
    "alter table other.plain set schema public",
    "alter table plain replica identity full",
    "alter table plain replica identity default",
    "vacuum full plain",
    "truncate plain",
    "alter publication p drop table plain",
    "alter publication p add table plain",
    "alter publication p set table plain (id, v), typed, root, quiet",
    "alter publication p set table plain where (id > 5), typed, root, quiet",
    "alter publication p set table plain where (id > 6), typed, root, quiet",
    "alter publication p set table plain, typed, root, quiet",
    "alter type mood add value 'calm'",
    "alter type mood rename value 'calm' to 'still'",
    "alter type pair add attribute c int",
    "alter table root add column w int default 3",
    "alter table loose add column w int default 3",
    "alter table root attach partition loose for values from (200) to (300)",
    "alter table root detach partition loose",
    "alter table root_2_1 set unlogged",
    "alter table root_2_1 set logged",
    "truncate root_2_1",
    "alter table root_1 replica identity full",
    "alter table root_1 rename to root_one",
    "drop table root_one",
    "create table root_1 partition of root for values from (0) to (100)",
)


def look(conn: SourceSession, known: dict[int, str] | None = None) -> catalog_snapshot.CatalogSnapshot:
    return catalog_snapshot.read_catalog(conn, "p", known={} if known is None else known)


def test_each_change_of_a_description_changes_the_stamp_and_none_of_an_unaltered_table(conn, writer):
    writer.execute(MADE)
    before = look(conn)
    for step in STEPS:
        writer.execute(step)
        after = look(conn)
        shown, now = before.by_oid, after.by_oid
        changed = {oid for oid in shown.keys() & now.keys() if shown[oid] != now[oid]}
        restamped = {oid for oid in shown.keys() & now.keys() if before.stamps[oid] != after.stamps[oid]}
        quiet = next(oid for oid, table in now.items() if table.name == "quiet")

        assert changed <= restamped, step
        assert quiet not in restamped or step.startswith("alter publication p set"), step
        before = after


def test_tables_with_the_known_stamp_are_not_described_again(conn, writer):
    writer.execute(MADE)
    known = dict(look(conn).stamps)
    writer.execute("alter table typed add column n int; create table more (id int primary key)")
    writer.execute("alter publication p add table more; alter publication p drop table quiet")

    found = look(conn, known)

    assert [table.name for table in found.tables] == ["more", "typed"]
    assert found.unchanged < known.keys()
    assert len(found.unchanged) == 2
    assert found.listed == {table.oid for table in found.tables} | found.unchanged
    assert look(conn, dict(found.stamps)).tables == ()


def test_a_table_that_another_transaction_holds_is_stamped_and_not_waited_for(conn, writer):
    writer.execute(MADE)
    stamps = look(conn).stamps
    with writer.transaction():
        writer.execute("lock table plain, root in access exclusive mode")

        assert look(conn).stamps == stamps


def test_a_publication_without_tables_has_no_stamps(conn, writer):
    writer.execute("create publication p")

    assert (look(conn).stamps, look(conn).tables) == ({}, ())
