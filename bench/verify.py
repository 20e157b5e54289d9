"""What a verification costs the source: its share of one core while it runs, and what a sample reads.

A table of a million rows is verified whole, and then by shares of a tenth. The CPU is that of the server and all its
sessions; the bytes are the blocks of table and index that were asked for, in memory or not.
"""

from __future__ import annotations

import time

from bench import cpu, load
from bench.figures import Figure
from bench.lake import bench_env
from penstock.compare.report import Comparison
from penstock.flow.verify.run import verify
from penstock.ledger.verifications import Mode
from tests.pipeline_env import PipelineEnv

ROWS = 1_000_000
SHARES = 10


def measure() -> list[Figure]:
    """Return the cost of a whole verification per second and row, and the bytes of one share against the heap's."""
    with bench_env() as env:
        with env.source.connect() as conn:
            load.create(conn, ROWS)
        env.settings |= {
            "source": {"publication": "bench", "slot": "bench", "adopt": True},
            "verify": {"share": f"1/{SHARES}", "whole_below": 1},
        }
        env.bootstrap()
        _verify(env, "sample", ROWS // SHARES)  # begins the round: the lake's keys are read
        seconds, busy, _ = _verify(env, "whole", ROWS)
        _, _, read = _verify(env, "sample", ROWS // SHARES)
        ((heap,),) = env.sql("select pg_table_size('bench')")
    return [
        Figure("verify_rows_per_s", ROWS / seconds, "rows/s"),
        Figure("verify_source_core_share", busy / seconds, "of one core"),
        Figure("verify_source_cpu_s_per_million", busy * 1_000_000 / ROWS, "CPU s"),
        Figure("verify_source_bytes", read, "bytes", read / heap),
    ]


def _verify(env: PipelineEnv, mode: Mode, rows: int) -> tuple[float, float, int]:
    """Verify; return wall seconds, CPU seconds of the source, and the bytes of blocks that it asked for."""
    server = env.source.server.pid()
    assert server is not None
    before, compared = _blocks(env), list[Comparison]()

    def merge() -> None:
        env.merge()

    seconds, used = cpu.spent(lambda: compared.append(verify(env.ctx, mode=mode, merge=merge)), server)
    (found,) = compared
    assert found.differing == [], env.lines
    assert rows * 0.9 <= found.rows <= rows * 1.1, found.tables
    return seconds, used, (_blocks(env) - before) * 8192


def _blocks(env: PipelineEnv) -> int:
    time.sleep(1.5)  # a session reports its statistics when it ends, others within a second
    ((blocks,),) = env.sql(
        "select heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit "
        "from pg_statio_user_tables where relname = 'bench'"
    )
    return int(blocks)
