"""One attempt at a merge: the files of its orders and of Spark's answer, and whether it is prepared and not published."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from penstock.errors import LakeError
from penstock.flow.context import Context
from penstock.jobs.merge_plan import MergeResult
from penstock.landing import layout


def read_result(ctx: Context, attempt: str) -> MergeResult:
    """Return what Spark answered to an attempt; raises LakeError("spark-failed") where it gave no answer."""
    path = layout.result_file(ctx.name, attempt)
    if not ctx.landing.exists(path):
        raise LakeError("spark-failed", f"expected Spark's result of attempt {attempt} in the landing zone, found none")
    result = MergeResult.loads(ctx.landing.read_text(path))
    if (result.pipeline, result.attempt) != (ctx.name, attempt):
        raise LakeError("spark-failed", f"expected the result of {ctx.name} {attempt}, got that of {result.attempt}")
    return result


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
