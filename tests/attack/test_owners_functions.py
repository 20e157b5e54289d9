"""Whoever owns a published table has SQL of his own run by every query over it: it finds nothing to do with our rights."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from penstock.config.connections import Connection
from penstock.flow.capture import run as capture
from penstock.flow.context import Context
from penstock.flow.load import bootstrap
from penstock.flow.spark_job import SparkJob
from tests.pipeline_env import PipelineEnv, connection, copy_without_spark

OWNED = """
create schema other; create table other.secret (word text); insert into other.secret values ('of another');
create schema s authorization {owner}; set role {owner};
create table s.visit (id int, at int, primary key (id, at)) partition by range (at);
create table s.visit_1 partition of s.visit for values from (0) to (10);
insert into s.visit select n, n % 10 from generate_series(1, 50) n;
create table s.tried (by text);
create function s.work() returns int volatile language plpgsql as $$ begin return 1; end $$;
create function s.f(int) returns int immutable language plpgsql as $$ begin return s.work(); end $$;
create index on s.visit ((s.f(1)));
create or replace function s.work() returns int volatile language plpgsql as $$
begin
  begin create table s.loot as select * from other.secret; exception when others then null; end;
  begin execute 'alter publication {publication} drop table s.visit'; exception when others then null; end;
  begin perform pg_replication_slot_advance('{slot}', pg_current_wal_flush_lsn()); exception when others then null; end;
  begin perform pg_drop_replication_slot('{slot}'); exception when others then null; end;
  begin execute 'alter role ' || quote_ident(current_user) || ' superuser'; exception when others then null; end;
  raise log 'ran as %', current_user;
  return 1;
end $$;
reset role;
grant usage on schema s to {reader}; grant select on all tables in schema s to {reader};
grant create on database {database} to {capture}; grant {owner} to {capture};
"""


@pytest.fixture
def roles(env16: PipelineEnv) -> Iterator[dict[str, str]]:
    """Roles as the documents say; the one that decodes also owns the publication, with the right of the tables' owner."""
    names = {part: f"{env16.source.name}_{part}" for part in ("owner", "capture", "reader")}
    env16.sql(f"create role {names['owner']}")
    for part, attributes in (("capture", "login replication"), ("reader", "login")):
        env16.sql(f"create role {names[part]} {attributes} password '{env16.source.server.password}'")
    yield names
    env16.source.execute("; ".join(f"drop owned by {name}" for name in names.values()))
    env16.sql("; ".join(f"drop role {name}" for name in names.values()))


@pytest.fixture
def ctx(env16: PipelineEnv, roles: dict[str, str]) -> Context:
    env16.settings["tables"] = {"include": ["s.visit"]}
    env16.settings["source"] |= {"connection": "capture", "reader_connection": "reader"}
    usual = env16.ctx.connections
    ours = {part: replace(connection(env16.source, part), user=roles[part]) for part in ("capture", "reader")}

    def found(conn_id: str) -> Connection:
        return ours.get(conn_id) or usual(conn_id)

    return replace(env16.ctx, connections=found)


def test_neither_a_copy_nor_a_look_of_capture_does_what_an_index_of_the_owner_wants(
    env16: PipelineEnv, roles: dict[str, str], ctx: Context
) -> None:
    names = {"publication": ctx.pipeline.publication, "slot": ctx.pipeline.slot, "database": env16.source.name}
    env16.sql(OWNED.format(**roles, **names))
    log = env16.source.server.log
    seen = len(log.read_text(errors="replace"))

    bootstrap.prepare(ctx)
    assert bootstrap.copy(ctx, copy_without_spark) == ["s.visit"]
    before = env16.sql(f"select confirmed_flush_lsn from pg_replication_slots where slot_name = '{ctx.pipeline.slot}'")
    env16.sql(f"set role {roles['owner']}; create table s.visit_2 (id int, at int, primary key (id, at)); "
            "create index on s.visit_2 ((s.f(1))); insert into s.visit_2 values (1, 11); "
            "alter table s.visit attach partition s.visit_2 for values from (10) to (20); insert into s.visit values (2, 12); "
            f"reset role; grant select on s.visit_2 to {roles['reader']}")  # fmt: skip
    capture.capture(ctx)

    ran = set()
    for line in log.read_text(errors="replace")[seen:].splitlines():
        if "ran as " in line:
            ran.add(line.partition("ran as ")[2])
    assert roles["reader"] in ran  # the test tests something
    assert roles["capture"] not in ran
    assert env16.sql("select to_regclass('s.loot')") == [(None,)]
    published = f"select tablename from pg_publication_tables where pubname = '{ctx.pipeline.publication}'"
    assert env16.sql(published) == [("visit",)]
    assert env16.sql(f"select rolsuper from pg_roles where rolname in ('{roles['reader']}', '{roles['capture']}')") == [
        (False,), (False,),
    ]  # fmt: skip
    after = env16.sql(f"select confirmed_flush_lsn from pg_replication_slots where slot_name = '{ctx.pipeline.slot}'")
    assert (len(before), len(after)) == (1, 1)
    assert [table.state for table in ctx.ledger.tables.all(ctx.name)] in (["paused"], ["copied"])


UNPLANNABLE = """
create table whole (id int primary key, v text); insert into whole select n, 'v' || n from generate_series(1, 3000) n;
create table filtered (id int primary key, v text); insert into filtered values (1, 'a');
create table sound (id int primary key); insert into sound values (1);
create function plain(text) returns text immutable strict language sql as $$ select lower($1) $$;
create function wraps(text) returns text immutable language sql as $$ select plain($1) $$;
create index on whole ((wraps('x'))); create index on filtered ((wraps('x')));
create publication {publication} for table whole, filtered where (id > 0), sound with (publish_via_partition_root = true);
"""


def test_a_table_over_which_no_query_can_be_planned_is_copied_whole_and_one_that_needs_a_query_is_tried_once(
    env16: PipelineEnv,
) -> None:
    env16.settings["source"]["adopt"] = True
    env16.settings["copy"] = {"range_bytes": 8192}
    env16.sql(UNPLANNABLE.format(publication=env16.settings["source"]["publication"]))
    submitted: list[str] = []

    def submit(job: SparkJob) -> None:
        submitted.append(job.name)
        copy_without_spark(job)

    bootstrap.prepare(env16.ctx)
    assert sorted(bootstrap.copy(env16.ctx, submit)) == ["public.sound", "public.whole"]

    tables = {table.name: table for table in env16.tables}
    copied = {copy.oid: copy.rows for copy in env16.ctx.ledger.loads.copies(env16.name)}
    assert {name: table.state for name, table in tables.items()} == {
        "sound": "copied", "whole": "copied", "filtered": "paused",
    }  # fmt: skip
    assert copied[tables["whole"].oid] == 3000
    assert len(submitted) == 1, "an error that will not pass is not tried again"
    reason = tables["filtered"].paused_reason or ""
    assert "[planning-failed]" in reason
    assert "public.wraps(text)" in reason
    assert "function plain(text) does not exist" in reason
    assert any("public.whole is copied by one COPY, not in parallel" in line for line in env16.lines)
