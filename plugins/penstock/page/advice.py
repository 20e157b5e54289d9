"""What to do next, the most urgent first: a pure function of what the page shows.

Every piece of advice says what is wrong in plain words and ends in a button or a page, never in a dead end.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.conditions import CONDITIONS, needs_copy
from penstock.ledger.page import TablePanel
from penstock.ledger.records import TaskRef
from penstock.page.format import age
from penstock.page.pipeline import Grade, Pipeline
from penstock.units import sentence

_NAMED_TABLES = 5
_UNPAUSED = dict.fromkeys(("capture-paused", "merge-paused"), "Unpause it: the switch is beside its name")
_COPIED = "Unless tables.on_change is pause, capture wakes resync, which copies it again: see how far that is"


@dataclass(frozen=True)
class Step:
    """Name one thing to do: words, then the runbook, the run, the DAG or the command (either will do) that helps.

    `conf` are the parameters with which the DAG is to be triggered.
    """

    text: str
    dag: str | None = None
    runbook: str | None = None
    command: str | None = None
    conf: Mapping[str, Any] | None = None
    task: TaskRef | None = None


@dataclass(frozen=True)
class Advice:
    """Hold one thing that wants a person, since when if that is known, or say that nothing does."""

    grade: Grade
    title: str
    reason: str
    steps: tuple[Step, ...] = ()
    since: datetime | None = None


def advice(shown: Pipeline, tables: Sequence[TablePanel], without_channel: Sequence[str] = ()) -> list[Advice]:
    """Return what to do next; never empty. `without_channel` are the levels of alarms of which no person is notified."""
    found = [*_stopped(shown), *_alarms(shown), *_paused(shown, tables), *_lacking(shown), *_early(shown)]
    order: list[Grade] = ["critical", "warn", "idle", "ok"]
    return [
        *(sorted(found, key=lambda each: order.index(each.grade)) or [_nothing(shown)]),
        *_no_channel(without_channel),
    ]


def table_advice(shown: Pipeline, table: TablePanel) -> list[Advice]:
    """Return what to do about one table; empty where nothing is."""
    return [*_stopped(shown), *_paused(shown, [table])]


def _stopped(shown: Pipeline) -> Iterator[Advice]:
    if shown.state != "halted" or shown.halted_slug is None:
        return
    slug = shown.halted_slug
    read = Step("Read what it means and how to confirm it", runbook=slug)
    met = (Step("See the log of the task that met it", task=shown.halted_by),) if shown.halted_by else ()
    way: tuple[Step, ...]
    if _recovers(slug):
        dag = f"{shown.name}.recover"
        way = (
            Step("See what a recovery would do: triggered as it is, it only says so", dag=dag),
            Step("Then do it", dag=dag, conf={"dry_run": False}),
        )
    else:
        way = (Step("Fix what the message names"), _resume(shown, "Then let the pipeline continue"))
    yield Advice(
        "critical",
        f"The pipeline is halted: {slug}",
        f"{sentence(shown.halted_reason or slug)} The lake stays readable at its last cut. Nothing runs until a person has decided.",
        (read, *met, *way),
    )


def _recovers(slug: str) -> bool:
    """Return whether the stream has a hole then, so that a new copy of every table is the way on."""
    return slug in CONDITIONS and needs_copy(CONDITIONS[slug].remedy)


def _alarms(shown: Pipeline) -> Iterator[Advice]:
    for alarm in shown.alarms:
        if shown.state == "halted" and alarm.slug in (shown.halted_slug, "pipeline-halted"):
            continue
        steps = [Step("Read the runbook", runbook=alarm.slug)]
        if _recovers(alarm.slug):
            steps.append(Step("See what a recovery would do", dag=f"{shown.name}.recover"))
        elif alarm.dag:
            steps.append(Step("See whether it is paused or its newest run failed", dag=alarm.dag))
        if alarm.failed:
            steps.append(Step("See the log of the task that failed", task=alarm.failed))
        elif alarm.by_task:
            steps.append(Step("See the log of the look that found it", task=alarm.by_task))
        reason = f"{sentence(alarm.message)} How fast it gets worse: {sentence(alarm.worsens or 'unknown')}"
        yield Advice(alarm.level, f"{alarm.slug}: {alarm.subject}", reason, tuple(steps), alarm.opened_at)


def _paused(shown: Pipeline, tables: Sequence[TablePanel]) -> Iterator[Advice]:
    for slug in sorted({table.paused_slug for table in tables if table.paused_slug}):
        names = [table.name for table in tables if table.paused_slug == slug]
        more = f" and {len(names) - _NAMED_TABLES} more" if len(names) > _NAMED_TABLES else ""
        are = "table is" if len(names) == 1 else "tables are"
        again = {"tables": names, "dry_run": False}
        resync = f"{shown.name}.resync"
        now = Step("Or copy it again now", dag=resync, conf=again)
        copied = (
            (Step(_COPIED, dag=resync), now)
            if any(needs_copy(table.remedy) for table in tables if table.paused_slug == slug)
            else ()
        )
        by = next((table.paused_by for table in tables if table.paused_slug == slug and table.paused_by), None)
        met = (Step("See the log of the task that met it", task=by),) if by else ()
        yield Advice(
            "warn",
            f"{len(names)} {are} paused: {slug}",
            f"{', '.join(names[:_NAMED_TABLES])}{more}. {'Its' if len(names) == 1 else 'Their'} changes are still landed; all other tables "
            "continue.",
            (
                Step("Read what it means", runbook=slug),
                *met,
                *copied,
                _resume(shown, "When it is fixed, end the pause", names[0]),
            ),
        )


def _resume(shown: Pipeline, text: str, table: str | None = None) -> Step:
    options, conf = (f" --table {table}", {"table": table}) if table else ("", None)
    return Step(text, dag=f"{shown.name}.resume", conf=conf, command=f"penstock resume {shown.name}{options}")


def _lacking(shown: Pipeline) -> Iterator[Advice]:
    known = {alarm.slug for alarm in shown.alarms}
    for lack in shown.lacks:
        dag = lack.numbers.get("dag")
        if lack.slug in known or (
            dag == f"{shown.name}.slot_health" and known & {"source-unreachable", "slot-missing"}
        ):
            continue  # the alarm says so
        steps = []
        if dag:
            text, conf = _UNPAUSED.get(lack.slug, "See its newest run, or trigger it"), None
            if "force" in lack.numbers:
                text, conf = "Publish a cut now", {"force": True}
            steps.append(Step(text, dag=dag, conf=conf))
        steps.append(Step("Read the runbook", runbook=lack.slug))
        yield Advice("warn", lack.message, lack.next, tuple(steps))


def _early(shown: Pipeline) -> Iterator[Advice]:
    bootstrap = f"{shown.name}.bootstrap"
    steps: tuple[Step, ...]
    if shown.state == "starting":
        steps = (Step("See how far its run is", dag=bootstrap),)
        reason = (
            "A run of bootstrap is queued or running. It checks the source, then makes the slot and copies the tables."
        )
        yield Advice("idle", "The bootstrap is under way", reason, steps)
    elif shown.state in ("not bootstrapped", "new"):
        steps = (
            Step("See what check says of the source", command=f"penstock check {shown.name}"),
            Step(
                "Check the source and copy it: trigger bootstrap, once",
                dag=bootstrap,
                command=f"penstock start {shown.name}",
            ),
        )
        reason = (
            "The pipeline has a file and no slot. Nothing is kept anywhere. If it did run before, ledger.connection leads to another "
            "database than then: correct it instead."
        )
        yield Advice("idle", "Not started yet", reason, steps)
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


def _no_channel(levels: Sequence[str]) -> Iterator[Advice]:
    if levels:
        yield Advice(
            "idle",
            f"No one is notified of alarms of the level {' and '.join(levels)}",
            f"No channel is set, or slot health has no schedule: such an alarm is seen on this page and in the ledger only. Set "
            f"{' and '.join(f'health.{level}.channels' for level in levels)} in the pipeline's file.",
            (Step("Read how channels are defined", runbook="alert-undelivered"),),
        )


def _nothing(shown: Pipeline) -> Advice:
    reason = (
        f"Readers see the source as it was {age(shown.freshness_seconds)} ago; capture, merge and slot health are unpaused, no "
        "alarm is open and no table is paused."
    )
    return Advice("ok", "Nothing to do", reason)
