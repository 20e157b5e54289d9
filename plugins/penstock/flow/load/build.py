"""Build fresh tables from copies and landed windows, chunk by chunk, next to the tables that readers see.

Every chunk is a Spark run of its own: planned, written down, submitted, published. To publish is to move the fresh table's
pointer and the ledger's row together, so a run that is killed anywhere loses at most its chunk.
"""

from collections.abc import Sequence

from penstock.errors import LakeError
from penstock.flow.context import Context
from penstock.flow.merge import run as merge
from penstock.flow.spark_job import Submit, carried_out
from penstock.jobs.plans import MergeResult, TableResult
from penstock.landing import layout
from penstock.ledger.table_records import LoadRecord


def build(ctx: Context, ids: Sequence[str], submit: Submit) -> None:
    """Bring these rebuilds as far as the pipeline is now, or to their goals.

    Raises LakeError("rebuild-given-up") for tables that cannot be built, when the others are.
    """
    lost: list[str] = []
    for run in sorted({each.run for each in _building(ctx, ids) if each.run is not None}):
        lost += _take_over(ctx, run)
    while loads := _building(ctx, ids):
        lost += _build_chunks(ctx, loads, submit)
    if lost:
        raise LakeError("rebuild-given-up", "; ".join(lost))


def _build_chunks(ctx: Context, loads: Sequence[LoadRecord], submit: Submit) -> list[str]:
    """Build the next chunk of each; return why some were given up: they are over, and no other waits for them."""
    orders, lost = merge.plan_chunks(ctx, loads)
    if orders is None:
        return lost
    attempt = orders.attempt
    if any(table.files or table.copy_files is not None for table in orders.tables):
        carried_out(ctx, submit, merge.job(ctx, attempt))
    else:  # there is no change to bring: Spark is not needed for that
        unmoved = [TableResult(each.oid, each.target, None, each.expected_snapshot, {}, 0) for each in orders.tables]
        result = MergeResult(ctx.name, attempt, orders.upto_lsn, tuple(unmoved), None, None, 0)
        ctx.landing.write_text(layout.result_file(ctx.name, attempt), result.dumps())
    return [*lost, *merge.publish_chunks(ctx, attempt)]


def _take_over(ctx: Context, run: str) -> list[str]:
    """Take over what Spark had prepared for a process that died, unless the fresh table has changed since; return why some were given up."""
    try:
        return merge.publish_chunks(ctx, run)
    except LakeError as error:
        if error.slug != "publish-conflict":
            raise
        ctx.progress(f"run {run} of a dead process is of no use: its chunk is built again")
        return []


def _building(ctx: Context, ids: Sequence[str]) -> list[LoadRecord]:
    return [each for each in ctx.ledger.loads.builds(ctx.name, states=["building"]) if each.id in ids]
