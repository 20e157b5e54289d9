"""The whole pipeline on a million changes: what comes through per second, and what it costs on either side."""

from __future__ import annotations

import os

from bench import cpu, load
from bench.figures import Figure
from bench.lake import bench_env
from tests.pipeline_env import PipelineEnv

CHANGES = 1_000_000
NOISE = "insert into noise select n, repeat('x', 500) from generate_series(1, 200000) n"


def measure() -> list[Figure]:
    """Return throughput, CPU seconds per million changes, and what an idle tick leaves on the source."""
    with bench_env() as env:
        with env.source.connect() as conn:
            load.create(conn, 10_000)
        env.settings["source"] = {"publication": "bench", "slot": "bench", "adopt": True}
        env.bootstrap()
        _through(env, 20_000)  # compiles what a long-running worker has compiled
        with env.source.connect() as conn:
            conn.execute("truncate bench")
        env.capture()
        env.merge()
        seconds, source, client = _through(env, CHANGES)
        idle = _idle(env)
    million = CHANGES / 1_000_000
    return [
        Figure("pipeline_changes_per_s", CHANGES / seconds, "changes/s"),
        Figure("cpu_s_per_million_source", source / million, "CPU s"),
        Figure("cpu_s_per_million_client", client / million, "CPU s"),
        Figure("idle_retained_bytes", idle, "bytes", idle / (16 << 20)),
    ]


def _through(env: PipelineEnv, changes: int) -> list[float]:
    """Make changes, then capture and merge them; return wall seconds and CPU seconds of source and client."""
    with env.source.connect() as conn:
        conn.execute("truncate bench")
        load.change(conn, changes)
        conn.execute("checkpoint")
    server = env.source.server.pid()
    assert server is not None

    def work() -> None:
        assert env.capture().changes >= changes
        env.merge()

    return cpu.spent(work, server, os.getpid())


def _idle(env: PipelineEnv) -> int:
    """Return the WAL that the slot keeps after an idle tick, when only an unpublished table was written."""
    env.sql("create table noise (id int, body text)")
    for _ in range(2):
        env.sql(NOISE)
        env.sql("checkpoint")
        before = len(env.ctx.landing.list("bench/windows"))
        report = env.capture()
        assert report.changes == 0
        assert len(env.ctx.landing.list("bench/windows")) == before, "an idle tick wrote landing files"
    ((retained, unread),) = env.sql(
        "select pg_current_wal_flush_lsn() - restart_lsn, pg_current_wal_flush_lsn() - confirmed_flush_lsn "
        "from pg_replication_slots where slot_name = 'bench'"
    )
    assert unread < 1 << 20, "the slot did not follow"
    return int(retained)
