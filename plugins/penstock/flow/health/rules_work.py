"""The rules for work beside the main job: copies, resyncs, maintenance, changelogs, verifications. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from penstock.flow.check import seconds_between
from penstock.flow.health.findings import Finding
from penstock.flow.health.input import HealthInput
from penstock.flow.health.rules_lake import fails, ran
from penstock.units import several, span

_PAUSES = 2
_OWN_ALARMS = ("verify-differs", "verify-unreadable")  # what verify found is no failure of verify


def resync(facts: HealthInput) -> Iterator[Finding]:
    """Report tables that wait for a copy which fails, or whose DAG is paused."""
    dag, failed = f"{facts.name}.resync", facts.failing("resync")
    waiting = [each for each in facts.ledger.still if each.waits]
    open_ones = [each for each in facts.ledger.copies if each.kind == "resync"]
    if not (waiting or open_ones) or facts.ledger.lake is None or facts.ledger.lake.state != "running":
        return
    wait = (
        f"{several(len(waiting), 'table')} waiting for a copy"
        if waiting
        else f"{several(len(open_ones), 'table')} copied only in part"
    )
    step = "readers keep what they have; the copy continues where it stopped when the DAG runs"
    numbers = {"waiting": len(waiting), "open": len(open_ones)}
    if failed is not None:
        said = f"{dag} {fails(facts, failed)}, and {wait}"
        yield Finding("resync-failing", dag, "warn", said, step, {**numbers, **ran(dag, failed)}, failed.failing_since)
    elif facts.dag("resync").paused:
        yield Finding("resync-failing", dag, "warn", f"{dag} is paused, and {wait}", f"{step}; unpause it", numbers)


def copies(facts: HealthInput) -> Iterator[Finding]:
    """Report a copy or a rebuild that has not got on for long."""
    patience = facts.policy.watch.stalled_copy
    for each in facts.ledger.copies:
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
    yield from _late(
        facts, "maintain", facts.ledger.late.maintained_at, settings.schedule, settings.time_budget, step=step
    )


def changelog(facts: HealthInput) -> Iterator[Finding]:
    """Report changelogs that are not filled any more; one that never was is not missed while its DAG is paused."""
    filled, settings = facts.ledger.late.filled_upto, facts.pipeline.changelog
    if not settings.tables.include or (filled is None and facts.dag("changelog").paused is not False):
        return
    step = "readers of changelogs lack the newest intervals; they can be filled while the landing zone holds them"
    yield from _late(facts, "changelog", filled, settings.schedule, settings.wait, step=step)


def verify(facts: HealthInput) -> Iterator[Finding]:
    """Report verifications that fail, are paused, or have not come to their end for two schedules."""
    step, settings = "nobody compares source and lake: a difference would stay unseen", facts.pipeline.verify
    yield from _late(facts, "verify", facts.ledger.late.verified_at, settings.schedule, settings.wait, step=step)


def _late(
    facts: HealthInput, verb: str, done: datetime | None, schedule: str | None, grace: int, *, step: str
) -> Iterator[Finding]:
    """Report scheduled work that fails, or was not done for two schedules."""
    pause, lake = seconds_between(schedule), facts.ledger.lake
    if pause is None or lake is None or lake.state != "running":
        return
    slug, dag, failed, since = f"{verb}-overdue", f"{facts.name}.{verb}", facts.failing(verb), done or lake.created_at
    last = f"it was last done {span(facts.age(done))} ago" if done else "it was never done"
    if failed is not None and failed.slug not in _OWN_ALARMS:
        began = failed.failing_since or failed.ended_at
        said = f"{dag} {fails(facts, failed)}; {last}"
        yield Finding(slug, dag, "warn", said, step, ran(dag, failed), began)
    elif facts.age(since) >= _PAUSES * pause + grace:
        why = "is paused" if facts.dag(verb).paused else "has not come to its end"
        said = f"{dag} {why}; {last}, and is scheduled every {span(pause)}"
        yield Finding(slug, dag, "warn", said, step, {"age_seconds": round(facts.age(since))}, since)
