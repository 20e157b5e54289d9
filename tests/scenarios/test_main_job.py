"""The main job on real servers: bootstrap, capture, merge, and the hard cases on their way through all rooms."""

import pytest

from penstock.flow.load import bootstrap
from penstock.flow.merge import run as merge
from tests.pipeline_env import PipelineEnv


@pytest.mark.every_version
def test_a_database_is_copied_and_then_follows_its_source(env: PipelineEnv) -> None:
    env.sql("create table t (id int primary key, name text)")
    env.bootstrap("insert into t select n, 'row ' || n from generate_series(1, 100) n")
    assert len(env.lake_rows("t")) == 100

    env.follow(
        "update t set name = 'changed' where id <= 10; delete from t where id > 90; insert into t values (500, 'new')"
    )

    rows = {row[0]: row[1] for row in env.lake_rows("t")}
    assert len(rows) == 91
    assert rows[1] == "changed"
    assert rows[500] == "new"
    assert 95 not in rows


def test_readers_see_no_table_before_the_cut_that_it_is_complete_in(env16: PipelineEnv) -> None:
    env16.prepare(
        "create table t (id int primary key); insert into t values (1); create table nothing (id int primary key)"
    )
    bootstrap.copy(env16.ctx, env16.submit)
    attempt = env16.plan()
    assert env16.lake is not None
    catalog, mirrors = env16.lake.name, f"{env16.name}.public"

    def seen() -> list[str]:
        return sorted(row["tableName"] for row in env16.spark.sql(f"show tables in {catalog}.{mirrors}").collect())

    env16.submit(merge.job(env16.ctx, attempt))
    before = seen()
    merge.publish(env16.ctx, attempt)

    assert (before, seen()) == ([], ["nothing", "t"])
    assert len(env16.lake_rows("t")) == 1
    assert env16.lake_rows("nothing") == []


def test_a_copy_keeps_a_misfit_and_lands_the_other_ranges_as_values(env: PipelineEnv) -> None:
    env.settings["copy"] = {"range_bytes": "1MiB"}
    env.sql("create table t (id int primary key, day date, tags int[], filler text)")
    env.bootstrap(
        "insert into t select n, date '2024-01-01' + n % 1000, array[n, null], repeat(md5(n::text), 20) "
        "from generate_series(1, 6000) n; update t set day = 'infinity' where id = 6000"
    )

    (copied,) = env.ctx.ledger.loads.copies(env.name)
    assert {dict(file.typed).get("day") for file in copied.files} == {"date", None}
    lake = {row[0]: row[1:] for row in env.lake_rows("t", "id, day, tags, _misfits")}
    source = {row[0]: row[1:] for row in env.sql("select id, day, tags from t where id < 6000")}
    assert lake.pop(6000) == (None, [6000, None], {"day": "infinity"})
    assert {id_: row[:2] for id_, row in lake.items()} == source
    assert {row[2] for row in lake.values()} == {None}
