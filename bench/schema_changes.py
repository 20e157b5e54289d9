"""What a change of a table's shape costs: 100 renames on a table of 10 million rows, followed as metadata.

What is timed is a capture and a merge whose only work is the renames, each of a window of its own; the table's size should not matter.
"""

from __future__ import annotations

import time

from bench.figures import Figure
from bench.lake import bench_env
from tests.pipeline_env import PipelineEnv

LARGE, SMALL = 10_000_000, 10_000
RENAMES = 100
MADE = "create table {t} (id bigint primary key, name text, amount numeric(12,2))"
FILLED = "insert into {t} select n, 'row ' || n, n / 100.0 from generate_series(1, {rows}) n"


def measure() -> list[Figure]:
    """Return the seconds of all renames; their ratio is to those of a table of ten thousand rows."""
    with bench_env() as env:
        env.settings["tables"] = {"include": ["public.*"]}
        for name, rows in (("large", LARGE), ("small", SMALL)):
            env.sql(MADE.format(t=name))
            env.sql(FILLED.format(t=name, rows=rows))
        env.bootstrap()
        _renamed(env, "small", 1)
        small, large = _renamed(env, "small", RENAMES), _renamed(env, "large", RENAMES)
        assert env.unlike() == []
    return [Figure("schema_change_metadata_s", large, "s", ratio=large / small)]


def _renamed(env: PipelineEnv, table: str, count: int) -> float:
    begun = time.monotonic()
    for n in range(count):
        env.sql(
            f"alter table {table} rename column {'name' if n % 2 == 0 else 'title'} to {'title' if n % 2 == 0 else 'name'}"
        )
        env.capture()
        env.merge()
    if count % 2:
        env.sql(f"alter table {table} rename column title to name")
        env.capture()
        env.merge()
    return time.monotonic() - begun
