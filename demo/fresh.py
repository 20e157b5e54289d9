"""Make the demo begin from nothing, whatever an earlier one left: it may have been interrupted, or killed.

Only what is the demo's own goes: its DAGs are paused and their runs ended, its pipeline leaves the ledger, its
tables leave the lake, its files leave landing zone and warehouse. The source database is created again by `demo.source`.
"""

import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psycopg

from penstock.config.dags import WHEN
from penstock.config.model import Pipeline
from penstock.errors import LedgerError
from penstock.flow.context import Context
from penstock.landing.zone import LandingZone
from stack import lifecycle
from stack.airflow.airflow_server import Airflow
from stack.airflow.rest_api import AirflowApi, Json
from stack.background_process import Session
from stack.errors import StackError
from stack.paths import Project
from stack.progress import Progress
from stack.stack import Stack

NAME = "shop"
VERBS = tuple(WHEN)

LEDGER = "delete from penstock.pipeline where name = %(pipeline)s"
LAKE = (
    "delete from iceberg_tables where catalog_name = %(catalog)s "
    "and (table_namespace = %(namespace)s or starts_with(table_namespace, %(below)s))",
    "delete from iceberg_namespace_properties where catalog_name = %(catalog)s "
    "and (namespace = %(namespace)s or starts_with(namespace, %(below)s))",
)


def dag_ids(pipeline: Pipeline) -> list[str]:
    """Name the pipeline's DAGs."""
    return [f"{pipeline.name}.{verb}" for verb in VERBS]


def schedules_mark(project: Project) -> Path:
    """Name the file that is there while the demo's DAGs may be unpaused in Airflow's metadata."""
    return project.local / "demo-schedules-are-on"


def begun_mark(project: Project) -> Path:
    """Name the file that is there while source and pipeline can be continued with: the source is whole."""
    return project.local / "demo-has-begun"


def is_bootstrapped(ctx: Context) -> bool:
    """Return whether the pipeline's bootstrap has come to its end; a ledger that cannot be read knows of none."""
    with suppress(LedgerError):
        return ctx.ledger.pipelines.get(ctx.name).state in ("running", "halted")
    return False


def silent_stack(project: Project, progress: Progress) -> Stack:
    """Bring the stack up without anything of an earlier demo at work.

    What that left running is ended first. Where its DAGs may be unpaused they are paused before the scheduler starts.
    """
    stack = Stack.load(project)
    _stop(stack.airflow.session, progress)
    return up(project, progress, again=False)


def up(project: Project, progress: Progress, *, again: bool) -> Stack:
    """Bring the stack up, or leave it up, to go on with the demo that has begun (`again`) or to begin another one."""
    stack = Stack.load(project)
    if not again:
        _stop(stack.session("workload"), progress)
        if schedules_mark(project).exists() and not stack.airflow.session.is_alive():
            stack = lifecycle.start_servers(project, progress)
            with progress.step("Pausing the DAGs of an earlier demo"):
                _pause_without_scheduler(stack.airflow, NAME)
    return lifecycle.up(project, progress)


def _stop(session: Session, progress: Progress) -> None:
    if session.is_alive():
        with progress.step(f"Stopping {session.name}, left by an earlier demo"):
            session.stop()


def _pause_without_scheduler(airflow: Airflow, name: str) -> None:
    program = Path(airflow.environ["VIRTUAL_ENV"]) / "bin" / "airflow"
    said = subprocess.run(
        [program, "dags", "pause", "--yes", "--treat-dag-id-as-regex", rf"^{name}\."],
        env=dict(airflow.environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if said.returncode != 0:
        raise StackError("`airflow dags pause` to succeed", said.stderr.strip()[-2000:], "`make clean` starts over")


def end_runs(api: AirflowApi, pipeline: Pipeline) -> None:
    """Pause the pipeline's DAGs and end the runs that an earlier demo could not."""
    known = {dag["dag_id"] for dag in api.dags()}
    for dag_id in filter(known.__contains__, dag_ids(pipeline)):
        api.pause(dag_id)
        for run in unfinished(api.runs(dag_id)):
            api.call("PATCH", f"dags/{dag_id}/dagRuns/{run['dag_run_id']}", json={"state": "failed"})


def unfinished(runs: Iterable[Json]) -> list[Json]:
    """Return the runs that have not ended."""
    return [run for run in runs if run["state"] in ("queued", "running")]


def open_tasks(tasks: Iterable[Json]) -> list[Json]:
    """Return the tasks that have begun or wait for a slot, and have not ended."""
    return [task for task in tasks if task["state"] in ("running", "queued", "scheduled", "up_for_retry")]


def at_work(tasks: Iterable[Json]) -> list[str]:
    """Name the tasks that are running; the others of a paused DAG never begin, so they are not waited for."""
    return [task["task_id"] for task in tasks if task["state"] == "running"]


def forget(pipeline: Pipeline, ledger_dsn: str, landing: LandingZone, warehouse: LandingZone) -> None:
    """Take the pipeline out of the ledger and of the lake's catalog (one database, by its `ledger_dsn`), with its files.

    `warehouse` is the place of the lake's tables, which is cleared like the landing zone.
    """
    names = {
        "pipeline": pipeline.name,
        "catalog": pipeline.lake.catalog,
        "namespace": pipeline.namespace,
        "below": f"{pipeline.namespace}.",
    }
    with psycopg.connect(ledger_dsn) as connection:
        if connection.execute("select to_regclass('penstock.pipeline')").fetchone() != (None,):
            connection.execute(LEDGER, names)
        for statement in LAKE:
            connection.execute(statement, names)
    landing.delete_folder(pipeline.name)
    warehouse.delete_folder(pipeline.namespace)
