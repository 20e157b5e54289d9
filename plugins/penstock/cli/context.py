"""The pipelines that a verb works on, and what becomes of its answer or its error.

Connections come from the environment in Airflow's own form (`AIRFLOW_CONN_<ID>`), so that one definition serves both.
"""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import typer

from penstock.cli import listing, printing
from penstock.cli.options import Status, status_of, worst
from penstock.cli.printing import bars
from penstock.config.connections import Connection
from penstock.config.files import clashes, read_folder
from penstock.config.paths import environment, folder, home
from penstock.errors import ConfigError, LakeError, LedgerError, PenstockError
from penstock.flow.check import Finding
from penstock.flow.context import Context, Stage
from penstock.flow.guards import record_errors
from penstock.flow.spark_job import SparkJob, Submit
from penstock.jobs import driver
from penstock.units import sentence, several


@dataclass(frozen=True)
class Answer:
    """Hold what a verb found of one pipeline: as plain data, and as text."""

    data: Mapping[str, Any]
    show: Callable[[], None] = lambda: None
    status: int = Status.DONE


Work = Callable[[Context], Answer | None]


def find(name: str, stage: Stage | None = None) -> Context:
    """Return the context of a pipeline given by name or by file."""
    pipeline, _ = listing.read_named(name)
    resolver = partial(Connection.from_airflow_environment, environ=os.environ)
    ctx = Context(pipeline, resolver, home(), environment(), printing.say)
    return replace(ctx, stage=stage) if stage else ctx


def clashing(ctx: Context, name: str | None) -> list[Finding]:
    """Find what a pipeline shares with other files of the folder and may not; `name` is how it was asked for."""
    found = clashes(ctx.pipeline, read_folder(folder(), environment()), listing.file_of(name))
    return [
        Finding("error", "config-invalid", str(each.key), f"{each.path}:{each.line}: {each.message}")
        for error in found
        for each in error.problems
    ]


def submitter(ctx: Context) -> Submit:
    """Return how Spark is started from a shell: the master is the Spark connection's host."""
    return spark_submit(spark_master(ctx.pipeline.spark.connection, os.environ), ctx.progress)


def answer(
    name: str | None,
    work_on: Work,
    *,
    every: bool = False,
    json: bool = False,
    recorded: bool = True,
    failed: int | None = None,
    works: bool = False,
) -> None:
    """Work on one pipeline, or each, print what was found, and end the process with the most urgent status.

    An error is printed with its runbook and, unless the verb leaves no trace, recorded. `failed` is the status of any error, for a verb
    that has statuses of its own. A verb that `works` ends with DECIDE where it has paused tables.
    """
    if (name is None) is not every:
        raise typer.BadParameter("expected the name of a pipeline, or --all")
    found: list[Mapping[str, Any]] = []
    statuses: list[int] = []
    read = read_folder(folder(), environment()) if every else None
    names = [str(name)] if read is None else [*read.pipelines]
    for each in names:
        data, status = _one(each, work_on, json=json, recorded=recorded, failed=failed, works=works)
        found.append(data)
        statuses.append(status)
    for error in () if read is None else read.problems:
        printing.say(sentence(str(error)))
        found.append(_error_data(None, error))
        statuses.append(Status.REFUSED)
    if json:
        printing.show_json(found if every else found[0])
    raise typer.Exit(worst(map(Status, statuses)) if every else statuses[0])


def _one(
    name: str, work_on: Work, *, json: bool, recorded: bool, failed: int | None, works: bool
) -> tuple[Mapping[str, Any], int]:
    ctx: Context | None = None
    try:
        with bars() as stage:
            ctx = find(name, stage)
            before = _paused(ctx) if works else {}
            with record_errors(ctx) if recorded else nullcontext():
                found = work_on(ctx)
    except PenstockError as error:
        if ctx is None or not recorded:  # a recorded error has been said already
            printing.say(sentence(str(error)))
        answered = failed_with(ctx.name if ctx else name, error)
        return answered.data, answered.status if failed is None else failed
    found = found or Answer({})
    if not json:
        found.show()
    paused = _paused(ctx).items() - before.items() if works else ()
    if not paused:
        return {"pipeline": ctx.name, **found.data}, found.status
    said = {table: reason for _, (table, reason) in sorted(paused)}
    printing.say(f"{several(len(said), 'table')} paused: {', '.join(said)}")
    return {"pipeline": ctx.name, **found.data, "paused": said}, worst((Status(found.status), Status.DECIDE))


def _paused(ctx: Context) -> dict[int, tuple[str, str]]:
    """Return the paused tables by oid, each with its name and why; none where there is no ledger yet."""
    with suppress(LedgerError):
        return {
            each.oid: (each.qualified, f"[{each.paused_slug}] {each.paused_reason}")
            for each in ctx.ledger.tables.all(ctx.name)
            if each.state == "paused"
        }
    return {}


def failed_with(name: str, error: PenstockError, data: Mapping[str, Any] | None = None) -> Answer:
    """Say where an error's runbook is, and return the error, and what is known besides, as plain data."""
    printing.say(f"Next: penstock runbook {error.slug} {name}")
    return Answer({**(data or {}), **_error_data(name, error)}, status=status_of(error))


def _error_data(name: str | None, error: PenstockError) -> dict[str, Any]:
    """Return an error as plain data."""
    return {"pipeline": name, "error": {"slug": error.slug, "message": error.message, "runbook": error.runbook}}


def spark_master(conn_id: str, environ: Mapping[str, str]) -> str:
    """Return the master URL of a Spark connection given as Airflow's JSON; raises ConfigError("connection-missing")."""
    name = f"AIRFLOW_CONN_{conn_id.upper()}"
    try:
        found = json.loads(environ[name])
        host, port = str(found["host"]), found.get("port")
    except (KeyError, TypeError, ValueError):
        raise ConfigError(
            "connection-missing",
            f'expected {name} to hold a Spark connection such as {{"conn_type": "spark", "host": "local[2]"}}',
        ) from None
    return f"{host}:{port}" if port else host


def spark_submit(master: str, progress: Callable[[str], None]) -> Submit:
    """Return a way to run a job on this Spark master; the application's own lines become progress."""

    def submit(job: SparkJob) -> None:
        command = ["spark-submit", "--master", master, "--name", job.name, "--driver-memory", job.driver_memory]
        for key, value in job.conf.items():
            command += ["--conf", f"{key}={value}"]
        command += ["--py-files", str(job.py_files), str(job.application), *job.arguments]
        environment = {**os.environ, **job.environment}
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as process:
            for line in process.stdout or ():
                progress(line.rstrip())
        if process.returncode == driver.UNWRITTEN:
            raise driver.unwritten(job.plan)
        if process.returncode:
            raise LakeError("spark-failed", f"expected {job.name} to end well, got exit code {process.returncode}")

    return submit
