"""What to do next, the most urgent first: a pure function of what the page shows.

Every piece of advice says what is wrong in plain words and ends in a button or a page, never in a dead end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from penstock.conditions import NEEDS_COPY
from penstock.page.models import Grade, Pipeline, Table

RECOVERABLE = (
    "slot-lost",
    "slot-dropped",
    "slot-ahead",
    "slot-missing",
    "slot-unusable",
    "source-changed",
    "publication-missing",
)
"""Halts after which the stream has a hole, so that a new copy is the way on."""
BEHIND = (
    "slot-retained",
    "slot-unread",
    "slot-unreserved",
    "slot-stalled",
    "slot-idle-timeout",
    "capture-paused",
    "capture-failing",
    "capture-too-slow",
)
"""Alarms that a run of capture ends or eases."""
SILENT_SECONDS = 900
_NAMED_TABLES = 5
_COPIED = "Unless tables.on_change is pause, capture wakes resync, which copies it again: see how far that is"


@dataclass(frozen=True)
class Step:
    """Name one thing to do: words, then the runbook, the DAG or the command (either will do) that helps."""

    text: str
    dag: str | None = None
    runbook: str | None = None
    command: str | None = None


@dataclass(frozen=True)
class Advice:
    """Hold one thing that wants a person, since when if that is known, or say that nothing does."""

    grade: Grade
    title: str
    reason: str
    steps: tuple[Step, ...] = ()
    since: datetime | None = None


def advice(shown: Pipeline, tables: Sequence[Table], now: datetime, unheard: Sequence[str] = ()) -> list[Advice]:
    """Return what to do next; never empty. `unheard` are the levels of alarms of which no person is notified."""
    found = [*_stopped(shown), *_alarms(shown), *_paused(shown, tables), *_blind(shown, now), *_early(shown)]
    order: list[Grade] = ["critical", "warn", "idle", "ok"]
    return [*(sorted(found, key=lambda each: order.index(each.grade)) or [_nothing(shown)]), *_unheard(unheard)]


def table_advice(shown: Pipeline, table: Table) -> list[Advice]:
    """Return what to do about one table; empty where nothing is."""
    return [*_stopped(shown), *_paused(shown, [table])]


def _stopped(shown: Pipeline) -> Iterator[Advice]:
    if shown.state != "halted" or shown.halted_slug is None:
        return
    slug = shown.halted_slug
    read = Step("Read what it means and how to confirm it", runbook=slug)
    way: tuple[Step, ...]
    if slug in RECOVERABLE:
        dag = f"{shown.name}.recover"
        way = (Step("See what a recovery would do, then do it: it is a dry run until you say otherwise", dag=dag),)
    else:
        way = (Step("Fix what the message names"), _resume(shown, "Then let the pipeline continue"))
    yield Advice(
        "critical",
        f"The pipeline is halted: {slug}",
        f"{shown.halted_reason} The lake stays readable at its last cut. Nothing runs until a person has decided.",
        (read, *way),
    )


def _alarms(shown: Pipeline) -> Iterator[Advice]:
    for alarm in shown.alarms:
        if shown.state == "halted" and alarm.slug in (shown.halted_slug, "pipeline-halted"):
            continue
        steps = [Step("Read the runbook", runbook=alarm.slug)]
        if alarm.slug in RECOVERABLE:
            steps.append(Step("See what a recovery would do", dag=f"{shown.name}.recover"))
        elif alarm.slug in BEHIND:
            steps.append(
                Step("Is capture paused or failing? Unpause it, or trigger it now", dag=f"{shown.name}.capture")
            )
        elif alarm.slug == "decoding-limit":
            steps.append(Step("See which transaction is in the way", dag=f"{shown.name}.skip_transaction"))
        reason = f"{alarm.message} How fast it gets worse: {alarm.worsens}."
        yield Advice(alarm.level, f"{alarm.slug}: {alarm.subject}", reason, tuple(steps), alarm.opened_at)


def _paused(shown: Pipeline, tables: Sequence[Table]) -> Iterator[Advice]:
    for slug in sorted({table.paused_slug for table in tables if table.paused_slug}):
        names = [table.name for table in tables if table.paused_slug == slug]
        more = f" and {len(names) - _NAMED_TABLES} more" if len(names) > _NAMED_TABLES else ""
        are = "table is" if len(names) == 1 else "tables are"
        copied = (Step(_COPIED, dag=f"{shown.name}.resync"),) if slug in NEEDS_COPY else ()
        yield Advice(
            "warn",
            f"{len(names)} {are} paused: {slug}",
            f"{', '.join(names[:_NAMED_TABLES])}{more}. Its changes are still landed; all other tables continue.",
            (
                Step("Read what it means", runbook=slug),
                *copied,
                _resume(shown, "When it is fixed, end the pause", f" --table {names[0]}"),
            ),
        )


def _resume(shown: Pipeline, text: str, options: str = "") -> Step:
    return Step(text, dag=f"{shown.name}.resume", command=f"penstock resume {shown.name}{options}")


def _blind(shown: Pipeline, now: datetime) -> Iterator[Advice]:
    if shown.state != "running" or any(alarm.slug in ("slot-missing", "source-unreachable") for alarm in shown.alarms):
        return
    look = (Step("See why it does not run: is the DAG paused or failing?", dag=f"{shown.name}.slot_health"),)
    if shown.slot is None:
        yield Advice("warn", "The slot was not checked yet", "What it keeps on the source is unknown.", look)
    elif (silent := (now - shown.slot.seen_at).total_seconds()) > SILENT_SECONDS:
        reason = f"The last look was {int(silent // 60)} minutes ago: the slot's numbers below are that old."
        yield Advice("warn", "The slot is not checked", reason, look)


def _early(shown: Pipeline) -> Iterator[Advice]:
    bootstrap = f"{shown.name}.bootstrap"
    steps: tuple[Step, ...]
    if shown.state in ("not bootstrapped", "new"):
        steps = (Step("Check the source and copy it: trigger bootstrap, once", dag=bootstrap),)
        yield Advice("idle", "Not started yet", "The pipeline has a file and no slot. Nothing is kept anywhere.", steps)
    elif shown.state == "bootstrapping":
        reason = f"{shown.tables_ready} of {shown.tables} tables are in the lake. Capture may run already, and should."
        steps = (Step("Follow the copy", dag=bootstrap), Step("Unpause capture", dag=f"{shown.name}.capture"))
        yield Advice("idle", "The first copy is under way", reason, steps)
    elif shown.state == "torn_down":
        steps = (Step("Start again with a new slot and a new copy", dag=bootstrap),)
        yield Advice("idle", "Torn down", "Slot and publication are gone; the lake stays at its last cut.", steps)
    if not shown.has_file:
        yield Advice(
            "warn",
            "No pipeline file defines this pipeline",
            "The ledger knows it, and its slot may still keep WAL on the source, but no DAG reads it any more. "
            "Bring the file back to tear it down, or drop the slot on the source.",
        )


def _unheard(levels: Sequence[str]) -> Iterator[Advice]:
    if levels:
        yield Advice(
            "idle",
            f"No one is notified of alarms of the level {' and '.join(levels)}",
            f"No channel is set, or slot health has no schedule: such an alarm is seen on this page and in the ledger only. Set "
            f"{' and '.join(f'health.{level}.channels' for level in levels)} in the pipeline's file.",
            (Step("Read how channels are defined", runbook="alert-undelivered"),),
        )


def _nothing(shown: Pipeline) -> Advice:
    return Advice("ok", "Nothing to do", f"{shown.name} runs, no alarm is open and no table is paused.")
