"""Pipelines and contexts as Airflow sees them: files at parse time, connections at run time."""

from __future__ import annotations

import logging
import os
import runpy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from airflow.sdk import DAG, get_current_context, get_parsing_context

from penstock.config.files import clashes, find_pipeline, read_folder
from penstock.config.model import Pipeline
from penstock.config.paths import environment, folder, home
from penstock.flow.context import Context
from penstock.orchestration import lineage_facets, links
from penstock.printable import printable

VERBS = (
    "bootstrap",
    "capture",
    "changelog",
    "maintain",
    "merge",
    "recover",
    "replay",
    "resume",
    "resync",
    "skip_transaction",
    "slot_health",
    "teardown",
    "verify",
)
"""The DAG files that hold one DAG for each pipeline."""
log = logging.getLogger("penstock")
_unbuilt: dict[str, str] = {}
"""What was left out by `dags` in this process, by DAG."""


def dags(verb: str, build: Callable[[Pipeline], DAG]) -> dict[str, DAG]:
    """Return the DAGs `<pipeline>.<verb>` by id, for the names of a DAG file.

    While a task runs, only its own DAG is built. Otherwise what fails for one pipeline is left out and noted: Airflow
    schedules no DAG of a file that raises. `dags/config/files.py` shows what was left out as its import error.
    """
    wanted = get_parsing_context().dag_id
    if wanted is not None:
        name, _, asked = wanted.rpartition(".")
        return {wanted: _linked(build(find_pipeline(name, folder(), environment())))} if asked == verb else {}
    found = read_folder(folder(), environment())
    built: dict[str, DAG] = {}
    for name, pipeline in found.pipelines.items():
        try:
            dag = _linked(build(pipeline))
            dag.validate()
        except Exception as error:  # whatever it is, the other pipelines have nothing to do with it
            _unbuilt[f"{name}.{verb}"] = (
                f"{found.files[name]}:1: Airflow takes no DAG {name}.{verb} from this file: {type(error).__name__}: {error}"
            )
            log.exception("%s", _unbuilt[f"{name}.{verb}"])
        else:
            built[dag.dag_id] = dag
    return built


def _linked(dag: DAG) -> DAG:
    links.attach(dag)
    lineage_facets.attach(dag)
    return dag


def problems(dag_folder: Path) -> list[str]:
    """Return what is wrong with each pipeline file: what refuses it, or which of its DAGs Airflow does not take."""
    _unbuilt.clear()
    for verb in VERBS:
        runpy.run_path(str(dag_folder / f"{verb}.py"))
    found = read_folder(folder(), environment())
    alone = replace(found, seconds={})  # which are problems of their own
    shared = (error for pipeline in found.pipelines.values() for error in clashes(pipeline, alone))
    return [*(error.message for error in (*found.problems, *shared)), *_unbuilt.values()]


def context(pipeline: Pipeline) -> Context:
    """Return the pipeline's context inside a running task."""
    from penstock.orchestration.connections import connection
    from penstock.orchestration.work_notes import WorkNotes

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
