"""Rebuilds: a resync of a table of 5 million rows with four writers on it, and a replay of a million changes.

A resync is timed as a whole: copy, build, and the merge that switches, while writers write, and captures and merges continue as
they would by schedule. A replay's time is that of building a table from a copy of the same rows and the changes, and of the
switch. Afterwards source and lake are compared, row by row.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from bench import load
from bench.figures import Figure
from bench.lake import bench_env
from penstock.flow.load import run as rebuild
from penstock.flow.load.run import Replay
from tests.pipeline_env import PipelineEnv
from tests.waiting import Work, at_work

ROWS = 5_000_000
CHANGES = 1_000_000
WRITERS = 4
PAUSE_SECONDS = 0.02
TABLE = "public.bench"
WRITE = """
update bench set amount = amount + 1 where id = %(id)s;
delete from bench where id = %(id)s + 1;
insert into bench select n, 1, 'new', 'new', 1, now(), '{1}', '{}'
from generate_series(10000000 + %(id)s, 10000000 + %(id)s + 2) n;
"""
CHANGES_PER_WRITE = 5
RETAINED = "select pg_current_wal_flush_lsn() - restart_lsn from pg_replication_slots where slot_name = 'bench'"


def measure() -> list[Figure]:
    """Return `resync_rows_per_s`, what was written meanwhile, the WAL its slot kept at most, and `replay_changes_per_s`."""
    with bench_env() as env:
        with env.source.connect() as conn:
            load.create(conn, ROWS)
        env.settings["source"] = {"publication": "bench", "slot": "bench", "adopt": True}
        env.bootstrap()
        writes: list[int] = []
        retained: list[int] = []
        with at_work(*(_writer(env, number, writes) for number in range(WRITERS)), _captures(env, retained)):
            resynced = _seconds(env, lambda: rebuild.resync(env.ctx, [TABLE], env.submit))
        _require_equal(env)
        for first in range(0, CHANGES, CHANGES // 10):
            env.sql(f"update bench set amount = amount + 1 where id between {first} and {first + CHANGES // 10 - 1}")
            env.capture()
        env.merge()
        replayed = _seconds(env, lambda: rebuild.replay(env.ctx, Replay((TABLE,)), env.submit))
        (copied,) = {each.lsn for each in env.ctx.ledger.loads.builds(env.name, states=["done"])}
        changes = sum(window.rows for window in env.ctx.ledger.windows.all(env.name, after=copied))
        _require_equal(env)
    return [
        Figure("resync_rows_per_s", ROWS / resynced, "rows/s"),
        Figure("resync_written_meanwhile_per_s", len(writes) * CHANGES_PER_WRITE / resynced, "changes/s"),
        Figure("resync_retained_mib", max(retained) / (1 << 20), "MiB"),
        Figure("replay_changes_per_s", changes / replayed, "changes/s"),
    ]


def _seconds(env: PipelineEnv, build: Callable[[], list[str]]) -> float:
    started = time.perf_counter()
    assert rebuild.switch(env.ctx, build(), env.submit)
    return time.perf_counter() - started


def _writer(env: PipelineEnv, number: int, writes: list[int]) -> Work:
    conn = env.source.connect()

    def write(stopped: Callable[[float], bool]) -> None:
        """Change five rows that no other writer changes, in one transaction, again and again."""
        while not stopped(PAUSE_SECONDS):
            writes.append(1)
            with conn.transaction():
                for statement in WRITE.split(";")[:3]:
                    conn.execute(statement, {"id": (len(writes) * WRITERS + number) * 4 % ROWS})

    return write


def _captures(env: PipelineEnv, retained: list[int]) -> Work:
    def capture(stopped: Callable[[float], bool]) -> None:
        while not stopped(5):
            env.capture()
            retained.append(int(env.sql(RETAINED)[0][0]))

    return capture


def _require_equal(env: PipelineEnv) -> None:
    env.capture()
    env.merge()
    assert env.unlike() == []
