"""Functions of whoever owns a table run when a query over it is planned: as whom, for how long, and what of them stays."""

import re

import pyarrow as pa
import pytest
from psycopg import sql

from penstock.conditions import Directive
from penstock.errors import SourceError
from penstock.source import leaf_rows, session, slot
from penstock.source.catalog_snapshot import read_catalog
from penstock.source.copy import plan_ranges, read_range
from penstock.source.reading import EndedError, TableError, reading, require_same, unplannable
from penstock.source.text_rows import rendered, rendered_rows
from tests.source.conftest import copied

TABLE = """
create schema s; create schema other;
create table other.secret (word text); insert into other.secret values ('for the pipeline only');
create table s.a (id int primary key, v text); insert into s.a select n, 'v' || n from generate_series(1, 3) n;
create publication p for table s.a;
"""
FOLDED = """
create function s.work() returns int volatile language plpgsql as $$ {body} $$;
create function s.f(int) returns int immutable language plpgsql as $$ begin return s.work(); end $$;
"""
EVIL = """
begin
  begin create table s.loot as select * from other.secret; exception when others then null; end;
  begin alter publication p drop table s.a; exception when others then null; end;
  begin execute 'alter role ' || quote_ident(current_user) || ' superuser'; exception when others then null; end;
  begin perform pg_replication_slot_advance('s', pg_current_wal_flush_lsn()); exception when others then null; end;
  begin perform set_config('transaction_read_only', 'off', true); exception when others then null; end;
  return 1;
end
"""
SETTING = """
begin
  perform set_config('search_path', 's', false), set_config('datestyle', 'German', false);
  return 1;
end
"""
ENDLESS = """
begin
  loop
    begin perform pg_sleep(3600); exception when query_canceled then null; end;
  end loop;
end
"""


def folded(writer, body):
    """Give s.a an index that runs `body` whenever a query is planned from now on; it is harmless while it is made."""
    writer.execute(FOLDED.format(body="begin return 1; end"))
    writer.execute("create index on s.a ((s.f(1)))")
    writer.execute(f"create or replace function s.work() returns int volatile language plpgsql as $$ {body} $$")


@pytest.fixture
def reader(writer, new_role):
    """A role that may read the table, and nothing else."""
    writer.execute(TABLE)
    made = new_role("reader")
    writer.execute(f"grant usage on schema s to {made.user}; grant select on s.a to {made.user}")
    return made


def test_what_an_owner_makes_a_read_run_writes_nothing_and_sees_no_more_than_the_reader(source, conn, writer, reader):
    folded(writer, EVIL)
    (table,) = read_catalog(conn, "p", sizes=True).tables
    with slot.create_exporting(source, "s", timeout=30) as exported:
        before = slot.read_slot(conn, "s").confirmed
        rows = copied(reader, plan_ranges([table], range_bytes=1 << 20, folder="c"), exported)
        with rendered(reader, seconds=60, snapshot_name=exported.snapshot_name) as texts:
            part = [block.num_rows for block in rendered_rows(texts, [("s", "a")], ["id", "v"], where="id > 1")]
        with leaf_rows.looking(reader, what="look") as looks:
            empty = looks.empty_in(table.leaves[0])
    assert (rows.num_rows, part, empty) == (3, [2], None)
    made = "select to_regclass('s.loot') is null, count(*) from pg_publication_tables where pubname = 'p'"
    assert writer.execute(made).fetchall() == [(True, 1)]
    assert slot.read_slot(conn, "s").confirmed == before
    assert writer.execute("select rolsuper from pg_roles where rolname = %s", [reader.user]).fetchone() == (False,)


def test_a_whole_table_is_compared_without_running_a_function_of_its_owner(writer, reader):
    folded(writer, "begin raise exception 'it ran'; end")
    with rendered(reader, seconds=60) as texts:
        assert [block.num_rows for block in rendered_rows(texts, [("s", "a")], ["v", "id"])] == [3]
        require_same(texts, [("s", "a")])


def test_settings_that_a_function_has_changed_are_no_ones_after_a_read(writer, reader):
    folded(writer, SETTING)
    with session.connect(reader, what="test") as conn:
        with reading(conn, 60):
            conn.execute("select count(*) from s.a")
            assert conn.execute("show datestyle").fetchone() != ("ISO, YMD",)
        assert conn.execute("show search_path").fetchone() == ("",)
        assert conn.execute("show datestyle").fetchone() == ("ISO, YMD",)


def test_a_read_whose_settings_a_function_has_changed_is_none(source, writer, reader):
    folded(writer, SETTING)
    with session.connect(source, what="test") as conn:
        (table,) = read_catalog(conn, "p", sizes=True).tables
        with slot.export_snapshot(source) as exported, pytest.raises(TableError) as caught:
            copied(reader, plan_ranges([table], range_bytes=1 << 20, folder="c"), exported)
    assert "DateStyle" in str(caught.value)


def test_a_function_without_an_end_is_ended_as_its_tables_own_trouble(conn, writer, reader, monkeypatch):
    monkeypatch.setattr("penstock.source.reading._GRACE_SECONDS", 1)
    monkeypatch.setattr("penstock.source.reading._SECONDS", 1)
    monkeypatch.setattr("penstock.source.leaf_rows._SECONDS", 1)
    writer.execute(f"create table s.b (id int primary key); grant select on s.b to {reader.user}")
    writer.execute("create index on s.b (id) where id > 0; alter publication p add table s.b")
    folded(writer, ENDLESS)
    with (
        session.connect(reader, what="test", statement_timeout=1) as reads,
        pytest.raises(EndedError) as caught,
        reading(reads, 1),
    ):
        reads.execute("select count(*) from s.a")
    found = unplannable(conn, reader, [("s", "a"), ("s", "b")], what="copy")
    a, b = (table.leaves[0] for table in read_catalog(conn, "p", sizes=True).tables)
    with leaf_rows.looking(reader, what="look") as looks:
        seen = [looks.empty_in(leaf) for leaf in (a, b)]
    with leaf_rows.looking(reader, what="look") as looks:
        seen.append(looks.empty_in(b))

    assert caught.value.slug == "source-timeout"
    assert [(heap, error.slug) for heap, error in found.items()] == [(("s", "a"), "planning-failed")]
    assert "s.f(integer)" in found["s", "a"].message
    assert [each is not None for each in seen] == [
        False,
        False,
        True,
    ]  # of the same table no other leaf is asked, of another one it is
    left = "select count(*) from pg_stat_activity where usename = %s and state = 'active'"
    assert writer.execute(left, [reader.user]).fetchone() == (0,)


def test_a_role_that_may_replicate_could_move_a_slot_in_a_read_only_transaction(conn, writer, source):
    """Why the reader is another role: this is not what READ ONLY prevents."""
    writer.execute(TABLE)
    folded(writer, "begin perform pg_replication_slot_advance('s', pg_current_wal_flush_lsn()); return 1; end")
    with slot.create_exporting(source, "s", timeout=30):
        pass
    before = slot.read_slot(conn, "s").confirmed
    writer.execute("insert into s.a values (4, 'w')")
    with session.connect(source, what="test") as reads, reading(reads, 60):
        reads.execute("select count(*) from s.a")
    assert slot.read_slot(conn, "s").confirmed > before


def test_a_read_that_the_server_ends_by_its_limit_needs_no_other_session(writer, reader, monkeypatch):
    monkeypatch.setattr("penstock.source.reading._GRACE_SECONDS", 60)
    folded(writer, "begin perform pg_sleep(3600); return 1; end")
    with (
        session.connect(reader, what="test") as conn,
        pytest.raises(SourceError) as caught,
        reading(conn, 1),
    ):
        conn.run(sql.SQL("select count(*) from s.a"))
    assert caught.value.slug == "source-timeout"


def test_a_range_of_a_copy_that_does_not_end_is_ended_as_its_tables_own_trouble(
    source, conn, writer, reader, monkeypatch
):
    monkeypatch.setattr("penstock.source.reading._GRACE_SECONDS", 1)
    folded(writer, ENDLESS)
    (table,) = read_catalog(conn, "p", sizes=True).tables
    (whole,) = plan_ranges([table], range_bytes=1 << 20, folder="c")
    with slot.export_snapshot(source) as exported, pytest.raises(TableError) as caught:
        list(read_range(reader, whole, snapshot_name=exported.snapshot_name, batch_bytes=1000, seconds=1))
    assert caught.value.slug == "source-timeout"


UNACCENT = """
alter table s.a add r real default 0.1;
create function public.plain(text) returns text immutable strict language sql as $$ select lower($1) $$;
create function s.immutable_plain(text) returns text immutable language sql as $$ select public.plain($1) $$;
create index on s.a ((s.immutable_plain('x')), v) where s.immutable_plain('x') = 'x';
create or replace function s.immutable_plain(text) returns text immutable language sql as $$ select plain($1) $$;
insert into s.a values (4, null, 'NaN'), (5, '', '-Infinity'), (6, E'a"\\n,', 3e20);
"""
"""As an upgrade brings it: from 17 on such an index cannot be made any more."""


def test_a_table_whose_queries_fail_when_they_are_planned_is_copied_by_its_name_and_the_message_helps(
    source, conn, writer, reader
):
    writer.execute(UNACCENT)
    (table,) = read_catalog(conn, "p", sizes=True).tables
    heap = ("s", "a")
    plain = unplannable(conn, reader, [heap], what="copy")
    ranges = plan_ranges([table], range_bytes=1, folder="c", plain=plain)
    with slot.export_snapshot(source) as exported:
        writer.execute("insert into s.a values (7, 'later')")
        rows = copied(reader, ranges, exported)
        values = pa.Table.from_batches(
            read_range(reader, ranges[0], snapshot_name=exported.snapshot_name, batch_bytes=1000, seconds=60)
        )
        with rendered(reader, seconds=60, snapshot_name=exported.snapshot_name) as texts:
            compared = sum(block.num_rows for block in rendered_rows(texts, [heap], ["id", "v"]))
            with pytest.raises(TableError) as caught:
                list(rendered_rows(texts, [heap], ["id"], where="id > 1"))

    assert (len(ranges), len(rows), len(values), compared) == (1, 6, 6, 6)
    assert sorted(rows["v"].to_pylist(), key=str) == ["", None, 'a"\n,', "v1", "v2", "v3"]
    assert dict(zip(rows["id"].to_pylist(), rows["r"].to_pylist(), strict=True)) == {
        "1": "0.10000000149011612", "2": "0.10000000149011612", "3": "0.10000000149011612",
        "4": "NaN", "5": "-Infinity", "6": writer.execute("select 3e20::real::float8::text").fetchone()[0],
    }  # fmt: skip
    assert values.schema.field("id").type == pa.int32()
    assert caught.value.slug == plain[heap].slug == "planning-failed"
    assert caught.value.directive is not Directive.RETRY
    assert "function plain(text) does not exist (42883)" in plain[heap].message
    for line in (plain[heap].message, caught.value.message):  # the advice is tried
        found = re.search("alter function .* set search_path = <the schemas that it needs>", line)
        assert found, line
    writer.execute(found[0].replace("<the schemas that it needs>", "public"))
    assert unplannable(conn, reader, [heap], what="copy") == {}
