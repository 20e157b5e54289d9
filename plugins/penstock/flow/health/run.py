"""Slot health: observe, judge, act, report. Seconds of work, and never a peek.

`judge_pipeline` only reports; `check` is what the DAG runs. `drain` is a capture with larger windows, for a slot that has come
near its limit. Everything that is done is an event with the numbers that justify it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

from penstock.conditions import ALARMS, PAGED
from penstock.errors import ConfigError, SourceError
from penstock.flow.capture import run as capturing
from penstock.flow.context import Context
from penstock.flow.health import report, rules_lake
from penstock.flow.health.airflow_state import DagState
from penstock.flow.health.alarms import reconcile
from penstock.flow.health.alerts import Deliver
from penstock.flow.health.drops import drop
from penstock.flow.health.input import HealthInput
from penstock.flow.health.judge import LAKE_RULES, Verdict, judge, of_lake, worst_first
from penstock.flow.health.observe import with_source, without_source
from penstock.ledger.health import Finding
from penstock.units import several

_LARGER = 4


def judge_pipeline(ctx: Context, dags: Mapping[str, DagState] | None = None) -> Verdict:
    """Observe and judge, and change nothing anywhere; raises SourceError, LedgerError."""
    return judge(with_source(ctx, without_source(ctx, dags or {})))


def check(ctx: Context, dags: Mapping[str, DagState], deliver: Deliver) -> Verdict:
    """Observe, judge and act, and return the verdict that was carried out; a pipeline that the ledger does not know is only reported.

    Raises SourceError when the source can't be asked (an alarm of its own), LedgerError.
    """
    known = without_source(ctx, dags)
    try:
        verdict = judge(with_source(ctx, known))
    except SourceError as error:
        _unreachable(ctx, error, known, deliver)
        raise
    for label, value in report.lines(verdict):
        ctx.progress(f"{label}: {value}")
    return replace(verdict, undelivered=act(ctx, verdict, deliver)) if verdict.facts.record is not None else verdict


def act(ctx: Context, verdict: Verdict, deliver: Deliver) -> tuple[str, ...]:
    """Carry out a verdict on a pipeline that the ledger knows; return what went wrong with the channels.

    Raises LedgerError.
    """
    facts, health = verdict.facts, ctx.ledger.health
    in_force = {"limits": asdict(facts.limits)}
    samples = [replace(each, details=in_force if each.own else {}) for each in facts.samples.values()]
    health.record_slot_samples(ctx.name, samples)
    if facts.lake is not None:
        health.record_lake_sample(ctx.name, at=facts.at, as_of=facts.lake.as_of)
    for each in verdict.drops:
        drop(ctx, each)
    undelivered = reconcile(ctx, verdict.findings, deliver, slugs=ALARMS, judged=ALARMS.keys() - PAGED, at=facts.at)
    health.trim(ctx.name, before=facts.at - timedelta(seconds=facts.policy.keep))
    return undelivered


def _unreachable(ctx: Context, error: SourceError, facts: HealthInput, deliver: Deliver) -> None:
    """Open the alarm that the source can't be asked, and judge what needs no source; the other alarms stay as they are."""
    if facts.lake is None:  # a pipeline that the ledger does not know
        return
    numbers, step = {"error": error.slug}, "the slot is not observed until the source answers"
    finding = Finding("source-unreachable", "source", "critical", error.message, step, numbers)
    found = worst_first([finding, *of_lake(facts)], facts)
    for each in found:
        ctx.progress(f"{each.level} {each.slug}: {each.message}")
    reconcile(ctx, found, deliver, slugs=ALARMS, judged=frozenset().union(*LAKE_RULES.values()), at=facts.at)


def watch_the_watcher(ctx: Context, dags: Mapping[str, DagState], deliver: Deliver) -> None:
    """Open or close the alarm of a slot health that does not run, and send it, by a capture, which runs more often; raises LedgerError."""
    with ctx.ledger.session():
        late = ctx.ledger.health.late_work(ctx.name)
        facts = HealthInput(pipeline=ctx.pipeline, at=datetime.now(UTC), airflow=dags, late=late)
        reconcile(ctx, rules_lake.watched(facts), deliver, slugs=LAKE_RULES[rules_lake.watched], at=facts.at)


def require_delivered(undelivered: Sequence[str]) -> None:
    """Raise ConfigError("alert-undelivered") if a channel complained."""
    if undelivered:
        raise ConfigError(
            "alert-undelivered", "; ".join(undelivered) + "; fix the connection: what no channel took is due again"
        )


def drain(ctx: Context) -> capturing.CaptureReport:
    """Capture now, with windows four times as large, so that more WAL is freed per reading of the old one."""
    settings = ctx.pipeline.capture
    larger = settings.model_copy(update={"max_wal_bytes": _LARGER * settings.max_wal_bytes})
    wide = replace(ctx, pipeline=ctx.pipeline.model_copy(update={"capture": larger}))
    done = capturing.capture(wide)
    message = f"drained slot {ctx.pipeline.slot} in {several(len(done.windows), 'window')} through {done.upto}"
    ctx.ledger.events.add(ctx.name, slug="slot-retained", level="info", message=message, details=done.summary())
    return done
