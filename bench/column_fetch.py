"""What a column fetch costs beside a copy: a new uuid column with `gen_random_uuid()` on a table of 2 million rows.

Both are timed as a whole, until readers see the result: the fetch with the merge that brings it, the resync of the same table with its
switch. The bytes are those that were landed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from bench import load
from bench.figures import Figure
from bench.lake import bench_env
from penstock.flow.load import run as rebuild
from tests.pipeline_env import PipelineEnv

ROWS = 2_000_000
TABLE = "public.bench"


def measure() -> list[Figure]:
    """Return the rows per second of the fetch, with their ratio to those of the resync, and the ratio of landed bytes."""
    with bench_env() as env:
        with env.source.connect() as conn:
            load.create(conn, ROWS)
        env.settings["source"] = {"publication": "bench", "slot": "bench", "adopt": True}
        env.bootstrap()
        env.sql("alter table bench add column made uuid default gen_random_uuid()")
        env.capture()
        fetched = _seconds(env, None)
        (fetch,) = env.ctx.ledger.loads.fetches(env.name)
        resynced = _seconds(env, [TABLE])
        copied = env.ctx.ledger.loads.copies(env.name)[-1]
    return [
        Figure("column_fetch_rows_per_s", ROWS / fetched, "rows/s", ratio=resynced / fetched),
        Figure("column_fetch_landed_mib", fetch.bytes / (1 << 20), "MiB", ratio=fetch.bytes / copied.bytes),
    ]


def _seconds(env: PipelineEnv, tables: Sequence[str] | None) -> float:
    """Return what a resync took until its cut, of tables by name or of what waits; source and lake must be equal then."""
    started = time.perf_counter()
    assert rebuild.switch(env.ctx, rebuild.resync(env.ctx, tables, env.submit), env.submit)
    taken = time.perf_counter() - started
    assert env.unlike() == []
    return taken
