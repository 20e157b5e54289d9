"""Copy against `COPY ... TO STDOUT` by one psql: from the source into the published Iceberg table."""

from __future__ import annotations

import os
import statistics
import subprocess
import time

from bench import load
from bench.figures import Figure
from bench.lake import bench_env
from tests.pipeline_env import PipelineEnv

ROWS = 2_000_000
RUNS = 5
WARM_UPS = 2


def measure() -> list[Figure]:
    """Return `copy_vs_copy_out`; the JVM has started and has compiled what it runs."""
    pairs = []
    with bench_env() as env:
        for run in range(WARM_UPS + RUNS):
            with env.source.connect() as conn:
                load.create(conn, ROWS)
            out, ours = _copy_out_seconds(env), _copy_seconds(env, run)
            if run >= WARM_UPS:
                pairs.append((out, ours))
    limit, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
    return [Figure("copy_vs_copy_out", ROWS / ours, "rows/s", limit / ours)]


def _copy_out_seconds(env: PipelineEnv) -> float:
    server = env.source.server
    psql = server.binaries.program("psql")
    command = [str(psql), "-qAt", "-c", f"copy (select {', '.join(load.COLUMNS)} from bench) to stdout"]
    started = time.perf_counter()
    subprocess.run(
        command, env={**os.environ, **server.environment(env.source.name)}, stdout=subprocess.DEVNULL, check=True
    )
    return time.perf_counter() - started


def _copy_seconds(env: PipelineEnv, run: int) -> float:
    env.name = f"bench{run}"
    env.settings["source"] = {"publication": "bench", "slot": f"bench{run}", "adopt": True}
    started = time.perf_counter()
    env.bootstrap()
    seconds = time.perf_counter() - started
    env.sql(f"select pg_drop_replication_slot('bench{run}')")
    return seconds
