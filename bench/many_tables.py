"""A source of a thousand tables of which few change: what a capture costs that finds nothing, and one change in each table.

Copies are made as if every table were empty, so that no Spark is needed: capture does the same work either way.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import cpu
from bench.figures import Figure
from bench.servers import two_servers
from penstock.flow.load import bootstrap
from penstock.flow.spark_job import SparkJob
from penstock.jobs.plans import CopyPlan
from penstock.wire.columnar import warm_up
from tests.pipeline_env import PipelineEnv

TABLES = 1_000
RUNS = 5
COLUMNS = "id bigint primary key, account int, name text, email text, amount numeric(12, 2), at timestamptz, tags int[], doc jsonb"
CHANGE = "insert into many.t%s values (%s, 7, 'customer', 'c@example.org', 12.5, now(), '{1,2}', '{\"n\": 1}')"


@dataclass(frozen=True)
class Cost:
    """What one step took: wall seconds, and CPU seconds of this process, the source and the control server."""

    wall: float
    client: float
    source: float
    ledger: float


def measure() -> list[Figure]:
    """Return wall and CPU seconds of an idle capture, and of one with a change in each of a thousand tables."""
    warm_up()
    with many_tables(TABLES) as env:
        env.capture()
        idle = _median([_cost(env, env.capture) for _ in range(RUNS)])
        busy = _median([_busy(env, number) for number in range(RUNS)])
    return [*_figures("capture_1000_tables_idle", idle), *_figures("capture_1000_tables", busy)]


def _busy(env: PipelineEnv, number: int) -> Cost:
    change_each(env, TABLES, number)
    return _cost(env, lambda: _expect(env, TABLES))


def _expect(env: PipelineEnv, changes: int) -> None:
    assert env.capture().changes == changes


def _figures(name: str, cost: Cost) -> list[Figure]:
    return [
        Figure(f"{name}_s", cost.wall, "s"),
        Figure(f"{name}_cpu_s_client", cost.client, "CPU s"),
        Figure(f"{name}_cpu_s_source", cost.source, "CPU s"),
        Figure(f"{name}_cpu_s_ledger", cost.ledger, "CPU s"),
    ]


def _median(costs: list[Cost]) -> Cost:
    names = ("wall", "client", "source", "ledger")
    return Cost(*(statistics.median(getattr(cost, name) for cost in costs) for name in names))


def _cost(env: PipelineEnv, step: Callable[[], object]) -> Cost:
    return Cost(*cpu.spent(step, os.getpid(), *(database.server.pid() for database in (env.source, env.ledger))))


def change_each(env: PipelineEnv, tables: int, number: int) -> None:
    """Insert one row into each table, in a transaction of its own."""
    with env.source.connect() as conn:
        conn.autocommit = True
        for table in range(tables):
            conn.execute(CHANGE % (table, number))


@contextmanager
def many_tables(tables: int) -> Iterator[PipelineEnv]:
    """Lend a running pipeline of so many empty tables, without Spark."""
    with (
        two_servers() as (source, control, folder),
        source.temporary_database("bench") as data,
        control.temporary_database("ledger") as ledger,
    ):
        env = PipelineEnv(data, ledger, folder / "landing", "bench")
        env.settings = {"tables": {"include": ["many.*"]}}
        with data.connect() as conn:
            conn.execute("create schema many")
            for table in range(tables):
                conn.execute(f"create table many.t{table} ({COLUMNS})".encode())
        bootstrap.prepare(env.ctx)
        bootstrap.copy(env.ctx, lambda job: _copied(env, job))
        yield env


def _copied(env: PipelineEnv, job: SparkJob) -> None:
    """Prove that each table was copied, and held nothing."""
    paths = dict(zip(job.arguments[::2], job.arguments[1::2], strict=True))
    plan = CopyPlan.loads(Path(paths["--plan"].removeprefix("file://")).read_text())
    for oid in {each.oid for each in plan.ranges}:
        env.ctx.landing.write_text(f"{plan.result_folder}/{oid}.json", json.dumps({"files": [], "rows": 0}))
