"""The rules for the way to readers, which need no source: how old the lake is, and whether merges come. Pure.

And for what a pipeline stands on: room where files are written, and somebody who gets its alarms and watches its slot. `readiness`
opens no alarm: the page asks it.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from penstock.config.model import Pipeline
from penstock.flow.check import seconds_between
from penstock.flow.health.input import HealthInput
from penstock.ledger.health import Finding
from penstock.units import several, size, span

_PAUSES = 3
_LEAST = {"freshness": 1800, "merge": 900}
"""Limits that follow a schedule are not below this many seconds."""
_CRITICAL = 4
_SILENT_PAUSES = 3
_SILENT_LEAST = 600
NEEDED = {
    "capture": ("capture-paused", "nothing new is read from the source, and its slot keeps WAL"),
    "merge": ("merge-paused", "readers keep the last cut, however much is landed"),
    "slot_health": ("slot-unwatched", "nobody watches the WAL that the slot keeps, and no alarm opens"),
}
"""The DAGs without which a pipeline is not healthy: the runbook of each, and what follows while it is paused."""


def stale(facts: HealthInput) -> Iterator[Finding]:
    """Report a lake whose newest cut shows the source as it was long ago."""
    lake, name = facts.lake, facts.name
    since = None if lake is None else lake.as_of or lake.cut_at
    if lake is None or since is None or lake.state not in ("running", "halted") or not lake.tables:
        return
    warn, critical = freshness_limits(facts.pipeline)
    old = facts.age(since)
    level = facts.level("lake-stale", name, old, warn, critical)
    if level:
        limit = critical if level == "critical" else warn
        said = f"readers see the source as it was {span(old)} ago, the {level} limit is {span(limit)}"
        numbers = {"age_seconds": round(old), "limit_seconds": limit, "unmerged_changes": lake.unmerged_changes}
        if lake.unmerged_changes:
            step = f"{several(lake.unmerged_changes, 'change')} landed and not merged; a merge brings this"
        else:
            step = "nothing is landed since; captures bring the lake forward"
        yield Finding("lake-stale", name, level, said, step, numbers, since)


def freshness_limits(pipeline: Pipeline) -> tuple[int, int]:
    """Return the limits in force, in seconds: those of the file, else what follows from the pause between captures."""
    wanted, pause = pipeline.health.freshness, seconds_between(pipeline.capture.schedule) or 0
    warn = wanted.warn or max(_LEAST["freshness"], _PAUSES * pause)
    critical = wanted.critical or _CRITICAL * warn
    return min(warn, critical), critical


def merge(facts: HealthInput) -> Iterator[Finding]:
    """Report changes that wait for a merge which is paused, fails or does not come."""
    lake, dag = facts.lake, f"{facts.name}.merge"
    if lake is None or lake.state != "running" or lake.unmerged_since is None:
        return
    state, waiting = facts.dag("merge"), facts.age(lake.unmerged_since)
    waits = f"{several(lake.unmerged_changes, 'change')} waiting since {lake.unmerged_since:%F %T} UTC"
    numbers: dict[str, Any] = {"unmerged_changes": lake.unmerged_changes, "unmerged_bytes": lake.unmerged_bytes}
    patience = max(_LEAST["merge"], _PAUSES * (seconds_between(facts.pipeline.merge.schedule) or 0))
    step = "readers keep the last cut; nothing is lost"
    if state.paused:
        said = f"{dag} is paused, and {waits}"
        yield Finding("merge-paused", dag, "warn", said, f"{step}; unpause it", numbers, lake.unmerged_since)
    elif failed := facts.failing("merge"):
        said, run, since = failed
        yield Finding("merge-failing", dag, "warn", f"{said}, and {waits}", step, {**numbers, **run}, since)
    elif waiting >= patience and not state.under_way:
        why = "Airflow has no such DAG" if state.missing else f"no run of {dag} has taken them"
        said = f"{waits}, for {span(waiting)}, and {why}"
        yield Finding("merge-late", dag, "warn", said, f"{step}; trigger it", numbers, lake.unmerged_since)


def room(facts: HealthInput) -> Iterator[Finding]:
    """Report a disk of which little is free; what cannot be measured is said by the report."""
    least = facts.policy.watch.free_share
    for disk in facts.disks:
        if disk.free is None or not disk.total:
            continue
        used = least / max(disk.free / disk.total, 1e-9)
        level = facts.level("storage-nearly-full", disk.what, used, 1, _CRITICAL)
        if level:
            said = f"the disk of the {disk.what} has {size(disk.free)} free of {size(disk.total)}, below {least:.0%}"
            step = "at its end captures and merges fail; nothing that was staged is lost"
            numbers = {"free_bytes": disk.free, "total_bytes": disk.total, "place": disk.place}
            yield Finding("storage-nearly-full", disk.what, level, said, step, numbers)


def channels(facts: HealthInput) -> Iterator[Finding]:
    """Report that nobody hears critical alarms while warnings have a channel; where neither has, `check` and the page say so."""
    policy = facts.policy
    if policy.warn.channels and not policy.critical.channels:
        step = "they are in the ledger, in the log and on the page only; set health.critical.channels"
        yield Finding("alerts-unheard", "critical", "warn", "alarms of the level critical have no channel", step)


def watched(facts: HealthInput) -> Iterator[Finding]:
    """Report that slot health itself is paused or silent; whoever else runs can tell."""
    pause, sampled = seconds_between(facts.policy.schedule), facts.late.sampled_at
    dag = f"{facts.name}.slot_health"
    if pause is None:
        return
    step = "the slot is not watched: the WAL that it keeps may fill the source's disk, and no other alarm opens"
    silent = facts.age(sampled) if sampled else 0
    if facts.dag("slot_health").paused:
        yield Finding("slot-unwatched", dag, "critical", f"{dag} is paused", f"{step}; unpause it")
    elif silent >= _SILENT_PAUSES * pause + _SILENT_LEAST:
        said = f"{dag} has not looked for {span(silent)}, and is scheduled every {span(pause)}"
        yield Finding("slot-unwatched", dag, "critical", said, step, {"silent_seconds": round(silent)}, sampled)


def readiness(facts: HealthInput) -> Iterator[Finding]:
    """Report what a pipeline that runs still lacks to be healthy; `dag` of the numbers mends it, a cut with `force`. None is an alarm.

    Slot health has rules for most of it; but before its first look, or while it is paused, no alarm opens. A DAG that is paused is no
    alarm while nothing waits for it, nor is a pipeline without a cut.
    """
    lake = facts.lake
    if lake is None or lake.state != "running":
        return
    if not facts.airflow:
        reason = "Its database did not answer this page, so whether capture, merge and slot health are unpaused is not known."
        yield Finding("slot-unwatched", facts.name, "warn", "Airflow does not say how its DAGs stand", reason)
    for verb, (slug, follows) in NEEDED.items():
        dag, state = f"{facts.name}.{verb}", facts.dag(verb)
        if state.missing:
            reason = f"Airflow has no DAG {dag}: {follows}. Its list of import errors says why."
            yield Finding("config-invalid", dag, "warn", f"There is no DAG {dag}", reason)
        elif state.paused:
            yield Finding(slug, dag, "warn", f"{dag} is paused", f"While it is, {follows}.", {"dag": dag})
    unwatched = _unwatched(facts)
    if unwatched:
        dag = f"{facts.name}.slot_health"
        yield Finding("slot-unwatched", dag, "warn", *unwatched, {"dag": dag})
    if lake.as_of is None:
        title = "There is no cut yet" if lake.cut_lsn is None else "There is no cut since the slot was made anew"
        reason = "Readers see nothing." if lake.cut_lsn is None else "Readers see the lake as it was before."
        reason = f"{reason} A merge publishes one; with force it does so even when nothing has changed."
        yield Finding("lake-stale", facts.name, "warn", title, reason, {"dag": f"{facts.name}.merge", "force": True})
    for each in stale(facts) if lake.as_of else ():
        verb = "merge" if lake.unmerged_changes else "capture"
        what = "a merge brings what is landed" if lake.unmerged_changes else "captures bring the lake forward"
        behind, limit = span(each.numbers["age_seconds"]), span(freshness_limits(facts.pipeline)[0])
        reason = f"Readers see the source as it was {behind} ago, the limit is {limit}; {what}."
        numbers = {**each.numbers, "dag": f"{facts.name}.{verb}"}
        yield replace(each, level="warn", message="The lake is stale", next=reason, numbers=numbers)


def _unwatched(facts: HealthInput) -> tuple[str, str] | None:
    """Say that nothing is seen of the slot, or nothing new, though slot health is not paused; and what follows."""
    if facts.dag("slot_health").missing or facts.dag("slot_health").paused:
        return None
    if facts.policy.schedule is None:
        reason = "health.schedule is null: what the slot keeps is seen only when somebody triggers slot health."
        return "Slot health has no schedule", reason
    if facts.late.sampled_at is None:
        return "The slot was not checked yet", "What it keeps on the source is unknown until slot health has run once."
    for each in watched(facts):
        return "The slot is not checked", f"{each.message}: the slot's numbers below are that old."
    return None
