"""Check: ask the source whether it is ready for a pipeline, and say it so that a person can act on it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import cache
from itertools import islice, pairwise

from croniter import croniter

from penstock.config.policy import Health
from penstock.errors import LakeError, LedgerError, SourceError
from penstock.flow import landing_mark
from penstock.flow.context import Context
from penstock.ledger.pipelines import taken
from penstock.ledger.table_records import TableRecord
from penstock.shapes.mirror_column import present
from penstock.source import preflight, session, types
from penstock.source.preflight.findings import Finding

__all__ = ["Finding", "check", "failures", "require"]

UNKNOWN = ("ledger-not-migrated", "not-bootstrapped")
"""What the ledger says of a pipeline that it does not know."""


def check(ctx: Context) -> list[Finding]:
    """Return every finding of the preflight, the good ones too; raises SourceError when the source cannot be asked."""
    with session.connect(ctx.source, what=f"{ctx.name}:check") as conn, _reader(ctx) as reader:
        asked = preflight.check(
            conn,
            ctx.pipeline,
            reader=reader,
            schedule_seconds=seconds_between(ctx.pipeline.capture.schedule),
            own_slot=_owns_slot(ctx),
        )
    return [*asked, *_places(ctx), *_types(ctx), notified(ctx.pipeline.health)]


def _reader(ctx: Context) -> AbstractContextManager[session.SourceSession | None]:
    if ctx.pipeline.source.reader_connection is None:
        return nullcontext()
    return session.connect(ctx.reader, what=f"{ctx.name}:check")


def notified(health: Health) -> Finding:
    """Return whether a person is notified of alarms; by default no one is."""
    if not health.without_channel:
        return Finding("ok", "alert-undelivered", "alerts", "alarms of both levels have a channel")
    return Finding(
        "warn",
        "alert-undelivered",
        "alerts",
        f"expected channels that notify a person, got none for the level {' and '.join(health.without_channel)}: these alarms are only "
        "in the ledger, in the log of slot_health and on the page",
        "set "
        + " and ".join(f"health.{level}.channels" for level in health.without_channel)
        + " to Airflow connections with "
        "apprise URLs in their password, and give health.schedule a cron",
    )


@cache
def seconds_between(schedule: str | None) -> int | None:
    """Return the longest of the next pauses between two runs of a cron schedule, in seconds; None without one."""
    if schedule is None:
        return None
    ticks = islice(croniter(schedule, datetime(2026, 1, 1, tzinfo=UTC), ret_type=datetime), 50)
    return max(int((later - earlier).total_seconds()) for earlier, later in pairwise(ticks))


def _places(ctx: Context) -> Iterator[Finding]:
    """Find another pipeline in the lake's namespace, a landing zone that is not the pipeline's, or one that cannot be asked."""
    place = ctx.pipeline.lake_place
    with unless_unknown():
        if other := ctx.ledger.pipelines.in_place(ctx.name, place):
            yield Finding("error", "config-invalid", "lake.namespace", taken(ctx.name, place, other), "set another")
        try:
            landing_mark.require(ctx)
        except LakeError as error:
            yield Finding("error", error.slug, "landing.uri", error.message, error.runbook)


@contextmanager
def unless_unknown() -> Iterator[None]:
    """Pass over what a ledger that is not there, or does not know the pipeline, cannot be asked; other errors are raised."""
    try:
        yield
    except LedgerError as error:
        if error.slug not in UNKNOWN:
            raise


def _types(ctx: Context) -> Iterator[Finding]:
    """Find tables in which the lake has another type of a column than the pipeline file asks for."""
    records = list[TableRecord]()
    with unless_unknown():
        records = [each for each in ctx.ledger.tables.all(ctx.name) if each.state != "dropped"]
    for record in records:
        wanted = {
            column.name: types.is_text(ctx.pipeline, (record.schema, record.name), column.name, column.type)
            for column in present(record.columns)
        }
        other = [column.name for column in present(record.columns) if wanted[column.name] != column.as_text]
        if other:
            yield Finding(
                "warn",
                "config-invalid",
                record.qualified,
                f"tables.columns asks for another type of {', '.join(other)} than the lake has: a table takes it with its next copy",
                f"run: penstock resync {ctx.name} --table {record.qualified} --no-dry-run",
            )


def _owns_slot(ctx: Context) -> bool:
    """Return whether a slot of the pipeline's name is known to be ours: a bootstrap has made it, or was about to."""
    record = None
    with unless_unknown():
        record = ctx.ledger.pipelines.get(ctx.name)
    return record is not None and record.slot_intent_at is not None and record.state != "torn_down"


def failures(findings: list[Finding]) -> list[Finding]:
    """Return the findings that forbid a bootstrap."""
    return [finding for finding in findings if finding.level == "error"]


def require(ctx: Context) -> list[Finding]:
    """Check, report every finding as progress, and raise SourceError("preflight-failed") if one forbids a bootstrap."""
    findings = check(ctx)
    for finding in findings:
        ctx.progress(line(finding))
    failed = failures(findings)
    if failed:
        slug = failed[0].slug if len(failed) == 1 else "preflight-failed"
        raise SourceError(slug, f"{len(failed)} findings forbid a bootstrap: " + "; ".join(map(line, failed)))
    return findings


def line(finding: Finding) -> str:
    """Return a finding as one line: how bad, what about, what came, what to do."""
    step = f" -> {finding.next_step}" if finding.next_step else ""
    return f"{finding.level.upper():5} {finding.subject}: {finding.message}{step}"
