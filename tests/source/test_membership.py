"""Who is a member of a publication is read from the catalog's rows, and is what the server's own view says."""

from collections.abc import Callable, Iterator
from random import Random

import psycopg
import pytest

from penstock.source import catalog, session
from penstock.source.session import SourceSession
from stack.servers.binaries import Binaries
from tests.conftest import HASTY, NewServer
from tests.source.conftest import connection_to

ZOO = """
create schema one; create schema two;
create table one.plain (id int primary key, a text, gone text, b text, g int generated always as (1) stored);
alter table one.plain drop column gone;
create table two.plain (id int primary key, a text, b text);
create table one.nothing ();
create table one.computed (g int generated always as (1) stored);
create table one.base (id int primary key, a text, b text);
create table two.heir () inherits (one.base);
create table public."Odd ""n"" name" (id int primary key, a text, b text);
create unlogged table one.unlogged (id int primary key, a text, b text);
create temp table passing (id int primary key, a text, b text);
create view one.seen as select * from one.plain;
create materialized view two.kept as select * from one.plain;
create table one.root (id int primary key, a text, b text) partition by range (id);
create table one.leaf partition of one.root for values from (0) to (10);
create table two.leaf partition of one.root for values from (10) to (20);
create table two.middle partition of one.root for values from (20) to (40) partition by range (id);
create table one.deep partition of two.middle for values from (20) to (30);
create table public.deep partition of two.middle for values from (30) to (40);
create unlogged table two.unlogged_leaf partition of one.root for values from (40) to (50);
create table two.empty (id int primary key, a text, b text) partition by range (id);
create table two.mixed (id int, a text, b text) partition by range (id);
create table two.mixed_leaf partition of two.mixed for values from (0) to (10);
create foreign data wrapper nowhere; create server nowhere foreign data wrapper nowhere;
create foreign table one.elsewhere (id int, a text, b text) server nowhere;
create foreign table two.foreign_leaf partition of two.mixed for values from (10) to (20) server nowhere;
"""
PLAIN = ("one.plain", "two.plain", "one.base", "two.heir", 'public."Odd ""n"" name"', "one.nothing", "one.computed")
LEAVES = ("one.leaf", "two.leaf", "one.deep", "public.deep", "two.mixed_leaf")
ROOTS = ("one.root", "two.middle", "two.empty", "two.mixed")
SCHEMAS = ("one", "two", "public")
ROUNDS = 60


def made(writer: psycopg.Connection, rng: Random, major: int) -> str:
    """Make a publication of some kind; return what it is made of."""
    via_root = rng.random() < 0.5
    parts = []
    kind = rng.choice(("all", "tables", "schemas", "both") if major >= 15 else ("all", "tables"))
    if kind == "all":
        parts = ["all tables"]
    if kind in ("schemas", "both"):
        parts += [f"tables in schema {', '.join(rng.sample(SCHEMAS, rng.randint(1, 3)))}"]
    if kind in ("tables", "both"):
        names = rng.sample(PLAIN + LEAVES + ROOTS, rng.randint(1, 8))
        parts += [f"table {', '.join(listed(name, rng, major, kind, via_root=via_root) for name in names)}"]
    options = [f"publish_via_partition_root = {str(via_root).lower()}"]
    if major >= 18 and rng.random() < 0.5:
        options.append("publish_generated_columns = stored")
    statement = f"for {', '.join(parts)} with ({', '.join(options)})"
    writer.execute(f"drop publication if exists p; create publication p {statement}".encode())
    return statement


def listed(name: str, rng: Random, major: int, kind: str, *, via_root: bool) -> str:
    """Name a table in a publication, sometimes with a list of columns or a filter where the server allows it."""
    clause = (
        name if name == "one.root" else f"only {name}"
    )  # else one.base brings two.heir along, which may be named, too
    if major < 15 or name in ("one.nothing", "one.computed") or (name in ROOTS and not via_root):
        return clause
    if kind != "both" and rng.random() < 0.3:
        clause += rng.choice((" (id, b)", " (b, id)", " (id)"))
    return clause + (" where (id > 5)" if rng.random() < 0.3 else "")


def ours(conn: SourceSession) -> dict[int, tuple[set[str], str | None]]:
    """Return by oid which columns of a table are published and by which filter, as we read it."""
    found = {}
    for oid, columns, filter_digest, _, _ in conn.rows("catalog/published", publication="p"):
        text = conn.row("catalog/row_filter", publication="p", oid=oid)[0] if filter_digest else None
        assert oid not in found
        found[oid] = (set(columns), text)
    return found


def the_servers(conn: SourceSession, major: int) -> dict[int, tuple[set[str], str | None]]:
    """Return the same as the view says it. 14 says no columns, and 15 lists generated ones that it never sends."""
    said = "t.attnames, t.rowfilter" if major >= 15 else "null, null"
    rows = conn.execute(
        f"""select c.oid::bigint, {said}, array(
          select a.attname from pg_attribute a
          where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
            and (a.attgenerated = '' or current_setting('server_version_num')::int >= 160000)
        )
        from pg_publication_tables t
        join pg_namespace n on n.nspname = t.schemaname
        join pg_class c on c.relnamespace = n.oid and c.relname = t.tablename
        where t.pubname = 'p'""".encode()
    ).fetchall()
    return {oid: (set(all_ if major < 15 else columns or ()) & set(all_), where) for oid, columns, where, all_ in rows}


def unlike(conn: SourceSession, writer: psycopg.Connection) -> list[str]:
    """Return the publications of which we read other members than the server's view shows."""
    major = conn.info.server_version // 10_000
    writer.execute(ZOO)
    rng, kinds, wrong = Random(20), set(), list[str]()
    for number in range(ROUNDS):
        statement = made(writer, rng, major)
        kinds.add(statement.partition("table")[0])
        found = ours(conn)
        if found != the_servers(conn, major):
            wrong.append(f"{number}: {statement}")
        listed_alone = {oid for oid, found in catalog.members(conn, "p").items() if found.listed}
        members = conn.execute("select prrelid::bigint from pg_publication_rel").fetchall()
        if listed_alone != {oid for (oid,) in members} & found.keys():
            wrong.append(f"{number}, listed alone: {statement}")
    assert len(kinds) > 1
    return wrong


def test_the_members_are_those_of_the_servers_view(conn: SourceSession, writer: psycopg.Connection) -> None:
    assert unlike(conn, writer) == []


@pytest.fixture(params=[14, 17, 18])
def other_version(
    request: pytest.FixtureRequest, new_server: NewServer, binaries_of: Callable[[int], Binaries]
) -> Iterator[tuple[SourceSession, psycopg.Connection]]:
    server = new_server(binaries_of(request.param), HASTY)
    try:
        with (
            server.temporary_database("zoo") as database,
            session.connect(connection_to(database), what="test") as conn,
            database.connect() as writer,
        ):
            yield conn, writer
    finally:
        server.stop()


@pytest.mark.slow
def test_the_members_are_those_of_the_servers_view_on_every_version(
    other_version: tuple[SourceSession, psycopg.Connection],
) -> None:
    assert unlike(*other_version) == []


@pytest.mark.parametrize("via_root", [True, False])
def test_a_partition_whose_detaching_was_broken_off_is_no_member(
    conn: SourceSession, writer: psycopg.Connection, database: object, via_root: bool
) -> None:
    writer.execute(
        f"""create table root (id int primary key) partition by range (id);
        create table leaf partition of root for values from (0) to (10);
        create table staying partition of root for values from (10) to (20);
        create publication p for table root with (publish_via_partition_root = {via_root})"""
    )
    with database.connect() as reader:  # type: ignore[attr-defined]
        reader.execute("begin; select count(*) from root")
        writer.execute("set statement_timeout = '200ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            writer.execute("alter table root detach partition leaf concurrently")
    writer.execute("set statement_timeout = 0")
    assert writer.execute("select count(*) from pg_inherits where inhdetachpending").fetchone() == (1,)

    assert ours(conn) == the_servers(conn, conn.info.server_version // 10_000)
