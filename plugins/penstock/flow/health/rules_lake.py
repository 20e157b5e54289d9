"""The rules for the way from the landing zone to readers: how old the lake is, and whether merges come. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.flow.check import seconds_between
from penstock.flow.health.findings import Finding
from penstock.flow.health.input import Standing
from penstock.flow.health.limits import level_of
from penstock.ledger.outcomes import TaskOutcome
from penstock.units import several, span

_PAUSES = 3
_LEAST = {"freshness": 1800, "merge": 900}
"""Limits that follow a schedule are not below this many seconds."""
_CRITICAL = 4


def stale(now: Standing) -> Iterator[Finding]:
    """Report a lake whose newest cut shows the source as it was long ago."""
    lake, name = now.lake, now.pipeline.name
    since = None if lake is None else lake.as_of or lake.cut_at
    if lake is None or since is None or lake.state not in ("running", "halted") or not lake.tables:
        return
    warn, critical = freshness_limits(now)
    old = now.age(since)
    held, hysteresis = now.held("lake-stale", name), now.pipeline.health.hysteresis
    level = level_of(old, warn, critical, held=held, hysteresis=hysteresis)
    if level:
        limit = critical if level == "critical" else warn
        said = f"readers see the source as it was {span(old)} ago, the {level} limit is {span(limit)}"
        numbers = {"age_seconds": round(old), "limit_seconds": limit, "unmerged_changes": lake.unmerged_changes}
        if lake.unmerged_changes:
            step = f"{several(lake.unmerged_changes, 'change')} landed and not merged; a merge brings this"
        else:
            step = "nothing is landed since; captures bring the lake forward"
        yield Finding("lake-stale", name, level, said, step, numbers, since)


def freshness_limits(now: Standing) -> tuple[int, int]:
    """Return the limits in force, in seconds: those of the file, else what follows from the pause between captures."""
    wanted, pause = now.pipeline.health.freshness, seconds_between(now.pipeline.capture.schedule) or 0
    warn = wanted.warn or max(_LEAST["freshness"], _PAUSES * pause)
    critical = wanted.critical or _CRITICAL * warn
    return min(warn, critical), critical


def merge(now: Standing) -> Iterator[Finding]:
    """Report changes that wait for a merge which is paused, fails or does not come."""
    lake, dag = now.lake, f"{now.pipeline.name}.merge"
    if lake is None or lake.state != "running" or lake.unmerged_since is None:
        return
    state, failed, waiting = now.dag("merge"), now.failing("merge"), now.age(lake.unmerged_since)
    waits = f"{several(lake.unmerged_changes, 'change')} waiting since {lake.unmerged_since:%F %T} UTC"
    numbers: dict[str, Any] = {"unmerged_changes": lake.unmerged_changes, "unmerged_bytes": lake.unmerged_bytes}
    patience = max(_LEAST["merge"], _PAUSES * (seconds_between(now.pipeline.merge.schedule) or 0))
    step = "readers keep the last cut; nothing is lost"
    if state.paused:
        said = f"{dag} is paused, and {waits}"
        yield Finding("merge-paused", dag, "warn", said, f"{step}; unpause it", numbers, lake.unmerged_since)
    elif failed is not None:
        said = f"{dag} {fails(now, failed)}, and {waits}"
        yield Finding("merge-failing", dag, "warn", said, step, {**numbers, **ran(dag, failed)}, failed.failing_since)
    elif waiting >= patience and not state.under_way:
        why = "Airflow has no such DAG" if state.missing else f"no run of {dag} has taken them"
        said = f"{waits}, for {span(waiting)}, and {why}"
        yield Finding("merge-late", dag, "warn", said, f"{step}; trigger it", numbers, lake.unmerged_since)


def fails(now: Standing, failed: TaskOutcome) -> str:
    """Say since when a DAG fails, at which task and with which error."""
    where = f" at its task {failed.task}" if failed.task else ""
    error = f" with {failed.slug}" if failed.slug else ""
    since = failed.failing_since or failed.ended_at
    return f"has failed for {span(now.age(since))}{where}{error}"


def ran(dag: str, failed: TaskOutcome) -> dict[str, Any]:
    """Return what leads to a failed run and its log."""
    return {"dag": dag, "run_id": failed.run_id, "task": failed.task or None, "error": failed.slug}
