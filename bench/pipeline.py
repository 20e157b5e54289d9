"""The whole pipeline on a million changes: what comes through per second, and what it costs on either side."""

from __future__ import annotations

import os
import time

from bench import cpu, load
from bench.figures import Figure
from bench.lake import bench_world
from tests.pipeline_env import PipelineEnv

CHANGES = 1_000_000
NOISE = "insert into noise select n, repeat('x', 500) from generate_series(1, 200000) n"


def measure() -> list[Figure]:
    """Return throughput, CPU seconds per million changes, and what an idle tick leaves on the source."""
    with bench_world() as world:
        with world.source.connect() as conn:
            load.create(conn, 10_000)
        world.settings["source"] = {"publication": "bench", "slot": "bench", "adopt": True}
        world.bootstrap()
        _through(world, 20_000)  # compiles what a long-running worker has compiled
        with world.source.connect() as conn:
            conn.execute("truncate bench")
        world.capture()
        world.merge()
        seconds, source, client = _through(world, CHANGES)
        idle = _idle(world)
    million = CHANGES / 1_000_000
    return [
        Figure("pipeline_changes_per_s", CHANGES / seconds, "changes/s"),
        Figure("cpu_s_per_million_source", source / million, "CPU s"),
        Figure("cpu_s_per_million_client", client / million, "CPU s"),
        Figure("idle_retained_bytes", idle, "bytes", idle / (16 << 20)),
    ]


def _through(world: PipelineEnv, changes: int) -> tuple[float, float, float]:
    """Make changes, then capture and merge them; return wall seconds and CPU seconds of source and client."""
    with world.source.connect() as conn:
        conn.execute("truncate bench")
        load.change(conn, changes)
        conn.execute("checkpoint")
    server = world.source.server.pid()
    assert server is not None
    source, client, started = cpu.seconds(server), cpu.seconds(os.getpid()), time.perf_counter()
    report = world.capture()
    world.merge()
    seconds = time.perf_counter() - started
    assert report.changes >= changes
    return seconds, cpu.seconds(server) - source, cpu.seconds(os.getpid()) - client


def _idle(world: PipelineEnv) -> int:
    """Return the WAL that the slot keeps after an idle tick, when only an unpublished table was written."""
    world.sql("create table noise (id int, body text)")
    for _ in range(2):
        world.sql(NOISE)
        world.sql("checkpoint")
        before = len(world.ctx.landing.list("bench/windows"))
        report = world.capture()
        assert report.changes == 0
        assert len(world.ctx.landing.list("bench/windows")) == before, "an idle tick wrote landing files"
    ((retained, unread),) = world.sql(
        "select pg_current_wal_flush_lsn() - restart_lsn, pg_current_wal_flush_lsn() - confirmed_flush_lsn "
        "from pg_replication_slots where slot_name = 'bench'"
    )
    assert unread < 1 << 20, "the slot did not follow"
    return int(retained)
