"""The rules for what a pipeline stands on: room where files are written, and somebody who hears its alarms. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.flow.check import seconds_between
from penstock.flow.health.findings import Finding
from penstock.flow.health.input import Standing
from penstock.flow.health.limits import level_of
from penstock.units import size, span

_CRITICAL = 4
_SILENT_PAUSES = 3
_SILENT_LEAST = 600


def room(now: Standing) -> Iterator[Finding]:
    """Report a disk of which little is free; what cannot be measured is said by the report."""
    least = now.pipeline.health.watch.free_share
    for disk in now.disks:
        if disk.free is None or not disk.total:
            continue
        held = now.held("storage-nearly-full", disk.what)
        used, hysteresis = least / max(disk.free / disk.total, 1e-9), now.pipeline.health.hysteresis
        level = level_of(used, 1, _CRITICAL, held=held, hysteresis=hysteresis)
        if level:
            said = f"the disk of the {disk.what} has {size(disk.free)} free of {size(disk.total)}, below {least:.0%}"
            step = "at its end captures and merges fail; nothing that was staged is lost"
            numbers = {"free_bytes": disk.free, "total_bytes": disk.total, "place": disk.place}
            yield Finding("storage-nearly-full", disk.what, level, said, step, numbers)


def heard(now: Standing) -> Iterator[Finding]:
    """Report that nobody hears critical alarms while warnings have a channel; where neither has, `check` and the page say so."""
    policy = now.pipeline.health
    if policy.warn.channels and not policy.critical.channels:
        step = "they are in the ledger, in the log and on the page only; set health.critical.channels"
        yield Finding("alerts-unheard", "critical", "warn", "alarms of the level critical have no channel", step)


def watched(now: Standing) -> Iterator[Finding]:
    """Report that slot health itself is paused or silent; whoever else runs can tell."""
    pause, sampled, dag = (
        seconds_between(now.pipeline.health.schedule),
        now.late.sampled_at,
        f"{now.pipeline.name}.slot_health",
    )
    if pause is None:
        return
    step = "the slot is not watched: the WAL that it keeps may fill the source's disk, and no other alarm opens"
    silent = now.age(sampled) if sampled else 0
    if now.dag("slot_health").paused:
        yield Finding("slot-unwatched", dag, "critical", f"{dag} is paused", f"{step}; unpause it")
    elif silent >= _SILENT_PAUSES * pause + _SILENT_LEAST:
        said = f"{dag} has not looked for {span(silent)}, and is scheduled every {span(pause)}"
        yield Finding("slot-unwatched", dag, "critical", said, step, {"silent_seconds": round(silent)}, sampled)
