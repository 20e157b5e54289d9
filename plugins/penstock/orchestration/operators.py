"""Spark work as Airflow operators: the plan is made, and fenced, at every try of the task.

They stand on the provider's SparkSubmitOperator, so connections, deploy modes and kill behave as its users
know. Secrets reach the driver by the inherited environment, because the provider writes `env_vars` onto
the command line for YARN and Kubernetes.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException

from penstock.errors import LakeError
from penstock.orchestration.tasks import BACKFILL_POOL, SPARK_POOL, find_context, outcome, woken

if TYPE_CHECKING:
    from penstock.config.model import Pipeline
    from penstock.flow.context import Context
    from penstock.flow.load.replay_request import Replay
    from penstock.flow.spark_job import SparkJob, Submit

_ASKED = "{% for name, value in params.items() %}{{ name }}: {{ value }}\n{% endfor %}"


class PenstockSparkOperator(SparkSubmitOperator):
    """Submit jobs that are described only when the task runs; what the DAG's run was asked for is shown as rendered."""

    template_fields: Sequence[str] = ("asked",)

    spark_pool = SPARK_POOL

    def __init__(self, *, pipeline: Pipeline, **arguments: Any) -> None:
        connection = pipeline.spark.connection
        super().__init__(pool=self.spark_pool, durable=False, conn_id=connection, **arguments)
        self.pipeline = pipeline.name
        self.spark_connection = connection
        self.asked = _ASKED

    def execute(self, context: Any) -> Any:
        """Do the work, with the end that an error's kind asks for."""
        ctx = find_context(self.pipeline)
        with outcome(ctx):
            return self.work(ctx, context, lambda job: self.submit(job, context))

    @abstractmethod
    def work(self, ctx: Context, context: Any, submit: Submit) -> Any:
        """Plan, submit and end what this operator is for; return what the task returns."""

    def submit(self, job: SparkJob, context: Any) -> None:
        """Run a job to its end; raises LakeError("spark-failed"), ConfigError("connection-missing")."""
        from penstock.jobs import driver
        from penstock.orchestration.airflow_internals import describe_job, exit_status
        from penstock.orchestration.connections import require_spark

        require_spark(self.spark_connection)
        describe_job(self, job)
        try:
            with _environment(job.environment):
                super().execute(context)
        except AirflowException as error:
            if exit_status(error) == driver.UNWRITTEN:
                raise driver.unwritten(job.plan) from error
            raise LakeError(
                "spark-failed", f"expected {job.name} to end with a result; its log is above: {type(error).__name__}"
            ) from error


class CopyOperator(PenstockSparkOperator):
    """Copy every table that has no copy yet, under a snapshot that this task keeps open."""

    def work(self, ctx: Context, context: Any, submit: Submit) -> list[str]:  # noqa: ARG002  # as all operators
        """Return the tables copied by this try; finished tables stay finished when it fails."""
        from penstock.flow.load import bootstrap
        from penstock.orchestration import table_choices

        copied = bootstrap.copy(ctx, submit)
        table_choices.note(ctx)
        return copied


class MergeOperator(PenstockSparkOperator):
    """Prepare all that is due; nothing becomes visible before `publish`.

    The `last` merge of an era is left out where the DAG's param `merge_first` is false. One that `lingers` publishes by
    itself what it and its successors in the same Spark application prepare, where `merge.linger` says so.
    """

    def __init__(self, *, last: bool = False, lingers: bool = False, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.last = last
        self.lingers = lingers

    def execute(self, context: Any) -> Any:
        """Leave out what the DAG's run does not want; else as all operators."""
        return None if self.last and not context["params"]["merge_first"] else super().execute(context)

    def work(self, ctx: Context, context: Any, submit: Submit) -> str | None:
        """Return the attempt that `publish` may publish, or None when nothing was due or all is published."""
        from penstock.flow.merge import linger
        from penstock.flow.merge import run as merge

        force = bool(context["params"].get("force", False))
        if self.lingers and linger.lingers(ctx):
            self._linger(ctx, context, submit, force=force)
            return None
        with merge.merge_lock(ctx):
            return merge.prepare(ctx, submit, force=force, last=self.last)

    def _linger(self, ctx: Context, context: Any, submit: Submit, *, force: bool) -> None:
        from penstock.flow.merge import linger
        from penstock.orchestration.assets import tell_of_cut
        from penstock.orchestration.notifications import deliver
        from penstock.orchestration.other_dags import WaitingTasks

        linger.Lingering(
            ctx,
            submit,
            published=lambda cut: tell_of_cut(ctx, context, cut),
            why_end=WaitingTasks(context["ti"]).why_end,
            deliver=deliver,
        ).run(force=force)


class ResyncOperator(PenstockSparkOperator):
    """Copy the tables of the DAG's param `tables` again, none meaning all that wait, and build them next to the old ones."""

    spark_pool = BACKFILL_POOL

    def work(self, ctx: Context, context: Any, submit: Submit) -> list[str]:
        """Return the rebuilds; another try continues with what this one leaves."""
        from penstock.flow.load import run as rebuild

        return rebuild.resync(ctx, context["params"]["tables"] or None, submit, woken=woken(context))


class ReplayOperator(PenstockSparkOperator):
    """Build the tables that the DAG's params ask for from a copy and the windows since."""

    spark_pool = BACKFILL_POOL

    def work(self, ctx: Context, context: Any, submit: Submit) -> list[str]:
        """Return the rebuilds; another try continues with what this one leaves."""
        from penstock.flow.load import run as rebuild

        return rebuild.replay(ctx, replay_of(context["params"]), submit)


class SwitchOperator(PenstockSparkOperator):
    """Merge until the tables that were rebuilt have taken their names; shadows have none to take."""

    template_fields = ("asked", "rebuilds")

    def __init__(self, *, rebuilds: Any, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.rebuilds = rebuilds

    def work(self, ctx: Context, context: Any, submit: Submit) -> bool:
        """Return whether all of them are done."""
        from penstock.flow.load import run as rebuild
        from penstock.orchestration.assets import tell_of_cut

        done = rebuild.switch(ctx, self.rebuilds, submit)
        if cut := ctx.ledger.merges.last_cut(ctx.name):
            tell_of_cut(ctx, context, cut, measured=False)
        return done


def replay_of(params: Mapping[str, Any]) -> Replay:
    """Return the replay that a DAG's params ask for; an empty text means nothing."""
    from penstock.flow.load.replay_request import Replay

    return Replay(
        tables=tuple(params["tables"] or ()),
        from_=params["from"] or None,
        upto=params["upto"] or None,
        shadow=params["shadow"] or None,
    )


class MaintainOperator(PenstockSparkOperator):
    """Maintain the tables that the DAG's param `tables` names, or all; with `dry_run` only look."""

    def work(self, ctx: Context, context: Any, submit: Submit) -> dict[str, Any] | None:
        """Return what was done, as plain data."""
        from penstock.flow.maintain import run as maintain

        params = context["params"]
        report = maintain.maintain(ctx, submit, tables=params["tables"] or (), dry_run=bool(params["dry_run"]))
        return report.to_json() if report else None


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:  # only these: other threads of this process read the others meanwhile
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
