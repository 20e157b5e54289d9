"""What a running task has: its pipeline's context, and an end that retries, pages or fails as an error says, noted in the ledger.

Slot health reads the ends there: a run that an asset started has no place in Airflow's order of runs.
"""

import logging
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from airflow.sdk import BaseNotifier, get_current_context
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException, AirflowSkipException

from penstock.conditions import Directive, with_runbook
from penstock.config.files import find_pipeline
from penstock.config.model import Pipeline
from penstock.config.paths import environment, folder, home
from penstock.errors import LedgerError, PenstockError
from penstock.flow.context import Context
from penstock.orchestration import links
from penstock.printable import printable

SOURCE_POOL = "penstock_source"
SPARK_POOL = "penstock_spark"
BACKFILL_POOL = "penstock_backfill"
"""Spark work apart from the main job: its length must keep no merge waiting."""
EVERY_SECONDS = 2.0


def woken(context: Any) -> bool:
    """Return whether an asset has started this run, not a person."""
    return bool(context["dag_run"].run_type == "asset_triggered")


@contextmanager
def outcome(ctx: Context) -> Iterator[None]:
    """Do what an error's kind says: retry, page a person, or fail; every error is remembered in the ledger."""
    from penstock.flow.guards import record_errors
    from penstock.flow.health import alarms
    from penstock.orchestration.notifications import deliver

    ti = get_current_context()["ti"]
    task = f"{ti.dag_id}.{ti.task_id}"
    try:
        with noted_end(ctx, ti), record_errors(ctx), _skipped_meanwhile(ti, ctx):
            yield
    except PenstockError as error:
        links.met(ti, error.slug)
        if error.directive is Directive.RETRY:
            raise
        if error.directive is Directive.PAGE:
            alarms.page(ctx, error, task, deliver)
        raise AirflowFailException(with_runbook(str(error), error.slug)) from None
    alarms.task_succeeded(ctx, task, deliver)


@contextmanager
def working(pipeline: Pipeline) -> Iterator[Context]:
    """Give the work of a running task its pipeline's context, and the end that an error's kind asks for."""
    ctx = context(pipeline)
    with outcome(ctx):
        yield ctx


@contextmanager
def _skipped_meanwhile(ti: Any, ctx: Context) -> Iterator[None]:
    """Skip, without an error that would page a person, what has to wait while another DAG makes the new slot."""
    makers = [f"{ctx.name}.{verb}" for verb in ("recover", "bootstrap")]
    try:
        yield
    except PenstockError as error:
        if error.slug not in ("pipeline-halted", "not-bootstrapped") or ti.dag_id in makers:
            raise
        at_work = [maker for maker in makers if ti.get_dr_count(maker, states=["queued", "running"])]
        if not at_work:
            raise
        raise AirflowSkipException(f"{at_work[0]} is at work; {ti.dag_id} waits for its slot") from None


class FailureNotice(BaseNotifier):
    """Write a failed DAG run into the ledger's events and outcomes and the log, with the runbook to open."""

    template_fields = ()

    def __init__(self, pipeline: str, verb: str) -> None:
        super().__init__()
        self.pipeline = pipeline
        self.verb = verb

    def notify(self, context: Any) -> None:
        """Record the failure; runs in the DAG processor, where the task's exception is not at hand."""
        from penstock.orchestration.notifications import failed_run

        message = failed_run(self.pipeline, self.verb, context)
        self.log.error("%s; see docs/runbooks/dag-failed.md", message)
        run_id, task = context.get("run_id"), getattr(context.get("ti"), "task_id", "")
        with suppress(PenstockError):  # the ledger may be what failed, or its connection; the log has the notice
            ctx = find_context(self.pipeline)
            if run_id:
                ctx = replace(ctx, task={"dag": f"{self.pipeline}.{self.verb}", "run_id": run_id, "task": task})
                ctx.ledger.outcomes.failed(self.pipeline, self.verb, task, run_id)
            ctx.ledger.events.add(self.pipeline, slug="dag-failed", level="error", message=message)


log = logging.getLogger("penstock")


def context(pipeline: Pipeline) -> Context:
    """Return the pipeline's context inside a running task."""
    from penstock.orchestration.connections import connection

    ours = {key: value for key, value in os.environ.items() if key.startswith("PENSTOCK_")}
    ctx = Context(pipeline, connection, home(), ours, _log, task=_task())
    return replace(ctx, stage=WorkNotes(ctx)) if ctx.task else ctx


def _log(line: str) -> None:
    log.info("%s", printable(line))


def _task() -> dict[str, str]:
    try:
        ti = get_current_context()["ti"]
    except RuntimeError:  # a callback, which runs in no task
        return {}
    return {"dag": ti.dag_id, "run_id": ti.run_id, "task": ti.task_id}


def find_context(name: str) -> Context:
    """Return the context of a pipeline by its name, and read no other file; raises ConfigError("config-invalid")."""
    return context(find_pipeline(name, folder(), environment()))


@contextmanager
def noted_end(ctx: Context, ti: Any) -> Iterator[None]:
    """Note that the block has succeeded, or failed for good; what is tried again, skipped or put off is not its end."""
    from penstock.orchestration.notifications import send_task

    began, used = time.monotonic(), _cpu_seconds()
    ended = (ctx.name, ti.dag_id.removeprefix(f"{ctx.name}."), ti.task_id, ti.run_id)
    try:
        yield
    except (AirflowSkipException, AirflowRescheduleException):
        raise
    except Exception as error:
        if _is_final(error, ti):
            slug = error.slug if isinstance(error, PenstockError) else None
            with suppress(LedgerError):  # the ledger may be what failed; then slot health fails, too
                ctx.ledger.outcomes.failed(*ended, slug=slug)
        raise
    finally:
        seconds, cpu_seconds = time.monotonic() - began, _cpu_seconds() - used
        send_task(ti.dag_id, ti.task_id, seconds=seconds, cpu_seconds=cpu_seconds)
        with suppress(LedgerError):
            ctx.ledger.outcomes.spent(*ended[:2], seconds=seconds, cpu_seconds=cpu_seconds)
    with suppress(LedgerError):
        ctx.ledger.outcomes.succeeded(*ended, last=not ti.task.downstream_task_ids)


def _cpu_seconds() -> float:
    """Return the CPU that this process has used, and the processes that it has waited for, as Spark's driver."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _is_final(error: Exception, ti: Any) -> bool:
    retried = not isinstance(error, PenstockError) or error.directive is Directive.RETRY
    return not retried or ti.try_number > ti.max_tries


class WorkNotes:
    """Take what `Context.stage` takes; a ledger that does not take a note stops nothing.

    The ledger is that of the context given, not the task's own: a note must be seen while the task's transaction is open.
    """

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._noted: dict[str, float] = {}

    def __call__(self, what: str, done: int, total: int, rows: int | None = None, /) -> None:
        """Note how far a work is: its beginning, then every other second, and that it is over."""
        name, task, now = self._ctx.name, self._ctx.task, time.monotonic()
        with suppress(PenstockError):
            if done >= total:
                if self._noted.pop(what, None) is not None:
                    self._ctx.ledger.work.forget(name, task, what=what)
                return
            if not self._noted:
                self._ctx.ledger.work.forget(name, task)
            if now - self._noted.get(what, -EVERY_SECONDS) < EVERY_SECONDS:
                return
            self._noted[what] = now
            self._ctx.ledger.work.note(name, task, what=what, done=done, total=total, rows=rows)
