"""The pipeline that a verb works on, opened by name or by file; an error ends the process with its own words.

Connections come from the environment in Airflow's own form (`AIRFLOW_CONN_<ID>`), so that one definition serves both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import typer

from penstock.cli.printing import say
from penstock.cli.spark_submit import spark_master, spark_submit
from penstock.config import load_pipeline
from penstock.connections import Connection
from penstock.errors import PenstockError
from penstock.flow.context import Context
from penstock.flow.errors import record_errors
from penstock.flow.spark_job import Submit
from penstock.pipeline_files import find_pipeline


def home() -> Path:
    """Return the project folder."""
    return Path(os.environ.get("PENSTOCK_HOME", Path(__file__).resolve().parents[3]))


def find(name: str) -> Context:
    """Return the context of a pipeline given by name or by file."""
    environment = {"PENSTOCK_HOME": str(home()), **os.environ}
    if name.endswith((".yaml", ".yml")):
        pipeline = load_pipeline(Path(name), environment)
    else:
        folder = Path(os.environ.get("PENSTOCK_PIPELINES", home() / "include" / "pipelines"))
        pipeline = find_pipeline(name, folder, environment)
    resolver = partial(Connection.from_airflow_environment, environ=os.environ)
    return Context(pipeline, resolver, home(), environment, say)


@contextmanager
def opened(name: str) -> Iterator[Context]:
    """Open the pipeline; print and record a PenstockError, and end the process with status 1."""
    ctx: Context | None = None
    try:
        ctx = find(name)
        with record_errors(ctx):
            yield ctx
    except PenstockError as error:
        if ctx is None:  # an opened pipeline has said it already
            say(f"{error} See {error.runbook}.")
        raise typer.Exit(1) from None


@contextmanager
def unrecorded(name: str, status: int) -> Iterator[Context]:
    """Open the pipeline for a verb that leaves no trace; print a PenstockError, and end the process with a status."""
    try:
        yield find(name)
    except PenstockError as error:
        say(f"{error} See {error.runbook}.")
        raise typer.Exit(status) from None


def submitter(ctx: Context) -> Submit:
    """Return how Spark is started from a shell: the master is the Spark connection's host."""
    return spark_submit(spark_master(ctx.pipeline.spark.connection, os.environ), ctx.progress)
