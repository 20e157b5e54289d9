"""A merge of a hundred tables with a hundred changes each, warm: from plan to published cut, with its CPU seconds."""

from __future__ import annotations

import os
import statistics

from bench import cpu
from bench.figures import Figure
from bench.lake import bench_env
from tests.pipeline_env import PipelineEnv

TABLES = 100
ROWS = 10_000
CHANGES = 100
WARM_UPS = 3
RUNS = 3
MADE = """
create table many.t{0} (id bigint primary key, account int, name text, amount numeric(12, 2), at timestamptz, doc jsonb);
insert into many.t{0} select n, n % 7, 'customer ' || n, n / 7.0, '2026-01-01', '{{"n": 1}}' from generate_series(1, {1}) n
"""
CHANGED = "update many.t{0} set name = name || '!' where id between {1} and {2}"


def measure() -> list[Figure]:
    """Return wall and CPU seconds of a merge of a hundred tables."""
    with bench_env() as env:
        begin(env)
        for number in range(WARM_UPS):
            merged(env, number)
        costs = [merged(env, number) for number in range(WARM_UPS, WARM_UPS + RUNS)]
    wall, client = (statistics.median(column) for column in zip(*costs, strict=True))
    return [Figure("merge_100_tables_s", wall, "s"), Figure("merge_100_tables_cpu_s", client, "CPU s")]


def begin(env: PipelineEnv) -> None:
    """Make the tables, and bring them into the lake."""
    env.sql("create schema many")
    for table in range(TABLES):
        env.sql(MADE.format(table, ROWS))
    env.settings["tables"] = {"include": ["many.*"]}
    env.bootstrap()


def merged(env: PipelineEnv, number: int) -> list[float]:
    """Change a hundred rows of each table, capture, and merge; return wall and CPU seconds of the merge."""
    first = 1 + number * CHANGES
    for table in range(TABLES):
        env.sql(CHANGED.format(table, first, first + CHANGES - 1))
    assert env.capture().changes == TABLES * CHANGES
    return cpu.spent(env.merge, os.getpid())
