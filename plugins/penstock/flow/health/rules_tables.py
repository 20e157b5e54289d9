"""The rules for tables, and for the work on them beside the main job: copies, maintenance, changelogs, verifications. Pure.

A table may stand still, or a comparison or a merge says that rows of it may be wrong.

A verdict on rows stays until all that is in question has been seen to be equal, or the table was copied since. It says how many
rows, which columns and at which position, never a value.
"""

from collections.abc import Iterator
from datetime import datetime

from penstock.conditions import needs_copy
from penstock.flow.check import seconds_between
from penstock.flow.context import on_change
from penstock.flow.health.input import HealthInput
from penstock.ledger.health import Finding
from penstock.ledger.table_records import TableRecord
from penstock.units import several, span

_PAUSES = 2
_OWN_ALARMS = ("verify-differs", "verify-unreadable")  # what verify found is no failure of verify


def paused(facts: HealthInput) -> Iterator[Finding]:
    """Report every table that is paused."""
    for each in facts.still:
        if each.state == "paused":
            said = f"{each.qualified} is paused by {each.paused_slug}: {each.paused_reason}"
            step = f"its changes are landed, readers keep the last cut; {_way_out(facts, each)}"
            yield Finding("table-paused", each.qualified, "warn", said, step, {"reason": each.paused_slug})


def _way_out(facts: HealthInput, table: TableRecord) -> str:
    if not needs_copy(table.remedy):
        return f"fix it, then trigger {facts.name}.{'resync' if table.remedy == 'person' else 'resume'}"
    if on_change(facts.pipeline, table.schema, table.name) == "pause":
        return f"trigger {facts.name}.resync, which copies it again"
    return f"{facts.name}.resync copies it again by itself"


def differing(facts: HealthInput) -> Iterator[Finding]:
    """Report tables that differ, until a later comparison has seen them equal, with the counts of the newest look at what differed."""
    for table in facts.verified:
        if not table.differs:
            continue
        subject = f"{table.schema}.{table.name}"
        said = (
            f"source and lake differ in {subject} at {table.differing_lsn}: {table.missing} rows missing in the lake, "
            f"{table.extra} too many, {table.different} different"
        )
        numbers = {
            "lsn": str(table.differing_lsn),
            "missing": table.missing,
            "extra": table.extra,
            "different": table.different,
            "verification": table.verification,
        }
        step = "readers see wrong rows until the table is repaired and a later verification finds it equal"
        yield Finding("verify-differs", subject, "critical", said, step, numbers, table.differing_at)


def unreadable(facts: HealthInput) -> Iterator[Finding]:
    """Report tables of which the newest comparison could not read a side."""
    for table in facts.verified:
        if table.outcome == "unreadable":
            subject, lsn = f"{table.schema}.{table.name}", str(table.compared_lsn)
            said = f"{subject} could not be compared at {lsn}: {table.reason}"
            step = "nothing is known of its rows until a later verification has read it"
            yield Finding("verify-unreadable", subject, "critical", said, step, {"lsn": lsn}, table.compared_at)


def suspected(facts: HealthInput) -> Iterator[Finding]:
    """Report tables that may have diverged: changes met other rows than they should."""
    for table in facts.verified:
        if not table.suspected:
            continue
        subject = f"{table.schema}.{table.name}"
        counts = ", ".join(f"{name} {count}" for name, count in table.conflicts.items())
        said = f"changes of {subject} met other rows in the lake than at the source since its copy: {counts}"
        numbers = {**table.conflicts, "lsn": str(table.conflict_lsn)}
        step = "readers may see wrong rows until the table is compared and found equal, or resynced"
        yield Finding("divergence-suspected", subject, "critical", said, step, numbers)


COMPARED = {
    differing: frozenset({"verify-differs"}),
    unreadable: frozenset({"verify-unreadable"}),
    suspected: frozenset({"divergence-suspected"}),
}
"""The rules for rows that may be wrong, each with its alarm: verifications and merges bring these up to date as well."""


def resync(facts: HealthInput) -> Iterator[Finding]:
    """Report tables that wait for a copy which fails, or whose DAG is paused."""
    dag = f"{facts.name}.resync"
    waiting = [each for each in facts.still if each.waits]
    open_ones = [each for each in facts.copies if each.kind == "resync"]
    if not (waiting or open_ones) or facts.lake is None or facts.lake.state != "running":
        return
    wait = (
        f"{several(len(waiting), 'table')} waiting for a copy"
        if waiting
        else f"{several(len(open_ones), 'table')} copied only in part"
    )
    step = "readers keep what they have; the copy continues where it stopped when the DAG runs"
    numbers = {"waiting": len(waiting), "open": len(open_ones)}
    if failed := facts.failing("resync"):
        said, run, since = failed
        yield Finding("resync-failing", dag, "warn", f"{said}, and {wait}", step, {**numbers, **run}, since)
    elif facts.dag("resync").paused:
        yield Finding("resync-failing", dag, "warn", f"{dag} is paused, and {wait}", f"{step}; unpause it", numbers)


def copies(facts: HealthInput) -> Iterator[Finding]:
    """Report a copy or a rebuild that has not got on for long."""
    patience = facts.policy.watch.stalled_copy
    for each in facts.copies:
        still = facts.age(each.moved_at)
        level = facts.level("copy-stalled", f"{each.kind} {each.id}", still, patience)
        if level:
            verb = "bootstrap" if each.kind == "copy" else "replay" if each.kind == "shadow" else each.kind
            dag = f"{facts.name}.{verb}"
            said = f"the {each.kind} {each.id} has not got on for {span(still)}: {several(each.tables, 'table')} still to be copied"
            step = f"see the newest run of {dag}; triggered again it continues where it stopped"
            numbers = {"tables": each.tables, "still_seconds": round(still)}
            yield Finding("copy-stalled", f"{each.kind} {each.id}", level, said, step, numbers, each.moved_at)


def maintain(facts: HealthInput) -> Iterator[Finding]:
    """Report maintenance that fails, is paused, or has not come to its end for two schedules."""
    step = "small files, deleted rows and old files pile up: reads get slower, the lake grows"
    settings = facts.pipeline.maintain
    yield from _late(facts, "maintain", facts.late.maintained_at, settings.schedule, settings.time_budget, step=step)


def changelog(facts: HealthInput) -> Iterator[Finding]:
    """Report changelogs that are not filled any more; one that never was is not missed while its DAG is paused."""
    filled, settings = facts.late.filled_upto, facts.pipeline.changelog
    if not settings.tables.include or (filled is None and facts.dag("changelog").paused is not False):
        return
    step = "readers of changelogs lack the newest intervals; they can be filled while the landing zone holds them"
    yield from _late(facts, "changelog", filled, settings.schedule, settings.wait, step=step)


def verify(facts: HealthInput) -> Iterator[Finding]:
    """Report verifications that fail, are paused, or have not come to their end for two schedules."""
    step, settings = "nobody compares source and lake: a difference would stay unseen", facts.pipeline.verify
    yield from _late(facts, "verify", facts.late.verified_at, settings.schedule, settings.wait, step=step)


def _late(
    facts: HealthInput, verb: str, done: datetime | None, schedule: str | None, grace: int, *, step: str
) -> Iterator[Finding]:
    """Report scheduled work that fails, or was not done for two schedules."""
    pause, lake = seconds_between(schedule), facts.lake
    if pause is None or lake is None or lake.state != "running":
        return
    slug, dag, failed, since = f"{verb}-overdue", f"{facts.name}.{verb}", facts.failing(verb), done or lake.created_at
    last = f"it was last done {span(facts.age(done))} ago" if done else "it was never done"
    if failed and failed[1]["error"] not in _OWN_ALARMS:
        said, run, began = failed
        yield Finding(slug, dag, "warn", f"{said}; {last}", step, run, began)
    elif facts.age(since) >= _PAUSES * pause + grace:
        why = "is paused" if facts.dag(verb).paused else "has not come to its end"
        said = f"{dag} {why}; {last}, and is scheduled every {span(pause)}"
        yield Finding(slug, dag, "warn", said, step, {"age_seconds": round(facts.age(since))}, since)
