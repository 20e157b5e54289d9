"""The rules for work beside the main job: copies, resyncs, maintenance, changelogs, verifications. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from penstock.flow.check import seconds_between
from penstock.flow.health.findings import Finding
from penstock.flow.health.input import Standing
from penstock.flow.health.limits import level_of
from penstock.flow.health.rules_lake import fails, ran
from penstock.units import several, span

_PAUSES = 2
_OWN_ALARMS = ("verify-differs", "verify-unreadable")  # what verify found is no failure of verify


def resync(now: Standing) -> Iterator[Finding]:
    """Report tables that wait for a copy which fails, or whose DAG is paused."""
    dag, failed = f"{now.pipeline.name}.resync", now.failing("resync")
    waiting = [f"{each.schema}.{each.name}" for each in now.still if each.state == "new"]
    open_ones = [each for each in now.copies if each.kind == "resync"]
    if not (waiting or open_ones) or now.lake is None or now.lake.state != "running":
        return
    wait = (
        f"{several(len(waiting), 'table')} waiting for a copy"
        if waiting
        else f"{several(len(open_ones), 'table')} copied only in part"
    )
    step = "readers keep what they have; the copy continues where it stopped when the DAG runs"
    numbers = {"waiting": len(waiting), "open": len(open_ones)}
    if failed is not None:
        said = f"{dag} {fails(now, failed)}, and {wait}"
        yield Finding("resync-failing", dag, "warn", said, step, {**numbers, **ran(dag, failed)}, failed.failing_since)
    elif now.dag("resync").paused:
        yield Finding("resync-failing", dag, "warn", f"{dag} is paused, and {wait}", f"{step}; unpause it", numbers)


def copies(now: Standing) -> Iterator[Finding]:
    """Report a copy or a rebuild that has not got on for long."""
    patience = now.pipeline.health.watch.stalled_copy
    for each in now.copies:
        still = now.age(each.moved_at)
        held = now.held("copy-stalled", f"{each.kind} {each.id}")
        level = level_of(still, patience, None, held=held, hysteresis=now.pipeline.health.hysteresis)
        if level:
            verb = "bootstrap" if each.kind == "copy" else "replay" if each.kind == "shadow" else each.kind
            dag = f"{now.pipeline.name}.{verb}"
            said = f"the {each.kind} {each.id} has not got on for {span(still)}: {several(each.tables, 'table')} still to be copied"
            step = f"see the newest run of {dag}; triggered again it continues where it stopped"
            numbers = {"tables": each.tables, "still_seconds": round(still)}
            yield Finding("copy-stalled", f"{each.kind} {each.id}", level, said, step, numbers, each.moved_at)


def maintain(now: Standing) -> Iterator[Finding]:
    """Report maintenance that fails, is paused, or has not come to its end for two schedules."""
    late = _late(
        now, "maintain", now.late.maintained_at, now.pipeline.maintain.schedule, now.pipeline.maintain.time_budget
    )
    if late:
        step = "small files, deleted rows and old files pile up: reads get slower, the lake grows"
        yield Finding("maintain-overdue", late.dag, "warn", late.said, step, late.numbers, late.since)


def changelog(now: Standing) -> Iterator[Finding]:
    """Report changelogs that are not filled any more; one that never was is not missed while its DAG is paused."""
    filled, settings = now.late.filled_upto, now.pipeline.changelog
    if not settings.tables.include or (filled is None and now.dag("changelog").paused is not False):
        return
    late = _late(now, "changelog", filled, settings.schedule, settings.wait)
    if late:
        step = "readers of changelogs lack the newest intervals; they can be filled while the landing zone holds them"
        yield Finding("changelog-overdue", late.dag, "warn", late.said, step, late.numbers, late.since)


def verify(now: Standing) -> Iterator[Finding]:
    """Report verifications that fail, are paused, or have not come to their end for two schedules."""
    late = _late(now, "verify", now.late.verified_at, now.pipeline.verify.schedule, now.pipeline.verify.wait)
    if late:
        step = "nobody compares source and lake: a difference would stay unseen"
        yield Finding("verify-overdue", late.dag, "warn", late.said, step, late.numbers, late.since)


class _Late:
    """Hold why scheduled work counts as late."""

    def __init__(self, dag: str, said: str, numbers: dict[str, object], since: datetime) -> None:
        self.dag, self.said, self.numbers, self.since = dag, said, numbers, since


def _late(now: Standing, verb: str, done: datetime | None, schedule: str | None, grace: int) -> _Late | None:
    pause = seconds_between(schedule)
    if pause is None or now.lake is None or now.lake.state != "running":
        return None
    dag, failed, since = f"{now.pipeline.name}.{verb}", now.failing(verb), done or now.lake.created_at
    last = f"it was last done {span(now.age(done))} ago" if done else "it was never done"
    if failed is not None and failed.slug not in _OWN_ALARMS:
        began = failed.failing_since or failed.ended_at
        return _Late(dag, f"{dag} {fails(now, failed)}; {last}", ran(dag, failed), began)
    if now.age(since) < _PAUSES * pause + grace:
        return None
    why = "is paused" if now.dag(verb).paused else "has not come to its end"
    return _Late(
        dag, f"{dag} {why}; {last}, and is scheduled every {span(pause)}", {"age_seconds": round(now.age(since))}, since
    )
