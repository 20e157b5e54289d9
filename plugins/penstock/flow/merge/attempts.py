"""One attempt at a cut, or at a chunk of a build: its orders and Spark's answer, how far it is, and whether it waits to be published.

The driver says in a small file how many changes it has brought.
"""

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from penstock.errors import LakeError, Trouble
from penstock.flow import watching
from penstock.flow.context import Context
from penstock.flow.spark_job import answer
from penstock.flow.watching import Done
from penstock.jobs.merge_plan import MergePlan, MergeResult
from penstock.jobs.pointers import Pointer
from penstock.landing import layout
from penstock.ledger.table_records import LoadRecord
from penstock.lsn import Lsn


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


def read_orders(ctx: Context, attempt: str) -> MergePlan:
    """Return what Spark was ordered to do by an attempt."""
    return MergePlan.loads(ctx.landing.read_text(layout.plan_file(ctx.name, attempt)))


def is_answered(ctx: Context, attempt: str) -> bool:
    """Return whether Spark has come to the end of an attempt."""
    return ctx.landing.exists(layout.result_file(ctx.name, attempt))


def read_attempt(ctx: Context, attempt: str) -> Attempt:
    """Return the orders of an attempt and Spark's answer; raises LakeError("spark-failed") where it gave none."""
    result = answer(ctx.landing, layout.result_file(ctx.name, attempt), MergeResult)
    if (result.pipeline, result.attempt) != (ctx.name, attempt):
        raise LakeError("spark-failed", f"expected the result of {ctx.name} {attempt}, got that of {result.attempt}")
    return Attempt(read_orders(ctx, attempt), result)


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

    return watching.watched(ctx, "merging", rows_merged)
