"""Spark work as an Airflow operator: the plan is made, and fenced, at every try of the task.

It stands on the provider's SparkSubmitOperator, so connections, deploy modes and kill behave as its users
know. Secrets reach the driver by the inherited environment, because the provider writes `env_vars` onto
the command line for YARN and Kubernetes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException

from penstock.errors import LakeError
from penstock.orchestration.tasks import SPARK_POOL, find_context, outcome

if TYPE_CHECKING:
    from penstock.config.model import Pipeline
    from penstock.flow.context import Context
    from penstock.flow.spark_job import SparkJob, Submit

_ASKED = "{% for name, value in params.items() %}{{ name }}: {{ value }}\n{% endfor %}"
Work = Callable[["Context", Any, "Submit"], Any]
"""Plan, submit and end what a task is for, with the pipeline's context and Airflow's; return what the task returns."""


class PenstockSparkOperator(SparkSubmitOperator):
    """Do work that submits jobs, described only when the task runs; what the DAG's run was asked for is shown as rendered."""

    template_fields: Sequence[str] = ("asked",)

    def __init__(self, *, pipeline: Pipeline, work: Work, pool: str = SPARK_POOL, **arguments: Any) -> None:
        connection = pipeline.spark.connection
        super().__init__(pool=pool, durable=False, conn_id=connection, **arguments)
        self.pipeline = pipeline.name
        self.spark_connection = connection
        self.work = work
        self.asked = _ASKED

    def execute(self, context: Any) -> Any:
        """Do the work, with the end that an error's kind asks for."""
        ctx = find_context(self.pipeline)
        with outcome(ctx):
            return self.work(ctx, context, lambda job: self.submit(job, context))

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
