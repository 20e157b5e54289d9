"""A backlog that is read ahead, while sessions of others alter its tables or end the session that reads ahead."""

import threading

import pytest

from penstock.flow.verify.compare import compare
from tests.faults.oracle import at_source, landed
from tests.pipeline_env import PipelineEnv
from tests.scenarios.test_read_ahead import backlog, begin

pytestmark = pytest.mark.spark

TUESDAY = (
    "alter table t add column later int not null default 7",
    "truncate calm",
    "alter table moody alter column v type bigint using v * 10",
    "alter table gone rename column v to w",
    "alter table calm replica identity full",
)


@pytest.mark.slow
def test_ddl_between_windows_that_are_read_ahead_leaves_no_ready_table_wrong(env16: PipelineEnv) -> None:
    env16.each(
        ("calm", "moody", "gone"), "create table {t} (id int primary key, v int); insert into {t} values (1, 1), (2, 2)"
    )
    env16.bootstrap(
        "create table t (id int primary key, name text, body text); alter table t alter body set storage external"
    )
    env16.settings["capture"] = {"max_wal_bytes": "1MiB"}
    for number, statement in enumerate(TUESDAY):
        backlog_round = (
            f"insert into {{0}} values ({number + 10}, {number}); update {{0}} set id = id + 100 where id = 2"
        )
        for name in ("calm", "moody"):
            env16.sql(backlog_round.format(name))
        env16.sql(
            f"insert into t (id, name, body) select n, md5(n::text), repeat(md5(n::text), 200) "
            f"from generate_series({number} * 1000 + 1, {number} * 1000 + 400) n"
        )
        env16.sql(statement)
        env16.sql(f"update t set name = name || '+' where id % 5 = {number}")
    env16.flush()

    report = env16.capture()
    env16.merge()

    assert sum(window.ahead for window in report.windows) >= 1
    records = {record.name: record for record in env16.tables}
    states = {name: (record.state, record.paused_slug) for name, record in records.items()}
    assert states["t"] == ("ready", None)
    assert all(state == "ready" or slug == "schema-change" for state, slug in states.values())
    found = compare(env16.ctx, [record for record in records.values() if record.state == "ready"])
    assert found.equal, [line for table in found.tables for line in table.lines()]


@pytest.mark.slow
def test_a_session_that_reads_ahead_may_be_ended_by_others_at_any_moment(env16: PipelineEnv) -> None:
    env, done, ended = env16, threading.Event(), []
    begin(env)
    backlog(env, 10)

    def end_sessions() -> None:
        while not done.wait(0.02):
            ended.extend(
                env.sql(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    "where application_name like '%read-ahead%' and datname = current_database()"
                )
            )

    other = threading.Thread(target=end_sessions)
    other.start()
    try:
        report = env.capture()
    finally:
        done.set()
        other.join()

    assert ended
    assert len(report.windows) > 3
    assert landed(env, "t", "id") == at_source(env, "t", "id")
    assert env.sql("select slot_name from pg_replication_slots where temporary") == []
