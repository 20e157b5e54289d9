"""Merge: decide what is due, give Spark its orders, and publish what Spark prepared as one cut.

Spark prepares, `publish` moves. An attempt that was overtaken can never publish, even if its Spark application outlived its task.
"""

from penstock.flow.context import Context
from penstock.flow.merge.attempts import job, merge_lock, watched
from penstock.flow.merge.due import due
from penstock.flow.merge.plan import plan, plan_chunks
from penstock.flow.merge.publish import publish, publish_chunks
from penstock.flow.spark_job import Submit, carried_out


def merge(ctx: Context, submit: Submit, *, force: bool = False, last: bool = False) -> str | None:
    """Merge what is due and publish it, under the lock of the lake; return the attempt, or None when nothing was due.

    `force` and `last` are as in `plan`. Raises what `plan`, Spark and `publish` raise, and LedgerError("work-under-way").
    """
    with merge_lock(ctx):
        attempt = prepare(ctx, submit, force=force, last=last)
        if attempt is not None:
            publish(ctx, attempt, last=last)
        return attempt


def prepare(ctx: Context, submit: Submit, *, force: bool = False, last: bool = False) -> str | None:
    """Let Spark prepare what is due; nothing becomes visible. Return the attempt to publish, or None."""
    attempt = plan(ctx, force=force, last=last)
    if attempt is not None:
        with watched(ctx, attempt):
            carried_out(ctx, submit, job(ctx, attempt))
    return attempt


__all__ = ["due", "job", "merge", "merge_lock", "plan", "plan_chunks", "prepare", "publish", "publish_chunks"]
