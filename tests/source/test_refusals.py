"""What the catalog says of refused updates is what the server does: every shape of table in every kind of publication."""

from collections.abc import Callable, Collection, Iterator

import psycopg
import pytest
from psycopg import errors

from penstock.source import refusals, session
from penstock.source.session import SourceSession
from stack.servers.binaries import Binaries
from tests.conftest import HASTY, NewServer
from tests.source.conftest import connection_to

ROOT = "create table t (id int, at int, v text, {key}) partition by range (at);"
PARTS = """create table t1 partition of t for values from (0) to (10);
create table t2 (v text, gone int, at int not null, id int not null); alter table t2 drop gone;"""
ATTACH = "alter table t attach partition t2 for values from (10) to (20);"
KEYLESS = "create table t (id int, at int, v text) partition by range (at);"
KEYED = ROOT.format(key="primary key (id, at)") + PARTS + ATTACH
SHAPES = {
    "keyless": "create table t (id int, at int, v text)",
    "key": "create table t (id int primary key, at int, v text)",
    "included": "create table t (id int, at int, v text, primary key (id) include (at))",
    "two_keys": "create table t (v text, at int, id int, primary key (id, at))",
    "deferrable": "create table t (id int primary key deferrable, at int, v text)",
    "deferrable_full": "create table t (id int primary key deferrable, at int, v text); alter table t replica identity full",
    "deferrable_parted": ROOT.format(key="primary key (id, at) deferrable") + PARTS + ATTACH,
    "deferrable_part": KEYED.replace("id int not null);", "id int not null, primary key (id, at) deferrable);"),
    "unique_only": "create table t (id int not null unique, at int, v text)",
    "index": "create table t (id int primary key, at int not null, v text); create unique index i on t (at); "
    "alter table t replica identity using index i",
    "index_dropped": "create table t (id int primary key, at int not null, v text); create unique index i on t (at); "
    "alter table t replica identity using index i; drop index i",
    "nothing": "create table t (id int primary key, at int, v text); alter table t replica identity nothing",
    "full": "create table t (id int primary key, at int, v text); alter table t replica identity full",
    "full_keyless": "create table t (id int, at int, v text); alter table t replica identity full",
    "generated": "create table t (id int primary key, at int, v text, g int generated always as (id + 1) stored)",
    "generated_full": "create table t (id int primary key, at int, v text, g int generated always as (id + 1) stored); "
    "alter table t replica identity full",
    "generated_gone": "create table t (id int, at int, v text, g int generated always as (id + 1) stored); "
    "alter table t replica identity full; alter table t drop g",
    "generated_key": "create table t (at int, v text, id int generated always as (at + 1) stored primary key)",
    "generated_keyless": "create table t (id int, at int, v text, g int generated always as (id + 1) stored)",
    "virtual_keyless": "create table t (id int, at int, v text, g int generated always as (id + 1) virtual)",
    "virtual": "create table t (id int primary key, at int, v text, g int generated always as (id + 1) virtual)",
    "virtual_full": "create table t (id int primary key, at int, v text, g int generated always as (id + 1) virtual); "
    "alter table t replica identity full",
    "unlogged": "create unlogged table t (id int, at int, v text)",
    "expression": "create table t (id int primary key, at int, v text, check (at > 0)); create index on t ((at + 1))",
    "parted": KEYED,
    "parted_keyless": KEYLESS + PARTS + ATTACH,
    "parted_nothing": KEYED + "alter table t1 replica identity nothing",
    "parted_full_part": KEYED + "alter table t2 replica identity full",
    "parted_full": KEYED + "alter table t replica identity full",
    "parted_index": KEYED + "create unique index i on t2 (at); alter table t2 replica identity using index i",
    "parted_empty": KEYLESS,
    "parted_generated": "create table t (id int, at int, v text, g int generated always as (id + 1) stored, "
    "primary key (id, at)) partition by range (at); create table t1 partition of t for values from (0) to (10); "
    "alter table t replica identity full; alter table t1 replica identity full",
    "parted_deep": KEYLESS + "create table t1 partition of t for values from (0) to (10) partition by range (at); "
    "create table t2 partition of t1 for values from (0) to (5); alter table t2 add primary key (id, at)",
    "inherited": "create table t (id int primary key, at int, v text); create table t1 () inherits (t)",
}
PUBLICATIONS = {
    "plain": "for table only t",
    "rooted": "for table only t with (publish_via_partition_root = true)",
    "inserts": "for table only t with (publish = 'insert, truncate')",
    "updates": "for table only t with (publish = 'update')",
    "deletes": "for table only t with (publish = 'delete')",
    "children": "for table t",
    "leaf": "for table only t1 with (publish_via_partition_root = true)",
    "leaf_and_root": "for table only t, only t1 with (publish_via_partition_root = true)",
    "all_tables": "for all tables",
    "all_tables_rooted": "for all tables with (publish_via_partition_root = true)",
    "schema": "for tables in schema {s}",
    "schema_rooted": "for tables in schema {s} with (publish_via_partition_root = true)",
    "listed": "for table only t (id, at) with (publish_via_partition_root = true)",
    "listed_not_rooted": "for table only t (id, at)",
    "all_listed": "for table only t (id, at, v) with (publish_via_partition_root = true)",
    "keyless_list": "for table only t (v)  with (publish_via_partition_root = true)",
    "with_generated": "for table only t (id, g)",
    "filtered_by_key": "for table only t where (id > 0) with (publish_via_partition_root = true)",
    "filtered": "for table only t where (v <> ':varattno 1' and at > 1) with (publish_via_partition_root = true)",
    "filtered_not_rooted": "for table only t where (v is null)",
    "filtered_and_listed": "for table only t (id, at, v) where (at > 1) with (publish_via_partition_root = true)",
    "stored": "for table only t with (publish_generated_columns = stored)",
    "stored_rooted": "for table only t with (publish_generated_columns = stored, publish_via_partition_root = true)",
}
SINCE = dict.fromkeys(("plain", "rooted", "inserts", "updates", "deletes", "children", "all_tables"), 14)
SINCE |= {"stored": 18, "stored_rooted": 18, "with_generated": 18}
REFUSED = (errors.ObjectNotInPrerequisiteState, errors.InvalidColumnReference)


@pytest.fixture(
    scope="module",
    params=[16, *(pytest.param(each, marks=pytest.mark.slow) for each in (14, 15, 17, 18))],
)
def ours_and_theirs(
    request: pytest.FixtureRequest, new_server: NewServer, binaries_of: Callable[[int], Binaries]
) -> Iterator[tuple[SourceSession, psycopg.Connection]]:
    """Two sessions in one database of each version: ours, and the application's."""
    fixed = {15: "binaries15", 16: "binaries16"}.get(request.param)
    programs = request.getfixturevalue(fixed) if fixed else binaries_of(request.param)
    server = new_server(programs, HASTY)
    with (
        server.temporary_database("refusals") as database,
        session.connect(connection_to(database), what="test") as ours,
        database.connect() as theirs,
    ):
        yield ours, theirs
    server.remove()


def relations(theirs: psycopg.Connection, schema: str) -> list[tuple[str, str]]:
    """Return each relation with rows of its own, and each partitioned table without a partition."""
    return theirs.execute(
        """select c.relname, case c.relkind when 'r' then 'only' else '' end
        from pg_class c
        where c.relnamespace = %s::regnamespace
        and (c.relkind = 'r' or c.relkind = 'p' and not exists (select from pg_inherits where inhparent = c.oid))""",
        (schema,),
    ).fetchall()


def refused(theirs: psycopg.Connection, schema: str) -> set[str]:
    """Return the relations of which the server refuses an update or a delete, whatever the catalog says."""
    found = set()
    for name, only in relations(theirs, schema):
        for statement in (f"update {only} {name} set v = v", f"delete from {only} {name}"):
            try:
                with theirs.transaction(force_rollback=True):
                    theirs.execute(statement)
            except REFUSED:
                found.add(name)
    return found


@pytest.mark.parametrize("kind", PUBLICATIONS)
def test_the_relations_that_refuse_updates_are_those_that_the_catalog_names(
    ours_and_theirs: tuple[SourceSession, psycopg.Connection], kind: str
) -> None:
    ours, theirs = ours_and_theirs
    major = ours.info.server_version // 10_000
    made = 0
    for number, (shape, ddl) in enumerate(SHAPES.items()):
        if major < 18 and "virtual" in ddl:
            continue
        schema = f"{kind}_{number}"
        theirs.execute(f"create schema {schema}; set search_path = {schema}")
        theirs.execute(ddl)
        try:
            theirs.execute(f"create publication p {PUBLICATIONS[kind].format(s=schema)}")
        except psycopg.Error:  # this version knows no such publication, or refuses it for this table
            theirs.execute(f"drop schema {schema} cascade")
            continue
        assert (shape, named(ours, schema)) == (shape, refused(theirs, schema))
        made += 1
        theirs.execute(f"drop schema {schema} cascade; drop publication p")
    assert made or major < SINCE.get(kind, 15)


def test_a_table_is_judged_before_it_joins_as_it_is_afterwards(
    ours_and_theirs: tuple[SourceSession, psycopg.Connection],
) -> None:
    ours, theirs = ours_and_theirs
    for number, (shape, ddl) in enumerate(SHAPES.items()):
        if "unlogged" in ddl or (ours.info.server_version < 180_000 and "virtual" in ddl):
            continue
        schema = f"joining_{number}"
        theirs.execute(f"create schema {schema}; set search_path = {schema}")
        theirs.execute(ddl)
        (oid,) = theirs.execute("select 't'::regclass::oid").fetchone() or ()
        alone = named(ours, schema, [oid])
        theirs.execute("create table other (id int primary key, v text); create publication p for table only other")
        theirs.execute("alter publication p set (publish_via_partition_root = true)")
        beside = named(ours, schema, [oid])
        theirs.execute("alter publication p add table only t")
        assert (shape, alone, beside) == (shape, *[refused(theirs, schema)] * 2)
        theirs.execute(f"drop schema {schema} cascade; drop publication p")


def test_the_statement_that_a_refusal_names_ends_it(ours_and_theirs: tuple[SourceSession, psycopg.Connection]) -> None:
    ours, theirs = ours_and_theirs
    run = set()
    for number, (shape, ddl) in enumerate(SHAPES.items()):
        if "unlogged" in ddl or (ours.info.server_version < 180_000 and "virtual" in ddl):
            continue
        schema = f"step_{number}"
        theirs.execute(f"create schema {schema}; set search_path = {schema}")
        theirs.execute(ddl)
        theirs.execute("create publication p for table only t with (publish_via_partition_root = true)")
        found = [each for each in refusals.read_refusals(ours, "p") if each.schema == schema]
        for each in found:
            for statement in each.statements:
                assert statement in refusals.explained(found)[1]
                theirs.execute(statement)
                run.add((shape, each.fault))
        assert (shape, refused(theirs, schema)) == (shape, {each.name for each in found if not each.statements})
        theirs.execute(f"drop schema {schema} cascade; drop publication p")
    assert {("keyless", "none"), ("nothing", "none"), ("parted_nothing", "none")} <= run
    assert {each for each in run if each[1] == "deferrable"} == {
        (shape, "deferrable") for shape in ("deferrable", "deferrable_parted", "deferrable_part")
    }
    assert ours.info.server_version < 180_000 or ("virtual_full", "generated") in run


def named(ours: SourceSession, schema: str, joining: Collection[int] = ()) -> set[str]:
    """Return the relations of a schema that the catalog says refuse updates or deletes."""
    return {each.name for each in refusals.read_refusals(ours, "p", joining=joining) if each.schema == schema}
