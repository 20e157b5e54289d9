"""Copy against `COPY ... TO STDOUT` by one psql: from the source into the published Iceberg table."""

from __future__ import annotations

import os
import statistics
import subprocess

from bench import cpu, load
from bench.figures import Figure
from bench.lake import bench_env
from tests.pipeline_env import PipelineEnv

ROWS = 2_000_000
RUNS = 5
WARM_UPS = 2
CORES = os.cpu_count() or 1


def measure() -> list[Figure]:
    """Return `copy_vs_copy_out`, and what bounds it; the JVM has started and has compiled what it runs.

    Server and client share the cores: no copy can take less than the sum of their CPU seconds, divided by the cores.
    """
    runs = []
    with bench_env() as env:
        for run in range(WARM_UPS + RUNS):
            with env.source.connect() as conn:
                load.create(conn, ROWS)
            server = env.source.server.pid()
            assert server is not None
            out, ours = _copy_out_seconds(env), _copy(env, run, server)
            if run >= WARM_UPS:
                runs.append((out, *ours))
    limit, ours, source, client = (statistics.median(column) for column in zip(*runs, strict=True))
    million, both = ROWS / 1_000_000, (source + client) / CORES
    return [
        Figure("copy_vs_copy_out", ROWS / ours, "rows/s", limit / ours),
        Figure("copy_vs_cores", ROWS / both, "rows/s", both / ours),
        Figure("copy_cpu_s_per_million_source", source / million, "CPU s"),
        Figure("copy_cpu_s_per_million_client", client / million, "CPU s"),
    ]


def _copy_out_seconds(env: PipelineEnv) -> float:
    server = env.source.server
    psql = server.binaries.program("psql")
    command = [str(psql), "-qAt", "-c", f"copy (select {', '.join(load.COLUMNS)} from bench) to stdout"]
    environment = {**os.environ, **server.environment(env.source.name)}
    (seconds,) = cpu.spent(lambda: subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True))
    return seconds


def _copy(env: PipelineEnv, run: int, server: int) -> list[float]:
    """Copy; return wall seconds, and CPU seconds of source and client."""
    env.name = f"bench{run}"
    env.settings["source"] = {"publication": "bench", "slot": f"bench{run}", "adopt": True}
    costs = cpu.spent(env.bootstrap, server, os.getpid())
    env.sql(f"select pg_drop_replication_slot('bench{run}')")
    return costs
