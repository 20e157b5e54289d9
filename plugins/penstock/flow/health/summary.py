"""The daily summary: how fresh the lake is, what was done, what changed, what was dropped, what is verified.

It is sent once for each time of `health.summary`, whichever run of slot health comes first after it.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from croniter import croniter

from penstock.flow.context import Context
from penstock.flow.health.alerts import Delivery
from penstock.ledger.health import AlarmRecord
from penstock.ledger.page import Shown
from penstock.ledger.records import TableWork
from penstock.printable import printable
from penstock.units import several, span

SCHEMA = ("schema-followed", "schema-change", "table-added", "table-removed")
DROPPED = ("slot-dropped", "slot-abandoned", "slot-orphaned")
_NAMED = 5
Send = Callable[[str, str], Delivery]
"""Sends a title and a text to the channels of the level info."""


def due(schedule: str, now: datetime) -> tuple[datetime, datetime]:
    """Return the newest time of a schedule, and the one before it."""
    ticks = croniter(schedule, now, ret_type=datetime)
    newest = ticks.get_prev() if not croniter.match(schedule, now) else now.replace(second=0, microsecond=0)
    return newest, croniter(schedule, newest, ret_type=datetime).get_prev()


def send_summary(ctx: Context, send: Send, now: datetime | None = None) -> bool:
    """Send the summary that is due, if no other run has; return whether it was sent. Raises LedgerError."""
    policy, now = ctx.pipeline.health, now or datetime.now(UTC)
    if policy.summary is None or not policy.info.channels:
        return False
    newest, before = due(policy.summary, now)
    summaries = ctx.ledger.summaries
    if not summaries.claim(ctx.name, due=newest, at=now):
        return False
    alarms = [alarm for alarm in ctx.ledger.health.alarms(ctx.name) if alarm.closed_at is None]
    state = several(len(alarms), "open alarm") if alarms else "all is well"
    text = "\n".join(printable(f"{name}: {value}") for name, value in _lines(ctx, now, before, alarms))
    delivery = send(f"[penstock] summary: {ctx.name}, {state}", text)
    for failure in delivery.failures:
        ctx.progress(f"[alert-undelivered] {failure}")
    summaries.end(ctx.name, due=newest, sent_at=now if delivery.taken else None)
    return bool(delivery.taken)


def _lines(ctx: Context, now: datetime, since: datetime, alarms: Sequence[AlarmRecord]) -> Iterator[tuple[str, str]]:
    """Read what a summary tells, as labelled lines; what has nothing to tell says so, so that its absence means nothing else."""
    name, ledger = ctx.name, ctx.ledger
    with ledger.session(), ledger.page.panels() as panel:
        (lake,) = panel.pipelines(name)
        schema = panel.events(name, since=since, slugs=SCHEMA, limit=None)[::-1]
        dropped = panel.events(name, since=since, slugs=DROPPED, limit=None)[::-1]
        work, tables = ledger.summaries.work(name, since=since), ledger.merges.table_work(name, since=since)
    yield "since", f"{since:%F %T} UTC"
    ready = f"{lake.tables_ready} of {several(lake.tables, 'table')} ready"
    yield "state", f"{lake.state}, {ready}, {lake.tables_paused} paused"
    fresh = lake.as_of or lake.cut_at
    behind = span((now - fresh).total_seconds()) if fresh else None
    yield "freshness", f"readers see the source as it was {behind} ago" if behind else "there is no cut yet"
    yield "rows", f"{several(work.captured, 'change')} captured, {several(work.cuts, 'cut')}: {_sum(tables)}"
    for table in tables[:_NAMED]:
        yield "slow table", f"{table.qualified}: {span(table.seconds)} of merges, {_sum([table])}"
    yield from _news("schema change", schema)
    yield from _news("dropped", dropped)
    compared = f"{work.equal:,} tables or shares found equal, {work.unequal:,} not"
    yield "verified", f"{compared}; {work.verified_tables} of {several(lake.tables, 'table')} verified whole"
    for alarm in alarms:
        yield "open alarm", f"{alarm.slug} {alarm.subject}, for {span((now - alarm.opened_at).total_seconds())}"


def _sum(tables: Sequence[TableWork]) -> str:
    parts = {name: sum(getattr(table, name) for table in tables) for name in ("inserts", "updates", "deletes")}
    return ", ".join(f"{count:,} {name}" for name, count in parts.items())


def _news(label: str, news: Sequence[Shown]) -> Iterator[tuple[str, str]]:
    for each in news[: 2 * _NAMED]:
        yield label, f"{each['table']}: {each['message']}" if each["table"] else each["message"]
    if len(news) > 2 * _NAMED:
        yield label, f"and {len(news) - 2 * _NAMED} more"
    if not news:
        yield label, "none"
