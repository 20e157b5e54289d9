"""How old a cut is when it is published, and how long a change takes from its commit at the source to a cut.

21 tables take 18,000 changes a minute. They are captured and merged once a minute, each merge in a fresh application; then by
captures every ten seconds and a merge that lingers. Airflow's own seconds are not in these figures; `make demo` reports them.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from bench.cold import stack_environment
from bench.figures import Figure
from bench.lake import ROOT, bench_env
from demo import reading
from penstock import package
from penstock.cli.context import spark_submit
from penstock.errors import LakeError
from penstock.flow.capture.run import capture_repeatedly
from penstock.flow.merge import run as merge
from penstock.flow.merge.linger import Lingering
from penstock.flow.spark_job import SparkJob, Submit
from tests.pipeline_env import PipelineEnv
from tests.waiting import at_work

TABLES, ROWS, CHANGES_PER_SECOND = 21, 10_000, 300
MINUTES = 3
TABLE = "create table t{n} (id int primary key, name text, amount numeric(12,2), at timestamptz default now())"
FILL = "insert into t{n} select i, 'row ' || i, i / 100.0 from generate_series(1, {rows}) i"
CHANGE = "update t{n} set amount = amount + 1, at = clock_timestamp() where id between {first} and {last}"


def measure() -> list[Figure]:
    """Return both figures at a one-minute schedule, and with ten-second captures into a merge that lingers."""
    with bench_env() as env, tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        env.settings |= {
            "tables": {"include": ["public.t*"]},
            "spark": {"driver_memory": "1536m", "parallel_tables": 2},
        }
        for n in range(TABLES):
            env.sql(f"{TABLE.format(n=n)}; {FILL.format(n=n, rows=ROWS)}")
        env.bootstrap()
        submit = _submitting(env, Path(folder))
        with _load(env):
            by_minute = _figures(env, "minute", lambda: _every_minute(env, submit))
            env.settings |= {
                "capture": {"every": "10s", "schedule": None, "time_budget": MINUTES * 60},
                "merge": {"linger": "1m"},
            }
            env.capture()  # what came while the minute passed was no ten-second schedule's
            merge.merge(env.ctx, submit)
            lingering = _figures(env, "lingering", lambda: _lingering(env, submit))
    return by_minute + lingering


def _every_minute(env: PipelineEnv, submit: Submit) -> None:
    for _ in range(MINUTES):
        begun = time.monotonic()
        env.capture()
        merge.merge(env.ctx, submit)
        time.sleep(max(0.0, begun + 60 - time.monotonic()))


def _lingering(env: PipelineEnv, submit: Submit) -> None:
    captures = threading.Thread(target=lambda: capture_repeatedly(env.ctx))
    captures.start()
    while (known := env.ctx.ledger.page.status(env.name)) is None or not known.unmerged_changes:
        time.sleep(0.1)
    Lingering(env.ctx, submit, why_end=lambda: None if captures.is_alive() else "the measurement is over").run()
    captures.join()


def _figures(env: PipelineEnv, name: str, run: Callable[[], None]) -> list[Figure]:
    """Measure the cuts that a run makes."""
    ledger = env.ctx.ledger
    known = len(ledger.merges.cuts(env.name, limit=10_000))
    run()
    cuts = ledger.merges.cuts(env.name, limit=10_000)[::-1][known - 1 :]
    windows = [window for window in ledger.windows.all(env.name) if window.staged_at is not None]
    ages = sorted(reading.ages(windows, cuts[1:]))
    ways = sorted(reading.seconds(env.ctx.landing, windows, cuts))
    return [
        Figure(f"cut_age_{name}_s", statistics.median(ages), "s"),
        Figure(f"cut_age_{name}_worst_s", ages[-1], "s"),
        Figure(f"commit_to_reader_{name}_s", statistics.median(ways), "s"),
        Figure(f"commit_to_reader_{name}_p95_s", ways[int(len(ways) * 0.95)], "s"),
    ]


def _load(env: PipelineEnv) -> AbstractContextManager[None]:
    """Change rows of every table at an even rate."""

    def write(stopped: Callable[[float], bool]) -> None:
        batch = CHANGES_PER_SECOND // TABLES + 1
        with env.source.connect() as conn:
            step = 0
            while not stopped(1):
                step += 1
                first = step * batch % (ROWS - batch) + 1
                for n in range(TABLES):
                    conn.execute(CHANGE.format(n=n, first=first, last=first + batch - 1).encode())

    return at_work(write)


def _submitting(env: PipelineEnv, folder: Path) -> Submit:
    """Return a way to submit with the local stack's settings."""
    assert env.lake is not None
    library = folder / "penstock.zip"
    package.build(ROOT, library)
    os.environ |= stack_environment(folder, env.lake.warehouse)

    def submit(job: SparkJob) -> None:
        said: list[str] = []
        try:
            spark_submit("local[2]", said.append)(replace(job, py_files=library))
        except LakeError as error:
            raise RuntimeError("\n".join(said[-40:])) from error

    return submit
