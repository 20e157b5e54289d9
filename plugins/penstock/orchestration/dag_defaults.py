"""The parts that every DAG of Penstock is made of: defaults, assets, outcomes and failure notices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import Asset, AssetAlias, BaseNotifier, Param, get_current_context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from penstock.conditions import Directive, with_runbook
from penstock.config.dags import MAIN_JOB, WHEN
from penstock.config.model import Pipeline
from penstock.errors import PenstockError
from penstock.flow.context import Context
from penstock.orchestration import links
from penstock.orchestration.pipelines import find_context

OWNER = "penstock"
SOURCE_POOL = "penstock_source"
SPARK_POOL = "penstock_spark"
BACKFILL_POOL = "penstock_backfill"
"""Spark work apart from the main job: its length must keep no merge waiting."""


def landing_asset(pipeline: Pipeline) -> Asset:
    """Return the asset that capture emits when it has landed changes."""
    return Asset(name=f"{pipeline.name}.landing", uri=f"penstock://{pipeline.name}/landing", group="penstock")


def landing_alias(pipeline: Pipeline) -> AssetAlias:
    """Return the alias through which an event is emitted only when there is something to merge."""
    return AssetAlias(name=f"{pipeline.name}.landed", group="penstock")


def new_tables_asset(pipeline: Pipeline) -> Asset:
    """Return the asset that capture emits when tables that joined, or changed, wait for a copy."""
    return Asset(name=f"{pipeline.name}.new_tables", uri=f"penstock://{pipeline.name}/new_tables", group="penstock")


def new_tables_alias(pipeline: Pipeline) -> AssetAlias:
    """Return the alias through which an event is emitted only when a table waits."""
    return AssetAlias(name=f"{pipeline.name}.tables_joined", group="penstock")


def schema_asset(pipeline: Pipeline) -> Asset:
    """Return the asset that capture emits when tables changed their shape at the source."""
    return Asset(name=f"{pipeline.name}.schema", uri=f"penstock://{pipeline.name}/schema", group="penstock")


def schema_alias(pipeline: Pipeline) -> AssetAlias:
    """Return the alias through which an event is emitted only when there is a change."""
    return AssetAlias(name=f"{pipeline.name}.schema_changed", group="penstock")


def lake_asset(pipeline: Pipeline) -> Asset:
    """Return the asset that a published cut emits, for the DAGs downstream."""
    return Asset(name=f"{pipeline.name}.lake", uri=f"penstock://{pipeline.name}/lake", group="penstock")


def changelog_asset(pipeline: Pipeline) -> Asset:
    """Return the asset that a filled interval emits."""
    return Asset(name=f"{pipeline.name}.changelog", uri=f"penstock://{pipeline.name}/changelog", group="penstock")


def dry_run(default: bool = True) -> Param:
    """Return the parameter of every DAG that can say what it would do, and change nothing: on where a person repairs, off where a schedule works."""
    return Param(default, type="boolean", description="only say what would be done, and change nothing")


def dag_arguments(pipeline: Pipeline, verb: str, doc: str | None) -> dict[str, Any]:
    """Return what all DAGs have in common: id, description, tags, one run at a time, a failure notice at DAG level.

    `doc` begins with the DAG's title, as a heading.

    A notice at DAG level also fires when the task process is killed; a task's own callback does not.
    """
    return {
        "dag_id": f"{pipeline.name}.{verb}",
        "dag_display_name": f"{pipeline.name}.{verb}",
        "description": _description(verb, doc or ""),
        "doc_md": doc,
        "owner_links": links.owner_links(OWNER, pipeline.name),
        "tags": {"penstock", pipeline.name, verb, WHEN[verb], *(["main job"] if verb in MAIN_JOB else [])},
        "start_date": datetime(2025, 1, 1, tzinfo=UTC),
        "catchup": False,
        "max_active_runs": 1,
        "auto_register": False,  # a DAG that failed half-way is in no DAG file's names, and must not appear
        "default_args": {
            "owner": OWNER,
            "retries": 2,
            "retry_delay": timedelta(seconds=20),
            "show_return_value_in_logs": False,  # a task has logged what it returns
        },
        "on_failure_callback": FailureNotice(pipeline=pipeline.name, verb=verb),
    }


def _description(verb: str, doc: str) -> str:
    title = doc.partition("\n")[0].lstrip("# ")
    main = "The main job, " if verb in MAIN_JOB else ""
    when = f"{main}{WHEN[verb]}"
    return f"{when[0].upper()}{when[1:]}: {title[:1].lower()}{title[1:]}"


def woken(context: Any) -> bool:
    """Return whether an asset has started this run, not a person."""
    return bool(context["dag_run"].run_type == "asset_triggered")


@contextmanager
def outcome(ctx: Context) -> Iterator[None]:
    """Do what an error's kind says: retry, page a person, or fail; every error is remembered in the ledger."""
    from penstock.flow.errors import record_errors
    from penstock.flow.health import paging
    from penstock.orchestration.notifications import deliver
    from penstock.orchestration.task_ends import noted_end

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
            paging.page(ctx, error, task, deliver)
        raise AirflowFailException(with_runbook(str(error), error.slug)) from None
    paging.task_succeeded(ctx, task, deliver)


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
            ledger = (
                replace(ctx, task={"dag": f"{self.pipeline}.{self.verb}", "run_id": run_id, "task": task}).ledger
                if run_id
                else ctx.ledger
            )
            if run_id:
                ledger.outcomes.failed(self.pipeline, self.verb, task, run_id)
            ledger.events.add(self.pipeline, slug="dag-failed", level="error", message=message)
