"""Changelog: fill an interval of commit time in every table's append-only history, from the landing zone alone.

An interval is filled when capture has passed its end, and replaced as a whole each time: killed anywhere, started
twice or out of order, it ends the same. Spark prepares, the pointers move in one step.
"""

from datetime import UTC, datetime

from penstock.errors import LakeError
from penstock.flow import landing_mark
from penstock.flow.changelog import coverage, late_changes
from penstock.flow.changelog.coverage import Interval
from penstock.flow.changelog.table_plan import table_orders
from penstock.flow.context import Context
from penstock.flow.spark_job import SparkJob, Submit, answer, carried_out, catalog_secrets, describe, plan_frame
from penstock.jobs.plans import ChangelogPlan, ChangelogResult
from penstock.landing import layout
from penstock.ledger import new_attempt
from penstock.ledger.changelogs import FillRecord
from penstock.units import several

WORK = "changelog"


def fill(ctx: Context, interval: Interval, submit: Submit, *, wait: float = 0) -> FillRecord:
    """Replace the interval in every changelog; one fill of a pipeline at a time, after waiting at most `wait` seconds.

    Raises LedgerError: "interval-invalid", "interval-gone", "interval-not-captured", "work-under-way"; LakeError.
    """
    with ctx.ledger.locks.hold(ctx.name, WORK, wait=wait):
        attempt = plan(ctx, interval)
        carried_out(ctx, submit, job(ctx, attempt))
        return publish(ctx, attempt)


def waiting(ctx: Context, interval: Interval) -> str | None:
    """Say what an interval still waits for, None when it can be filled.

    Raises LedgerError: "interval-invalid", "interval-gone".
    """
    return coverage.verdict(ctx, ctx.ledger.changelogs.history(ctx.name), interval).waiting


def precedes(ctx: Context, interval: Interval) -> bool:
    """Return whether an interval was over before the pipeline began, so that it need not be filled."""
    known = ctx.ledger.changelogs.history(ctx.name)
    return (
        known.from_the_start
        and known.known_era == 1
        and known.known_from is not None
        and interval.end <= known.known_from
    )


def plan(ctx: Context, interval: Interval) -> str:
    """Write the orders of a new attempt at the interval; return the attempt."""
    coverage.require_valid(interval, datetime.now(UTC))
    landing_mark.require(ctx)
    work = ctx.ledger.changelogs.interval_work(ctx.name, from_time=interval.start, upto_time=interval.end)
    through = coverage.require(ctx, work.history, interval)
    attempt = new_attempt()
    orders = ChangelogPlan(
        from_time=interval.start,
        upto_time=interval.end,
        through_lsn=through,
        tables=table_orders(ctx, work, interval),
        **plan_frame(ctx, attempt, work.history.era),
    )
    ctx.landing.write_text(layout.plan_file(ctx.name, attempt), orders.dumps())
    files = sum(len(table.files) for table in orders.tables)
    ctx.progress(
        f"{interval}: {several(files, 'landing file')} may hold changes, of {several(len(orders.tables), 'table')}"
    )
    return attempt


def job(ctx: Context, attempt: str) -> SparkJob:
    """Describe the Spark application that carries out an attempt."""
    plan, result = layout.plan_file(ctx.name, attempt), layout.result_file(ctx.name, attempt)
    return describe(ctx, "changelog_tables", plan, catalog_secrets(ctx), result=result)


def publish(ctx: Context, attempt: str) -> FillRecord:
    """Move the changelogs to what Spark prepared, and note the interval; raises LakeError for a table left behind."""
    orders = ChangelogPlan.loads(ctx.landing.read_text(layout.plan_file(ctx.name, attempt)))
    result = answer(ctx.landing, layout.result_file(ctx.name, attempt), ChangelogResult)
    filled = ctx.ledger.changelogs.fill(
        ctx.name,
        orders,
        result.tables,
        catalog=ctx.catalog,
        called=ctx.pipeline.changelog_target,
    )
    ctx.progress(f"{Interval(orders.from_time, orders.upto_time)}: {several(filled.rows, 'change')}")
    late_changes.notice_fill(ctx, filled)
    for table in result.tables:
        if table.paused_slug:
            raise LakeError(table.paused_slug, table.paused_reason or "")
    return filled
