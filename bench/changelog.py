"""A changelog filled with a million changes that are landed already: read, cast of both images, write, settle.

The interval lies among others, as a day does: the same changes were captured before and after it, and stay unread. What
is timed is the fill, plan and settling included, without the start of a JVM. A second fill replaces the first.
"""

from __future__ import annotations

import os
import statistics
from datetime import datetime

from bench import cpu, load
from bench.figures import Figure
from bench.lake import bench_env
from tests.pipeline_env import PipelineEnv

CHANGES = 1_000_000
AROUND = 100_000
RUNS = 3


def measure() -> list[Figure]:
    """Return seconds and CPU seconds per million changes; the ratio compares a merge of the same changes with it."""
    with bench_env() as env:
        with env.source.connect() as conn:
            load.create(conn, 10_000)
        env.settings["source"] = {"publication": "bench", "slot": "bench", "adopt": True}
        env.settings["changelog"] = {"slack": 0}
        env.bootstrap()
        start, end = _interval(env, AROUND)
        env.changelog(start, end)  # compiles
        env.merge()
        start, end = _interval(env, CHANGES)
        (merging,) = cpu.spent(env.merge)
        _interval(env, AROUND)
        fills = [cpu.spent(lambda: _fill(env, start, end), os.getpid()) for _ in range(RUNS)]
    seconds, used = statistics.median(wall for wall, _ in fills), statistics.mean(client for _, client in fills)
    return [
        Figure("changelog_s_per_million", seconds * 1_000_000 / CHANGES, "s", merging / seconds),
        Figure("changelog_cpu_s_per_million", used * 1_000_000 / CHANGES, "CPU s"),
    ]


def _interval(env: PipelineEnv, changes: int) -> tuple[datetime, datetime]:
    """Make so many changes in an interval of their own, and capture them."""
    with env.source.connect() as conn:
        conn.execute("truncate bench")
        start = _now(env)
        load.change(conn, changes)
    end = _now(env)
    env.capture()
    return start, end


def _now(env: PipelineEnv) -> datetime:
    ((time_,),) = env.sql("select clock_timestamp()")
    assert isinstance(time_, datetime)
    return time_


def _fill(env: PipelineEnv, start: datetime, end: datetime) -> None:
    assert env.changelog(start, end).rows == CHANGES
