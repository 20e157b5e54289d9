"""One attempt at a cut, or at a chunk of a build: its orders and Spark's answer, how far it is, and whether it waits to be published.

The driver says in a small file how many changes it has brought. Merges and maintenance wait for each other by a lock on the lake's
tables, so that no work is wasted. Nothing depends on it for safety: an attempt that was overtaken cannot publish, and a pointer that
has moved is noticed.
"""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from penstock.errors import LakeError, Trouble
from penstock.flow import spark_job
from penstock.flow.context import Context
from penstock.flow.spark_job import Done, SparkJob, answer, catalog_secrets, describe
from penstock.jobs.plans import MergePlan, MergeResult
from penstock.jobs.pointers import Pointer
from penstock.landing import layout
from penstock.ledger.table_records import LoadRecord
from penstock.lsn import Lsn
from penstock.polling import poll

LAKE = "lake"
_POLL_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """Hold what Spark was ordered to do, and what it answered."""

    orders: MergePlan
    result: MergeResult

    @property
    def pointers(self) -> list[Pointer]:
        """Return what is to be moved."""
        pointers = (*(table.pointer for table in self.result.tables), self.result.cuts)
        return [pointer for pointer in pointers if pointer]

    @property
    def troubles(self) -> dict[int, Trouble]:
        """Return what Spark met in the tables that stay behind, by oid."""
        return {
            table.oid: Trouble.usual(table.paused_slug, table.paused_reason or "")
            for table in self.result.tables
            if table.paused_slug
        }


def merge_lock(ctx: Context) -> AbstractContextManager[None]:
    """Hold the lake for a step of a merge; raises LedgerError("work-under-way") after waiting for `lake.wait`."""
    return ctx.ledger.locks.hold(ctx.name, LAKE, wait=ctx.pipeline.lake.wait)


@contextmanager
def maintenance_lock(ctx: Context) -> Iterator[None]:
    """Hold the lake for maintenance, after a merge that is prepared was published, or did not come to it in time.

    Raises LedgerError("work-under-way") after waiting for `lake.wait`.
    """
    for is_last in poll(ctx.pipeline.maintain.patience, _POLL_SECONDS):
        with merge_lock(ctx):
            waiting = prepared(ctx)
            if waiting is None or is_last:
                yield
                return
        ctx.progress(f"merge {waiting} is prepared: letting it be published first")


def job(ctx: Context, attempt: str, *, orders: str | None = None) -> SparkJob:
    """Describe the application that carries out an attempt, and then what the file `orders` says."""
    plan, result = layout.plan_file(ctx.name, attempt), layout.result_file(ctx.name, attempt)
    return describe(ctx, "merge_changes", plan, catalog_secrets(ctx), result=result, orders=orders)


def read_attempt(ctx: Context, attempt: str) -> Attempt:
    """Return the orders of an attempt and Spark's answer; raises LakeError("spark-failed") where it gave none."""
    result = answer(ctx.landing, layout.result_file(ctx.name, attempt), MergeResult)
    if (result.pipeline, result.attempt) != (ctx.name, attempt):
        raise LakeError("spark-failed", f"expected the result of {ctx.name} {attempt}, got that of {result.attempt}")
    return Attempt(MergePlan.loads(ctx.landing.read_text(layout.plan_file(ctx.name, attempt))), result)


def prepared(ctx: Context) -> str | None:
    """Return the newest attempt if Spark has prepared it and the ledger knows nothing of its publication."""
    attempt, cut = ctx.ledger.pipelines.get(ctx.name).merge_attempt, ctx.ledger.merges.last_cut(ctx.name)
    if attempt is None or (cut and cut.attempt == attempt):
        return None
    there = all(ctx.landing.exists(path(ctx.name, attempt)) for path in (layout.plan_file, layout.result_file))
    return attempt if there else None


def about_to_publish(ctx: Context, *, within: float) -> bool:
    """Return whether a merge has ended its Spark run in the last seconds and has not published yet."""
    attempt = prepared(ctx)
    written = ctx.landing.written_at(layout.result_file(ctx.name, attempt)) if attempt else None
    return written is not None and datetime.now(UTC) - written < timedelta(seconds=within)


def built_share(load: LoadRecord, through: Lsn | None, end: Lsn) -> tuple[str, int, int]:
    """Say which part of the WAL since its copy a table holds that is built, as `ctx.stage` takes it; its copy is a part, too."""
    done = 0 if through is None else int(through) - int(load.lsn) + 1
    return f"building {load.qualified}", done, int(end) - int(load.lsn) + 1


def watched(ctx: Context, attempt: str) -> AbstractContextManager[None]:
    """Tell `ctx.stage` how many rows of an attempt are merged, for as long as the block runs."""
    path = layout.progress_file(ctx.name, attempt)

    def rows_merged() -> Done | None:
        if not ctx.landing.exists(path):
            return None
        said = json.loads(ctx.landing.read_text(path))
        return said["rows"], said["rows_due"], said["rows"]

    return spark_job.watched(ctx, "merging", rows_merged)
