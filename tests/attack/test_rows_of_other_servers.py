"""With `origin: none` a copy takes rows that another server wrote, and their later changes are left out: it is said before."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.flow import check as preflight
from penstock.source.preflight.findings import Finding
from stack.servers.postgres import Database
from tests.faults.oracle import landed
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin

_numbers = itertools.count(1)


def said(env: PipelineEnv) -> list[Finding]:
    """Return what the preflight finds of origins."""
    return [each for each in preflight.check(env.ctx) if each.subject in ("source.origin", "source.skip_origins")]


def as_another_server(env: PipelineEnv, origin: str, statement: str) -> None:
    """Write as the apply worker of a subscription does."""
    env.sql(
        f"select pg_replication_origin_session_setup('{origin}'); {statement};"
        "select pg_replication_origin_session_reset()"
    )


@contextmanager
def origin(env: PipelineEnv) -> Iterator[str]:
    """Make a replication origin, which the whole server sees, until the block ends."""
    name = f"site_{next(_numbers)}"
    env.sql(f"select pg_replication_origin_create('{name}')")
    try:
        yield name
    finally:
        env.sql(f"select pg_replication_origin_drop('{name}')")


@contextmanager
def subscribed(env: PipelineEnv, publisher: Database, tables: str) -> Iterator[str]:
    """Let the source subscribe to another database, without an apply worker, until the block ends."""
    name, server = f"sub_{env.source.name}", publisher.server
    place = f"host=127.0.0.1 port={server.port} dbname={publisher.name} user=postgres password={server.password}"
    publisher.execute(f"create publication p for table {tables}")
    publisher.execute(f"select pg_create_logical_replication_slot('{name}', 'pgoutput')")
    env.sql(
        f"create subscription {name} connection '{place}' publication p "
        f"with (create_slot = false, slot_name = '{name}', enabled = false, copy_data = false)"
    )
    try:
        yield name
    finally:
        env.sql(f"alter subscription {name} set (slot_name = none)")
        env.sql(f"drop subscription {name}")
        publisher.execute(f"select pg_drop_replication_slot('{name}')")


def test_a_copied_row_of_another_server_stays_as_it_was(env16: PipelineEnv) -> None:
    env16.settings["source"] = {**env16.settings["source"], "origin": "none"}
    env16.sql("create table t (id int primary key, v text)")
    with origin(env16) as site:
        as_another_server(env16, site, "insert into t values (1, 'early')")
        (finding,) = said(env16)
        assert finding.level == "warn"
        assert f"replication origin {site} writes tables that it does not name" in finding.message

        begin(env16, "select")
        as_another_server(env16, site, "update t set v = 'late' where id = 1; insert into t values (2, 'late')")
        env16.flush()
        assert env16.capture().changes == 0
        assert landed(env16, "t", "id") == {"1": ("1", "early")}, "which the preflight has warned of"


@pytest.mark.parametrize("setting", [{"origin": "none"}, {"skip_origins": ["elsewhere"]}])
def test_the_preflight_names_subscriptions_and_the_tables_that_they_fill(
    env16: PipelineEnv, setting: dict[str, object]
) -> None:
    tables = (
        "create table t (id int primary key); create table u (id int primary key); create table v (id int primary key)"
    )
    env16.sql(tables)
    env16.settings["tables"] = {"include": ["public.t", "public.u"]}
    with env16.source.server.temporary_database(f"publisher_{env16.source.name}") as publisher:
        publisher.execute(tables)
        with subscribed(env16, publisher, "t, v") as name:
            assert said(env16) == [], "nothing is left out"
            env16.settings["source"] = {**env16.settings["source"], **setting}

            (finding,) = said(env16)

            assert finding.level == "warn"
            assert f"subscription {name} writes public.t" in finding.message
            assert "public.u" not in finding.message
            assert "public.v" not in finding.message
        (finding,) = said(env16)
        assert name not in finding.message
