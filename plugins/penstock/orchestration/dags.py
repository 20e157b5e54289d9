"""The DAGs of every pipeline: made of its file, with what all of them have in common."""

import runpy
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Param, get_parsing_context

from penstock.config.dags import MAIN_JOB, WHEN
from penstock.config.files import clashes, find_pipeline, read_folder
from penstock.config.model import Pipeline
from penstock.config.paths import environment, folder
from penstock.orchestration import lineage, links
from penstock.orchestration.tasks import FailureNotice, log

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
    lineage.attach(dag)
    return dag


def problems(dag_folder: Path) -> list[str]:
    """Return what is wrong with each pipeline file: what refuses it, or which of its DAGs Airflow does not take."""
    _unbuilt.clear()
    for verb in WHEN:
        runpy.run_path(str(dag_folder / f"{verb}.py"))
    found = read_folder(folder(), environment())
    alone = replace(found, seconds={})  # which are problems of their own
    shared = (error for pipeline in found.pipelines.values() for error in clashes(pipeline, alone))
    return [*(error.message for error in (*found.problems, *shared)), *_unbuilt.values()]


OWNER = "penstock"


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
